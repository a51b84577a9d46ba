//! Benchmarks of the core, kept apart from it so that its tests need not build what it is compared
//! with. `cargo xtask bench core` runs them.
