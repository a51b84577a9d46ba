//! The rate limiters from npm that Weir's scripts are measured beside, and the client they use.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{Cache, on_path, say};
use crate::run;

/// Of @upstash/ratelimit the last version that asks for no more than its limit in a call, and whose
/// scripts a plain Redis takes: 2.1 marks them with a flag that only Upstash's servers know.
const PACKAGES: [&str; 4] = [
    "@upstash/ratelimit@2.0.7",
    "ioredis@5.11.1",
    "rate-limiter-flexible@11.4.0",
    "redis-gcra@0.3.0",
];
/// Changes with the list, so that an old installation is not taken for this one.
const TOOL: &str = "peers-1";
/// What npm writes when everything is there.
const COMPLETE: &str = "node_modules/.package-lock.json";

/// Where they are, and what runs them.
pub(crate) struct Peers {
    pub(crate) node: PathBuf,
    /// Holds `node_modules`.
    pub(crate) folder: PathBuf,
}

pub(crate) fn find() -> Result<Peers> {
    let cache = Cache::find()?;
    let tools = on_path("npm").zip(on_path("node"));
    let (npm, node) = tools.context("node and npm are missing: they run what is compared with")?;
    let list = PACKAGES.join(", ");
    let lock = match cache.get(TOOL, COMPLETE) {
        Some(lock) => {
            say("peers", &format!("{list}, found in {}", cache.shown()));
            lock
        }
        None => {
            say(
                "peers",
                &format!("installing {list} with npm (what is compared with; some seconds)"),
            );
            cache.install(TOOL, COMPLETE, |folder| install(&npm, folder))?
        }
    };
    let folder = lock.parent().and_then(Path::parent).context("a folder")?.to_owned();
    Ok(Peers { node, folder })
}

fn install(npm: &Path, folder: &Path) -> Result<()> {
    let mut command = Command::new(npm);
    // Libraries need no scripts at their installation.
    command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
    command.arg(folder).args(PACKAGES).current_dir(folder);
    run::shown(&mut command)
}
