//! Upstash's own client, which shows that the lab's REST server speaks Upstash's protocol.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{Cache, debian, npm, on_path, say};
use crate::run;

const VERSION: &str = "1.39.0";
const MODULE: &str = "node_modules/@upstash/redis/nodejs.mjs";
/// The first Node with `fetch`.
const NODE: u64 = 18;

/// The client's module.
pub(crate) fn find(cache: &Cache) -> Result<PathBuf> {
    if on_path("node").is_none() || on_path("npm").is_none() {
        debian::install(&["nodejs", "npm"], "Node.js, which runs the client of Upstash")?;
    }
    let node = run::quiet(Command::new("node").arg("--version"))?;
    let major = major(&node).with_context(|| format!("no version in {node:?}"))?;
    ensure!(major >= NODE, "Node.js {} is too old: it needs {NODE} or later", node.trim());
    let npm = on_path("npm").context("npm is still not on PATH")?;
    let tool = format!("upstash-redis-{VERSION}");
    if let Some(path) = cache.get(&tool, MODULE) {
        say("@upstash/redis", &format!("{VERSION}, found in {}", cache.shown()));
        return Ok(path);
    }
    say("@upstash/redis", &format!("installing {VERSION} with npm (for a test; some seconds)"));
    cache.install(&tool, MODULE, |folder| npm::install(&npm, "@upstash/redis", VERSION, folder))
}

/// `v20.20.2` → 20.
fn major(version: &str) -> Option<u64> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_node_says() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("something else"), None);
    }
}
