//! What the fuzz targets have found worth keeping, run by the ordinary suite.

use std::{fs, path::PathBuf};

#[path = "../fuzz/bodies.rs"]
mod bodies;

/// Runs every file that is kept for a target.
fn replay(target: &str, body: fn(&[u8])) -> usize {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
    for file in &files {
        body(&fs::read(file).unwrap());
    }
    files.len()
}

#[test]
fn the_corpus_of_the_replies_target() {
    assert!(replay("replies", bodies::replies) > 10);
}

#[test]
fn the_corpus_of_the_events_target() {
    assert!(replay("events", bodies::events) > 10);
}
