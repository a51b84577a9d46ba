//! The tools that Weir is built and tested with: each is found, or else installed.
//!
//! Every tool says in one line where it was found, or what is being installed, and why. Whatever is
//! installed goes into one cache folder of the user, shared by all clones.

mod browser;
mod cache;
mod debian;
mod envoy;
mod npm;
mod peers;
mod redis;
mod rust;
mod upstash;
mod wasm_opt;
mod webdis;

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use self::cache::Cache;
pub(crate) use self::{browser::Browser, peers::find as peers};
use crate::{run, workspace::Workspace};

/// What the two wasm builds need.
pub(crate) struct Builders {
    pub(crate) wasm_pack: PathBuf,
    /// Holds `wasm-bindgen` and `wasm-bindgen-test-runner` in the version of `Cargo.lock`.
    pub(crate) bindgen_folder: PathBuf,
    /// `None`: the modules are used as the compiler leaves them.
    pub(crate) wasm_opt: Option<PathBuf>,
}

impl Builders {
    /// `PATH` with these tools before all others.
    pub(crate) fn path(&self) -> Result<OsString> {
        let wasm_opt = self.wasm_opt.as_deref().and_then(Path::parent);
        let first = [Some(self.bindgen_folder.as_path()), wasm_opt];
        let first = first.into_iter().flatten().map(Path::to_owned);
        let rest = env::var_os("PATH").unwrap_or_default();
        Ok(env::join_paths(first.chain(env::split_paths(&rest)))?)
    }
}

/// The tools for both builds.
pub(crate) fn for_build(workspace: &Workspace) -> Result<Builders> {
    let cache = Cache::find()?;
    println!("Tools (what is missing goes to {})", cache.shown());
    rust::target("wasm32-unknown-unknown", "both wasm builds")?;
    let version = workspace.locked_version("wasm-bindgen")?;
    Ok(Builders {
        wasm_pack: rust::wasm_pack(&cache)?,
        bindgen_folder: rust::wasm_bindgen(&cache, &version)?,
        wasm_opt: wasm_opt::find(&cache)?,
    })
}

/// The Envoy to run.
pub(crate) fn envoy() -> Result<PathBuf> {
    envoy::find(&Cache::find()?)
}

/// The browser that the tests drive.
pub(crate) fn browser() -> Result<Browser> {
    browser::find()
}

/// The Redis that the scripts are tested on.
pub(crate) fn redis() -> Result<PathBuf> {
    redis::find()
}

/// The webdis that the filter is tested with.
pub(crate) fn webdis() -> Result<PathBuf> {
    webdis::find()
}

/// The module of Upstash's own client.
pub(crate) fn upstash_client() -> Result<PathBuf> {
    upstash::find(&Cache::find()?)
}

/// The target without an operating system, for the proof that the core needs none.
pub(crate) fn bare_target() -> Result<&'static str> {
    const TARGET: &str = "thumbv7em-none-eabi";
    rust::target(TARGET, "the proof that the core needs no operating system")?;
    Ok(TARGET)
}

/// One line about a tool.
fn say(tool: &str, what: &str) {
    println!("  {tool:<14} {what}");
}

/// A program on `PATH`.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The last word of what a program says to `--version`.
fn version(program: &Path) -> Result<String> {
    let text = run::quiet(Command::new(program).arg("--version"))?;
    let word = text.split_whitespace().last().context("--version says nothing")?;
    Ok(word.to_owned())
}
