//! The root context: one configuration of the module, in one of its two roles.

use crate::{
    bridge::{self, http::Bridge},
    flow::shared::Shared,
    host::{
        CalloutId, Level, Log, StreamId, Streams,
        wasm::{self, Proxy},
        wire,
    },
    http::Http,
    limiter::Limiter,
    plugin::{ConfigureError, Plugin},
};
use proxy_wasm::{
    traits::{Context, HttpContext, RootContext},
    types::ContextType,
};
use std::rc::Rc;

/// One configuration.
#[derive(Default)]
pub(crate) struct Root {
    role: Role,
}

#[derive(Default)]
enum Role {
    #[default]
    Unconfigured,
    Limiter(Rc<Limiter>),
    Bridge,
}

impl Context for Root {
    fn on_grpc_stream_message(&mut self, stream: u32, size: usize) {
        let Role::Limiter(limiter) = &self.role else { return };
        match wire::message(size) {
            Ok(bytes) => limiter.on_event(|shared, plugin| {
                shared.on_message(plugin, &Proxy, (StreamId(stream), &bytes))
            }),
            Err(error) => {
                // Without it, each reply that follows would be taken for that of another call.
                const INTERNAL: u32 = 13;
                Proxy.log(Level::Error, &format!("weir: a reply cannot be read: {error}"));
                Proxy.cancel(StreamId(stream));
                self.on_grpc_stream_close(stream, INTERNAL);
            }
        }
    }

    fn on_grpc_stream_close(&mut self, stream: u32, status: u32) {
        let Role::Limiter(limiter) = &self.role else { return };
        limiter
            .on_event(|shared, plugin| shared.on_close(plugin, &Proxy, (StreamId(stream), status)));
    }

    fn on_http_call_response(&mut self, callout: u32, headers: usize, size: usize, _: usize) {
        if let Role::Limiter(limiter) = &self.role {
            limiter.on_response(CalloutId(callout), headers, size);
        }
    }
}

impl RootContext for Root {
    /// Answering `false` makes the proxy refuse the configuration and keep the one it has; at
    /// start it ends the proxy.
    fn on_configure(&mut self, _: usize) -> bool {
        match configured() {
            Ok(role) => {
                self.role = role;
                true
            }
            Err(error) => {
                Proxy.log(Level::Error, &format!("weir: the policy is refused: {error}"));
                false
            }
        }
    }

    fn on_tick(&mut self) {
        if let Role::Limiter(limiter) = &self.role {
            limiter.on_tick();
        }
    }

    fn create_http_context(&self, context: u32) -> Option<Box<dyn HttpContext>> {
        Some(match &self.role {
            Role::Unconfigured => Box::new(Http::new(context, None)),
            Role::Limiter(limiter) => Box::new(Http::new(context, Some(Rc::clone(limiter)))),
            Role::Bridge => Box::new(Bridge::default()),
        })
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

fn configured() -> Result<Role, ConfigureError> {
    let text = wasm::configuration()?;
    if wasm::property(&["plugin_root_id"])?.as_deref() == Some(bridge::ROOT_ID) {
        return if text.is_empty() { Ok(Role::Bridge) } else { Err(ConfigureError::BridgePolicy) };
    }
    let plugin = Plugin::configure(&text, &Proxy)?;
    let shared = Shared::open(&plugin, &Proxy)?;
    Ok(Role::Limiter(Rc::new(Limiter::new(plugin, shared))))
}
