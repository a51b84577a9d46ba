//! Checks on the core: integers, no std, no unsafe, and imports in one direction.

use super::{
    Fault,
    source::{File, words},
};

const CORE: &str = "core/src/";

/// The modules of the core, lowest layer first. A module imports from lower layers and from its
/// own.
const LAYERS: [&[&str]; 7] = [
    &["units", "bounds", "decision"],
    &["limiter"],
    &["key", "store", "script"],
    &["policy"],
    &["combine"],
    &["response"],
    &["config", "sim", "replay"],
];

/// No float type and no float literal.
pub(super) fn integers(files: &[File]) -> Vec<Fault> {
    each_line(files, |_, line| float(line).map(|found| format!("a float: {found}")))
}

/// No std outside tests, no unsafe.
pub(super) fn no_std(files: &[File]) -> Vec<Fault> {
    each_line(files, |_, line| {
        let found = words(line).find(|(at, word)| match *word {
            "unsafe" => true,
            "std" => line
                .get(at + 3..)
                .is_some_and(|rest| rest.starts_with("::") || rest.starts_with(';')),
            _ => false,
        });
        found.map(|(_, word)| format!("{word} in the core"))
    })
}

/// serde's types and the text of policies are the config's affair.
pub(super) fn serde(files: &[File]) -> Vec<Fault> {
    each_line(files, |file, line| {
        if module_of(file) == Some("config") {
            return None;
        }
        let found = words(line).find(|(_, word)| word.starts_with("serde"));
        found.map(|(_, word)| format!("{word} outside the config"))
    })
}

/// Each module of the core imports only from the layers below its own.
pub(super) fn chain(files: &[File]) -> Vec<Fault> {
    core_files(files).flat_map(chain_of).collect()
}

fn chain_of(file: &File) -> Vec<Fault> {
    let Some(module) = module_of(file) else {
        return Vec::new();
    };
    let Some(own) = layer(module) else {
        return vec![file.fault(0, format!("{module} has no place in the order of imports"))];
    };
    let code = file.shipped_code().join("\n");
    let mut faults = Vec::new();
    for (at, name) in imports(&code, depth(file)) {
        let fault = match layer(name) {
            _ if name == module => continue,
            None => format!("{name} is not a module: import from the module that holds it"),
            Some(_) if name == "config" => format!("{module} imports config; nothing may"),
            Some(other) if other > own => format!("{module} imports {name}, which lies above it"),
            Some(_) => continue,
        };
        let line = code.get(..at).unwrap_or_default().matches('\n').count();
        faults.push(file.fault(line, fault));
    }
    faults
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// `core/src/limiter/tick.rs` → `limiter`; the root has no layer.
fn module_of(file: &File) -> Option<&str> {
    let below = file.path.strip_prefix(CORE)?;
    let first = below.split('/').next()?;
    let module = first.strip_suffix(".rs").unwrap_or(first);
    (module != "lib").then_some(module)
}

/// How many `super::` lead from a file to the root.
fn depth(file: &File) -> usize {
    let below = file.path.strip_prefix(CORE).unwrap_or_default();
    let folders = below.matches('/').count();
    if below.ends_with("/mod.rs") { folders } else { folders + 1 }
}

/// The first names after `crate::`, or after as many `super::` as lead to the root, each with
/// where its path starts.
fn imports(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, word) in words(code) {
        let start = at + word.len();
        let rest = code.get(start..).unwrap_or_default();
        let rest = match word {
            "crate" => rest.strip_prefix("::"),
            "super" if !code.get(..at).unwrap_or_default().ends_with("super::") => {
                rest.strip_prefix(format!("::{}", "super::".repeat(depth - 1)).as_str())
            }
            _ => None,
        };
        let names = rest.map(first_names).unwrap_or_default();
        found.extend(names.into_iter().filter(|name| *name != "super").map(|name| (at, name)));
    }
    found
}

/// `a::b` → `a`; `{a::{b, c}, d}` → `a`, `d`.
fn first_names(path: &str) -> Vec<&str> {
    let Some(group) = path.strip_prefix('{') else {
        return words(path).next().map(|(_, word)| word).into_iter().collect();
    };
    let (mut depth, mut start) = (0_usize, 0);
    let mut names = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ',' if depth == 0 => {
                let item = group.get(start..at).unwrap_or_default();
                names.extend(words(item).next().map(|(_, word)| word));
                start = at + 1;
                if c == '}' {
                    return names;
                }
            }
            _ => {}
        }
    }
    names
}

/// The float type or literal of a line.
fn float(line: &str) -> Option<&str> {
    words(line).find_map(|(at, word)| {
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        let is_type = word == "f32" || word == "f64";
        let has_suffix =
            number && !word.starts_with("0x") && (word.ends_with("f32") || word.ends_with("f64"));
        let literal = number && (has_point(line, at, word) || has_exponent(word));
        (is_type || has_suffix || literal).then_some(word)
    })
}

/// `1.5` and `1.`, but not `1..2`, `1.max(2)` or the second part of `pair.0.1`.
fn has_point(line: &str, at: usize, word: &str) -> bool {
    let before = line.get(..at).unwrap_or_default();
    let after = line.get(at + word.len()..).unwrap_or_default();
    let decimal = word.chars().all(|c| c.is_ascii_digit() || c == '_');
    let is_field = before.ends_with('.') && !before.ends_with("..");
    let Some(after) = after.strip_prefix('.') else {
        return false;
    };
    let continues = after.starts_with(|c: char| c == '.' || c.is_alphabetic() || c == '_');
    decimal && !is_field && !continues
}

/// `1e6`, but not `0xe6`.
fn has_exponent(word: &str) -> bool {
    let Some((mantissa, exponent)) = word.split_once(['e', 'E']) else {
        return false;
    };
    let digits =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '_');
    digits(mantissa) && (exponent.is_empty() || digits(exponent))
}

fn core_files(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.is_rust() && file.path.starts_with(CORE))
}

fn each_line(files: &[File], fault: impl Fn(&File, &str) -> Option<String>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in core_files(files) {
        for (at, line) in file.shipped_code().iter().enumerate() {
            faults.extend(fault(file, line).map(|what| file.fault(at, what)));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check;

    const FILE: &str = "core/src/policy/mod.rs";

    #[test]
    fn floats_are_found() {
        for bad in ["a: f64", "1.5", "1.;", "2f32", "1e6", "x as f32", "1_000.0"] {
            check(integers, FILE, bad, &[1]);
        }
    }

    #[test]
    fn integers_are_not_taken_for_floats() {
        for good in
            ["1..2", "0..=9", "pair.0.1", "1.max(2)", "0x1e5", "0xdf64", "\"1.5\"", "// f64"]
        {
            check(integers, FILE, good, &[]);
        }
        check(integers, "lab/src/a.rs", "1.5", &[]);
    }

    #[test]
    fn std_and_unsafe_are_found() {
        check(no_std, FILE, "use std::vec;\nunsafe { a }\nextern crate std;\n", &[1, 2, 3]);
        check(no_std, FILE, "#![no_std]\nuse core::fmt;\n#[cfg(test)]\nextern crate std;\n", &[]);
    }

    #[test]
    fn serde_stays_in_the_config() {
        check(serde, FILE, "use serde::Deserialize;\n", &[1]);
        check(serde, "core/src/config/shape.rs", "use serde::Deserialize;\n", &[]);
    }

    #[test]
    fn imports_go_down() {
        check(chain, FILE, "use crate::{\n    key::{Key, Part},\n    limiter::Limiter,\n};\n", &[]);
        check(chain, FILE, "use crate::policy::Mode;\nuse super::units::Micros;\n", &[]);
        check(
            chain,
            "core/src/limiter/tick.rs",
            "use super::Step;\nuse crate::units::Micros;\n",
            &[],
        );
    }

    #[test]
    fn imports_that_go_up_are_found() {
        check(chain, FILE, "a;\nuse crate::{\n    response::Header,\n};\n", &[2]);
        check(chain, FILE, "let a = crate::config::parse();\n", &[1]);
        check(chain, FILE, "use super::response::Header;\n", &[1]);
        check(chain, "core/src/limiter/tick.rs", "use super::super::store::Store;\n", &[1]);
        check(chain, "core/src/sim/mod.rs", "use crate::config::parse;\n", &[1]);
    }

    #[test]
    fn a_module_without_a_place_is_found() {
        check(chain, "core/src/misc.rs", "//! Misc.\n", &[1]);
        check(chain, FILE, "use crate::Everything;\n", &[1]);
    }

    #[test]
    fn tests_may_import_anything() {
        check(chain, FILE, "#[cfg(test)]\nmod tests {\n    use crate::config::parse;\n}\n", &[]);
    }
}
