//! The Redis that the scripts are tested on.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{debian, on_path, say};
use crate::{run, tools::cache::shorten};

pub(crate) fn find() -> Result<PathBuf> {
    const NAME: &str = "redis-server";
    if on_path(NAME).is_none() {
        debian::install_server(NAME, "the server that the scripts are tested on")?;
    }
    let path = on_path(NAME).context("redis-server is still not on PATH")?;
    let text = run::quiet(Command::new(&path).arg("--version"))?;
    let version = text.split_whitespace().find_map(|word| word.strip_prefix("v="));
    let version = version.with_context(|| format!("no version in {text:?}"))?;
    let major: u64 = version.split('.').next().unwrap_or_default().parse()?;
    ensure!(major >= 7, "redis-server {version} is too old for the tests: they need 7.0 or later");
    say("redis", &format!("{version}, found at {}", shorten(&path)));
    Ok(path)
}
