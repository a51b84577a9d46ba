//! The shared store by HTTP callouts: what is sent, and what is read.

mod support;

use support::{Stage, UPSTASH, WEBDIS, now, statuses};
use weir_core::script::TOKEN_BUCKET_FAST;

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

#[test]
fn webdis_gets_a_path_of_encoded_words() {
    let mut stage = Stage::new(WEBDIS, "");
    assert_eq!(now(&stage.ask("alice")), 0);
    let sent = stage.callout();
    assert_eq!(sent.cluster, "webdis");
    assert_eq!(header(&sent.headers, ":method"), Some("POST"));
    assert_eq!(header(&sent.headers, ":path"), Some("/"));
    assert_eq!(header(&sent.headers, ":authority"), Some("webdis"));
    assert_eq!(header(&sent.headers, "authorization"), None);
    let body = String::from_utf8(sent.body).unwrap();
    let start = format!("EVALSHA/{}/1/weir%7B", TOKEN_BUCKET_FAST.sha1());
    assert!(body.starts_with(&start) && body.ends_with("/1000000/2000000.json"), "{body}");
    assert_eq!(body.matches('/').count(), 5);
    assert_eq!(statuses(&stage.respond(sent.id, Some(br#"{"EVALSHA":1000000}"#))), [(1, 200)]);
}

#[test]
fn no_byte_of_a_script_means_anything_to_webdis() {
    let mut stage = Stage::new(WEBDIS, "");
    stage.ask("alice");
    let id = stage.callout().id;
    stage.respond(id, Some(br#"{"EVALSHA":[false,"NOSCRIPT No matching script."]}"#));
    let body = String::from_utf8(stage.callout().body).unwrap();
    let text = body.split('/').nth(1).unwrap();
    assert!(body.starts_with("EVAL/"));
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'%'), "{text}");
    let percent = text.split('%').map(|part| part.get(..2).unwrap_or(""));
    assert!(percent.skip(1).all(|digits| u8::from_str_radix(digits, 16).is_ok()));
}

#[test]
fn upstash_gets_json_and_a_token() {
    let mut stage = Stage::new(UPSTASH, "");
    assert_eq!(now(&stage.ask("alice")), 0);
    let sent = stage.callout();
    assert_eq!(header(&sent.headers, "authorization"), Some("Bearer secret-token"));
    assert_eq!(header(&sent.headers, ":path"), Some("/"));
    let words: Vec<String> = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(words[..3], ["EVALSHA", TOKEN_BUCKET_FAST.sha1(), "1"]);
    assert_eq!(words[4..], ["1000000", "2000000"]);
    let answers = stage.respond(sent.id, Some(br#"{"result":-1500001}"#));
    assert_eq!(statuses(&answers), [(1, 429)]);
}

#[test]
fn upstash_is_asked_by_text_where_it_does_not_know_the_script() {
    let mut stage = Stage::new(UPSTASH, "");
    stage.ask("alice");
    let id = stage.callout().id;
    assert!(stage.respond(id, Some(br#"{"error":"NOSCRIPT No matching script."}"#)).is_empty());
    let sent = stage.callout();
    let words: Vec<String> = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(words[..2], ["EVAL", TOKEN_BUCKET_FAST.text]);
    assert_eq!(statuses(&stage.respond(sent.id, Some(br#"{"result":1000000}"#))), [(1, 200)]);
}

#[test]
fn responses_may_come_in_any_order() {
    let mut stage = Stage::new(WEBDIS, "");
    stage.ask("alice");
    stage.ask("bob");
    let ids: Vec<_> = stage.host.take_callouts().iter().map(|callout| callout.id).collect();
    assert_eq!(statuses(&stage.respond(ids[1], Some(br#"{"EVALSHA":-1500001}"#))), [(2, 429)]);
    assert_eq!(statuses(&stage.respond(ids[0], Some(br#"{"EVALSHA":1000000}"#))), [(1, 200)]);
}

#[test]
fn the_token_is_in_no_log_and_no_debug_text() {
    let mut stage = Stage::new(UPSTASH, "");
    stage.ask("alice");
    let id = stage.callout().id;
    stage.respond(id, None);
    let shown = format!("{:?} {:?} {:?}", stage.shared, stage.plugin, stage.log());
    assert!(!shown.contains("secret-token"), "{shown}");
}

#[test]
fn an_outage_ends_by_a_probe_from_the_root() {
    let mut stage = Stage::new(WEBDIS, "");
    stage.ask("alice");
    let id = stage.callout().id;
    stage.respond(id, None);
    assert_eq!(now(&stage.ask("alice")), 200);
    assert_eq!(stage.host.take_callouts(), [], "nothing is sent for a request");
    stage.tick();
    let probe = stage.callout();
    assert!(probe.body.ends_with(b"/1000000/2000000/0.json"), "it charges nothing");
    stage.respond(probe.id, Some(br#"{"EVALSHA":0}"#));
    assert_eq!(now(&stage.ask("alice")), 0);
}

#[test]
fn an_error_ends_no_outage() {
    let mut stage = Stage::new(WEBDIS, "");
    stage.ask("alice");
    let id = stage.callout().id;
    stage.respond(id, None);
    stage.tick();
    let probe = stage.callout();
    stage.respond(probe.id, Some(br#"{"EVALSHA":[false,"LOADING Redis is loading"]}"#));
    assert_eq!(now(&stage.ask("alice")), 200);
    assert_eq!(stage.host.take_callouts(), []);
}
