//! Checks that ties the documents to the files they speak of.

use std::collections::BTreeSet;

use super::{Fault, source::File};

const DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"];
/// Folders that a path in a document may start with.
const FOLDERS: [&str; 9] =
    [".cargo/", ".ci/", "core/", "docs/", "envoy-filter/", "envoy/", "lab/", "tests/", "web/"];
const SDK: &str = "proxy-wasm";

/// What ARCHITECTURE says of the SDK holds for the version that is pinned.
pub(super) fn sdk_version(files: &[File]) -> Vec<Fault> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let Some(manifest) = find("Cargo.toml") else {
        return vec![missing("Cargo.toml")];
    };
    let Some(document) = find("ARCHITECTURE.md") else {
        return vec![missing("ARCHITECTURE.md")];
    };
    let Some(version) = pinned(&manifest.text) else {
        return vec![manifest.fault(0, format!("{SDK} is not pinned to one version"))];
    };
    let named = format!("{SDK} {version}");
    if document.text.contains(&named) {
        return Vec::new();
    }
    vec![document.fault(0, format!("does not speak of {named}, the version in Cargo.toml"))]
}

/// Paths and links that a document names lead somewhere.
pub(super) fn paths(files: &[File]) -> Vec<Fault> {
    let known = known_paths(files);
    let mut faults = Vec::new();
    for name in DOCUMENTS {
        let Some(document) = files.iter().find(|file| file.path == name) else {
            faults.push(missing(name));
            continue;
        };
        for (at, line) in document.text.lines().enumerate() {
            let named = links(line).chain(quoted_paths(line));
            let lost = named.filter(|path| !known.contains(path.trim_end_matches('/')));
            faults.extend(lost.map(|path| document.fault(at, format!("there is no {path}"))));
        }
    }
    faults
}

fn missing(path: &str) -> Fault {
    Fault { path: path.to_owned(), line: 1, what: "missing".to_owned() }
}

/// The version in `proxy-wasm = "=0.2.5"`.
fn pinned(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with(&format!("{SDK} = ")))?;
    let version = line.split_once("\"=")?.1;
    Some(version.split_once('"')?.0)
}

/// Every file and every folder.
fn known_paths(files: &[File]) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    for file in files {
        known.insert(file.path.as_str());
        let slashes = file.path.match_indices('/');
        known.extend(slashes.filter_map(|(at, _)| file.path.get(..at)));
    }
    known
}

/// The targets of `[…](target)` that lie in the repository.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    let targets = targets.map(|target| target.trim_start_matches("./"));
    targets.filter(|target| {
        !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
    })
}

/// What stands in backquotes and is a path from the repository's root, without placeholders.
fn quoted_paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain && FOLDERS.iter().any(|folder| text.starts_with(folder))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(check: super::super::Check, texts: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<File> = texts
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        let faults: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(faults, expected);
    }

    fn with_readme(text: &str) -> [(&str, &str); 4] {
        [
            ("README.md", text),
            ("ARCHITECTURE.md", ""),
            ("CHANGELOG.md", ""),
            ("core/src/lib.rs", ""),
        ]
    }

    #[test]
    fn the_version_described_is_the_one_pinned() {
        let manifest = ("Cargo.toml", "proxy-wasm = \"=0.2.5\"\n");
        check(sdk_version, &[manifest, ("ARCHITECTURE.md", "of proxy-wasm 0.2.5 are")], &[]);
        check(
            sdk_version,
            &[manifest, ("ARCHITECTURE.md", "of proxy-wasm 0.2.4 are")],
            &["ARCHITECTURE.md:1: does not speak of proxy-wasm 0.2.5, the version in Cargo.toml"],
        );
        check(
            sdk_version,
            &[("Cargo.toml", "proxy-wasm = \"0.2\"\n"), ("ARCHITECTURE.md", "")],
            &["Cargo.toml:1: proxy-wasm is not pinned to one version"],
        );
    }

    #[test]
    fn what_is_named_is_there() {
        check(
            paths,
            &with_readme("[a](core/src/lib.rs) [b](https://a.b/c) `core/src`, `core/`"),
            &[],
        );
        check(paths, &with_readme("[a](#part) `cargo xtask demo` `core/*.rs` `a/b`"), &[]);
    }

    #[test]
    fn what_is_not_there_is_found() {
        check(
            paths,
            &with_readme("a\n[b](gone.md) `core/src/gone.rs`"),
            &["README.md:2: there is no gone.md", "README.md:2: there is no core/src/gone.rs"],
        );
    }

    #[test]
    fn a_missing_document_is_found() {
        check(paths, &[("README.md", ""), ("CHANGELOG.md", "")], &["ARCHITECTURE.md:1: missing"]);
    }
}
