//! What a real webdis (0.1.9, as in Debian) does with a command in the body of a POST. The filter's
//! requests are written, and its reply reader too, after what is shown here.
//!
//! # The request
//! - `POST /` and `command/argument/argument…` as the body, its length in `content-length` or in
//!   chunks. The path of the request does not matter. No `/` before the command: it makes another
//!   of it. An empty body gets 403.
//! - The command's name is not decoded. A first part of digits alone chooses a database.
//! - `/` ends an argument and `?` ends the command; `+` becomes a space; `%` with two hexadecimal
//!   digits after it becomes that byte. These four must be written `%2F %3F %2B %25`. All other
//!   bytes, 0x00 to 0xff, may stand as they are, and any may be encoded, in either case of letters.
//! - Empty arguments are kept, at the end too.
//! - The format is what stands after the last `.` behind the last `/` and before a `?`, as sent,
//!   not as decoded, in small letters: `.raw`, `.json`. What is no format's name is part of the
//!   argument; with no name of a format, the reply is JSON. So behind a suffix of its own a command
//!   may hold any `.`, and `%2E` is never taken for one.
//!
//! # The answer
//! - 200 for whatever Redis replied, errors too. 503 without a body when Redis cannot be reached or
//!   goes away meanwhile. 403 without a body when the command is not allowed or there is none. 304
//!   instead of 200 to an `if-none-match` that fits: do not send any.
//! - While Redis hangs there is no answer: webdis has no deadline.
//! - `content-type` is `application/json` or, for `.raw`, `binary/octet-stream`.
//! - JSON is one object, its one name the command as it was sent. An array of integers is an array
//!   of numbers, exact to 64 bits. Nil is `null`. A status is `[true,"text"]`, an error is
//!   `[false,"text"]`; nothing else holds `true` or `false`. An array, a status or an error within
//!   an array is `null`.
//! - Raw is RESP, except that an integer in an array comes as a bulk string (`$1\r\n7\r\n`), and
//!   that a nil, an array, a status or an error in an array is left out while the count stays.
//! - **Raw breaks on an integer beyond 32 bits**: its length is wrong, the body is cut short, and
//!   webdis writes past the end of its buffer, so that it may crash. Times in microseconds are such
//!   integers. Use JSON.

mod support;

use std::time::Duration;
use support::artefact;
use tokio::time::timeout;
use weir_lab::{
    eventually::eventually,
    http::{self, Answer, Client},
    redis::{Options, Redis, ScriptCall},
    webdis::Webdis,
};

const PASSWORD: &str = "pass word/%\"";

/// How long a test waits for what must not come.
const SHORT: Duration = Duration::from_millis(200);

/// How long something may take that does come.
const LONG: Duration = Duration::from_secs(20);

struct Stage {
    redis: Redis,
    webdis: Webdis,
    client: Client,
}

impl Stage {
    async fn start() -> Self {
        let options = Options { password: Some(PASSWORD.to_owned()), ..Options::default() };
        let redis = Redis::start_with(&artefact("WEIR_REDIS"), options).unwrap();
        let webdis = start_webdis(&redis, Some(PASSWORD)).await;
        let client = Client::connect(webdis.address()).await.unwrap();
        Self { redis, webdis, client }
    }

    async fn ask(&mut self, body: impl AsRef<[u8]>) -> Answer {
        self.client.post("/", &[], body.as_ref().to_vec()).await.unwrap()
    }

    /// Checks the body of a 200.
    async fn check(&mut self, body: impl AsRef<[u8]>, expected: impl AsRef<[u8]>) {
        let shown = String::from_utf8_lossy(body.as_ref()).into_owned();
        let answer = self.ask(body).await;
        let expected = String::from_utf8_lossy(expected.as_ref()).into_owned();
        assert_eq!((answer.status, answer.text()), (200, expected), "{shown}");
    }

    /// Checks what a script replies, as JSON and raw.
    async fn check_script(&mut self, text: &str, json: &str, raw: &str) {
        let eval = format!("EVAL/{}/0", encode(text));
        self.check(&eval, format!(r#"{{"EVAL":{json}}}"#)).await;
        self.check(eval + ".raw", raw).await;
    }
}

async fn start_webdis(redis: &Redis, password: Option<&str>) -> Webdis {
    Webdis::start(&artefact("WEIR_WEBDIS"), redis.address(), password).await.unwrap()
}

/// Every byte as `%XX`.
fn encode(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn encoded_keys_and_arguments_come_through_unharmed() {
    let mut stage = Stage::start().await;
    let sha1 = stage.redis.client().unwrap().load("return {KEYS[1], ARGV[1]}").unwrap();
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let values: [&[u8]; 16] = [
        b"/", b"%", b".", b"?", b"#", b"&", b" ", b"+", b"\r\n", b"\xff", b"\0", b".raw", b".json",
        b"%41", b"", &every,
    ];
    for value in values {
        let body = format!("EVALSHA/{sha1}/1/{0}/{0}.raw", encode(value));
        let bulk = [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
        let answer = stage.ask(&body).await;
        let expected = [b"*2\r\n".as_slice(), &bulk, &bulk].concat();
        assert_eq!((answer.status, &answer.body[..]), (200, &expected[..]), "{body}");
        assert_eq!(answer.header("content-type"), Some("binary/octet-stream"));
    }
}

#[tokio::test]
async fn only_four_bytes_must_be_encoded() {
    let mut stage = Stage::start().await;
    for byte in 0..=u8::MAX {
        // Digits after it, or a `%` would stand for itself.
        let argument = [b'a', byte, b'4', b'1'];
        let body = [b"ECHO/", argument.as_slice(), b".raw"].concat();
        let answer = stage.ask(body).await;
        let unharmed = [b"$4\r\n", argument.as_slice(), b"\r\n"].concat();
        let is_unharmed = answer.body == unharmed;
        assert_eq!(is_unharmed, !b"/?+%".contains(&byte), "{byte:#04x}: {}", answer.text());
    }
    stage.check("ECHO/a+b%2bc%2Bd.raw", "$7\r\na b+c+d\r\n").await;
    stage.check("ECHO/a?b.raw", r#"{"ECHO":"a"}"#).await;
    stage
        .check(
            "EC%48O/a",
            r#"{"EC%48O":[false,"ERR unknown command 'EC%48O', with args beginning with: 'a' "]}"#,
        )
        .await;
}

#[tokio::test]
async fn empty_arguments_are_kept() {
    let mut stage = Stage::start().await;
    let script = encode("return {#KEYS[1], #ARGV, #ARGV[1], #ARGV[#ARGV]}");
    stage.check(format!("EVAL/{script}/1//x/"), r#"{"EVAL":[0,2,1,0]}"#).await;
    stage.check(format!("EVAL/{script}/1//x/.json"), r#"{"EVAL":[0,2,1,0]}"#).await;
}

#[tokio::test]
async fn the_format_is_the_last_suffix_of_the_body_as_sent() {
    let mut stage = Stage::start().await;
    stage.check("ECHO/a.raw", "$1\r\na\r\n").await;
    stage.check("ECHO/a.json", r#"{"ECHO":"a"}"#).await;
    stage.check("ECHO/a", r#"{"ECHO":"a"}"#).await;
    stage.check("ECHO/a.raw.json", r#"{"ECHO":"a.raw"}"#).await;
    stage.check("ECHO/a.RAW", r#"{"ECHO":"a.RAW"}"#).await;
    stage.check("ECHO/a%2Eraw", r#"{"ECHO":"a.raw"}"#).await;
    stage.check("ECHO/1.5", r#"{"ECHO":"1.5"}"#).await;
    stage.check("ECHO/a.raw?x=.json", "$1\r\na\r\n").await;
    stage.check("PING.raw", "+PONG\r\n").await;
    let answer = stage.client.post("/x.raw", &[], "ECHO/a").await.unwrap();
    assert_eq!(answer.text(), r#"{"ECHO":"a"}"#);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    stage.check("echo/a", r#"{"echo":"a"}"#).await;
}

#[tokio::test]
async fn replies_have_their_form_in_json_and_raw() {
    let mut stage = Stage::start().await;
    let raw = "*4\r\n$1\r\n1\r\n$1\r\n0\r\n$2\r\n-1\r\n$10\r\n2147483647\r\n";
    stage.check_script("return {1, 0, -1, 2147483647}", "[1,0,-1,2147483647]", raw).await;
    stage.check_script("return {}", "[]", "*0\r\n").await;
    stage.check_script("return 5", "5", ":5\r\n").await;
    stage.check_script("return 'x'", r#""x""#, "$1\r\nx\r\n").await;
    stage.check_script("return false", "null", "$-1\r\n").await;
    let status = "return redis.status_reply('FINE')";
    stage.check_script(status, r#"[true,"FINE"]"#, "+FINE\r\n").await;
    let error = "return redis.error_reply('MINE a')";
    stage.check_script(error, r#"[false,"MINE a"]"#, "-MINE a\r\n").await;
}

#[tokio::test]
async fn what_is_no_integer_or_string_in_an_array_is_lost() {
    let mut stage = Stage::start().await;
    stage.check_script("return {1, {2}}", "[1,null]", "*2\r\n$1\r\n1\r\n").await;
    stage.check_script("return {1, false}", "[1,null]", "*2\r\n$1\r\n1\r\n").await;
    let error = "return {1, redis.error_reply('MINE a')}";
    stage.check_script(error, "[1,null]", "*2\r\n$1\r\n1\r\n").await;
}

#[tokio::test]
async fn large_integers_are_exact_in_json() {
    let mut stage = Stage::start().await;
    for number in LARGE {
        stage.check(large(number), format!(r#"{{"EVAL":[{number}]}}"#)).await;
    }
    stage.redis.client().unwrap().run(&["SET", "n", &i64::MAX.to_string()]).unwrap();
    stage.check("INCRBY/n/0", format!(r#"{{"INCRBY":{}}}"#, i64::MAX)).await;
}

#[tokio::test]
async fn large_integers_are_broken_in_raw() {
    for number in LARGE {
        // A webdis for each: it may not live through this.
        let mut stage = Stage::start().await;
        let answer = stage.client.post("/", &[], large(number) + ".raw").await;
        let good = format!("*1\r\n${}\r\n{number}\r\n", number.to_string().len());
        assert!(!answer.as_ref().is_ok_and(|answer| answer.text() == good), "{number}");
    }
}

/// Integers beyond 32 bits; one of them is a time in microseconds.
const LARGE: [i64; 4] = [2_147_483_648, -2_147_483_649, 1_785_542_400_000_000, 1 << 53];

/// A script that replies an array of one integer.
fn large(number: i64) -> String {
    format!("EVAL/{}/0", encode(format!("return {{{number}}}")))
}

#[tokio::test]
async fn errors_of_redis_are_a_200() {
    let mut stage = Stage::start().await;
    let text = "NOSCRIPT No matching script. Please use EVAL.";
    let unknown = format!("EVALSHA/{}/1/k", "0".repeat(40));
    stage.check(&unknown, format!(r#"{{"EVALSHA":[false,"{text}"]}}"#)).await;
    stage.check(unknown + ".raw", format!("-{text}\r\n")).await;
    let answer = stage.ask(format!("EVAL/{}/0", encode("error('x')"))).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().starts_with(r#"{"EVAL":[false,"ERR "#), "{}", answer.text());
}

#[tokio::test]
async fn a_wrong_password_is_an_error_of_each_command() {
    let stage = Stage::start().await;
    for password in [None, Some("wrong")] {
        let webdis = start_locked_out(&stage.redis, password).await;
        let answer = pinged(&webdis).await;
        assert!(answer.starts_with(r#"{"PING":[false,"NOAUTH "#), "{answer}");
    }
}

/// It starts while there is no password yet, which also throws nobody out.
async fn start_locked_out(redis: &Redis, password: Option<&str>) -> Webdis {
    let mut client = redis.client().unwrap();
    client.config_set("requirepass", "").unwrap();
    let webdis = start_webdis(redis, password).await;
    client.config_set("requirepass", PASSWORD).unwrap();
    client.run(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    webdis
}

/// What it says to a PING once it is connected to Redis again.
async fn pinged(webdis: &Webdis) -> String {
    let answer = eventually("webdis to find Redis", LONG, async || {
        let answer = http::post(webdis.address(), "/", &[], "PING").await?;
        Ok((answer.status == 200).then(|| answer.text()))
    });
    answer.await.unwrap()
}

#[tokio::test]
async fn without_a_command_there_is_a_403() {
    let mut stage = Stage::start().await;
    let answer = stage.ask("").await;
    assert_eq!((answer.status, answer.body.len()), (403, 0));
}

#[tokio::test]
async fn a_first_part_of_digits_is_a_database() {
    let mut stage = Stage::start().await;
    stage.check("7/SET/a/1", r#"{"SET":[true,"OK"]}"#).await;
    stage.check("GET/a", r#"{"GET":null}"#).await;
    stage.check("7/GET/a", r#"{"GET":"1"}"#).await;
    // An empty part is no number, and no command either.
    let answer = stage.ask("/PING").await;
    assert!(!answer.text().contains("PONG"), "{answer:?}");
}

#[tokio::test]
async fn bodies_may_be_long_and_come_in_chunks() {
    let mut stage = Stage::start().await;
    let long = "x".repeat(1_000_000);
    stage.check(format!("SET/long/{long}.json"), r#"{"SET":[true,"OK"]}"#).await;
    stage.check("STRLEN/long", r#"{"STRLEN":1000000}"#).await;
    let chunked = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nECH\r\n4\r\nO/ab\r\n0\r\n\r\n";
    let answer = http::raw(stage.webdis.address(), chunked, LONG).await.unwrap();
    assert!(answer.ends_with(b"\r\n\r\n{\"ECHO\":\"ab\"}"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn an_answer_that_is_known_is_a_304() {
    let mut stage = Stage::start().await;
    let tag = stage.ask("ECHO/a").await.header("etag").unwrap().to_owned();
    let known = [("if-none-match", tag.as_bytes())];
    let answer = stage.client.post("/", &known, "ECHO/a").await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (304, 0));
}

#[tokio::test]
async fn it_hangs_while_redis_hangs() {
    let mut stage = Stage::start().await;
    stage.redis.freeze().unwrap();
    assert!(timeout(SHORT, stage.ask("PING")).await.is_err());
    stage.redis.thaw();
    let mut client = Client::connect(stage.webdis.address()).await.unwrap();
    assert_eq!(client.post("/", &[], "PING").await.unwrap().text(), r#"{"PING":[true,"PONG"]}"#);
}

#[tokio::test]
async fn without_redis_there_is_a_503_and_it_finds_redis_again() {
    let mut stage = Stage::start().await;
    let text = "return {7}";
    let sha1 = stage.redis.client().unwrap().load(text).unwrap();
    stage.redis.kill();
    let answer = stage.ask("PING").await;
    assert_eq!((answer.status, answer.body.len()), (503, 0));
    stage.redis.restart().unwrap();
    assert_eq!(pinged(&stage.webdis).await, r#"{"PING":[true,"PONG"]}"#);
    let call = ScriptCall { sha1, keys: vec!["k".into()], args: Vec::new() };
    assert_eq!(stage.redis.client().unwrap().call_or_eval(&call, text).unwrap(), [7]);
    stage.check(format!("EVALSHA/{}/1/k", call.sha1), r#"{"EVALSHA":[7]}"#).await;
}

#[tokio::test]
async fn it_stops_with_its_value() {
    let mut stage = Stage::start().await;
    let address = stage.webdis.address();
    stage.webdis.freeze().unwrap();
    assert!(timeout(SHORT, http::get(address, "/PING")).await.is_err());
    stage.webdis.thaw();
    assert!(http::get(address, "/PING").await.is_ok());
    drop(stage.webdis);
    assert!(http::get(address, "/PING").await.is_err());
}
