//! webdis, the HTTP server in front of Redis that the filter is tested with.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{debian, on_path, say};
use crate::tools::cache::shorten;

pub(crate) fn find() -> Result<PathBuf> {
    const NAME: &str = "webdis";
    if on_path(NAME).is_none() {
        debian::install_server(NAME, "an HTTP server in front of Redis, for the tests")?;
    }
    let path = on_path(NAME).context("webdis is still not on PATH")?;
    // It has no --version: whatever the argument, it would start.
    say("webdis", &format!("found at {}", shorten(&path)));
    Ok(path)
}
