//! A real Redis on a free port of 127.0.0.1, without persistence, and what the tests ask of it.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use redis::{Connection, ErrorKind, ServerErrorKind, Value, cmd, pipe};
use tempfile::TempDir;

use crate::{eventually::blocking, processes::Process};

/// How long a server may take to answer for the first time.
const START: Duration = Duration::from_secs(20);

/// How long one answer may take while it is not known that Redis is there.
const FIRST_ANSWER: Duration = Duration::from_millis(500);

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// Ports tried: between finding a free one and the server's taking it, another may come first.
const TRIES: u32 = 10;

/// A running server; it is stopped when the value is dropped.
pub struct Redis {
    // Before the folder that its log is in.
    process: Process,
    address: SocketAddr,
    _folder: TempDir,
}

impl Redis {
    /// Starts a `redis-server`.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub fn start(program: &Path) -> Result<Self> {
        for _ in 0..TRIES {
            if let Some(redis) = Self::start_on(program, free_port()?)? {
                return Ok(redis);
            }
        }
        bail!("no port of {TRIES} was still free when Redis started on it")
    }

    /// `None` if another has taken the port.
    fn start_on(program: &Path, address: SocketAddr) -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let process =
            Process::start("redis", command(program, address, folder.path()), folder.path())?;
        let mut redis = Self { process, address, _folder: folder };
        let mut ready = false;
        let mut ended = None;
        blocking(START, || {
            ended = redis.process.exited().ok().flatten();
            ready = ended.is_none() && redis.is_mine();
            ready || ended.is_some()
        });
        match ended {
            Some(_) if redis.process.log().contains("Address already in use") => Ok(None),
            None if ready => Ok(Some(redis)),
            _ => bail!("redis-server did not start:\n{}", redis.process.log()),
        }
    }

    /// Whether what answers is this process and no other that has the port.
    fn is_mine(&self) -> bool {
        let client = self.client_within(FIRST_ANSWER);
        let number = client.and_then(|mut client| client.info("server", "process_id"));
        number.is_ok_and(|number| number == self.process.id().to_string())
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection.
    ///
    /// # Errors
    /// When it is refused.
    pub fn client(&self) -> Result<Client> {
        self.client_within(ANSWER)
    }

    fn client_within(&self, answer: Duration) -> Result<Client> {
        let client = redis::Client::open(format!("redis://{}", self.address))?;
        let connection = client.get_connection_with_timeout(answer)?;
        connection.set_read_timeout(Some(answer))?;
        Ok(Client { connection })
    }
}

fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn command(program: &Path, address: SocketAddr, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--bind", &address.ip().to_string(), "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.arg("--dir").arg(folder);
    command
}

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

impl Client {
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
        Ok(evalsha(call).query(&mut self.connection)?)
    }

    /// Calls a script by its SHA-1, and by its text if Redis does not know it yet.
    ///
    /// # Errors
    /// What the script fails with.
    pub fn call_or_eval(&mut self, call: &ScriptCall, text: &str) -> Result<Vec<i64>> {
        match evalsha(call).query(&mut self.connection) {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let mut eval = cmd("EVAL");
                eval.arg(text).arg(call.keys.len()).arg(&call.keys).arg(&call.args);
                Ok(eval.query(&mut self.connection)?)
            }
            reply => Ok(reply?),
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

    /// One line of `INFO`.
    fn info(&mut self, section: &str, name: &str) -> Result<String> {
        let text: String = cmd("INFO").arg(section).query(&mut self.connection)?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.with_context(|| format!("{name} in INFO {section}"))?.to_owned())
    }
}

fn evalsha(call: &ScriptCall) -> redis::Cmd {
    let mut evalsha = cmd("EVALSHA");
    evalsha.arg(&call.sha1).arg(call.keys.len()).arg(&call.keys).arg(&call.args);
    evalsha
}

fn observed(call: &ScriptCall, replies: &mut impl Iterator<Item = Value>) -> Result<Observed> {
    let mut next = || replies.next().context("a reply is missing");
    let before = micros(redis::from_redis_value(next()?)?)?;
    let reply = redis::from_redis_value(next()?)?;
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
