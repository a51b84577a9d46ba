//! A Redis with the scripts loaded, and calls of them on a clock that the test sets.

// Each test file is a crate of its own and uses its part of this.
#![allow(dead_code, unreachable_pub)]

use crate::support;
use anyhow::Result;
use std::collections::BTreeMap;
use weir_core::{
    limiter::{Ask, Limiter},
    script::{self, Asked, Call, Key, Refund, Script},
    units::Instant,
};
use weir_lab::redis::{Client, Redis, ScriptCall};

/// Calls in one round trip.
pub const BATCH: usize = 100;

/// A Redis that has the scripts in both forms.
pub struct Stage {
    pub client: Client,
    pub test_clock: BTreeMap<&'static str, String>,
    pub redis: Redis,
}

impl Stage {
    pub fn new() -> Result<Self> {
        let redis = Redis::start(&support::artefact("WEIR_REDIS"))?;
        let mut client = redis.client()?;
        let mut test_clock = BTreeMap::new();
        for script in script::ALL {
            assert_eq!(client.load(script.text)?, script.sha1(), "{}", script.name);
            test_clock.insert(script.name, client.load(&script.on_test_clock())?);
        }
        Ok(Self { client, test_clock, redis })
    }

    /// A call in the form that takes the time as its last argument.
    pub fn at(&self, now: Instant, script: &Script, keys: &[&str], args: &[String]) -> ScriptCall {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let mut args = args.to_vec();
        args.push(now.as_micros().to_string());
        ScriptCall { sha1: self.test_clock[script.name].clone(), keys, args }
    }

    pub fn check(&self, asked: &[Asked<'_>], now: Instant) -> Result<ScriptCall> {
        Ok(self.call(&Call::new(asked)?, now))
    }

    pub fn call(&self, call: &Call<'_>, now: Instant) -> ScriptCall {
        let keys: Vec<_> = call.keys().collect();
        self.at(now, call.script, &keys, &call.args)
    }

    pub fn refund(&self, refund: &Refund, now: Instant) -> ScriptCall {
        let keys: Vec<_> = refund.keys().collect();
        self.at(now, refund.script, &keys, &refund.args)
    }
}

pub fn asked(limiter: &Limiter, key: Key, ask: Ask) -> Asked<'_> {
    Asked { limiter, key, ask, enforced: true }
}
