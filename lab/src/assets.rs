//! The page's files, found as a browser finds them: each by the one that names it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Context as _, Result, ensure};

use crate::{http::Client, serve::has_digest};

/// More files than a page of ours has.
const MOST_FILES: usize = 200;
/// The types a page's files have, by the ends of their names.
const TYPES: [(&str, &str); 10] = [
    (".css", "text/css"),
    (".html", "text/html"),
    (".ico", "image/"),
    (".js", "text/javascript"),
    (".json", "application/json"),
    (".png", "image/png"),
    (".svg", "image/svg+xml"),
    (".wasm", "application/wasm"),
    (".webmanifest", "application/manifest+json"),
    (".woff2", "font/woff2"),
];

/// Fetches the page and everything it names, and returns each file's size by its path.
///
/// # Errors
/// When one is not there or is not served as its name says.
pub async fn fetch(client: &mut Client) -> Result<BTreeMap<String, usize>> {
    let mut sizes = BTreeMap::new();
    let mut seen = BTreeSet::from(["/".to_owned()]);
    let mut waiting = VecDeque::from(["/".to_owned()]);
    while let Some(path) = waiting.pop_front() {
        let answer = client.get(&path, &[]).await?;
        ensure!(answer.status == 200, "{path}: status {}", answer.status);
        let expected = type_of(&path).with_context(|| format!("{path}: an unknown type"))?;
        let found = answer.header("content-type").unwrap_or("none");
        ensure!(found.starts_with(expected), "{path}: type {found}, not {expected}");
        sizes.insert(path.clone(), answer.body.len());
        ensure!(sizes.len() <= MOST_FILES, "the page names more than {MOST_FILES} files");
        if names_others(&path) {
            let text = answer.text();
            let named = names(&text).into_iter().filter(|name| is_path(&path, name));
            let named = named.filter_map(|name| resolve(&path, name));
            waiting.extend(named.filter(|name| seen.insert(name.clone())));
        }
    }
    Ok(sizes)
}

fn type_of(path: &str) -> Option<&'static str> {
    if path.ends_with('/') {
        return Some("text/html");
    }
    TYPES.iter().find(|(end, _)| path.ends_with(end)).map(|(_, kind)| *kind)
}

fn names_others(path: &str) -> bool {
    ["/", ".html", ".js", ".css"].iter().any(|end| path.ends_with(end))
}

/// What stands in quotes or in `url(…)` and looks like a file beside this one.
fn names(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> =
        text.split(['"', '\'', '`', '(', ')', '\n']).filter(|part| is_name(part)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// A script holds names that are no paths; the files it loads have their digest in their names.
fn is_path(from: &str, name: &str) -> bool {
    !from.ends_with(".js") || has_digest(name)
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let known = TYPES.iter().any(|(end, _)| {
        text.strip_suffix(end)
            .is_some_and(|stem| stem.ends_with(|c: char| c.is_ascii_alphanumeric()))
    });
    known && text.chars().all(plain) && !text.starts_with("//")
}

/// `./b.js` named by `/a/c.html` is `/a/b.js`.
fn resolve(from: &str, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return Some(name.to_owned());
    }
    let (folder, _) = from.rsplit_once('/')?;
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::serve::Server;

    async fn fetched(files: &[(&str, &str)]) -> Result<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let server = Server::start(Some(folder.path())).await.unwrap();
        let mut client = Client::connect(server.address()).await.unwrap();
        Ok(fetch(&mut client).await?.into_keys().collect())
    }

    #[tokio::test]
    async fn files_are_found_by_those_that_name_them() {
        let files = [
            ("index.html", "<link href=\"a/b.css\"><script type=module src=\"./c.js\"></script>"),
            ("a/b.css", "@font-face { src: url(../d.woff2) }"),
            (
                "c.js",
                "new URL('./e-0123456789abcdef.wasm', import.meta.url); \"./space.js\"; 'https://other/f.js'",
            ),
            ("d.woff2", ""),
            ("e-0123456789abcdef.wasm", ""),
            ("never-named.js", ""),
        ];
        let expected = ["/", "/a/b.css", "/c.js", "/d.woff2", "/e-0123456789abcdef.wasm"];
        assert_eq!(fetched(&files).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_is_an_error() {
        let error = fetched(&[("index.html", "<script src='gone.js'>")]).await.unwrap_err();
        assert_eq!(error.to_string(), "/gone.js: status 404");
    }
}
