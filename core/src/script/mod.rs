//! The limiters as Redis scripts: their text, what to call them with, and what they reply.
//!
//! A script decides as [`Limiter::step`](crate::limiter::Limiter::step) does, number for number, on the clock of the Redis that
//! keeps the state. The texts live in `core/scripts`, one file for each part, and are put together
//! by the compiler, so that the bytes exported are the bytes sent; each file is headed by its KEYS,
//! ARGV, units, reply and TTL. All state is text under `SET … PX`:
//!
//! | state | text |
//! |---|---|
//! | debt | `T`, or `T:r` if there is a remainder |
//! | window | `start:previous:current` |
//! | log | `L` and for each charge its time, `:cost` if that is not 1, and a comma |
//! | permits | `P` and for each permit `id@`, its end, `:cost` if that is not 1, and a comma |
//!
//! Times are whole microseconds since the epoch, the second and later ones of a log or of permits
//! counted from the one before. Any other text, or that of another algorithm, counts as the state
//! of a key never seen and is overwritten by the next charge; a key that holds no string at all
//! makes the script fail with `WRONGTYPE` and write nothing.
//!
//! ```
//! use weir_core::key::hash::Digest;
//! use weir_core::limiter::{Ask, Limiter, token_bucket::TokenBucket};
//! use weir_core::script::{Asked, Call, Key};
//! use weir_core::units::{Micros, Rate};
//!
//! let rate = Rate::new(5, Micros::SECOND).unwrap();
//! let limiter = Limiter::TokenBucket(TokenBucket::new(rate, 10).unwrap());
//! let bucket = Digest::of(&[7; 16], "shop", "per-key", [b"alice".as_slice()]);
//! let place = Digest::of(&[7; 16], "shop", "", [b"alice".as_slice()]);
//! let key = Key::new(place, bucket);
//! let asked = [Asked { limiter: &limiter, key, ask: Ask::ONE, enforced: true }];
//!
//! let call = Call::new(&asked).unwrap();
//! // EVALSHA <sha1> 1 weir{…}… 200000 2000000
//! assert_eq!(call.args, ["200000", "2000000"]);
//! // The reply of this script: so many units are owed after the charge.
//! let decisions = call.decisions(&[200_000]).unwrap();
//! assert!(decisions[0].is_allowed());
//! assert_eq!(decisions[0].remaining, 9);
//! ```

mod call;
mod key;
mod refund;
mod reply;
mod sha1;

pub use call::{Asked, Call, Release, Released, Unsendable};
pub use key::{Key, SLOTS};
pub use refund::Refund;
pub use reply::{BadReply, NUMBERS_PER_LIMIT};

use alloc::string::String;

/// A script that Redis runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// The name of what it does, such as `token_bucket`.
    pub name: &'static str,
    /// What `EVAL` and `SCRIPT LOAD` take.
    pub text: &'static str,
    sha1: [u8; 40],
}

impl Script {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, sha1: sha1::hex(text) }
    }

    /// The name that `EVALSHA` takes: 40 hexadecimal digits.
    #[must_use]
    pub fn sha1(&self) -> &str {
        core::str::from_utf8(&self.sha1).unwrap_or_default()
    }

    /// The text of a script that differs in one line: it takes the time, microseconds since the
    /// epoch, as one more ARGV, the last. For tests, which need a clock that they can set.
    #[must_use]
    pub fn on_test_clock(&self) -> String {
        self.text.replacen(CLOCK, TEST_CLOCK, 1)
    }
}

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../scripts/", $name, ".lua"))
    };
}

/// The script of one step: the clock, the files it needs, and the call of its function.
macro_rules! one {
    ($name:literal, $($file:literal),*) => {
        Script::new(
            $name,
            concat!(
                file!("clock"), $(file!($file),)* file!($name), file!("write"), file!("one"),
                "\nreturn one(", $name, ")\n",
            ),
        )
    };
}

/// The line that is another on a test's clock; every script begins with it.
const CLOCK: &str = file!("clock");
const TEST_CLOCK: &str = "local now = tonumber(table.remove(ARGV))\n";

/// The token bucket of any rate.
pub static TOKEN_BUCKET: Script = one!("token_bucket", "debt");
/// The token bucket at one unit a microsecond.
pub static TOKEN_BUCKET_FAST: Script =
    Script::new("token_bucket_fast", concat!(file!("clock"), file!("token_bucket_fast")));
/// The token bucket of any rate that is counted by the microsecond.
pub static TOKEN_BUCKET_MICRO: Script =
    Script::new("token_bucket_micro", concat!(file!("clock"), file!("token_bucket_micro")));
/// The fixed window.
pub static FIXED_WINDOW: Script = one!("fixed_window", "window");
/// The sliding window counter.
pub static SLIDING_WINDOW: Script = one!("sliding_window", "window");
/// The sliding log.
pub static SLIDING_LOG: Script = one!("sliding_log", "entries");
/// The leaky bucket.
pub static LEAKY_BUCKET: Script = one!("leaky_bucket", "debt");
/// Takes permits.
pub static CONCURRENCY: Script = one!("concurrency", "entries");
/// Gives permits back.
pub static RELEASE: Script = one!("release", "entries", "concurrency");
/// Several limits at once, all or nothing.
pub static GENERAL: Script = Script::new(
    "general",
    concat!(
        file!("clock"),
        file!("debt"),
        file!("token_bucket"),
        file!("leaky_bucket"),
        file!("window"),
        file!("fixed_window"),
        file!("sliding_window"),
        file!("entries"),
        file!("sliding_log"),
        file!("concurrency"),
        file!("write"),
        file!("general"),
    ),
);

/// Gives back what several limits were charged.
pub static REFUND: Script = Script::new(
    "refund",
    concat!(
        file!("clock"),
        file!("debt"),
        file!("window"),
        file!("entries"),
        file!("sliding_log"),
        file!("concurrency"),
        file!("release"),
        file!("write"),
        file!("refund"),
    ),
);

/// All scripts, to load them or to export them.
pub static ALL: [&Script; 11] = [
    &TOKEN_BUCKET,
    &TOKEN_BUCKET_FAST,
    &TOKEN_BUCKET_MICRO,
    &FIXED_WINDOW,
    &SLIDING_WINDOW,
    &SLIDING_LOG,
    &LEAKY_BUCKET,
    &CONCURRENCY,
    &RELEASE,
    &GENERAL,
    &REFUND,
];
