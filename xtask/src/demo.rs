//! `cargo xtask demo`: the tools, both builds, then the lab, which runs everything.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{build, flags::Store, run, tools, workspace::Workspace};

pub(crate) fn command(
    workspace: &Workspace,
    check: bool,
    port: Option<u16>,
    store: Option<Store>,
) -> Result<ExitCode> {
    let builders = tools::for_build(workspace)?;
    let envoy = tools::envoy()?;
    // What is not asked for is not installed.
    let all = check && store.is_none();
    let shared = matches!(store, Some(Store::Redis | Store::Cluster | Store::Webdis));
    let redis = if all || shared { Some(tools::redis()?) } else { None };
    let front = all || store == Some(Store::Webdis);
    let webdis = if front { Some(tools::webdis()?) } else { None };
    let built = build::all(workspace, &builders)?;
    run::step("the lab, which runs them", || {
        run::shown(&mut workspace.cargo(["build", "-p", "weir-lab"]))
    })?;
    println!();
    let mut lab = workspace.cargo(["run", "--quiet", "-p", "weir-lab", "--", "demo"]);
    lab.arg("--envoy").arg(envoy);
    lab.arg("--filter").arg(built.filter);
    lab.arg("--page").arg(built.page);
    if check {
        lab.arg("--check");
    }
    for (flag, program) in [("--redis", redis), ("--webdis", webdis)] {
        if let Some(program) = program {
            lab.arg(flag).arg(program);
        }
    }
    if let Some(store) = store {
        lab.arg("--store").arg(store.name());
    }
    if let Some(port) = port {
        lab.arg("--port").arg(port.to_string());
    }
    become_command(lab)
}

/// Lets the lab take this process's place, so that Ctrl-C and signals reach it and nobody else.
#[cfg(unix)]
fn become_command(mut command: Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec().into())
}

#[cfg(not(unix))]
fn become_command(mut command: Command) -> Result<ExitCode> {
    Ok(if command.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
