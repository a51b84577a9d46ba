//! The corpus of decisions, run by the page's build of the core in a browser.
#![cfg(target_arch = "wasm32")]

use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

#[path = "../../core/tests/support/corpus.rs"]
mod corpus;

wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn the_page_decides_as_the_corpus_says() {
    let cases = weir_vectors::corpus().unwrap();
    let differences: Vec<_> =
        cases.iter().flat_map(|case| corpus::differences(case).unwrap()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
