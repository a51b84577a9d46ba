//! Packages of the system, where they may be installed; else the command to run.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{on_path, say};
use crate::run;

/// Installs packages by apt: as root, or by a sudo that asks for no password.
pub(crate) fn install(packages: &[&str], why: &str) -> Result<()> {
    let list = packages.join(" ");
    if on_path("apt-get").is_none() {
        bail!("missing {why}: install {list} with the system's package manager");
    }
    let Some(prefix) = root_prefix() else {
        bail!(
            "missing {why}; run this and start again:\n  \
             sudo apt-get update && sudo apt-get install -y {list}"
        );
    };
    say("apt", &format!("installing {list} ({why}; up to a minute or two)"));
    run::shown(apt(prefix).arg("update")).context("apt-get update")?;
    run::shown(apt(prefix).args(["install", "-y", "--no-install-recommends"]).args(packages))
        .with_context(|| format!("apt-get install {list}"))
}

/// What goes before `apt-get`, or `None` where it would ask for a password.
fn root_prefix() -> Option<&'static [&'static str]> {
    let id = run::quiet(Command::new("id").arg("-u")).unwrap_or_default();
    if id.trim() == "0" {
        return Some(&[]);
    }
    let may = run::quiet(Command::new("sudo").args(["-n", "true"])).is_ok();
    may.then_some(&["sudo", "-n"])
}

fn apt(prefix: &[&str]) -> Command {
    let mut words = prefix.iter().copied().chain(["apt-get"]);
    let mut command = Command::new(words.next().unwrap_or("apt-get"));
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
