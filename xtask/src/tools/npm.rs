//! Packages of npm.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::run;

/// Installs one version of a package into a folder.
pub(super) fn install(npm: &Path, package: &str, version: &str, folder: &Path) -> Result<()> {
    let mut command = Command::new(npm);
    command.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
    command.arg(format!("{package}@{version}")).current_dir(folder);
    run::shown(&mut command)
}
