//! The measurements of running parts: the tools are found here, the lab does the rest.

use std::process::Command;

use anyhow::Result;

use crate::{build, run, tools, workspace::Workspace};

/// The scripts on a real Redis.
pub(super) fn scripts(workspace: &Workspace, keys: u64, quick: bool) -> Result<()> {
    let redis = tools::redis()?;
    let peers = tools::peers()?;
    let mut lab = lab(workspace, "scripts", quick)?;
    lab.arg("--redis").arg(redis);
    lab.arg("--node").arg(peers.node);
    lab.arg("--packages").arg(peers.folder);
    lab.arg("--keys").arg(keys.to_string());
    run::shown(&mut lab)
}

/// Ways of limiting in a real Envoy.
pub(super) fn redis(workspace: &Workspace, quick: bool) -> Result<()> {
    let builders = tools::for_build(workspace)?;
    let envoy = tools::envoy()?;
    let (redis, webdis) = (tools::redis()?, tools::webdis()?);
    let filter = run::step("the module for Envoy", || build::filter(workspace, &builders))?;
    let empty =
        run::step("a module that does nothing", || build::empty_filter(workspace, &builders))?;
    let mut lab = lab(workspace, "redis", quick)?;
    lab.arg("--envoy").arg(envoy);
    lab.arg("--filter").arg(filter);
    lab.arg("--empty-filter").arg(empty);
    lab.arg("--redis").arg(redis);
    lab.arg("--webdis").arg(webdis);
    run::shown(&mut lab)
}

/// The lab as it is measured with: its own work must not be what is slow.
fn lab(workspace: &Workspace, subject: &str, quick: bool) -> Result<Command> {
    run::step("the lab, which measures", || {
        run::shown(&mut workspace.cargo(["build", "--quiet", "--release", "-p", "weir-lab"]))
    })?;
    println!();
    let mut lab = workspace.cargo(["run", "--quiet", "--release", "-p", "weir-lab", "--", "bench"]);
    lab.arg(subject);
    if quick {
        lab.arg("--quick");
    }
    Ok(lab)
}
