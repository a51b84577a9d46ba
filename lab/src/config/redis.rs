//! Edits of how Envoy's own Redis client reaches a Redis: with a password, by TLS, by which nodes.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{CLUSTERS, Config, LISTENERS, list, named, place, set};

const PASSWORD: &str = "/typed_extension_protocol_options/envoy.filters.network.redis_proxy";
const TLS: &str = "/transport_socket/typed_config";

impl Config {
    /// Sets the addresses of a cluster's endpoints.
    ///
    /// # Errors
    /// When there is no such cluster.
    pub fn set_endpoints(&mut self, cluster: &str, addresses: &[SocketAddr]) -> Result<()> {
        let endpoint = |address: &SocketAddr| {
            let socket = json!({ "address": address.ip(), "port_value": address.port() });
            json!({ "endpoint": { "address": { "socket_address": socket } } })
        };
        let endpoints: Vec<_> = addresses.iter().map(endpoint).collect();
        let place = "/load_assignment/endpoints/0/lb_endpoints";
        set(self.cluster(cluster)?, place, json!(endpoints))
    }

    /// Sets the file with the password that a cluster is asked with.
    ///
    /// # Errors
    /// When there is no such cluster, or it is asked without one.
    pub fn set_password_file(&mut self, cluster: &str, file: &Path) -> Result<()> {
        let options = self.cluster(cluster)?;
        set(options, &format!("{PASSWORD}/auth_password/filename"), json!(file))
    }

    /// Lets a cluster be asked without a password.
    ///
    /// # Errors
    /// When there is no such cluster, or it is already.
    pub fn remove_password(&mut self, cluster: &str) -> Result<()> {
        remove(self.cluster(cluster)?, "typed_extension_protocol_options")
    }

    /// Sets the file with the authority that a cluster's certificates must be of, and the name that
    /// they must be for.
    ///
    /// # Errors
    /// When there is no such cluster, or TLS is not spoken with it.
    pub fn set_trust(&mut self, cluster: &str, authority: &Path, name: &str) -> Result<()> {
        let tls = place(self.cluster(cluster)?, TLS)?;
        set(tls, "/sni", json!(name))?;
        let context = place(tls, "/common_tls_context/validation_context")?;
        set(context, "/trusted_ca/filename", json!(authority))?;
        set(context, "/match_typed_subject_alt_names/0/matcher/exact", json!(name))
    }

    /// Lets a cluster be asked without TLS.
    ///
    /// # Errors
    /// When there is no such cluster, or it is already.
    pub fn remove_tls(&mut self, cluster: &str) -> Result<()> {
        remove(self.cluster(cluster)?, "transport_socket")
    }

    /// Sets how long Envoy's own Redis client waits for a reply, in every listener that has it.
    ///
    /// # Errors
    /// When no listener has it.
    pub fn set_op_timeout(&mut self, timeout: Duration) -> Result<()> {
        const NAME: &str = "envoy.filters.network.redis_proxy";
        let mut any = false;
        for listener in list(&mut self.0, LISTENERS)? {
            for chain in list(listener, "/filter_chains")? {
                let filters = list(chain, "/filters")?.iter_mut();
                for client in filters.filter(|filter| filter["name"] == NAME) {
                    let timeout = format!("{}s", timeout.as_secs_f64());
                    set(client, "/typed_config/settings/op_timeout", json!(timeout))?;
                    any = true;
                }
            }
        }
        anyhow::ensure!(any, "no listener has the filter {NAME}");
        Ok(())
    }

    fn cluster(&mut self, name: &str) -> Result<&mut Value> {
        named(list(&mut self.0, CLUSTERS)?, name)
    }
}

fn remove(cluster: &mut Value, field: &str) -> Result<()> {
    let removed = cluster.as_object_mut().and_then(|fields| fields.remove(field));
    removed.map(drop).with_context(|| format!("the cluster has no {field}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Config {
        Config::parse(include_str!("../../../envoy/redis-cluster.yaml")).unwrap()
    }

    #[test]
    fn the_secured_cluster_gets_its_files_its_name_and_its_nodes() {
        let mut config = shipped();
        config.set_password_file("redis", Path::new("/a/password")).unwrap();
        config.set_trust("redis", Path::new("/a/ca.pem"), "localhost").unwrap();
        let addresses = ["127.0.0.1:1", "127.0.0.1:2"].map(|address| address.parse().unwrap());
        config.set_endpoints("redis", &addresses).unwrap();
        let cluster = config.cluster("redis").unwrap().to_string();
        for expected in ["/a/password", "/a/ca.pem", "\"exact\":\"localhost\"", "\"port_value\":2"]
        {
            assert!(cluster.contains(expected), "{expected}: {cluster}");
        }
        for replaced in ["example.com", "6379", "redis-ca.pem", "redis-password"] {
            assert!(!cluster.contains(replaced), "{replaced}: {cluster}");
        }
    }

    #[test]
    fn a_cluster_without_tls_and_password_has_neither() {
        let mut config = shipped();
        config.remove_password("redis").unwrap();
        config.remove_tls("redis").unwrap();
        let cluster = config.cluster("redis").unwrap().to_string();
        assert!(!cluster.contains("password") && !cluster.contains("tls"), "{cluster}");
        let error = config.remove_tls("redis").unwrap_err().to_string();
        assert_eq!(error, "the cluster has no transport_socket");
    }

    #[test]
    fn envoys_client_waits_as_long_as_it_is_told() {
        let mut config = shipped();
        config.set_op_timeout(Duration::from_millis(1500)).unwrap();
        assert!(config.value().to_string().contains(r#""op_timeout":"1.5s""#));
        assert!(
            Config::parse("static_resources: { listeners: [] }")
                .unwrap()
                .set_op_timeout(Duration::ZERO)
                .is_err()
        );
    }
}
