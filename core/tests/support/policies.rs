//! Policies as an operator writes them, and what the core says of them.

use weir_core::{config, policy::Policy};

/// Checks that a policy is refused with exactly these faults, one a line.
pub(crate) fn refused(text: &str, faults: &[impl AsRef<str>]) {
    let found = config::parse(text.as_bytes()).expect_err("accepted");
    let found: Vec<_> = found.as_slice().iter().map(ToString::to_string).collect();
    assert_eq!(found, faults.iter().map(AsRef::as_ref).collect::<Vec<_>>());
}

/// A policy that has no fault.
pub(crate) fn accepted(text: &str) -> Policy {
    config::parse(text.as_bytes()).unwrap_or_else(|faults| panic!("{faults}"))
}
