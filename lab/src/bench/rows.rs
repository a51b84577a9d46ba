//! What is measured in Envoy: each row of the table is one Envoy and what runs beside it.
//!
//! To add one, write a function that makes a [`Row`] and name it in [`all`]. Everything starts from
//! `envoy/local.yaml`, whose route is replaced by an answer that Envoy gives itself, so that what is
//! measured is the proxy and no upstream.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{config::Config, processes::Process};

/// The listener that is asked.
pub(super) const LISTENER: &str = "ingress";
/// The header that holds a caller's key.
pub(super) const KEY: &str = "x-api-key";
/// Callers, who ask in turn.
pub(super) const CALLERS: u32 = 1_000;
/// The name of the row that the others are compared with; it is the first.
pub(super) const PLAIN: &str = "no filter";

/// More than the load can be, so that all is allowed.
const PER_SECOND: u64 = 100_000;

/// One Envoy to measure.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) config: Config,
    /// What runs for this row alone, beside its Envoy; its time counts as the row's others.
    pub(super) needs: Vec<Process>,
}

/// The programs that rows are made with.
#[derive(Clone, Copy)]
pub(super) struct Modules<'a> {
    pub(super) weir: &'a Path,
    pub(super) empty: &'a Path,
}

/// Every row, in the table's order.
pub(super) fn all(modules: Modules<'_>) -> Result<Vec<Row>> {
    // Here come those that share a count: the bridge to Redis, the bridge over redis_proxy, webdis.
    Ok(vec![
        plain()?,
        empty(modules)?,
        weir_local(modules)?,
        local_ratelimit("Envoy's local_ratelimit, one bucket for all", false)?,
        local_ratelimit("Envoy's local_ratelimit, a bucket for each key", true)?,
    ])
}

fn plain() -> Result<Row> {
    let mut config = base()?;
    config.remove_filter()?;
    Ok(Row { name: PLAIN, config, needs: Vec::new() })
}

fn empty(modules: Modules<'_>) -> Result<Row> {
    let mut config = base()?;
    config.set_module(modules.empty)?;
    config.set_vm_id(LISTENER, "empty")?;
    Ok(Row { name: "a wasm filter that does nothing", config, needs: Vec::new() })
}

fn weir_local(modules: Modules<'_>) -> Result<Row> {
    let mut config = base()?;
    config.set_module(modules.weir)?;
    config.set_policy(LISTENER, &policy().to_string())?;
    Ok(Row { name: "Weir, local store, a bucket for each key", config, needs: Vec::new() })
}

fn policy() -> Value {
    let key = [format!("header:{KEY}")];
    json!({ "limits": [{ "name": "per-key", "key": key, "rate": format!("{PER_SECOND}/second") }] })
}

fn local_ratelimit(name: &'static str, by_key: bool) -> Result<Row> {
    let mut config = base()?;
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
    Ok(Row { name, config, needs: Vec::new() })
}

const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
const FILTERS: &str =
    "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters";

/// The shipped configuration, with free ports and an answer of Envoy's own.
fn base() -> Result<Config> {
    const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../envoy/local.yaml");
    let mut config = Config::load(Path::new(SHIPPED))?;
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
    fn every_row_is_made_and_the_first_is_the_one_to_compare_with() {
        let modules = Modules { weir: Path::new("/weir.wasm"), empty: Path::new("/empty.wasm") };
        let rows = all(modules).unwrap();
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
