//! A script's call as it goes over the wire.

use super::resp::Reply;
use crate::host::{Clock, HostError};
use std::borrow::Cow;
use weir_core::script::{Key, Script};

/// A script with what it is called with.
#[derive(Clone, Debug)]
pub struct Command {
    /// The script.
    pub script: &'static Script,
    /// KEYS.
    pub keys: Vec<Key>,
    /// ARGV.
    pub args: Vec<String>,
    /// The time to decide at, in the place of the store's.
    #[cfg(feature = "test-clock")]
    pub now: weir_core::units::Instant,
}

/// How a command names its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By its SHA-1, which is short, and enough for a store that knows it.
    Digest,
    /// By its text, which makes it known.
    Text,
}

impl Command {
    /// A call of a script. The clock is asked only where it is a test's.
    ///
    /// # Errors
    /// [`HostError`] if the clock has no time to tell.
    pub fn new(
        script: &'static Script,
        keys: Vec<Key>,
        args: Vec<String>,
        clock: &impl Clock,
    ) -> Result<Self, HostError> {
        let _ = clock;
        Ok(Self {
            script,
            keys,
            args,
            #[cfg(feature = "test-clock")]
            now: clock.now()?,
        })
    }

    /// The words of the command: `EVALSHA` or `EVAL`, the script, the number of keys, the keys and
    /// the arguments.
    #[must_use]
    pub fn words(&self, by: By) -> Vec<Cow<'_, [u8]>> {
        let mut words: Vec<Cow<'_, [u8]>> =
            Vec::with_capacity(self.keys.len().saturating_add(self.args.len()).saturating_add(4));
        words.extend(self.script(by));
        words.push(Cow::Owned(self.keys.len().to_string().into_bytes()));
        words.extend(self.keys.iter().map(|key| Cow::Borrowed(key.as_str().as_bytes())));
        words.extend(self.args.iter().map(|arg| Cow::Borrowed(arg.as_bytes())));
        #[cfg(feature = "test-clock")]
        words.push(Cow::Owned(self.now.as_micros().to_string().into_bytes()));
        words
    }

    #[cfg(not(feature = "test-clock"))]
    fn script(&self, by: By) -> [Cow<'_, [u8]>; 2] {
        match by {
            By::Digest => ["EVALSHA", self.script.sha1()],
            By::Text => ["EVAL", self.script.text],
        }
        .map(|word| Cow::Borrowed(word.as_bytes()))
    }

    /// On a test's clock the keys must not expire on the store's.
    #[cfg(feature = "test-clock")]
    fn script(&self, _: By) -> [Cow<'_, [u8]>; 2] {
        const KEEP: &str = "local call = redis.call\n\
             local redis = { call = function(name, key, value)\n\
             if value then return call(name, key, value) end\n\
             return call(name, key) end }\n";
        let text = format!("{KEEP}{}", self.script.on_test_clock());
        [Cow::Borrowed(b"EVAL".as_slice()), Cow::Owned(text.into_bytes())]
    }
}

impl By {
    /// Whether a command that named its script so is to be sent anew, by the script's text: the
    /// store has been restarted, or another has taken its place.
    #[must_use]
    pub fn is_unknown(self, reply: &Reply) -> bool {
        self == Self::Digest && matches!(reply, Reply::Error(text) if text.starts_with(b"NOSCRIPT"))
    }
}
