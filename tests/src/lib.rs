//! End-to-end tests of Weir, cases only: they start the shipped module in a real Envoy and the
//! shipped page in a real browser, by `weir-lab`. `cargo xtask test e2e` builds what they need and
//! says in the environment where it is.
