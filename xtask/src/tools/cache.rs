//! The one folder that everything installed goes to, shared by all clones.
//!
//! A tool appears there complete or not at all: it is installed into a folder beside its own, which
//! is then renamed. A lock file per tool makes a second run wait for the first.

use std::{
    env, fs,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::say;

/// `$XDG_CACHE_HOME/weir`, or `~/.cache/weir`.
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(crate) fn find() -> Result<Self> {
        let set = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = match set.filter(|path| path.is_absolute()) {
            Some(base) => base,
            None => env::home_dir().context("no home folder: set XDG_CACHE_HOME")?.join(".cache"),
        };
        Ok(Self { folder: base.join("weir") })
    }

    /// The folder as a reader knows it.
    pub(crate) fn shown(&self) -> String {
        shorten(&self.folder)
    }

    /// A file of an installed tool, if it is there.
    pub(crate) fn get(&self, tool: &str, file: &str) -> Option<PathBuf> {
        Some(self.folder.join(tool).join(file)).filter(|path| path.is_file())
    }

    /// Installs a tool by filling the folder that `fill` is given, and returns the file wanted of
    /// it. If another run installs it meanwhile, waits for that instead.
    pub(crate) fn install(
        &self,
        tool: &str,
        file: &str,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        fs::create_dir_all(&self.folder).with_context(|| self.shown())?;
        let _lock = self.lock(tool)?;
        if let Some(path) = self.get(tool, file) {
            return Ok(path);
        }
        let fresh = self.folder.join(format!(".{tool}.new"));
        remove(&fresh)?;
        fs::create_dir(&fresh).with_context(|| fresh.display().to_string())?;
        fill(&fresh)?;
        ensure!(fresh.join(file).is_file(), "installing {tool} brought no {file}");
        let place = self.folder.join(tool);
        remove(&place)?;
        fs::rename(&fresh, &place).with_context(|| place.display().to_string())?;
        Ok(place.join(file))
    }

    fn lock(&self, tool: &str) -> Result<File> {
        let path = self.folder.join(format!(".{tool}.lock"));
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(tool, "waiting for another run that is installing it");
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        Ok(file)
    }
}

/// A path with the home folder written as `~`.
pub(crate) fn shorten(path: &Path) -> String {
    let below = env::home_dir().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    match below {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

fn remove(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).with_context(|| folder.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        thread,
    };

    use super::*;

    struct Temporary(Cache);

    impl Temporary {
        fn new(name: &str) -> Self {
            let name = format!("weir-cache-{name}-{}", std::process::id());
            Self(Cache { folder: env::temp_dir().join(name) })
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.folder);
        }
    }

    #[test]
    fn a_failed_install_leaves_nothing_to_be_found() {
        let cache = Temporary::new("failed");
        let result = cache.0.install("tool", "bin/tool", |folder| {
            fs::create_dir(folder.join("bin"))?;
            fs::write(folder.join("bin/tool"), "half")?;
            anyhow::bail!("the network went away")
        });
        assert!(result.is_err());
        assert_eq!(cache.0.get("tool", "bin/tool"), None);
        let again =
            cache.0.install("tool", "tool", |folder| Ok(fs::write(folder.join("tool"), "whole")?));
        assert_eq!(fs::read_to_string(again.unwrap()).unwrap(), "whole");
    }

    #[test]
    fn an_install_that_brings_nothing_is_an_error() {
        let cache = Temporary::new("nothing");
        let error = cache.0.install("tool", "bin/tool", |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("brought no bin/tool"), "{error}");
    }

    #[test]
    fn two_runs_install_once() {
        let cache = Temporary::new("twice");
        let installs = AtomicU32::new(0);
        let install = || {
            cache.0.install("tool", "tool", |folder| {
                installs.fetch_add(1, Ordering::Relaxed);
                Ok(fs::write(folder.join("tool"), "whole")?)
            })
        };
        thread::scope(|scope| {
            let other = scope.spawn(install);
            install().unwrap();
            other.join().unwrap().unwrap();
        });
        assert_eq!(installs.load(Ordering::Relaxed), 1);
    }
}
