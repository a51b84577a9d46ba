//! The repository's files, and Rust text without what a check must not see.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use super::Fault;

/// Folders whose content is not ours.
const SKIPPED: [&str; 5] = ["target", "node_modules", "pkg", "proptest-regressions", "corpus"];
/// Hidden folders that are ours.
const HIDDEN: [&str; 2] = [".cargo", ".ci"];
/// What is read as text.
const TEXT: [&str; 13] =
    ["css", "html", "js", "json", "lock", "lua", "md", "mjs", "rs", "svg", "toml", "txt", "yaml"];

/// A file of the repository.
pub(super) struct File {
    /// From the repository's root, with `/`.
    pub(super) path: String,
    /// Its content; empty where it is not text.
    pub(super) text: String,
}

impl File {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A fault at a line of this file, counted from 0.
    pub(super) fn fault(&self, line: usize, what: impl Into<String>) -> Fault {
        Fault { path: self.path.clone(), line: line + 1, what: what.into() }
    }

    /// Rust without comments, the insides of literals and test items, line by line.
    pub(super) fn shipped_code(&self) -> Vec<String> {
        without_tests(&code(&self.text)).lines().map(str::to_owned).collect()
    }
}

/// Every file of the repository, sorted by path.
pub(super) fn read(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    collect(root, "", &mut files)?;
    files.sort_by(|a: &File, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            if !hidden && !SKIPPED.contains(&name.as_str()) {
                collect(&entry.path(), &format!("{path}/"), files)?;
            }
            continue;
        }
        let is_text = name.rsplit_once('.').is_none_or(|(_, ending)| TEXT.contains(&ending));
        let text = if is_text { fs::read_to_string(entry.path()).ok() } else { None };
        files.push(File { path, text: text.unwrap_or_default() });
    }
    Ok(())
}

/// The words of a line: runs of letters, digits and `_`, each with where it starts.
pub(super) fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    line.split(move |c| !part(c)).filter_map(move |word| {
        let start = at;
        let after = line.get(start + word.len()..).and_then(|rest| rest.chars().next());
        at = start + word.len() + after.map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

/// Rust text with comments and the insides of string and character literals made blank. Lines stay
/// where they are.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        let keep = end == at + 1;
        for &c in chars.get(at..end).unwrap_or_default() {
            out.push(if keep || c == '\n' { c } else { ' ' });
        }
        at = end;
    }
    out
}

/// Where the comment or literal that starts here ends; one further if none starts here.
fn token_end(chars: &[char], at: usize) -> usize {
    let rest = chars.get(at..).unwrap_or_default();
    let inside_word = at.checked_sub(1).and_then(|before| chars.get(before));
    let inside_word = inside_word.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let length = match rest {
        ['/', '/', ..] => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => quoted(rest, '"'),
        ['r', '"' | '#', ..] if !inside_word => raw_string(rest),
        ['b' | 'c', 'r', '"' | '#', ..] if !inside_word => {
            1 + raw_string(rest.get(1..).unwrap_or_default())
        }
        ['\'', '\\', ..] => quoted(rest, '\''),
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    };
    at + length.max(1)
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match rest.get(at..).unwrap_or_default() {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while let Some(c) = rest.get(at) {
        match c {
            '\\' => at += 2,
            c if *c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[char]) -> usize {
    let hashes = rest.iter().skip(1).take_while(|c| **c == '#').count();
    if rest.get(hashes + 1) != Some(&'"') {
        return 1;
    }
    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = hashes + 2;
    let inside = rest.get(body..).unwrap_or_default();
    let end = inside.windows(close.len()).position(|window| window == close.as_slice());
    end.map_or(rest.len(), |end| body + end + close.len())
}

/// Text without the items under `#[cfg(test)]`, each of which ends, as rustfmt writes it, at the
/// first line of its own indentation that closes it.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut indent_of_test = None;
    for line in code.lines() {
        let indent = line.len() - line.trim_start().len();
        if indent_of_test.is_none() && line.trim() == "#[cfg(test)]" {
            indent_of_test = Some(indent);
        } else if indent_of_test == Some(indent) {
            let line = line.trim();
            if line.ends_with(';') || line.starts_with('}') || line.ends_with("{}") {
                indent_of_test = None;
            }
        } else if indent_of_test.is_none() {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_code(text: &str, expected: &str) {
        let squeezed: Vec<String> = code(text).split_whitespace().map(str::to_owned).collect();
        assert_eq!(squeezed.join(" "), expected);
    }

    #[test]
    fn comments_and_literals_are_blank() {
        check_code("a // f64\nb", "a b");
        check_code("a /* f64 /* g */ h */ b", "a b");
        check_code(r#"let a = "f64 \" x"; b"#, "let a = ; b");
        check_code("r#\"f64 \" x\"# b", "b");
        check_code("br\"f64\" b", "b");
        check_code(r"match '\'' { 'f' => '\u{66}' } b", "match { => } b");
    }

    #[test]
    fn lifetimes_and_raw_names_stay() {
        check_code("fn a<'a>(x: &'a str) -> &'static str", "fn a<'a>(x: &'a str) -> &'static str");
        check_code("let r#type = var\"x\";", "let r#type = var ;");
    }

    #[test]
    fn lines_stay_where_they_are() {
        assert_eq!(code("a\n/* b\nc */\n\"d\ne\"\nf").lines().count(), 6);
    }

    #[test]
    fn test_items_are_left_out() {
        let text = "a\n#[cfg(test)]\nmod tests {\n    b;\n}\nc\n#[cfg(test)]\nuse d;\ne\n";
        let words: Vec<String> =
            without_tests(text).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["a", "c", "e"]);
        assert_eq!(without_tests(text).lines().count(), text.lines().count());
    }

    #[test]
    fn words_know_where_they_start() {
        assert_eq!(words("a::b_1 'c").collect::<Vec<_>>(), [(0, "a"), (3, "b_1"), (8, "c")]);
    }
}
