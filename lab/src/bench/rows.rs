//! What is measured in Envoy: each row of the table is one Envoy and what runs beside it.
//!
//! To add one, write a function that makes a [`Row`] and name it in [`all`]. Everything starts from
//! a file of `envoy/`, whose route is replaced by an answer that Envoy gives itself, so that what is
//! measured is the proxy and no upstream.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::stores::{Behind, Servers, Way, generous};
use crate::config::Config;

/// The listener that is asked.
pub(super) const LISTENER: &str = "ingress";
/// The header that holds a caller's key.
pub(super) const KEY: &str = "x-api-key";
/// Callers, who ask in turn.
pub(super) const CALLERS: u32 = 1_000;
/// The name of the row that the others are compared with; it is the first.
pub(super) const PLAIN: &str = "no filter";

/// More than the load can be, so that all is allowed.
pub(super) const PER_SECOND: u64 = 100_000;

/// One Envoy to measure.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) config: Config,
    /// What runs for this row alone, beside its Envoy; its time is told apart.
    pub(super) behind: Behind,
}

/// The programs that rows are made with.
#[derive(Clone, Copy)]
pub(super) struct Modules<'a> {
    pub(super) weir: &'a Path,
    pub(super) empty: &'a Path,
}

/// Every row, in the table's order.
pub(super) async fn all(modules: Modules<'_>, servers: Servers<'_>) -> Result<Vec<Row>> {
    Ok(vec![
        plain()?,
        empty(modules)?,
        weir_local(modules)?,
        weir_shared("Weir, bridge to Redis", Way::Direct, modules, servers).await?,
        weir_shared("Weir, bridge over redis_proxy to Redis", Way::Proxied, modules, servers)
            .await?,
        weir_shared("Weir, bridge over redis_proxy to a Cluster", Way::Cluster, modules, servers)
            .await?,
        weir_shared("Weir, the same with TLS", Way::SecureCluster, modules, servers).await?,
        weir_shared("Weir, callouts to webdis", Way::Webdis, modules, servers).await?,
        local_ratelimit("Envoy's local_ratelimit, one bucket for all", false)?,
        local_ratelimit("Envoy's local_ratelimit, a bucket for each key", true)?,
    ])
}

pub(super) fn plain() -> Result<Row> {
    let mut config = base(LOCAL)?;
    config.remove_filter()?;
    Ok(Row { name: PLAIN, config, behind: Behind::default() })
}

fn empty(modules: Modules<'_>) -> Result<Row> {
    let mut config = base(LOCAL)?;
    config.set_module(modules.empty)?;
    config.set_vm_id(LISTENER, "empty")?;
    Ok(Row { name: "a wasm filter that does nothing", config, behind: Behind::default() })
}

fn weir_local(modules: Modules<'_>) -> Result<Row> {
    let mut config = base(LOCAL)?;
    config.set_module(modules.weir)?;
    config.set_policy(LISTENER, &policy().to_string())?;
    Ok(Row { name: "Weir, local store, a bucket for each key", config, behind: Behind::default() })
}

fn policy() -> Value {
    json!({ "limits": generous(KEY, PER_SECOND) })
}

/// A count that Envoys share, here of one.
async fn weir_shared(
    name: &'static str,
    way: Way,
    modules: Modules<'_>,
    servers: Servers<'_>,
) -> Result<Row> {
    let mut config = way.config(modules.weir, &generous(KEY, PER_SECOND))?;
    way.be_patient(&mut config)?;
    let behind = Behind::start(way, servers).await?;
    behind.add_to(way, &mut config)?;
    Ok(Row { name, config, behind })
}

fn local_ratelimit(name: &'static str, by_key: bool) -> Result<Row> {
    let mut config = base(LOCAL)?;
    let filters = config.value_mut().pointer_mut(FILTERS).and_then(Value::as_array_mut);
    let first = filters.and_then(|filters| filters.first_mut()).context("no filter")?;
    let always = json!({ "default_value": { "numerator": 100, "denominator": "HUNDRED" } });
    let bucket = json!({
        "max_tokens": PER_SECOND, "tokens_per_fill": PER_SECOND, "fill_interval": "1s",
    });
    let mut settings = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
        "stat_prefix": "local",
        "token_bucket": bucket,
        "filter_enabled": always,
        "filter_enforced": always,
        // As Weir does, it says on every answer what is left.
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
    });
    if by_key {
        let action = json!({ "request_headers": { "header_name": KEY, "descriptor_key": "key" } });
        settings["rate_limits"] = json!([{ "actions": [action] }]);
        settings["descriptors"] =
            json!([{ "entries": [{ "key": "key" }], "token_bucket": bucket }]);
        settings["max_dynamic_descriptors"] = json!(2 * CALLERS);
    }
    *first = json!({ "name": "envoy.filters.http.local_ratelimit", "typed_config": settings });
    Ok(Row { name, config, behind: Behind::default() })
}

const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
const FILTERS: &str =
    "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters";

/// Where the counts are in Envoy.
const LOCAL: &str = "local.yaml";

/// A shipped configuration, with free ports and an answer of Envoy's own.
pub(super) fn base(file: &str) -> Result<Config> {
    const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../envoy");
    let mut config = Config::load(&Path::new(SHIPPED).join(file))?;
    config.free_ports()?;
    let manager = config.value_mut().pointer_mut(MANAGER).context("no connection manager")?;
    let routes =
        manager.pointer_mut("/route_config/virtual_hosts/0/routes").context("no routes")?;
    *routes = json!([{
        "name": "everything",
        "match": { "prefix": "/" },
        "direct_response": { "status": 200, "body": { "inline_string": "ok\n" } },
    }]);
    Ok(config)
}

/// One request of each caller.
pub(super) fn requests() -> Vec<Vec<u8>> {
    let request = |caller| {
        format!("GET /api/hello HTTP/1.1\r\nhost: bench\r\n{KEY}: key-{caller:04}\r\n\r\n")
    };
    (0..CALLERS).map(|caller| request(caller).into_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_store_are_made() {
        let modules = Modules { weir: Path::new("/weir.wasm"), empty: Path::new("/empty.wasm") };
        let rows = [
            plain(),
            empty(modules),
            weir_local(modules),
            local_ratelimit("for all", false),
            local_ratelimit("for each", true),
        ]
        .map(Result::unwrap);
        assert_eq!(rows[0].name, PLAIN);
        let holds =
            |place: usize, text: &str| rows[place].config.value().to_string().contains(text);
        assert!(!holds(0, "wasm") && holds(1, "/empty.wasm") && holds(2, "/weir.wasm"));
        assert!(!holds(3, "wasm") && holds(4, "max_dynamic_descriptors"));
        assert!(rows.iter().all(|row| row.config.value().to_string().contains("direct_response")));
    }

    #[test]
    fn the_policy_is_one() {
        weir_core::config::parse(policy().to_string().as_bytes()).unwrap();
    }
}
