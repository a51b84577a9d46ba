//! Checks on the filter: who talks to the host, and that nothing is shared behind its back.

use super::{
    Fault,
    source::{File, words},
};

const FILTER: &str = "envoy-filter/src/";
/// The files that call the host.
const CALLERS: [&str; 3] = [
    "envoy-filter/src/host/wasm.rs",
    "envoy-filter/src/host/wire.rs",
    "envoy-filter/src/host/ffi.rs",
];
/// The files that are called by the host, through the SDK's traits.
const CALLED: [&str; 4] = [
    "envoy-filter/src/lib.rs",
    "envoy-filter/src/http.rs",
    "envoy-filter/src/root.rs",
    "envoy-filter/src/bridge/http.rs",
];
/// What makes something outlive a request without hanging off the root context.
const STATICS: [&str; 8] = [
    "LazyCell",
    "LazyLock",
    "OnceCell",
    "OnceLock",
    "lazy_static",
    "once_cell",
    "static",
    "thread_local",
];

/// Calls to the host are in three files; the SDK is known to four more.
pub(super) fn calls(files: &[File]) -> Vec<Fault> {
    let others = |file: &&File| is_filter(file) && !CALLERS.contains(&file.path.as_str());
    each_line(files.iter().filter(others), |file, line| {
        let may_use_sdk = CALLED.contains(&file.path.as_str());
        let found = words(line).find(|(at, word)| match *word {
            "hostcalls" => true,
            "proxy_wasm" => !may_use_sdk,
            "extern" => imports_functions(line.get(at + word.len()..).unwrap_or_default()),
            _ => false,
        });
        found.map(|(_, word)| format!("{word}: only {} may", CALLERS.join(" and ")))
    })
}

/// Several plugins share one module's memory, so all state hangs off the root context.
pub(super) fn statics(files: &[File]) -> Vec<Fault> {
    each_line(files.iter().filter(is_filter), |_, line| {
        let found = words(line).find(|(at, word)| {
            let is_lifetime = line.get(..*at).is_some_and(|before| before.ends_with('\''));
            STATICS.contains(word) && !is_lifetime
        });
        found.map(|(_, word)| format!("{word}: state hangs off the root context"))
    })
}

/// What follows `extern`, with the insides of strings blank: a block, not a function or a crate.
fn imports_functions(after: &str) -> bool {
    let after = after.trim_start();
    !after.starts_with("crate") && !words(after).any(|(_, word)| word == "fn")
}

fn is_filter(file: &&File) -> bool {
    file.is_rust() && file.path.starts_with(FILTER)
}

fn each_line<'a>(
    files: impl Iterator<Item = &'a File>,
    fault: impl Fn(&File, &str) -> Option<String>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in files {
        for (at, line) in file.shipped_code().iter().enumerate() {
            faults.extend(fault(file, line).map(|what| file.fault(at, what)));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check;

    #[test]
    fn three_files_call_the_host() {
        let text = "use proxy_wasm::hostcalls;\nunsafe extern \"C\" {\n    fn proxy_log();\n}\n";
        check(calls, "envoy-filter/src/host/wasm.rs", text, &[]);
        check(calls, "envoy-filter/src/host/wire.rs", text, &[]);
        check(calls, "envoy-filter/src/host/ffi.rs", text, &[]);
        check(calls, "envoy-filter/src/flow.rs", text, &[1, 2]);
    }

    #[test]
    fn the_host_calls_four_files() {
        let text = "use proxy_wasm::traits::Context;\npub extern \"C\" fn _start() {}\n";
        check(calls, "envoy-filter/src/lib.rs", text, &[]);
        check(calls, "envoy-filter/src/flow.rs", text, &[1]);
        check(calls, "envoy-filter/src/root.rs", "proxy_wasm::hostcalls::log();\n", &[1]);
        check(calls, "envoy-filter/src/flow.rs", "extern crate alloc;\n// hostcalls\n", &[]);
    }

    #[test]
    fn statics_are_found() {
        check(statics, "envoy-filter/src/a.rs", "static A: u8 = 1;\nthread_local! { }\n", &[1, 2]);
        check(statics, "envoy-filter/src/a.rs", "const A: &'static str = \"static\";\n", &[]);
        check(statics, "lab/src/a.rs", "static A: u8 = 1;\n", &[]);
    }
}
