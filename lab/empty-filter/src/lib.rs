//! A filter that lets everything pass: what a module costs before it does anything. It is written
//! as the SDK wants it, for that is what others write.

#![cfg(target_arch = "wasm32")]

use proxy_wasm::{
    traits::{Context, HttpContext, RootContext},
    types::{Action, ContextType},
};

// The macro's function needs no documentation in a module that is private.
mod exports {
    proxy_wasm::main! {{
        proxy_wasm::set_root_context(|_| Box::new(super::Root));
    }}
}

struct Root;

impl Context for Root {}

impl RootContext for Root {
    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Http))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

struct Http;

impl Context for Http {}

impl HttpContext for Http {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        Action::Continue
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        Action::Continue
    }
}
