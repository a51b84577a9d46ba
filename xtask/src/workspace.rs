//! Where things are: the repository, the folder of built files, and commands that start there.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::run;

/// Settings of the caller that would change what is built, or where.
const CLEARED: [&str; 5] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_UNSTABLE_BUILD_STD",
    "RUSTFLAGS",
];

/// The clone of the repository that the command runs in.
pub(crate) struct Workspace {
    /// The repository.
    pub(crate) root: PathBuf,
    /// Cargo's folder of built files, wherever the caller has put it.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Finds the workspace this command was built from.
    pub(crate) fn find() -> Result<Self> {
        let root = repository()?;
        let mut metadata = cargo_in(&root);
        metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
        let text = run::quiet(&mut metadata)?;
        let value: serde_json::Value = serde_json::from_str(&text)?;
        let target = value["target_directory"].as_str().context("cargo metadata: no target")?;
        Ok(Self { target: PathBuf::from(target), root })
    }

    /// `cargo`, in the repository, building into the workspace's own folder.
    pub(crate) fn cargo<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = cargo_in(&self.root);
        command.env("CARGO_TARGET_DIR", &self.target).args(args);
        command
    }

    /// The version of a package that `Cargo.lock` holds.
    pub(crate) fn locked_version(&self, package: &str) -> Result<String> {
        let path = self.root.join("Cargo.lock");
        let lock = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        version_in_lock(&lock, package)
            .with_context(|| format!("Cargo.lock holds no package {package}"))
    }

    /// A path as a reader wants it: from the repository's root where it lies inside.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

/// The folder above this crate's.
pub(crate) fn repository() -> Result<PathBuf> {
    let crate_dir = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    Ok(crate_dir.parent().context("the repository has no folder")?.to_owned())
}

/// A command without the caller's settings that would change its result.
pub(crate) fn clean(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in CLEARED {
        command.env_remove(name);
    }
    command
}

fn cargo_in(root: &Path) -> Command {
    let mut command = clean(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn version_in_lock(lock: &str, package: &str) -> Option<String> {
    let after = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?.1;
    Some(after.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_lock_file() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\n\
                    [[package]]\nname = \"a-b\"\nversion = \"4.5.6\"\n";
        assert_eq!(version_in_lock(lock, "a").as_deref(), Some("1.2.3"));
        assert_eq!(version_in_lock(lock, "a-b").as_deref(), Some("4.5.6"));
        assert_eq!(version_in_lock(lock, "b"), None);
    }
}
