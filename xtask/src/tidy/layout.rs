//! Checks on every file: documentation, white space, length, and what no file may do.

use super::{
    Fault,
    source::{File, words},
};

const MAX_LINES: usize = 400;
/// The crates that are shipped, where nothing may panic.
const SHIPPED: [&str; 3] = ["core/src/", "envoy-filter/src/", "web/src/"];
/// The lints that keep shipped code from panicking.
const LINTS: [&str; 6] = [
    "arithmetic_side_effects",
    "expect_used",
    "indexing_slicing",
    "panic",
    "string_slice",
    "unwrap_used",
];
/// The one file that may wait for time to pass.
const WAITS: &str = "lab/src/eventually.rs";

/// Every Rust file starts by saying what it is for.
pub(super) fn module_docs(files: &[File]) -> Vec<Fault> {
    let undocumented = |file: &&File| file.is_rust() && !file.text.starts_with("//!");
    let rust = files.iter().filter(undocumented);
    rust.map(|file| file.fault(0, "start with `//!` and what the module is for")).collect()
}

/// No trailing space, no tab, except where the text is not ours to change.
pub(super) fn white_space(files: &[File]) -> Vec<Fault> {
    let ours = files
        .iter()
        .filter(|file| !file.path.ends_with(".lock") && !file.path.starts_with("LICENSE"));
    each_line(ours, |line| {
        if line.ends_with([' ', '\t', '\r']) {
            return Some("trailing space".to_owned());
        }
        line.contains('\t').then(|| "a tab".to_owned())
    })
}

/// No source file is long. Tests and data may be.
pub(super) fn length(files: &[File]) -> Vec<Fault> {
    let sources = files.iter().filter(|file| {
        let is_source = [".rs", ".lua", ".js"].iter().any(|end| file.path.ends_with(end));
        is_source && !file.path.starts_with("core/vectors/")
    });
    let lengths = sources.map(|file| (file, shipped_lines(file)));
    lengths
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(file, lines)| {
            file.fault(MAX_LINES, format!("{lines} lines without tests; at most {MAX_LINES}"))
        })
        .collect()
}

/// Waiting is for a condition and with a deadline, and written once.
pub(super) fn sleeps(files: &[File]) -> Vec<Fault> {
    let others = files.iter().filter(|file| file.is_rust() && file.path != WAITS);
    let sleeping = |line: &str| {
        let sleeps = line.contains("thread::sleep") || line.contains("time::sleep");
        sleeps.then(|| format!("a sleep: wait for a condition with {WAITS}"))
    };
    others
        .flat_map(|file| {
            let code = super::source::code(&file.text);
            let lines = code.lines().enumerate();
            lines.filter_map(|(at, line)| Some(file.fault(at, sleeping(line)?))).collect::<Vec<_>>()
        })
        .collect()
}

/// Shipped code has no local escape from the lints against panics.
pub(super) fn escapes(files: &[File]) -> Vec<Fault> {
    let is_shipped =
        |file: &&File| file.is_rust() && SHIPPED.iter().any(|folder| file.path.starts_with(folder));
    files.iter().filter(is_shipped).flat_map(escapes_of).collect()
}

fn escapes_of(file: &File) -> Vec<Fault> {
    let code = file.shipped_code().join("\n");
    let mut faults = Vec::new();
    for (start, _) in code.match_indices("#[").chain(code.match_indices("#![")) {
        let attribute = code.get(start..).and_then(|rest| rest.split(']').next());
        let attribute = attribute.unwrap_or_default();
        let loosens = words(attribute).any(|(_, word)| word == "allow" || word == "expect");
        if !loosens || attribute.contains("cfg_attr(test,") {
            continue;
        }
        for (at, lint) in words(attribute).filter(|(_, word)| LINTS.contains(word)) {
            let line = code.get(..start + at).unwrap_or_default().matches('\n').count();
            faults.push(file.fault(line, format!("an escape from {lint}")));
        }
    }
    faults
}

fn each_line<'a>(
    files: impl Iterator<Item = &'a File>,
    fault: impl Fn(&str) -> Option<String>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in files {
        // Not `lines()`, which hides a carriage return.
        for (at, line) in file.text.split('\n').enumerate() {
            faults.extend(fault(line).map(|what| file.fault(at, what)));
        }
    }
    faults
}

fn shipped_lines(file: &File) -> usize {
    if !file.is_rust() {
        return file.text.lines().count();
    }
    let code = super::source::without_tests(&file.text);
    let last = code.lines().enumerate().filter(|(_, line)| !line.is_empty()).last();
    last.map_or(0, |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check;

    #[test]
    fn a_module_starts_with_what_it_is_for() {
        check(module_docs, "core/src/a.rs", "//! A.\n", &[]);
        check(module_docs, "core/src/a.rs", "use b;\n", &[1]);
        check(module_docs, "core/vectors/a.toml", "a = 1\n", &[]);
    }

    #[test]
    fn white_space_is_clean() {
        check(white_space, "a.rs", "a\nb\n", &[]);
        check(white_space, "a.rs", "a \n\tb\nc\r\n", &[1, 2, 3]);
    }

    #[test]
    fn tests_do_not_count_as_length() {
        let long = "a\n".repeat(400);
        check(length, "a.rs", &long, &[]);
        check(length, "a.rs", &format!("{long}#[cfg(test)]\nmod tests {{\n    b\n}}\n"), &[]);
        check(length, "a.rs", &format!("{long}b\n"), &[401]);
        check(length, "core/vectors/a.rs", &format!("{long}b\n"), &[]);
    }

    #[test]
    fn only_one_file_sleeps() {
        let text = "std::thread::sleep(a);\ntokio::time::sleep(b).await;\n// thread::sleep\n";
        check(sleeps, "lab/src/load.rs", text, &[1, 2]);
        check(sleeps, WAITS, text, &[]);
    }

    #[test]
    fn shipped_code_does_not_escape_its_lints() {
        check(escapes, "core/src/a.rs", "#![deny(clippy::panic)]\n", &[]);
        check(escapes, "core/src/a.rs", "a.expect(b); panic!()\n", &[]);
        check(escapes, "core/src/a.rs", "#[allow(clippy::unwrap_used)]\n", &[1]);
        check(
            escapes,
            "web/src/a.rs",
            "#[expect(\n    clippy::panic,\n    reason = \"\"\n)]\n",
            &[2],
        );
        check(escapes, "core/src/a.rs", "#[cfg(test)]\n#[allow(clippy::panic)]\nmod a {\n}\n", &[]);
        check(escapes, "lab/src/a.rs", "#[allow(clippy::unwrap_used)]\n", &[]);
    }

    #[test]
    fn a_lint_may_be_off_in_tests() {
        check(escapes, "core/src/a.rs", "#![cfg_attr(test, allow(clippy::panic))]\n", &[]);
        check(escapes, "core/src/a.rs", "#![cfg_attr(b, allow(clippy::panic))]\n", &[1]);
    }
}
