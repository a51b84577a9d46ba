//! What the tests start, and where they find it.

// Each test file is a crate of its own and uses its part of this.
#![allow(dead_code, unreachable_pub)]

pub mod fleet;
pub mod stores;

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use weir_lab::{
    config::Config,
    envoy::{Envoy, Options},
    serve::Server,
};

/// A path that `cargo xtask test` puts in the environment.
pub fn artefact(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    path.unwrap_or_else(|| panic!("{variable} is not set; run `cargo xtask test e2e`")).into()
}

/// The module that is shipped.
pub fn shipped() -> PathBuf {
    artefact("WEIR_FILTER")
}

/// The module that takes the time from the request header `x-weir-test-now`.
pub fn with_test_clock() -> PathBuf {
    artefact("WEIR_FILTER_TEST_CLOCK")
}

/// A file of `envoy/`.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy").join(name)
}

/// A running Envoy and the upstream behind it.
pub struct Running {
    pub envoy: Envoy,
    pub upstream: Server,
}

/// A configuration of `envoy/` on free ports, with a module in the place of its own.
pub fn config(example_name: &str, module: &Path) -> Result<Config> {
    let mut config = Config::load(&example(example_name))?;
    config.free_ports()?;
    config.set_module(module)?;
    Ok(config)
}

/// Starts Envoy with an upstream.
pub async fn start(mut config: Config, workers: u32) -> Result<Running> {
    let upstream = Server::start(None).await?;
    config.set_endpoint("upstream", upstream.address())?;
    let program = artefact("WEIR_ENVOY");
    let envoy = Envoy::start(&Options { program: &program, config: &config, workers }).await?;
    Ok(Running { envoy, upstream })
}

/// Starts Envoy with the embedded store and one policy.
pub async fn start_local(policy: &str, workers: u32) -> Result<Running> {
    let mut config = config("local.yaml", &shipped())?;
    config.set_policy("ingress", policy)?;
    start(config, workers).await
}

impl Running {
    /// A counter of the filter; 0 before it is first used.
    pub async fn count(&self, name: &str) -> Result<u64> {
        let name = format!("wasmcustom.weir.{name}");
        Ok(self.envoy.stat(&name).await.context(name)?.unwrap_or(0))
    }

    /// Checks that no worker's VM has died.
    pub async fn assert_never_reloaded(&self) -> Result<()> {
        let reloads = self.envoy.stat("wasm.weir.vm_reload").await?;
        assert_eq!(reloads, Some(0), "{}", self.envoy.log());
        Ok(())
    }
}
