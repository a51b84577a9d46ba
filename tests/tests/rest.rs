//! The lab's REST server speaks Upstash's protocol: as Upstash's own client sees it
//! (`tests/rest/client.mjs`), and as its documentation says.

mod support;

use std::{path::Path, time::Duration};
use support::artefact;
use tokio::{process::Command, time::timeout};
use weir_lab::{
    eventually::eventually,
    http::{self, Answer},
    redis::{Options, Redis},
    rest::Rest,
};

const PASSWORD: &str = "pass word";
const TOKEN: &str = "AAIgcDE_token=";
const BEARER: &str = "Bearer AAIgcDE_token=";

/// How long a test waits for what must not come.
const SHORT: Duration = Duration::from_millis(200);

/// How long something may take that does come.
const LONG: Duration = Duration::from_secs(30);

struct Stage {
    redis: Redis,
    rest: Rest,
}

impl Stage {
    async fn start() -> Self {
        let options = Options { password: Some(PASSWORD.to_owned()), ..Options::default() };
        let redis = Redis::start_with(&artefact("WEIR_REDIS"), options).unwrap();
        let rest = Rest::start(redis.address(), Some(PASSWORD), TOKEN).await.unwrap();
        Self { redis, rest }
    }

    async fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.post_with(path, &[("authorization", BEARER)], body).await
    }

    async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        http::post(self.rest.address(), path, &headers, body.as_ref().to_vec()).await.unwrap()
    }

    async fn check(&self, path: &str, body: &str, status: u16, expected: &str) {
        let answer = self.post(path, body).await;
        assert_eq!((answer.status, answer.text().as_str()), (status, expected), "{path} {body}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
}

/// Runs a case of Upstash's own client.
async fn client(case: &str) {
    let stage = Stage::start().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rest/client.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(case).kill_on_drop(true);
    node.env("WEIR_UPSTASH_CLIENT", artefact("WEIR_UPSTASH_CLIENT"));
    node.env("URL_OF_SERVER", format!("http://{}", stage.rest.address())).env("TOKEN", TOKEN);
    let output = timeout(LONG, node.output()).await.unwrap().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "done\n", "{out}{err}");
}

#[tokio::test]
async fn the_client_gets_values_back() {
    client("values_come_back").await;
}

#[tokio::test]
async fn the_client_gets_odd_strings_unharmed() {
    client("odd_strings_are_unharmed").await;
}

#[tokio::test]
async fn the_client_gets_the_integers_of_scripts() {
    client("scripts_reply_integers").await;
}

#[tokio::test]
async fn the_client_is_told_of_an_unknown_script() {
    client("an_unknown_script_is_an_error").await;
}

#[tokio::test]
async fn the_client_gets_the_results_and_errors_of_a_pipeline() {
    client("a_pipeline_keeps_its_order_and_its_errors").await;
}

#[tokio::test]
async fn the_client_gets_the_results_of_a_transaction() {
    client("a_transaction_runs_as_one").await;
}

#[tokio::test]
async fn the_client_is_told_of_a_wrong_token() {
    client("a_wrong_token_is_an_error").await;
}

#[tokio::test]
async fn a_command_may_be_in_the_body_or_the_path() {
    let stage = Stage::start().await;
    stage.check("/", r#"["SET", "a", 1]"#, 200, r#"{"result":"OK"}"#).await;
    stage.check("/get/a", "", 200, r#"{"result":"1"}"#).await;
    stage.check("/set/b?EX=100", "v/?", 200, r#"{"result":"OK"}"#).await;
    stage.check("/", r#"["TTL", "b"]"#, 200, r#"{"result":100}"#).await;
    let got =
        http::get(stage.rest.address(), &format!("/mget/a/b/none?_token={TOKEN}")).await.unwrap();
    assert_eq!((got.status, got.text().as_str()), (200, r#"{"result":["1","v/?",null]}"#));
}

#[tokio::test]
async fn errors_are_a_400_and_have_their_text() {
    let stage = Stage::start().await;
    let text = "NOSCRIPT No matching script. Please use EVAL.";
    let unknown = format!(r#"["EVALSHA", "{}", 1, "k"]"#, "0".repeat(40));
    stage.check("/", &unknown, 400, &format!(r#"{{"error":"{text}"}}"#)).await;
    let wrong = r#"{"error":"ERR wrong number of arguments for 'get' command"}"#;
    stage.check("/get", "", 400, wrong).await;
    for (path, body) in [("/", "nonsense"), ("/", "[]"), ("/pipeline", "{}"), ("/", r#"["MULTI"]"#)]
    {
        let answer = stage.post(path, body).await;
        assert!(
            answer.status == 400 && answer.text().starts_with(r#"{"error":"ERR "#),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_transaction_with_an_impossible_command_is_one_error() {
    let stage = Stage::start().await;
    let body = r#"[["SET", "a", "1"], ["GET"]]"#;
    let discarded = "EXECABORT Transaction discarded because of previous errors.";
    stage.check("/multi-exec", body, 400, &format!(r#"{{"error":"{discarded}"}}"#)).await;
    stage.check("/get/a", "", 200, r#"{"result":null}"#).await;
}

#[tokio::test]
async fn strings_are_in_base64_for_those_who_ask() {
    let stage = Stage::start().await;
    let body = r#"["EVAL", "return {'\\255', 'OK', 7}", 0]"#;
    let headers = [("authorization", BEARER), ("upstash-encoding", "base64")];
    let answer = stage.post_with("/", &headers, body).await;
    assert_eq!(answer.text(), r#"{"result":["/w==","T0s=",7]}"#);
    let answer = stage.post_with("/", &headers, r#"["SET", "a", "1"]"#).await;
    assert_eq!(answer.text(), r#"{"result":"OK"}"#);
    stage.check("/", body, 200, "{\"result\":[\"\u{fffd}\",\"OK\",7]}").await;
}

#[tokio::test]
async fn nobody_is_let_in_without_the_token() {
    let stage = Stage::start().await;
    let error = r#"{"error":"WRONGPASS invalid or missing auth token"}"#;
    for headers in [&[][..], &[("authorization", "Bearer x")], &[("authorization", TOKEN)]] {
        let answer = stage.post_with("/", headers, r#"["PING"]"#).await;
        assert_eq!((answer.status, answer.text().as_str()), (401, error));
    }
    let answer = stage.post_with("/ping?_token=x", &[], "").await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn a_body_has_a_largest_size() {
    let stage = Stage::start().await;
    let filled = |length: usize| format!(r#"["STRLEN", "{}"]"#, "x".repeat(length - 14));
    stage.check("/", &filled(1024 * 1024), 200, r#"{"result":0}"#).await;
    let answer = stage.post("/", filled(1024 * 1024 + 1)).await;
    assert!(answer.status == 400 && answer.text().contains("max request size"), "{answer:?}");
}

#[tokio::test]
async fn it_hangs_while_redis_hangs() {
    let mut stage = Stage::start().await;
    stage.redis.freeze().unwrap();
    assert!(timeout(SHORT, stage.post("/", r#"["PING"]"#)).await.is_err());
    stage.redis.thaw();
    stage.check("/", r#"["PING"]"#, 200, r#"{"result":"PONG"}"#).await;
}

#[tokio::test]
async fn without_redis_there_is_a_500_and_it_finds_redis_again() {
    let mut stage = Stage::start().await;
    stage.check("/", r#"["PING"]"#, 200, r#"{"result":"PONG"}"#).await;
    stage.redis.kill();
    let answer = stage.post("/", r#"["PING"]"#).await;
    assert!(answer.status == 500 && answer.text().starts_with(r#"{"error":"#), "{answer:?}");
    stage.redis.restart().unwrap();
    let found = eventually("the server to find Redis", LONG, async || {
        Ok((stage.post("/", r#"["PING"]"#).await.status == 200).then_some(()))
    });
    found.await.unwrap();
}
