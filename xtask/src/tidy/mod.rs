//! `cargo xtask tidy`: what the documents promise about the code, checked.
//!
//! Each check reads the list of files and returns every fault it finds, so that one run shows all.

mod documents;
mod host;
mod layers;
mod layout;
mod source;

use std::{fmt, fs, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, bail, ensure};

use self::source::File;
use crate::{
    run::{self, Counts},
    workspace::Workspace,
};

/// A place where a promise does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    path: String,
    /// From 1.
    line: usize,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

type Check = fn(&[File]) -> Vec<Fault>;

/// Every check, by what it promises.
const CHECKS: [(&str, Check); 13] = [
    ("every module says what it is for", layout::module_docs),
    ("no trailing space, no tab", layout::white_space),
    ("no file is longer than 400 lines without its tests", layout::length),
    ("time is waited for in one place", layout::sleeps),
    ("no escape from the lints against panics", layout::escapes),
    ("the core has integers only", layers::integers),
    ("the core needs no std and no unsafe", layers::no_std),
    ("imports in the core go one way", layers::chain),
    ("serde stays in the core's config", layers::serde),
    ("three files talk to the host", host::calls),
    ("the filter has no statics", host::statics),
    ("the SDK's version is the one described", documents::sdk_version),
    ("what the documents name is there", documents::paths),
];

/// What a module with the test clock exports, and the shipped one must not contain.
const TEST_CLOCK: &[u8] = b"weir_test_clock";

pub(crate) fn command(workspace: &Workspace) -> Result<ExitCode> {
    let counts = run(workspace);
    println!("\n{counts}");
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs every check, prints every fault, and counts each check as one test.
pub(crate) fn run(workspace: &Workspace) -> Counts {
    let mut counts = Counts::default();
    let files = run::step("tidy", || {
        let files = source::read(&workspace.root)?;
        counts = report(&files);
        match counts.failed {
            0 => Ok(()),
            failed => bail!("{failed} of {} checks failed", CHECKS.len()),
        }
    });
    if files.is_err() && counts.failed == 0 {
        counts.failed = 1;
    }
    counts += built_modules(workspace);
    counts
}

fn report(files: &[File]) -> Counts {
    let mut counts = Counts::default();
    for (promise, check) in CHECKS {
        let faults = check(files);
        let (mark, sum) = if faults.is_empty() {
            ("✓", &mut counts.passed)
        } else {
            ("✗", &mut counts.failed)
        };
        *sum += 1;
        println!("  {mark} {promise}");
        for fault in faults {
            println!("    {fault}");
        }
    }
    counts
}

/// The shipped module, where it has been built.
fn built_modules(workspace: &Workspace) -> Counts {
    let filter = workspace.target.join("weir/weir_filter.wasm");
    if !filter.exists() {
        return Counts::default();
    }
    let result = run::step("the shipped module has no test clock", || without_test_clock(&filter));
    if result.is_ok() { Counts { passed: 1, failed: 0 } } else { Counts { passed: 0, failed: 1 } }
}

/// Checks that the shipped module has no trace of the clock that tests set, and that the other
/// module has it, which proves that this looks for the right thing.
pub(crate) fn modules(shipped: &Path, test_clock: &Path) -> Result<()> {
    ensure!(names_test_clock(test_clock)?, "{} has no test clock", test_clock.display());
    without_test_clock(shipped)
}

fn without_test_clock(shipped: &Path) -> Result<()> {
    ensure!(!names_test_clock(shipped)?, "{} has the test clock", shipped.display());
    Ok(())
}

fn names_test_clock(module: &Path) -> Result<bool> {
    let bytes = fs::read(module).with_context(|| module.display().to_string())?;
    Ok(bytes.windows(TEST_CLOCK.len()).any(|window| window == TEST_CLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::repository;

    /// Runs a check on one file and compares the lines of its faults.
    #[track_caller]
    pub(super) fn check(check: Check, path: &str, text: &str, expected: &[usize]) {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let faults = check(&[file]);
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, expected, "{text:?}: {faults:?}");
    }

    #[test]
    fn a_test_clock_in_the_shipped_module_is_found() {
        let folder = std::env::temp_dir().join(format!("weir-modules-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (without, with) = (folder.join("without"), folder.join("with"));
        fs::write(&without, "\0asm x-weir").unwrap();
        fs::write(&with, "\0asm weir_test_clock").unwrap();
        assert!(modules(&without, &with).is_ok());
        assert!(modules(&with, &with).is_err());
        assert!(modules(&without, &without).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_repository_is_tidy() {
        let files = source::read(&repository().unwrap()).unwrap();
        let faults: Vec<String> = CHECKS
            .iter()
            .flat_map(|(_, check)| check(&files))
            .map(|fault| fault.to_string())
            .collect();
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}
