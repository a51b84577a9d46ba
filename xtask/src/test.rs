//! `cargo xtask test`: every part in turn, whatever became of the one before, and the sum at the end.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::{
    build,
    flags::Part,
    run::{self, Counts},
    tidy,
    tools::{self, Browser},
    workspace::Workspace,
};

/// Runs the tests of one part, or of all. The last line printed is `N passed, M failed`.
pub(crate) fn command(workspace: &Workspace, part: Option<Part>) -> Result<ExitCode> {
    let parts = part.map_or_else(|| Part::ALL.to_vec(), |part| vec![part]);
    let done: Vec<Done> = parts.into_iter().map(|part| run_part(workspace, part)).collect();
    let mut sum = Counts::default();
    println!("\n{:<8} {:>7} {:>7} {:>9}", "part", "passed", "failed", "time");
    for Done { part, counts, took } in &done {
        let took = run::seconds(*took);
        println!("{:<8} {:>7} {:>7} {took:>9}", part.name(), counts.passed, counts.failed);
        sum += *counts;
    }
    println!("\n{sum}");
    Ok(if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A part that has been run.
struct Done {
    part: Part,
    counts: Counts,
    took: Duration,
}

fn run_part(workspace: &Workspace, part: Part) -> Done {
    println!("\n── {} {}", part.name(), "─".repeat(60));
    let start = Instant::now();
    let mut steps = Steps { workspace, counts: Counts::default() };
    match part {
        Part::Tidy => tidy_part(&mut steps),
        Part::Core => core_part(&mut steps),
        Part::Filter => filter_part(&mut steps),
        Part::Web => web_part(&mut steps),
        Part::E2e => e2e_part(&mut steps),
    }
    Done { part, counts: steps.counts, took: start.elapsed() }
}

/// The steps of one part, and what they counted.
struct Steps<'a> {
    workspace: &'a Workspace,
    counts: Counts,
}

impl Steps<'_> {
    /// A step that has no tests of its own counts as one test.
    fn check(&mut self, title: &str, work: impl FnOnce() -> Result<()>) {
        self.get(title, work);
    }

    /// A step whose result later steps need; it counts as one test.
    fn get<T>(&mut self, title: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        let result = run::step(title, work).ok();
        self.counts += match result {
            Some(_) => Counts { passed: 1, failed: 0 },
            None => Counts { passed: 0, failed: 1 },
        };
        result
    }

    /// Tests that print `test result:` lines.
    fn tests(&mut self, title: &str, command: &mut Command) {
        let mut counts = Counts::default();
        let result = run::step(title, || {
            let outcome = run::counted(command)?;
            counts = outcome.counts;
            match outcome {
                run::Outcome { success: false, .. } => bail!("{}", outcome.counts),
                run::Outcome { counts: Counts { passed: 0, failed: 0 }, .. } => {
                    bail!("no test was run")
                }
                _ => Ok(()),
            }
        });
        if result.is_err() && counts.failed == 0 {
            counts.failed = 1;
        }
        self.counts += counts;
    }
}

fn tidy_part(steps: &mut Steps<'_>) {
    let workspace = steps.workspace;
    let cargo = |args: &[&str]| run::shown(workspace.cargo([]).args(args));
    let lint = |args: &[&str]| {
        let before: &[&str] = &["clippy", "--quiet", "--keep-going"];
        cargo(&[before, args, &["--", "-D", "warnings"]].concat())
    };
    const WASM: [&str; 2] = ["--target", "wasm32-unknown-unknown"];
    steps.check("formatting", || cargo(&["fmt", "--all", "--check"]));
    steps.check("lints", || lint(&["--workspace", "--all-targets"]));
    steps.check("lints of the filter as a module", || {
        lint(&[&["-p", "weir-filter", "--features", "test-clock"], &WASM[..]].concat())
    });
    steps.check("lints of the page as a module", || {
        lint(&[&["-p", "weir-web", "--all-targets"], &WASM[..]].concat())
    });
    let counts = tidy::run(workspace);
    steps.counts += counts;
}

fn core_part(steps: &mut Steps<'_>) {
    let workspace = steps.workspace;
    let mut cargo =
        workspace.cargo(["test", "--no-fail-fast", "-p", "weir-core", "-p", "weir-vectors"]);
    steps.tests("the limiters: unit, property and documentation tests, vectors", &mut cargo);
    steps.check("the core without an operating system", || {
        let target = tools::bare_target()?;
        run::shown(&mut workspace.cargo(["build", "-p", "weir-core", "--target", target]))
    });
}

fn filter_part(steps: &mut Steps<'_>) {
    let mut cargo = steps.workspace.cargo(["test", "--no-fail-fast"]);
    cargo.args(["-p", "weir-filter", "-p", "weir-lab", "-p", "xtask"]);
    steps.tests("the filter's logic, the lab, the commands", &mut cargo);
}

fn web_part(steps: &mut Steps<'_>) {
    let workspace = steps.workspace;
    let mut cargo = workspace.cargo(["test", "--no-fail-fast", "-p", "weir-web"]);
    steps.tests("the page's logic, natively", &mut cargo);
    let found = steps.get("tools", || Ok((tools::for_build(workspace)?, tools::browser()?)));
    let Some((builders, browser)) = found else {
        return;
    };
    let Some(path) = steps.get("search path", || builders.path()) else {
        return;
    };
    let mut wasm_pack = crate::workspace::clean(&builders.wasm_pack);
    wasm_pack
        .args(["test", "--headless", "--chrome", "--mode", "no-install", "web"])
        .current_dir(&workspace.root)
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env("PATH", path)
        .env("CHROMEDRIVER", &browser.chromedriver);
    steps.tests("the page's logic, in a browser", &mut wasm_pack);
}

fn e2e_part(steps: &mut Steps<'_>) {
    let workspace = steps.workspace;
    let found = steps.get("tools", || Ok((tools::for_build(workspace)?, EndToEndTools::find()?)));
    let Some((builders, tools)) = found else {
        return;
    };
    let Ok(built) = build::all(workspace, &builders) else {
        steps.counts.failed += 1;
        return;
    };
    let clock = steps
        .get("the module whose clock the tests set", || build::test_clock(workspace, &builders));
    let Some(clock) = clock else { return };
    steps.check("the shipped module has no trace of that clock", || {
        tidy::modules(&built.filter, &clock)
    });
    let mut cargo = workspace.cargo(["test", "--no-fail-fast", "-p", "weir-tests"]);
    let parts: [(&str, &Path); 9] = [
        ("WEIR_ENVOY", &tools.envoy),
        ("WEIR_REDIS", &tools.redis),
        ("WEIR_WEBDIS", &tools.webdis),
        ("WEIR_UPSTASH_CLIENT", &tools.upstash_client),
        ("WEIR_FILTER", &built.filter),
        ("WEIR_FILTER_TEST_CLOCK", &clock),
        ("WEIR_PLAYGROUND", &built.page),
        ("WEIR_CHROMEDRIVER", &tools.browser.chromedriver),
        ("WEIR_CHROMIUM", &tools.browser.chromium),
    ];
    cargo.envs(parts);
    steps.tests("the real Envoy and the real browser", &mut cargo);
}

/// What the end-to-end tests start.
struct EndToEndTools {
    envoy: PathBuf,
    redis: PathBuf,
    webdis: PathBuf,
    upstash_client: PathBuf,
    browser: Browser,
}

impl EndToEndTools {
    fn find() -> Result<Self> {
        Ok(Self {
            envoy: tools::envoy()?,
            redis: tools::redis()?,
            webdis: tools::webdis()?,
            upstash_client: tools::upstash_client()?,
            browser: tools::browser()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: (u64, u64)) {
        let workspace = Workspace { root: ".".into(), target: "target".into() };
        let mut steps = Steps { workspace: &workspace, counts: Counts::default() };
        steps.tests("a script", Command::new("sh").args(["-c", script]));
        let Counts { passed, failed } = steps.counts;
        assert_eq!((passed, failed), expected);
    }

    #[test]
    fn results_of_several_programs_are_added() {
        check(
            "echo 'test result: ok. 2 passed; 0 failed'; echo 'test result: ok. 3 passed; 0 failed'",
            (5, 0),
        );
    }

    #[test]
    fn a_step_that_fails_without_counting_counts_as_one_failed() {
        check("echo 'test result: ok. 2 passed; 0 failed'; exit 1", (2, 1));
        check("exit 101", (0, 1));
    }

    #[test]
    fn failed_tests_are_not_counted_twice() {
        check("echo 'test result: FAILED. 2 passed; 3 failed'; exit 101", (2, 3));
    }

    #[test]
    fn a_step_without_any_test_fails() {
        check("true", (0, 1));
    }
}
