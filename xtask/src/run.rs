//! Running a command: what is shown of it, how long it took, and the tests it counted.

use std::{
    fmt,
    io::{BufRead as _, BufReader},
    ops::AddAssign,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// What became of a command whose tests were counted.
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// Whether the command itself ended well.
    pub(crate) success: bool,
}

/// Runs a command in silence and returns what it printed; an error holds what it complained of.
pub(crate) fn quiet(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", line(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}\n{}", line(command), output.status, complaint.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command with its output and progress shown.
pub(crate) fn shown(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    if !status.success() {
        bail!("{}: {status}", line(command));
    }
    Ok(())
}

/// Runs a command with its output shown, and counts the tests it reports.
pub(crate) fn counted(command: &mut Command) -> Result<Outcome> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", line(command)))?;
    let stdout = child.stdout.take().context("the command has no output")?;
    let mut counts = Counts::default();
    for text in BufReader::new(stdout).split(b'\n') {
        let text = text?;
        let text = String::from_utf8_lossy(&text);
        println!("{text}");
        if let Some(more) = test_result(&text) {
            counts += more;
        }
    }
    Ok(Outcome { counts, success: child.wait()?.success() })
}

/// Does one step under a headline, and says how long it took.
pub(crate) fn step<T>(title: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("\n▸ {title}");
    let start = Instant::now();
    let result = work();
    let took = seconds(start.elapsed());
    match &result {
        Ok(_) => println!("✓ {title} ({took})"),
        Err(error) => println!("✗ {title} ({took}): {error:#}"),
    }
    result
}

/// A duration with as many digits as are of use.
pub(crate) fn seconds(duration: Duration) -> String {
    let millis = duration.as_millis();
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

/// A command as one would type it, without the program's folder.
pub(crate) fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let mut words = vec![name.to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

/// The counts of a line like `test result: ok. 3 passed; 1 failed; 0 ignored; …`.
fn test_result(line: &str) -> Option<Counts> {
    let (_, result) = line.split_once("test result: ")?;
    let number_before = |word: &str| -> Option<u64> {
        result.split_once(word)?.0.rsplit([' ', ';', '.']).next()?.parse().ok()
    };
    Some(Counts { passed: number_before(" passed")?, failed: number_before(" failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(u64, u64)>) {
        let expected = expected.map(|(passed, failed)| Counts { passed, failed });
        assert_eq!(test_result(line), expected);
    }

    #[test]
    fn result_lines_are_counted() {
        check("test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured", Some((12, 0)));
        check("test result: FAILED. 3 passed; 1 failed; 0 ignored", Some((3, 1)));
        check("    test result: ok. 5 passed; 0 failed; 0 ignored; finished in 0.1s", Some((5, 0)));
    }

    #[test]
    fn other_lines_are_not_counted() {
        check("test a_result_is_ok ... ok", None);
        check("running 3 tests", None);
        check("test result: unknown", None);
    }

    #[test]
    fn output_is_counted_and_the_exit_status_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'test result: FAILED. 2 passed; 1 failed'; exit 101"]);
        let outcome = counted(&mut command).unwrap();
        assert_eq!(outcome.counts, Counts { passed: 2, failed: 1 });
        assert!(!outcome.success);
    }

    #[test]
    fn an_error_holds_what_the_command_complained_of() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such thing >&2; exit 3"]);
        let error = quiet(&mut command).unwrap_err().to_string();
        assert!(error.contains("no such thing"), "{error}");
    }

    #[test]
    fn seconds_have_one_digit() {
        assert_eq!(seconds(Duration::from_millis(12_345)), "12.3 s");
    }
}
