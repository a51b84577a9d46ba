//! `cargo xtask build`: the module for Envoy, and the playground.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

use crate::{
    page, run,
    stamp::{self, Inputs},
    tools::{self, Builders},
    workspace::{Workspace, clean},
};

const TRIPLE: &str = "wasm32-unknown-unknown";

/// Only what the compiler's output uses, by name: with `--all-features` wasm-opt writes encodings
/// that Envoy's V8 does not load. `-g` keeps the names, so that a trap has a backtrace.
const WASM_OPT: [&str; 8] = [
    "-O3",
    "-g",
    "--enable-bulk-memory",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
];

/// What `cargo xtask build` makes.
pub(crate) struct Built {
    /// The module for Envoy.
    pub(crate) filter: PathBuf,
    /// A folder of static files.
    pub(crate) page: PathBuf,
}

pub(crate) fn command(workspace: &Workspace) -> Result<ExitCode> {
    let builders = tools::for_build(workspace)?;
    let built = all(workspace, &builders)?;
    println!("\n{}", workspace.shown(&built.filter));
    println!("{}/", workspace.shown(&built.page));
    Ok(ExitCode::SUCCESS)
}

/// Builds both. What is up to date is left alone.
pub(crate) fn all(workspace: &Workspace, builders: &Builders) -> Result<Built> {
    let filter = run::step("the module for Envoy", || filter(workspace, builders))?;
    let page = run::step("the playground", || page(workspace, builders))?;
    Ok(Built { filter, page })
}

/// The module whose clock the tests set; it is built in a folder of its own, so that the two
/// never replace one another.
pub(crate) fn test_clock(workspace: &Workspace, builders: &Builders) -> Result<PathBuf> {
    let target = workspace.target.join("test-clock");
    let mut cargo = filter_build(workspace);
    cargo.args(["--features", "test-clock", "--target-dir"]).arg(&target);
    let output = workspace.target.join("weir-test/weir_filter_test_clock.wasm");
    module(&mut cargo, &compiled(&target, "weir_filter"), &output, builders)?;
    Ok(output)
}

/// The module for Envoy.
pub(crate) fn filter(workspace: &Workspace, builders: &Builders) -> Result<PathBuf> {
    let output = workspace.target.join("weir/weir_filter.wasm");
    let compiled = compiled(&workspace.target, "weir_filter");
    module(&mut filter_build(workspace), &compiled, &output, builders)?;
    Ok(output)
}

/// The module that does nothing, to measure what any module costs.
pub(crate) fn empty_filter(workspace: &Workspace, builders: &Builders) -> Result<PathBuf> {
    let output = workspace.target.join("weir-bench/weir_empty_filter.wasm");
    let mut cargo = module_build(workspace, "weir-empty-filter");
    let compiled = compiled(&workspace.target, "weir_empty_filter");
    module(&mut cargo, &compiled, &output, builders)?;
    Ok(output)
}

fn filter_build(workspace: &Workspace) -> Command {
    module_build(workspace, "weir-filter")
}

fn module_build(workspace: &Workspace, package: &str) -> Command {
    workspace.cargo(["build", "-p", package, "--lib", "--profile", "filter", "--target", TRIPLE])
}

/// Where cargo leaves a module.
fn compiled(target: &Path, name: &str) -> PathBuf {
    target.join(TRIPLE).join("filter").join(name).with_extension("wasm")
}

/// Compiles a module, optimises it where that is possible, and says its size.
fn module(cargo: &mut Command, compiled: &Path, output: &Path, builders: &Builders) -> Result<()> {
    run::shown(cargo)?;
    let recipe = match &builders.wasm_opt {
        Some(wasm_opt) => format!("{} {}", wasm_opt.display(), WASM_OPT.join(" ")),
        None => "as compiled".to_owned(),
    };
    let inputs = Inputs { paths: vec![compiled.to_owned()], recipe: &recipe };
    create_parent(output)?;
    stamp::build(output, &inputs, || match &builders.wasm_opt {
        Some(wasm_opt) => optimise(wasm_opt, compiled, output),
        None => copy(compiled, output),
    })?;
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    println!("  {name}: {} kB", fs::metadata(output)?.len() / 1000);
    Ok(())
}

fn optimise(wasm_opt: &Path, from: &Path, to: &Path) -> Result<()> {
    let mut command = Command::new(wasm_opt);
    command.args(WASM_OPT).arg(from).arg("-o").arg(to);
    run::shown(&mut command)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("{} → {}", from.display(), to.display()))?;
    Ok(())
}

fn create_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a path without a folder")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())
}

/// What the page is built from.
const PAGE_INPUTS: [&str; 6] =
    ["Cargo.lock", "Cargo.toml", "core", "index.html", "web", "xtask/src/page.rs"];

fn page(workspace: &Workspace, builders: &Builders) -> Result<PathBuf> {
    let output = workspace.target.join("weir/playground");
    let pack = workspace.target.join("wasm-pack");
    let mut wasm_pack = wasm_pack(workspace, builders, &pack)?;
    let recipe = run::line(&wasm_pack);
    let paths = PAGE_INPUTS.iter().map(|path| workspace.root.join(path)).collect();
    create_parent(&output)?;
    let built = stamp::build(&output, &Inputs { paths, recipe: &recipe }, || {
        run::shown(&mut wasm_pack)?;
        page::assemble(&workspace.root, &pack, &output)
    })?;
    if !built {
        println!("  nothing has changed");
    }
    Ok(output)
}

/// The command that `page.rs` describes. It downloads nothing: the tools are on its `PATH`.
fn wasm_pack(workspace: &Workspace, builders: &Builders, pack: &Path) -> Result<Command> {
    let mut command = clean(&builders.wasm_pack);
    command.args(["build", "web", "--target", "web", "--profile", "page"]);
    command.args(["--mode", "no-install", "--no-pack", "--no-typescript"]);
    if builders.wasm_opt.is_none() {
        // There may be an old one on PATH, which could not read the module.
        command.arg("--no-opt");
    }
    command.arg("--out-dir").arg(pack).current_dir(&workspace.root);
    command.env("CARGO_TARGET_DIR", &workspace.target).env("PATH", builders.path()?);
    Ok(command)
}
