//! Tools that come as Rust crates, and the compiler's targets.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{Cache, on_path, say, version};
use crate::{run, tools::cache::shorten, workspace::clean};

const WASM_PACK_VERSION: &str = "0.15.1";

/// How tools are compiled: they run for seconds, so the time to build them counts for more.
const QUICK: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

/// Makes sure that the compiler has the library of a target.
pub(crate) fn target(name: &str, why: &str) -> Result<()> {
    if has_target(name)? {
        say("rust target", &format!("{name}, found in the toolchain"));
        return Ok(());
    }
    let Some(rustup) = on_path("rustup") else {
        bail!(
            "the Rust toolchain lacks the target {name} ({why}), and there is no rustup to add it"
        )
    };
    say("rust target", &format!("adding {name} to the toolchain (for {why}; some seconds)"));
    run::shown(Command::new(rustup).args(["target", "add", name]))
}

/// `wasm-pack`, which makes the page's module.
pub(crate) fn wasm_pack(cache: &Cache) -> Result<PathBuf> {
    install(
        cache,
        &Crate {
            name: "wasm-pack",
            program: "wasm-pack",
            version: WASM_PACK_VERSION,
            // Its own lock file is known to build.
            locked: true,
            why: "packs the page",
            takes: "1 to 4 minutes",
        },
    )
}

/// The folder of `wasm-bindgen`, which must have the very version of the library of that name.
pub(crate) fn wasm_bindgen(cache: &Cache, version: &str) -> Result<PathBuf> {
    let program = install(
        cache,
        &Crate {
            name: "wasm-bindgen-cli",
            program: "wasm-bindgen",
            version,
            // The lock file packed with 0.2.130 does not build.
            locked: false,
            why: "joins the page's module and the browser",
            takes: "1 to 4 minutes",
        },
    )?;
    Ok(program.with_file_name(""))
}

/// A program to be had by `cargo install`.
struct Crate<'a> {
    name: &'a str,
    program: &'a str,
    version: &'a str,
    locked: bool,
    why: &'a str,
    takes: &'a str,
}

fn install(cache: &Cache, wanted: &Crate<'_>) -> Result<PathBuf> {
    let Crate { program, version: number, .. } = *wanted;
    let (tool, file) = (format!("{program}-{number}"), format!("bin/{program}"));
    if let Some(path) = cache.get(&tool, &file) {
        say(program, &format!("{number}, found in {}", cache.shown()));
        return Ok(path);
    }
    let here = on_path(program).filter(|path| version(path).is_ok_and(|found| found == number));
    if let Some(path) = here {
        say(program, &format!("{number}, found at {}", shorten(&path)));
        return Ok(path);
    }
    say(program, &format!("installing {number} with cargo ({}; {})", wanted.why, wanted.takes));
    cache.install(&tool, &file, |folder| cargo_install(wanted, folder))
}

fn cargo_install(wanted: &Crate<'_>, folder: &Path) -> Result<()> {
    // A folder of its own, or the install would wait for a build that runs in the workspace's.
    let target = folder.join("build");
    let mut cargo = clean(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.env("CARGO_TARGET_DIR", &target).envs(QUICK).current_dir(folder);
    // Or cargo would advise to put this folder, which is renamed in a moment, on PATH.
    let path = env::var_os("PATH").unwrap_or_default();
    let bin = std::iter::once(folder.join("bin"));
    cargo.env("PATH", env::join_paths(bin.chain(env::split_paths(&path)))?);
    cargo.args(["install", wanted.name, "--version", wanted.version, "--no-track", "--root"]);
    cargo.arg(folder);
    if wanted.locked {
        cargo.arg("--locked");
    }
    run::shown(&mut cargo)
        .with_context(|| format!("cannot install {} {}", wanted.name, wanted.version))?;
    fs::remove_dir_all(&target).with_context(|| target.display().to_string())
}

fn has_target(name: &str) -> Result<bool> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = run::quiet(Command::new(rustc).args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim_end()).join("lib/rustlib").join(name).join("lib").is_dir())
}
