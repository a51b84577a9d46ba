//! `cargo xtask`: builds, shows and checks Weir, and fetches whatever a machine lacks for it.

mod bench;
mod build;
mod codegen;
mod demo;
mod flags;
mod page;
mod run;
mod stamp;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    flags::{Command, Flags},
    workspace::Workspace,
};

fn main() -> ExitCode {
    match dispatch(Flags::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match command {
        Command::Bench { subject } => bench::command(&workspace, subject),
        Command::Build => build::command(&workspace),
        Command::Codegen { check } => codegen::command(&workspace, check),
        Command::Demo { check, port, store } => demo::command(&workspace, check, port, store),
        Command::Test { part } => test::command(&workspace, part),
        Command::Tidy => tidy::command(&workspace),
    }
}
