//! A real webdis in front of a Redis, on a free port of 127.0.0.1.

use std::{fs, net::SocketAddr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    eventually::eventually,
    http,
    processes::{Process, free_port},
};

/// How long it may take to answer for the first time.
const START: Duration = Duration::from_secs(20);

/// Ports tried: between finding a free one and webdis's taking it, another may come first.
const TRIES: u32 = 10;

/// A running webdis; it is stopped when the value is dropped.
pub struct Webdis {
    // Before the folder that its log is in.
    process: Process,
    address: SocketAddr,
    _folder: TempDir,
}

impl Webdis {
    /// Starts a webdis before the Redis at an address, which must answer.
    ///
    /// # Errors
    /// When there is no webdis, or it does not answer.
    pub async fn start(program: &Path, redis: SocketAddr, password: Option<&str>) -> Result<Self> {
        for _ in 0..TRIES {
            if let Some(webdis) = Self::start_on(program, free_port()?, redis, password).await? {
                return Ok(webdis);
            }
        }
        bail!("no port of {TRIES} was still free when webdis started on it")
    }

    /// `None` if another has taken the port.
    async fn start_on(
        program: &Path,
        address: SocketAddr,
        redis: SocketAddr,
        password: Option<&str>,
    ) -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let name = mark(folder.path());
        let config = config(address, redis, password, &name);
        let file = folder.path().join("webdis.json");
        fs::write(&file, serde_json::to_vec(&config)?)?;
        let mut command = Command::new(program);
        command.arg(file).current_dir(folder.path());
        let process = Process::start("webdis", command, folder.path())?;
        let mut webdis = Self { process, address, _folder: folder };
        let started = eventually("webdis to answer", START, async || {
            if webdis.process.exited()?.is_some() {
                return Ok(Some(false));
            }
            let answer = http::get(address, "/").await;
            Ok(answer.is_ok_and(|answer| answer.text().contains(&name)).then_some(true))
        });
        match started.await.with_context(|| webdis.log()) {
            Ok(true) => Ok(Some(webdis)),
            Ok(false) if webdis.log().contains("Address already in use") => Ok(None),
            Ok(false) => bail!("webdis did not start:\n{}", webdis.log()),
            Err(error) => Err(error),
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops it where it is, until [`Webdis::thaw`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&mut self) -> Result<()> {
        self.process.freeze()
    }

    /// Lets it go on. It then answers what was sent meanwhile.
    pub fn thaw(&mut self) {
        self.process.thaw();
    }
}

/// What this webdis alone says, so that no other that has the port is taken for it.
fn mark(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn config(
    address: SocketAddr,
    redis: SocketAddr,
    password: Option<&str>,
    name: &str,
) -> serde_json::Value {
    json!({
        "redis_host": redis.ip(),
        "redis_port": redis.port(),
        // It takes anything but text for no password.
        "redis_auth": password,
        "http_host": address.ip(),
        "http_port": address.port(),
        // What `GET /` stands for.
        "default_root": format!("/ECHO/{name}"),
        "threads": 2,
        "pool_size": 4,
        "database": 0,
        "daemonize": false,
        "websockets": false,
        // Errors and warnings.
        "verbosity": 1,
        "logfile": "/dev/stdout",
    })
}
