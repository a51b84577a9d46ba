//! Packages of the system, where they may be installed; else the command to run.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{on_path, say};
use crate::run;

/// Installs packages by apt: as root, or by a sudo that asks for no password.
pub(crate) fn install(packages: &[&str], why: &str) -> Result<()> {
    install_with(packages, &[], why)
}

/// Installs a server's program without its service. The tests start it themselves, and nothing is
/// to listen on its port only because a test has once been run here.
pub(crate) fn install_server(package: &str, why: &str) -> Result<()> {
    install_with(&[package], &without_service(package), why)
}

fn install_with(packages: &[&str], options: &[String], why: &str) -> Result<()> {
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
    let mut install = apt(prefix);
    install.args(["install", "-y", "--no-install-recommends"]).args(options).args(packages);
    run::shown(&mut install).with_context(|| format!("apt-get install {list}"))
}

/// Leaves out the files that would make a service of it. What the package does after its
/// installation starts nothing then.
fn without_service(package: &str) -> Vec<String> {
    let scripts = ["/etc/init.d/", "/lib/systemd/system/", "/usr/lib/systemd/system/"];
    let exclude = |folder: &str| format!("--path-exclude={folder}{package}*");
    let options = scripts.into_iter().map(exclude);
    options.flat_map(|option| ["-o".to_owned(), format!("Dpkg::Options::={option}")]).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_comes_without_what_would_start_it() {
        let options = without_service("webdis");
        let excluded = "Dpkg::Options::=--path-exclude=/etc/init.d/webdis*";
        assert_eq!(options.get(..2), Some(&["-o".to_owned(), excluded.to_owned()][..]));
        assert_eq!(options.len(), 6);
    }
}
