//! Other rate limiters, as their installed packages call Redis. `lab/bench/peers.mjs` looks at what
//! they send; none of their scripts is kept here.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::contenders::{Contender, FIRST_COST, Keys, Kind, PER_MINUTE};

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/peers.mjs");

/// Calls every library once and again on a Redis, and returns what it sent.
pub(super) fn capture(node: &Path, packages: &Path, redis: SocketAddr) -> Result<Vec<Contender>> {
    let mut command = Command::new(node);
    command.arg(CAPTURE).arg(packages).arg(redis.port().to_string());
    command.args([PER_MINUTE.to_string(), FIRST_COST.to_string()]);
    let output = command.output().context("cannot run node")?;
    if !output.status.success() {
        bail!("{CAPTURE}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let peers: Value = serde_json::from_slice(&output.stdout).context(CAPTURE)?;
    let peers = peers.as_array().context("a list")?;
    peers.iter().map(|peer| contender(peer).with_context(|| peer.to_string())).collect()
}

fn contender(peer: &Value) -> Result<Contender> {
    let text =
        |name: &str| anyhow::Ok(peer[name].as_str().with_context(|| name.to_owned())?.to_owned());
    let keys = words(&peer["again"]["keys"])?;
    ensure!(keys == words(&peer["first"]["keys"])?, "a caller's keys change");
    Ok(Contender {
        name: text("name")?,
        kind: match text("kind")?.as_str() {
            "bucket" => Kind::Bucket,
            "window" => Kind::Window,
            "log" => Kind::Log,
            other => bail!("an unknown kind: {other}"),
        },
        ours: false,
        text: text("text")?,
        keys: Keys::Template(keys),
        first: words(&peer["first"]["args"])?,
        again: words(&peer["again"]["args"])?,
    })
}

fn words(value: &Value) -> Result<Vec<String>> {
    let words = value.as_array().context("a list of words")?.iter();
    words.map(|word| Ok(word.as_str().context("a word")?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_captured_becomes_a_contender() {
        let call = |cost: &str| json!({ "keys": ["rate:<id>"], "args": [cost, "<now>"] });
        let peer = json!({
            "name": "a 1.0: b", "kind": "bucket", "text": "return 1",
            "first": call("500"), "again": call("1"),
        });
        let found = contender(&peer).unwrap();
        assert_eq!(
            (found.kind, found.ours, found.text.as_str()),
            (Kind::Bucket, false, "return 1")
        );
        assert_eq!(
            (found.first, found.again),
            (vec!["500".into(), "<now>".into()], vec!["1".into(), "<now>".into()])
        );
        assert!(contender(&json!({ "name": "a" })).is_err());
    }
}
