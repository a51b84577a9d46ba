//! One connection that keeps Redis busy: the next requests are there before the last are answered.
//! And what Redis says about itself.

use std::{
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use redis::{Connection, Value, cmd};

use super::contenders::{Contender, Keys, weir_key};

/// Requests sent at once. Twice as many are on their way.
const BATCH: u64 = 100;
/// How long a batch may take.
const ANSWER: Duration = Duration::from_secs(30);

pub(super) struct Pipeline {
    connection: Connection,
}

/// One call of a script.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) caller: u64,
    /// Whether it is the caller's first.
    pub(super) first: bool,
}

impl Pipeline {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let client = redis::Client::open(format!("redis://{address}"))?;
        let connection = client.get_connection()?;
        connection.set_read_timeout(Some(ANSWER))?;
        connection.set_write_timeout(Some(ANSWER))?;
        Ok(Self { connection })
    }

    /// Calls a script of a digest for each request; a reply that is an error ends it.
    pub(super) fn call(
        &mut self,
        contender: &Contender,
        sha1: &str,
        requests: impl Iterator<Item = Request>,
    ) -> Result<()> {
        let mut writer = Writer { contender, sha1, bytes: Vec::new(), count: 0 };
        let mut waiting = 0;
        for request in requests {
            writer.add(request)?;
            if writer.count == BATCH {
                let sent = self.send(&mut writer)?;
                self.receive(waiting)?;
                waiting = sent;
            }
        }
        let sent = self.send(&mut writer)?;
        self.receive(waiting + sent).with_context(|| contender.name.clone())
    }

    fn send(&mut self, writer: &mut Writer<'_>) -> Result<u64> {
        if !writer.bytes.is_empty() {
            self.connection.send_packed_command(&writer.bytes)?;
        }
        writer.bytes.clear();
        Ok(std::mem::take(&mut writer.count))
    }

    fn receive(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            if let Value::ServerError(error) = self.connection.recv_response()? {
                anyhow::bail!("{error:?}");
            }
        }
        Ok(())
    }

    /// Forgets every key, and waits until their memory is free.
    pub(super) fn flush(&mut self) -> Result<()> {
        Ok(cmd("FLUSHALL").arg("SYNC").exec(&mut self.connection)?)
    }

    pub(super) fn load(&mut self, text: &str) -> Result<String> {
        Ok(cmd("SCRIPT").arg("LOAD").arg(text).query(&mut self.connection)?)
    }

    pub(super) fn keys(&mut self) -> Result<u64> {
        Ok(cmd("DBSIZE").query(&mut self.connection)?)
    }

    /// Bytes that Redis has in use.
    pub(super) fn memory(&mut self) -> Result<u64> {
        Ok(self.info("memory", "used_memory")?.parse()?)
    }

    pub(super) fn version(&mut self) -> Result<String> {
        self.info("server", "redis_version")
    }

    /// Scripts called by their digest so far, and the microseconds that Redis spent in them.
    pub(super) fn spent(&mut self) -> Result<(u64, u64)> {
        let line = self.info("commandstats", "cmdstat_evalsha")?;
        let number = |name: &str| {
            let value = line.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            anyhow::Ok(value.with_context(|| format!("{name} in {line}"))?.parse::<u64>()?)
        };
        Ok((number("calls")?, number("usec")?))
    }

    fn info(&mut self, section: &str, name: &str) -> Result<String> {
        let text: String = cmd("INFO").arg(section).query(&mut self.connection)?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.with_context(|| format!("{name} in INFO {section}"))?.to_owned())
    }
}

/// Writes calls as Redis reads them.
struct Writer<'a> {
    contender: &'a Contender,
    sha1: &'a str,
    bytes: Vec<u8>,
    count: u64,
}

impl Writer<'_> {
    fn add(&mut self, request: Request) -> Result<()> {
        let Self { contender, sha1, bytes, count } = self;
        let filled = Filled::of(request.caller)?;
        let keys = match &contender.keys {
            Keys::Weir(limits) => {
                let keys = limits.iter().map(|limit| weir_key(limit, request.caller));
                keys.map(|key| key.as_str().to_owned()).collect()
            }
            Keys::Template(keys) => filled.all(keys),
        };
        let args = filled.all(if request.first { &contender.first } else { &contender.again });
        let words = 3 + keys.len() + args.len();
        bytes.extend_from_slice(format!("*{words}\r\n").as_bytes());
        for word in ["EVALSHA", sha1, &keys.len().to_string()] {
            push(bytes, word);
        }
        for word in keys.iter().chain(&args) {
            push(bytes, word);
        }
        *count += 1;
        Ok(())
    }
}

fn push(bytes: &mut Vec<u8>, word: &str) {
    bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
}

/// What the words of a template stand for, for one caller, now.
struct Filled {
    caller: u64,
    millis: u64,
}

impl Filled {
    fn of(caller: u64) -> Result<Self> {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        Ok(Self { caller, millis: u64::try_from(millis)? })
    }

    fn all(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.one(word)).collect()
    }

    fn one(&self, word: &str) -> String {
        if !word.contains('<') {
            return word.to_owned();
        }
        let minute = self.millis / 60_000;
        word.replace("<id>", &format!("key_{:016x}", self.caller))
            .replace("<now>", &self.millis.to_string())
            .replace("<minute>", &minute.to_string())
            .replace("<last-minute>", &minute.saturating_sub(1).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contenders::Kind;

    fn contender(keys: Keys) -> Contender {
        let args = |cost: &str| vec![cost.to_owned()];
        let (first, again) = (args("500"), args("1"));
        let (name, text) = (String::new(), String::new());
        Contender { name, kind: Kind::Bucket, ours: false, text, keys, first, again }
    }

    #[track_caller]
    fn check(keys: Keys, first: bool, expected: &str) {
        let contender = contender(keys);
        let mut writer = Writer { contender: &contender, sha1: "ab", bytes: Vec::new(), count: 0 };
        writer.add(Request { caller: 10, first }).unwrap();
        let text = String::from_utf8(writer.bytes).unwrap();
        let words: Vec<&str> = text.split("\r\n").filter(|word| !word.starts_with('$')).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_call_is_written_as_redis_reads_it() {
        let template = Keys::Template(vec!["rate:<id>".to_owned()]);
        check(template.clone(), true, "*5 EVALSHA ab 1 rate:key_000000000000000a 500 ");
        check(template, false, "*5 EVALSHA ab 1 rate:key_000000000000000a 1 ");
        let key = weir_key("per-key", 10);
        check(Keys::Weir(vec!["per-key"]), false, &format!("*5 EVALSHA ab 1 {} 1 ", key.as_str()));
    }

    #[test]
    fn words_stand_for_what_changes() {
        let filled = Filled { caller: 255, millis: 120_001 };
        let text = filled.one("<id>:<now>:<minute>:<last-minute>");
        assert_eq!(text, "key_00000000000000ff:120001:2:1");
    }
}
