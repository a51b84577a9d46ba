//! `wasm-opt` from npm, where npm is there. Weir works without it: the modules are then larger.

use std::path::PathBuf;

use anyhow::Result;

use super::{Cache, npm, on_path, say};

/// Older ones, Debian's among them, cannot read what today's compiler writes.
const VERSION: &str = "132";
const PROGRAM: &str = "node_modules/.bin/wasm-opt";

pub(crate) fn find(cache: &Cache) -> Result<Option<PathBuf>> {
    let tool = format!("binaryen-{VERSION}");
    let (Some(program), Some(_)) = (on_path("npm"), on_path("node")) else {
        say("wasm-opt", "no npm to install it with: going on without, the modules stay larger");
        return Ok(None);
    };
    if let Some(path) = cache.get(&tool, PROGRAM) {
        say("wasm-opt", &format!("{VERSION}, found in {}", cache.shown()));
        return Ok(Some(path));
    }
    say(
        "wasm-opt",
        &format!("installing {VERSION} with npm (makes modules smaller; some seconds)"),
    );
    match cache
        .install(&tool, PROGRAM, |folder| npm::install(&program, "binaryen", VERSION, folder))
    {
        Ok(path) => Ok(Some(path)),
        Err(error) => {
            say("wasm-opt", &format!("going on without, the modules stay larger: {error:#}"));
            Ok(None)
        }
    }
}
