//! The corpus of decisions, run by the core as the host's processor runs it.

#[path = "support/corpus.rs"]
mod corpus;

#[test]
fn the_core_decides_as_the_corpus_says() {
    let cases = weir_vectors::corpus().unwrap();
    let differences: Vec<_> =
        cases.iter().flat_map(|case| corpus::differences(case).unwrap()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{} cases agree", cases.len());
}
