//! Listeners in a file that Envoy watches, so that they can be replaced while it runs.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::config::Config;

/// The file. It is removed when the value is dropped; Envoy keeps what it has.
pub struct Listeners {
    folder: TempDir,
    version: AtomicU64,
}

impl Listeners {
    /// Puts the listeners of a configuration into a file, and returns the configuration that names
    /// that instead of them: Envoy is to be started with it.
    ///
    /// # Errors
    /// When there are no listeners, or the file cannot be written.
    pub fn of(config: &Config) -> Result<(Self, Config)> {
        let listeners = Self { folder: tempfile::tempdir()?, version: AtomicU64::new(0) };
        listeners.publish(config)?;
        let mut config = config.clone();
        let root = config.value_mut().as_object_mut().context("a configuration")?;
        root["static_resources"].as_object_mut().context("resources")?.remove("listeners");
        let source = json!({ "path_config_source": { "path": listeners.file() } });
        root.insert("dynamic_resources".into(), json!({ "lds_config": source }));
        root.insert("node".into(), json!({ "id": "lab", "cluster": "lab" }));
        Ok((listeners, config))
    }

    /// Replaces the listeners by those of a configuration. Envoy takes them up a moment later.
    ///
    /// # Errors
    /// When there are none, or the file cannot be written.
    pub fn publish(&self, config: &Config) -> Result<()> {
        let listeners = config.value()["static_resources"]["listeners"].as_array();
        let mut listeners = listeners.context("the configuration has no listeners")?.clone();
        for listener in &mut listeners {
            listener["@type"] = json!("type.googleapis.com/envoy.config.listener.v3.Listener");
        }
        let version = self.version.fetch_add(1, Ordering::Relaxed).to_string();
        let response: Value = json!({ "version_info": version, "resources": listeners });
        // Envoy waits for a file to be moved to the place, and must never see half of one.
        let fresh = self.folder.path().join("fresh.json");
        fs::write(&fresh, response.to_string())?;
        Ok(fs::rename(fresh, self.file())?)
    }

    fn file(&self) -> PathBuf {
        let folder: &Path = self.folder.path();
        folder.join("listeners.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_go_into_the_file_and_are_replaced_there() {
        let parse = |name: &str| {
            Config::parse(&format!("static_resources: {{ listeners: [ {{ name: {name} }} ] }}"))
        };
        let (listeners, config) = Listeners::of(&parse("a").unwrap()).unwrap();
        assert_eq!(config.value()["static_resources"], json!({}));
        let source = &config.value()["dynamic_resources"]["lds_config"]["path_config_source"];
        let read = || -> Value {
            let file = source["path"].as_str().unwrap();
            serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
        };
        assert_eq!(
            (&read()["version_info"], &read()["resources"][0]["name"]),
            (&json!("0"), &json!("a"))
        );
        listeners.publish(&parse("b").unwrap()).unwrap();
        assert_eq!(
            (&read()["version_info"], &read()["resources"][0]["name"]),
            (&json!("1"), &json!("b"))
        );
        assert!(Listeners::of(&Config::parse("{}").unwrap()).is_err());
    }
}
