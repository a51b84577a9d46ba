//! A real Envoy: started on ports of the system's choice, awaited, asked, stopped.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{config::Config, eventually::eventually, http, processes::Process};

/// How long a start may take, on a slow machine that compiles the module.
const START: Duration = Duration::from_secs(60);

/// What to start.
pub struct Options<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its configuration. Ports of 0 are free ones.
    pub config: &'a Config,
    /// Number of worker threads.
    pub workers: u32,
}

/// A running Envoy. Dropping it stops it and removes its files.
pub struct Envoy {
    process: Process,
    admin: SocketAddr,
    listeners: BTreeMap<String, SocketAddr>,
    /// Holds the configuration and the log.
    _folder: TempDir,
}

impl Envoy {
    /// Starts an Envoy and waits until it serves.
    ///
    /// # Errors
    /// When it ends instead, as it does on a policy that the filter refuses, or is not ready in
    /// time: the error holds its log.
    pub async fn start(options: &Options<'_>) -> Result<Self> {
        Self::start_with(options, &[]).await
    }

    /// The same with further arguments, as in `["--drain-time-s", "2"]`.
    ///
    /// # Errors
    /// As [`Envoy::start`].
    pub async fn start_with(options: &Options<'_>, arguments: &[&str]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("weir-envoy-").tempdir()?;
        let mut command = command(options, folder.path())?;
        command.args(arguments);
        let mut process = Process::start("envoy", command, folder.path())?;
        let admin_file = admin_file(folder.path());
        let started = eventually("Envoy to be ready", START, async || {
            if let Some(status) = process.exited()? {
                bail!("Envoy ended at its start ({status})");
            }
            ready(&admin_file).await
        });
        let admin = started.await.map_err(|error| anyhow!("{error:#}\n{}", process.log()))?;
        let listeners = listeners(admin).await?;
        Ok(Self { process, admin, listeners, _folder: folder })
    }

    /// Where a listener listens.
    ///
    /// # Errors
    /// When there is no such listener.
    pub fn address(&self, listener: &str) -> Result<SocketAddr> {
        let address = self.listeners.get(listener).copied();
        address.with_context(|| format!("Envoy has no listener {listener}"))
    }

    /// Where the admin interface listens.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// What the admin interface says at a path.
    ///
    /// # Errors
    /// When it does not answer with 200.
    pub async fn admin_get(&self, path: &str) -> Result<String> {
        admin_get(self.admin, path).await
    }

    /// A counter or gauge; `None` where Envoy has none of that name (yet).
    ///
    /// # Errors
    /// When the admin interface does not answer.
    pub async fn stat(&self, name: &str) -> Result<Option<u64>> {
        // All of them are many where there are many listeners.
        let exactly: String = name.bytes().map(|byte| format!("%5Cx{byte:02x}")).collect();
        let text = self.admin_get(&format!("/stats?filter=%5E{exactly}%24")).await?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map(|value| value.parse().with_context(|| format!("{name} is {value}"))).transpose()
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The process, for its number and its end.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn command(options: &Options<'_>, folder: &Path) -> Result<Command> {
    let config = folder.join("envoy.json");
    fs::write(&config, options.config.value().to_string())?;
    let mut command = Command::new(options.program);
    command.arg("--config-path").arg(config);
    command.arg("--admin-address-path").arg(admin_file(folder));
    command.arg("--concurrency").arg(options.workers.to_string());
    // Of the module's messages all from `info` up, of Envoy's own what is wrong.
    command.args(["--log-level", "warning", "--component-log-level", "wasm:info"]);
    // No shared memory, so that any number can run at once.
    command.arg("--disable-hot-restart");
    Ok(command)
}

fn admin_file(folder: &Path) -> PathBuf {
    folder.join("admin-address")
}

/// The admin interface's address, once Envoy serves.
async fn ready(admin_file: &Path) -> Result<Option<SocketAddr>> {
    let Ok(text) = fs::read_to_string(admin_file) else { return Ok(None) };
    let Ok(address) = text.trim().parse() else { return Ok(None) };
    let answer = http::get(address, "/ready").await;
    Ok(answer.is_ok_and(|answer| answer.status == 200).then_some(address))
}

async fn admin_get(admin: SocketAddr, path: &str) -> Result<String> {
    let answer = http::get(admin, path).await?;
    ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.text());
    Ok(answer.text())
}

async fn listeners(admin: SocketAddr) -> Result<BTreeMap<String, SocketAddr>> {
    let text = admin_get(admin, "/listeners?format=json").await?;
    let value: Value = serde_json::from_str(&text)?;
    let statuses = value["listener_statuses"].as_array().context("Envoy lists no listeners")?;
    let reached = statuses.iter().filter(|status| !is_internal(status));
    reached.map(|status| listener(status).with_context(|| status.to_string())).collect()
}

/// Whether a listener is reached from inside Envoy alone.
fn is_internal(status: &Value) -> bool {
    status["local_address"].get("envoy_internal_address").is_some()
}

fn listener(status: &Value) -> Result<(String, SocketAddr)> {
    let name = status["name"].as_str().context("a listener without a name")?;
    let socket = &status["local_address"]["socket_address"];
    let ip = socket["address"].as_str().context("a listener without an address")?;
    let port = socket["port_value"].as_u64().context("a listener without a port")?;
    Ok((name.to_owned(), SocketAddr::new(ip.parse()?, u16::try_from(port)?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listener_is_read_from_what_envoy_lists() {
        let socket = json!({ "address": "127.0.0.1", "port_value": 4321 });
        let status = json!({ "name": "ingress", "local_address": { "socket_address": socket } });
        let expected = ("ingress".to_owned(), "127.0.0.1:4321".parse().unwrap());
        assert_eq!(listener(&status).unwrap(), expected);
        assert!(listener(&json!({ "name": "ingress" })).is_err());
    }

    #[tokio::test]
    async fn a_start_that_fails_holds_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("envoy");
        fs::write(&program, "#!/bin/sh\necho 'limits[0].rate: must be like …' >&2\nexit 1\n")
            .unwrap();
        make_executable(&program);
        let config = Config::parse("{}").unwrap();
        let options = Options { program: &program, config: &config, workers: 1 };
        let error = format!("{:#}", Envoy::start(&options).await.err().unwrap());
        assert!(error.contains("limits[0].rate"), "{error}");
        assert!(error.contains("ended at its start"), "{error}");
    }

    fn make_executable(path: &Path) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
