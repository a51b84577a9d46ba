//! The Redis that the scripts are tested on.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{debian, on_path, say};
use crate::tools::cache::shorten;

pub(crate) fn find() -> Result<PathBuf> {
    const NAME: &str = "redis-server";
    if on_path(NAME).is_none() {
        debian::install(&[NAME], "the server that the scripts are tested on")?;
    }
    let path = on_path(NAME).context("redis-server is still not on PATH")?;
    say("redis", &format!("found at {}", shorten(&path)));
    Ok(path)
}
