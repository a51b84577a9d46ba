//! Whether something must be built again: a stamp beside it holds the digest of what it was built
//! from. Contents count, not times, so a fresh checkout does not build what is there already.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// What a built file depends on.
pub(crate) struct Inputs<'a> {
    /// Files, and folders with all that is in them.
    pub(crate) paths: Vec<PathBuf>,
    /// How it is built: arguments and versions of tools.
    pub(crate) recipe: &'a str,
}

/// Builds `output` unless it is there and was built from the same inputs. Returns whether it did.
pub(crate) fn build(
    output: &Path,
    inputs: &Inputs<'_>,
    work: impl FnOnce() -> Result<()>,
) -> Result<bool> {
    let stamp = stamp_of(output);
    let digest = digest(inputs)?;
    let same = fs::read_to_string(&stamp).is_ok_and(|old| old == digest);
    if same && output.exists() {
        return Ok(false);
    }
    let _ = fs::remove_file(&stamp);
    work()?;
    fs::write(&stamp, digest).with_context(|| stamp.display().to_string())?;
    Ok(true)
}

/// Every file at or below a path, sorted.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(path, &mut found).with_context(|| path.display().to_string())?;
    found.sort();
    Ok(found)
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), found)?;
    }
    Ok(())
}

/// `target/weir/playground` has its stamp in `target/weir/.playground.stamp`.
fn stamp_of(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!(".{name}.stamp"))
}

fn digest(inputs: &Inputs<'_>) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(inputs.recipe);
    for path in &inputs.paths {
        for file in files(path)? {
            let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
            hash.update(format!("\n{} {}\n", file.display(), bytes.len()));
            hash.update(&bytes);
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("in")).unwrap();
            Self(path)
        }

        /// Builds `out` from `in/`, and returns whether that was needed.
        fn build(&self, recipe: &str) -> bool {
            let inputs = Inputs { paths: vec![self.0.join("in")], recipe };
            let output = self.0.join("out");
            build(&output, &inputs, || Ok(fs::write(&output, "built")?)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn it_is_built_once_for_the_same_inputs() {
        let folder = Folder::new("stamp-once");
        fs::write(folder.0.join("in/a"), "1").unwrap();
        assert!(folder.build("x"));
        assert!(!folder.build("x"));
    }

    #[test]
    fn it_is_built_again_after_any_change() {
        let folder = Folder::new("stamp-change");
        fs::write(folder.0.join("in/a"), "1").unwrap();
        assert!(folder.build("x"));
        fs::write(folder.0.join("in/a"), "2").unwrap();
        assert!(folder.build("x"), "changed");
        fs::write(folder.0.join("in/b"), "").unwrap();
        assert!(folder.build("x"), "added");
        fs::remove_file(folder.0.join("in/b")).unwrap();
        assert!(folder.build("x"), "removed");
        assert!(folder.build("y"), "recipe");
        fs::remove_file(folder.0.join("out")).unwrap();
        assert!(folder.build("y"), "output lost");
    }

    #[test]
    fn a_failed_build_is_tried_again() {
        let folder = Folder::new("stamp-failed");
        let inputs = Inputs { paths: vec![], recipe: "x" };
        let output = folder.0.join("out");
        fs::write(&output, "half").unwrap();
        assert!(build(&output, &inputs, || anyhow::bail!("no")).is_err());
        assert!(build(&output, &inputs, || Ok(())).unwrap());
    }
}
