//! The checked-in JSON Schema is the one that the core generates.

use std::path::Path;
use weir_core::config;

#[test]
fn the_schema_in_the_repository_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy.schema.json");
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(checked_in == config::schema(), "run `cargo xtask codegen`");
}
