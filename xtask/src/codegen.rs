//! `cargo xtask codegen`: files that are generated from the code and checked in.

use std::{fs, process::ExitCode};

use anyhow::{Context as _, Result};

use crate::workspace::Workspace;

/// What makes the text of a file.
type Generate = fn() -> String;

/// Each generated file, and what makes it.
const FILES: [(&str, Generate); 1] = [("core/policy.schema.json", weir_core::config::schema)];

/// Writes every generated file, or checks that each is as generated.
pub(crate) fn command(workspace: &Workspace, check: bool) -> Result<ExitCode> {
    let mut stale = 0;
    for (path, generate) in FILES {
        let full = workspace.root.join(path);
        let generated = generate();
        if fs::read_to_string(&full).is_ok_and(|text| text == generated) {
            println!("  {path}: as generated");
        } else if check {
            println!("  {path}: stale; run `cargo xtask codegen`");
            stale += 1;
        } else {
            fs::write(&full, generated).with_context(|| full.display().to_string())?;
            println!("  {path}: written");
        }
    }
    Ok(if stale == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
