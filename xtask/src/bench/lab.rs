//! The measurements of running parts: the tools are found here, the lab does the rest.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::{
    build, run,
    tools::{self, Builders},
    workspace::Workspace,
};

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
    let parts = Parts::find(workspace)?;
    let empty = run::step("a module that does nothing", || {
        build::empty_filter(workspace, &parts.builders)
    })?;
    let mut lab = lab(workspace, "redis", quick)?;
    parts.add_to(&mut lab);
    lab.arg("--empty-filter").arg(empty);
    run::shown(&mut lab)
}

/// Fleets of Envoys.
pub(super) fn fleet(workspace: &Workspace, quick: bool) -> Result<()> {
    let parts = Parts::find(workspace)?;
    let mut lab = lab(workspace, "fleet", quick)?;
    parts.add_to(&mut lab);
    run::shown(&mut lab)
}

/// Latencies while a shared store fails.
pub(super) fn outage(workspace: &Workspace, quick: bool) -> Result<()> {
    let parts = Parts::find(workspace)?;
    let mut lab = lab(workspace, "outage", quick)?;
    parts.add_to(&mut lab);
    run::shown(&mut lab)
}

/// Minutes of load.
pub(super) fn soak(workspace: &Workspace, minutes: u32) -> Result<()> {
    let parts = Parts::find(workspace)?;
    let mut lab = lab(workspace, "soak", false)?;
    parts.add_to(&mut lab);
    lab.arg("--minutes").arg(minutes.to_string());
    run::shown(&mut lab)
}

/// What all need that is measured in Envoy.
struct Parts {
    builders: Builders,
    envoy: PathBuf,
    redis: PathBuf,
    webdis: PathBuf,
    filter: PathBuf,
}

impl Parts {
    fn find(workspace: &Workspace) -> Result<Self> {
        let builders = tools::for_build(workspace)?;
        let envoy = tools::envoy()?;
        let (redis, webdis) = (tools::redis()?, tools::webdis()?);
        let filter = run::step("the module for Envoy", || build::filter(workspace, &builders))?;
        Ok(Self { builders, envoy, redis, webdis, filter })
    }

    fn add_to(&self, lab: &mut Command) {
        let Self { envoy, redis, webdis, filter, .. } = self;
        lab.arg("--envoy").arg(envoy).arg("--filter").arg(filter);
        lab.arg("--redis").arg(redis).arg("--webdis").arg(webdis);
    }
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
