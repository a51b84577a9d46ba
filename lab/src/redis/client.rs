//! A connection to Redis, and what the tests ask over it.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result};
use redis::{Connection, ErrorKind, IntoConnectionInfo as _, ServerErrorKind, Value, cmd, pipe};

/// A call of a script.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    /// Its SHA-1.
    pub sha1: String,
    /// KEYS.
    pub keys: Vec<String>,
    /// ARGV.
    pub args: Vec<String>,
}

/// What a call of a script replied, and what it left.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The integers of the reply.
    pub reply: Vec<i64>,
    /// Redis's time just before and just after, in microseconds since the epoch.
    pub between: (u64, u64),
    /// When each of its keys expires.
    pub expiry: Vec<Expiry>,
}

/// When a key expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// There is no such key.
    NoKey,
    /// Never.
    Never,
    /// At this time, in milliseconds since the epoch.
    At(u64),
}

/// A connection to Redis.
pub struct Client {
    connection: Connection,
}

/// How `INFO commandstats` begins the number of calls.
const CALLS: &str = "calls=";

impl Client {
    pub(super) fn connect(
        address: SocketAddr,
        password: Option<&str>,
        answer: Duration,
    ) -> Result<Self> {
        let client = redis::Client::open(connection_info(address, password)?)?;
        let connection = client.get_connection_with_timeout(answer)?;
        connection.set_read_timeout(Some(answer))?;
        Ok(Self { connection })
    }

    /// Loads a script and returns the SHA-1 that Redis knows it by.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn load(&mut self, text: &str) -> Result<String> {
        Ok(cmd("SCRIPT").arg("LOAD").arg(text).query(&mut self.connection)?)
    }

    /// Calls a loaded script.
    ///
    /// # Errors
    /// What the script fails with.
    pub fn call(&mut self, call: &ScriptCall) -> Result<Vec<i64>> {
        integers(evalsha(call).query(&mut self.connection)?)
    }

    /// Calls a script by its SHA-1, and by its text if Redis does not know it yet.
    ///
    /// # Errors
    /// What the script fails with.
    pub fn call_or_eval(&mut self, call: &ScriptCall, text: &str) -> Result<Vec<i64>> {
        match evalsha(call).query::<Value>(&mut self.connection) {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let mut eval = cmd("EVAL");
                eval.arg(text).arg(call.keys.len()).arg(&call.keys).arg(&call.args);
                integers(eval.query(&mut self.connection)?)
            }
            reply => integers(reply?),
        }
    }

    /// Calls scripts one after the other, in one round trip and with nothing between, and looks at
    /// their keys after each. With `keep` every key is then freed of its expiry, so that it lives
    /// on in a test whose clock is not Redis's.
    ///
    /// # Errors
    /// What one of the scripts fails with.
    pub fn observe(&mut self, calls: &[ScriptCall], keep: bool) -> Result<Vec<Observed>> {
        let mut all = pipe();
        all.atomic();
        for call in calls {
            all.add_command(cmd("TIME")).add_command(evalsha(call)).add_command(cmd("TIME"));
            for key in &call.keys {
                all.cmd("PEXPIRETIME").arg(key);
            }
            for key in call.keys.iter().filter(|_| keep) {
                all.cmd("PERSIST").arg(key).ignore();
            }
        }
        let replies: Vec<Value> = all.query(&mut self.connection)?;
        let mut replies = replies.into_iter();
        calls.iter().map(|call| observed(call, &mut replies)).collect()
    }

    /// The text that a key holds.
    ///
    /// # Errors
    /// When it is none.
    pub fn get(&mut self, key: &str) -> Result<Option<String>> {
        Ok(cmd("GET").arg(key).query(&mut self.connection)?)
    }

    /// Runs a command that replies nothing of interest.
    ///
    /// # Errors
    /// What it fails with.
    pub fn run(&mut self, words: &[&str]) -> Result<()> {
        let (name, args) = words.split_first().context("a command")?;
        Ok(cmd(name).arg(args).exec(&mut self.connection)?)
    }

    /// Runs a command and returns its reply.
    pub(super) fn ask<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> Result<T> {
        let (name, args) = words.split_first().context("a command")?;
        Ok(cmd(name).arg(args).query(&mut self.connection)?)
    }

    /// Keys that there are.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn count(&mut self) -> Result<u64> {
        Ok(cmd("DBSIZE").query(&mut self.connection)?)
    }

    /// Milliseconds for which a key still lives; `None` if there is no such key or no end to it.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn ttl(&mut self, key: &str) -> Result<Option<u64>> {
        let millis: i64 = cmd("PTTL").arg(key).query(&mut self.connection)?;
        Ok(u64::try_from(millis).ok())
    }

    /// Redis's time, in microseconds since the epoch.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn time(&mut self) -> Result<u64> {
        micros(cmd("TIME").query(&mut self.connection)?)
    }

    /// How often scripts were called, by their text or by their SHA-1. A call that Redis did not
    /// know the script of counts too: it reached Redis.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn script_calls(&mut self) -> Result<u64> {
        self.script_statistic(CALLS)
    }

    /// How often scripts ran to their end: without the calls of scripts that Redis did not know.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn script_runs(&mut self) -> Result<u64> {
        Ok(self.script_statistic(CALLS)? - self.script_statistic("failed_calls=")?)
    }

    fn script_statistic(&mut self, field: &str) -> Result<u64> {
        let text: String = cmd("INFO").arg("commandstats").query(&mut self.connection)?;
        statistic(&text, field)
    }

    /// How often scripts were called, and how often it did not know the script; from then on it answers nobody, so that
    /// these are the numbers when it is killed.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn last_script_calls(&mut self) -> Result<(u64, u64)> {
        const FOREVER: &str = "60000";
        let mut all = pipe();
        all.atomic().cmd("INFO").arg("commandstats").cmd("INFO").arg("errorstats");
        all.cmd("CLIENT").arg("PAUSE").arg(FOREVER).arg("ALL").ignore();
        let (commands, errors): (String, String) = all.query(&mut self.connection)?;
        let unknown =
            errors.lines().find_map(|line| line.strip_prefix("errorstat_NOSCRIPT:count="));
        let unknown = unknown.map(str::parse).transpose()?.unwrap_or(0);
        Ok((statistic(&commands, CALLS)?, unknown))
    }

    /// How often it replied with an error of this kind, such as `ASK`.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn errors(&mut self, kind: &str) -> Result<u64> {
        let text: String = cmd("INFO").arg("errorstats").query(&mut self.connection)?;
        let start = format!("errorstat_{kind}:count=");
        Ok(text.lines().find_map(|line| line.strip_prefix(&start)).map_or(Ok(0), str::parse)?)
    }

    /// Every key; for a Redis that holds few.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn keys(&mut self) -> Result<Vec<String>> {
        Ok(cmd("KEYS").arg("*").query(&mut self.connection)?)
    }

    /// What all keys hold, if it is text; for a Redis that holds few.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn values(&mut self) -> Result<Vec<String>> {
        let keys = self.keys()?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let values: Vec<Option<String>> = cmd("MGET").arg(keys).query(&mut self.connection)?;
        Ok(values.into_iter().flatten().collect())
    }

    /// Sets a parameter of the server.
    ///
    /// # Errors
    /// When there is none of that name, or it may not have that value.
    pub fn config_set(&mut self, name: &str, value: &str) -> Result<()> {
        self.run(&["CONFIG", "SET", name, value])
    }

    /// Keys that were thrown out for want of memory.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn evicted(&mut self) -> Result<u64> {
        Ok(self.info("stats", "evicted_keys")?.parse()?)
    }

    /// Bytes of memory that Redis has in use.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub fn used_memory(&mut self) -> Result<u64> {
        Ok(self.info("memory", "used_memory")?.parse()?)
    }

    /// One line of `INFO`.
    pub(super) fn info(&mut self, section: &str, name: &str) -> Result<String> {
        let text: String = cmd("INFO").arg(section).query(&mut self.connection)?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.with_context(|| format!("{name} in INFO {section}"))?.to_owned())
    }
}

/// Where and as whom to connect.
pub(crate) fn connection_info(
    address: SocketAddr,
    password: Option<&str>,
) -> Result<redis::ConnectionInfo> {
    let info = format!("redis://{address}").into_connection_info()?;
    let Some(password) = password else { return Ok(info) };
    let settings = info.redis_settings().clone().set_password(password);
    Ok(info.set_redis_settings(settings))
}

/// A number that `INFO commandstats` tells of `EVAL` and `EVALSHA`, summed.
fn statistic(text: &str, field: &str) -> Result<u64> {
    let mut sum = 0;
    for name in ["eval", "evalsha"] {
        let start = format!("cmdstat_{name}:");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        let fields = line.into_iter().flat_map(|line| line.split(','));
        for number in fields.filter_map(|part| part.strip_prefix(field)) {
            sum += number.parse::<u64>().with_context(|| text.to_owned())?;
        }
    }
    Ok(sum)
}

fn evalsha(call: &ScriptCall) -> redis::Cmd {
    let mut evalsha = cmd("EVALSHA");
    evalsha.arg(&call.sha1).arg(call.keys.len()).arg(&call.keys).arg(&call.args);
    evalsha
}

/// The integer that a reply is, or those of which it is an array.
fn integers(reply: Value) -> Result<Vec<i64>> {
    Ok(match reply {
        Value::Int(number) => vec![number],
        reply => redis::from_redis_value(reply)?,
    })
}

fn observed(call: &ScriptCall, replies: &mut impl Iterator<Item = Value>) -> Result<Observed> {
    let mut next = || replies.next().context("a reply is missing");
    let before = micros(redis::from_redis_value(next()?)?)?;
    let reply = integers(next()?)?;
    let after = micros(redis::from_redis_value(next()?)?)?;
    let expiry = call.keys.iter().map(|_| expiry(redis::from_redis_value(next()?)?));
    Ok(Observed { reply, between: (before, after), expiry: expiry.collect::<Result<_>>()? })
}

fn expiry(millis: i64) -> Result<Expiry> {
    Ok(match millis {
        -2 => Expiry::NoKey,
        -1 => Expiry::Never,
        millis => Expiry::At(millis.try_into()?),
    })
}

fn micros((seconds, micros): (u64, u64)) -> Result<u64> {
    let total = seconds.checked_mul(1_000_000).and_then(|total| total.checked_add(micros));
    total.context("a time out of range")
}
