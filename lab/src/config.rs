//! Envoy's configuration as a tree, and the edits that the demo and the tests make in it.
//!
//! An edit that does not find its place is an error, so that a file that has changed its shape is
//! noticed where it is used.

mod redis;

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The filter's name in `http_filters`.
const WEIR: &str = "weir";
/// The name of the filter in its second role.
const BRIDGE: &str = "weir_bridge";

/// An Envoy configuration.
#[derive(Clone, Debug)]
pub struct Config(Value);

impl Config {
    /// Reads a YAML file; anchors and merge keys are resolved.
    ///
    /// # Errors
    /// When the file cannot be read or is not YAML.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads YAML.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self> {
        let mut yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(text)?;
        yaml.apply_merge()?;
        Ok(Self(serde_json::to_value(yaml)?))
    }

    /// The tree.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The tree, for an edit that has no method here.
    pub fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    /// Lets the system choose the port of the admin interface and of every listener that is
    /// reached from outside.
    ///
    /// # Errors
    /// When one has no port.
    pub fn free_ports(&mut self) -> Result<()> {
        set(&mut self.0, &format!("/admin{PORT}"), json!(0))?;
        for listener in listeners(&mut self.0)? {
            if listener.get("internal_listener").is_none() {
                set(listener, PORT, json!(0))?;
            }
        }
        Ok(())
    }

    /// Sets the port of a listener.
    ///
    /// # Errors
    /// When there is no such listener.
    pub fn set_port(&mut self, listener: &str, port: u16) -> Result<()> {
        set(self.listener(listener)?, PORT, json!(port))
    }

    /// Sets the path of the module in every listener that has the filter.
    ///
    /// # Errors
    /// When no listener has it.
    pub fn set_module(&mut self, path: &Path) -> Result<()> {
        let path = path.to_str().context("the module's path is not text")?;
        let mut any = false;
        for listener in listeners(&mut self.0)? {
            for name in [WEIR, BRIDGE] {
                for filter in filters_of(listener, name)? {
                    set(filter, "/typed_config/config/vm_config/code/local/filename", json!(path))?;
                    any = true;
                }
            }
        }
        ensure!(any, "no listener has the filter {WEIR}");
        Ok(())
    }

    /// The policy of a listener, as JSON text.
    ///
    /// # Errors
    /// When there is no such listener or it has no filter.
    pub fn policy(&mut self, listener: &str) -> Result<String> {
        let place = place(self.filter(listener)?, POLICY)?;
        Ok(place.as_str().context("the policy is not text")?.to_owned())
    }

    /// Sets the policy of a listener.
    ///
    /// # Errors
    /// When there is no such listener or it has no filter.
    pub fn set_policy(&mut self, listener: &str, policy: &str) -> Result<()> {
        set(self.filter(listener)?, POLICY, json!(policy))
    }

    /// Sets the name that a listener's counts are kept under. Listeners of one name share a VM.
    ///
    /// # Errors
    /// When there is no such listener or it has no filter.
    pub fn set_vm_id(&mut self, listener: &str, id: &str) -> Result<()> {
        set(self.filter(listener)?, "/typed_config/config/vm_config/vm_id", json!(id))
    }

    /// Sets the address of a cluster's only endpoint.
    ///
    /// # Errors
    /// When there is no such cluster.
    pub fn set_endpoint(&mut self, cluster: &str, address: SocketAddr) -> Result<()> {
        let clusters = list(&mut self.0, CLUSTERS)?;
        let cluster = named(clusters, cluster)?;
        let endpoint = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint";
        let socket = json!({ "address": address.ip(), "port_value": address.port() });
        set(cluster, &format!("{endpoint}/address/socket_address"), socket)
    }

    /// Takes over what another configuration has for its store: its policy's `store`, and all
    /// listeners and clusters that this one has not.
    ///
    /// # Errors
    /// When one of them is not as expected.
    pub fn take_store(&mut self, listener: &str, mut other: Self) -> Result<()> {
        let theirs: Value = serde_json::from_str(&other.policy(listener)?)?;
        let mut policy: Value = serde_json::from_str(&self.policy(listener)?)?;
        policy["store"] = theirs["store"].clone();
        self.set_policy(listener, &policy.to_string())?;
        for pointer in [LISTENERS, CLUSTERS] {
            let theirs = list(&mut other.0, pointer)?;
            let ours = list(&mut self.0, pointer)?;
            theirs.retain(|theirs| !ours.iter().any(|ours| ours["name"] == theirs["name"]));
            ours.append(theirs);
        }
        let extensions = other.0.get("bootstrap_extensions").cloned();
        if let (Some(extensions), Some(root)) = (extensions, self.0.as_object_mut()) {
            root.insert("bootstrap_extensions".to_owned(), extensions);
        }
        Ok(())
    }

    /// Sets how long the store of a listener's policy may take to answer.
    ///
    /// # Errors
    /// When there is no such listener or its policy has no shared store.
    pub fn set_timeout(&mut self, listener: &str, timeout: &str) -> Result<()> {
        let mut policy: Value = serde_json::from_str(&self.policy(listener)?)?;
        let store = policy["store"].as_object_mut().context("the policy has no shared store")?;
        store.insert("timeout".to_owned(), json!(timeout));
        self.set_policy(listener, &policy.to_string())
    }

    /// Sets how long connections of a listener are kept that is being replaced: the first answer
    /// after that closes them.
    ///
    /// # Errors
    /// When there is no such listener.
    pub fn set_drain_timeout(&mut self, listener: &str, timeout: Duration) -> Result<()> {
        for manager in managers(self.listener(listener)?)? {
            manager["drain_timeout"] = json!(format!("{}s", timeout.as_secs_f64()));
        }
        Ok(())
    }

    /// Makes every route of a listener ask the upstream for one path, whichever was asked for.
    ///
    /// # Errors
    /// When there is no such listener or a route leads elsewhere.
    pub fn rewrite_paths(&mut self, listener: &str, path: &str) -> Result<()> {
        let rewrite = json!({ "pattern": { "regex": "^.*$" }, "substitution": path });
        for manager in managers(self.listener(listener)?)? {
            for host in list(manager, "/route_config/virtual_hosts")? {
                for route in list(host, "/routes")? {
                    place(route, "/route")?["regex_rewrite"] = rewrite.clone();
                }
            }
        }
        Ok(())
    }

    /// Adds a listener that is like another but for its name; its port is the system's choice.
    ///
    /// # Errors
    /// When there is no such listener.
    pub fn replicate(&mut self, listener: &str, name: &str) -> Result<()> {
        let mut copy = self.listener(listener)?.clone();
        set(&mut copy, "/name", json!(name))?;
        set(&mut copy, PORT, json!(0))?;
        for manager in managers(&mut copy)? {
            set(manager, "/stat_prefix", json!(name))?;
        }
        list(&mut self.0, LISTENERS)?.push(copy);
        Ok(())
    }

    /// Takes the filter out, and the routes' settings of it: the same Envoy without Weir.
    ///
    /// # Errors
    /// When a listener is not as expected.
    pub fn remove_filter(&mut self) -> Result<()> {
        for listener in listeners(&mut self.0)? {
            for manager in managers(listener)? {
                list(manager, "/http_filters")?.retain(|filter| filter["name"] != WEIR);
                for host in list(manager, "/route_config/virtual_hosts")? {
                    for route in list(host, "/routes")? {
                        forget_filter(route);
                    }
                }
            }
        }
        Ok(())
    }

    fn listener(&mut self, name: &str) -> Result<&mut Value> {
        named(list(&mut self.0, LISTENERS)?, name)
    }

    fn filter(&mut self, listener: &str) -> Result<&mut Value> {
        let mut filters = filters_of(self.listener(listener)?, WEIR)?;
        filters.pop().with_context(|| format!("listener {listener} has no filter {WEIR}"))
    }
}

const LISTENERS: &str = "/static_resources/listeners";
const CLUSTERS: &str = "/static_resources/clusters";
const POLICY: &str = "/typed_config/config/configuration/value";
const PORT: &str = "/address/socket_address/port_value";

fn listeners(root: &mut Value) -> Result<&mut Vec<Value>> {
    list(root, LISTENERS)
}

/// The HTTP connection managers of a listener.
fn managers(listener: &mut Value) -> Result<Vec<&mut Value>> {
    const NAME: &str = "envoy.filters.network.http_connection_manager";
    let mut found = Vec::new();
    for chain in list(listener, "/filter_chains")? {
        let filters = list(chain, "/filters")?.iter_mut();
        for manager in filters.filter(|filter| filter["name"] == NAME) {
            found.push(place(manager, "/typed_config")?);
        }
    }
    Ok(found)
}

fn filters_of<'a>(listener: &'a mut Value, name: &str) -> Result<Vec<&'a mut Value>> {
    let mut found = Vec::new();
    for manager in managers(listener)? {
        let filters = list(manager, "/http_filters")?.iter_mut();
        found.extend(filters.filter(|filter| filter["name"] == name));
    }
    Ok(found)
}

fn forget_filter(route: &mut Value) {
    const SETTINGS: &str = "typed_per_filter_config";
    let Some(route) = route.as_object_mut() else { return };
    if let Some(settings) = route.get_mut(SETTINGS).and_then(Value::as_object_mut) {
        settings.remove(WEIR);
    }
}

fn named<'a>(items: &'a mut [Value], name: &str) -> Result<&'a mut Value> {
    let item = items.iter_mut().find(|item| item["name"] == name);
    item.with_context(|| format!("the configuration has no {name}"))
}

fn list<'a>(root: &'a mut Value, pointer: &str) -> Result<&'a mut Vec<Value>> {
    let items = place(root, pointer)?.as_array_mut();
    items.with_context(|| format!("the configuration has no list at {pointer}"))
}

fn set(root: &mut Value, pointer: &str, value: Value) -> Result<()> {
    *place(root, pointer)? = value;
    Ok(())
}

fn place<'a>(root: &'a mut Value, pointer: &str) -> Result<&'a mut Value> {
    root.pointer_mut(pointer).with_context(|| format!("the configuration has nothing at {pointer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENER: &str = "/static_resources/listeners/0";
    const FILTER: &str = "/filter_chains/0/filters/0/typed_config/http_filters/0";

    fn demo() -> Config {
        Config::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/demo.yaml")).unwrap()
    }

    #[test]
    fn the_store_of_another_configuration_is_taken_over() {
        let mut config = demo();
        let redis = include_str!("../../envoy/redis.yaml");
        config.take_store("ingress", Config::parse(redis).unwrap()).unwrap();
        config.set_timeout("ingress", "1s").unwrap();
        let policy: Value = serde_json::from_str(&config.policy("ingress").unwrap()).unwrap();
        assert_eq!(policy["store"]["type"], "redis");
        assert_eq!(policy["store"]["timeout"], "1s");
        assert!(policy["limits"][0]["burst"].is_u64(), "the limit is the demo's own");
        let names = |pointer| {
            let items = config.value().pointer(pointer).and_then(Value::as_array).unwrap();
            items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(LISTENERS), ["ingress", "weir_bridge", "weir_redis_proxy"]);
        assert_eq!(names(CLUSTERS), ["upstream", "weir_bridge", "weir_redis_proxy", "redis"]);
        assert!(config.value()["bootstrap_extensions"].is_array());
    }

    #[track_caller]
    fn check(config: &Config, pointer: &str, expected: impl Into<Value>) {
        assert_eq!(config.value().pointer(pointer), Some(&expected.into()), "{pointer}");
    }

    #[test]
    fn every_shipped_configuration_can_be_edited() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "yaml") {
                let mut config = Config::load(&path).unwrap();
                config.free_ports().unwrap();
                config.set_module(Path::new("/m.wasm")).unwrap();
                config.set_policy("ingress", "{}").unwrap();
                config.set_endpoint("upstream", "127.0.0.1:1".parse().unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn ports_are_left_to_the_system_or_set() {
        let mut config = demo();
        config.free_ports().unwrap();
        check(&config, &format!("/admin{PORT}"), 0);
        check(&config, &format!("{LISTENER}{PORT}"), 0);
        config.set_port("ingress", 8123).unwrap();
        check(&config, &format!("{LISTENER}{PORT}"), 8123);
    }

    #[test]
    fn the_module_the_policy_and_the_upstream_are_set() {
        let mut config = demo();
        config.set_module(Path::new("/a/b.wasm")).unwrap();
        config.set_policy("ingress", r#"{"limits":[]}"#).unwrap();
        config.set_endpoint("upstream", "127.0.0.1:4321".parse().unwrap()).unwrap();
        let vm = format!("{LISTENER}{FILTER}/typed_config/config/vm_config");
        check(&config, &format!("{vm}/code/local/filename"), "/a/b.wasm");
        assert_eq!(config.policy("ingress").unwrap(), r#"{"limits":[]}"#);
        let socket = "/static_resources/clusters/0/load_assignment/endpoints/0/lb_endpoints/0\
                      /endpoint/address/socket_address";
        check(&config, socket, json!({ "address": "127.0.0.1", "port_value": 4321 }));
    }

    #[test]
    fn a_replica_has_its_own_name_and_policy() {
        let mut config = demo();
        let policy = config.policy("ingress").unwrap();
        config.replicate("ingress", "second").unwrap();
        config.set_policy("second", "{}").unwrap();
        config.set_vm_id("second", "other").unwrap();
        assert_eq!(config.policy("ingress").unwrap(), policy);
        assert_eq!(config.policy("second").unwrap(), "{}");
        let second = "/static_resources/listeners/1";
        check(&config, &format!("{second}{PORT}"), 0);
        check(
            &config,
            &format!("{second}/filter_chains/0/filters/0/typed_config/stat_prefix"),
            "second",
        );
    }

    #[test]
    fn the_filter_can_be_taken_out() {
        let mut config = demo();
        config.remove_filter().unwrap();
        assert!(!config.value().to_string().contains("wasm"));
        let error = config.set_module(Path::new("/m.wasm")).unwrap_err().to_string();
        assert_eq!(error, "no listener has the filter weir");
    }

    #[test]
    fn an_edit_without_its_place_says_what_is_missing() {
        let mut config = demo();
        let error = config.set_port("egress", 1).unwrap_err().to_string();
        assert_eq!(error, "the configuration has no egress");
        config.value_mut()["static_resources"] = json!({});
        let error = config.free_ports().unwrap_err().to_string();
        assert_eq!(error, "the configuration has nothing at /static_resources/listeners");
    }

    #[test]
    fn anchors_and_merge_keys_are_resolved() {
        let config = Config::parse("a: &a { b: 1 }\nc: { <<: *a, d: 2 }\n").unwrap();
        check(&config, "/c", json!({ "b": 1, "d": 2 }));
    }
}
