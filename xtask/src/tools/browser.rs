//! The browser that the tests drive, and its driver.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{debian, on_path, say};
use crate::tools::cache::shorten;

const CHROMIUM: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const CHROMEDRIVER: [&str; 1] = ["chromedriver"];

/// Programs of matching versions.
pub(crate) struct Browser {
    pub(crate) chromium: PathBuf,
    pub(crate) chromedriver: PathBuf,
}

pub(crate) fn find() -> Result<Browser> {
    if let Some(browser) = present() {
        return Ok(browser.said());
    }
    // A browser without fonts draws text of no width.
    debian::install(
        &["chromium", "chromium-driver", "fonts-liberation"],
        "a browser and its driver, which the page's tests need",
    )?;
    Ok(present().context("chromium and chromedriver are still not on PATH")?.said())
}

fn present() -> Option<Browser> {
    let first = |names: &[&str]| names.iter().find_map(|name| on_path(name));
    let driver = env::var_os("CHROMEDRIVER").map(PathBuf::from).filter(|path| path.is_file());
    Some(Browser {
        chromium: first(&CHROMIUM)?,
        chromedriver: driver.or_else(|| first(&CHROMEDRIVER))?,
    })
}

impl Browser {
    fn said(self) -> Self {
        let found = |path: &Path| format!("found at {}", shorten(path));
        say("chromium", &found(&self.chromium));
        say("chromedriver", &found(&self.chromedriver));
        self
    }
}
