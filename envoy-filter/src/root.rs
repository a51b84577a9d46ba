//! The root context: holds the plugin, and makes a context for each request.

use crate::{
    host::wasm::{self, Level, Proxy},
    http::Http,
    plugin::Plugin,
};
use proxy_wasm::{
    traits::{Context, HttpContext, RootContext},
    types::ContextType,
};
use std::rc::Rc;

/// One configuration of the filter.
#[derive(Default)]
pub(crate) struct Root {
    plugin: Option<Rc<Plugin>>,
}

impl Context for Root {}

impl RootContext for Root {
    /// Answering `false` makes the proxy refuse the configuration and keep the one it has; at
    /// start it ends the proxy.
    fn on_configure(&mut self, _: usize) -> bool {
        let configured = wasm::configuration()
            .map_err(Into::into)
            .and_then(|text| Plugin::configure(&text, &Proxy));
        match configured {
            Ok(plugin) => {
                self.plugin = Some(Rc::new(plugin));
                true
            }
            Err(error) => {
                wasm::log(Level::Error, &format!("weir: the policy is refused: {error}"));
                false
            }
        }
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Http::new(self.plugin.clone())))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
