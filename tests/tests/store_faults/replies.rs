//! What a broken server sends in each way's protocol: RESP, or JSON over HTTP/1.1.

use crate::support::stores::Way;
use serde_json::json;

/// More than the filter reads of one reply.
const TOO_LONG: usize = 70_000;

/// An error as Redis or what stands before it passes it on.
pub(crate) fn error(way: Way, text: &str) -> String {
    match way {
        Way::Webdis => http("200 OK", &json!({ "EVALSHA": [false, text] }).to_string()),
        Way::Rest => http("400 Bad Request", &json!({ "error": text }).to_string()),
        _ => format!("-{text}\r\n"),
    }
}

/// The beginning of a reply.
pub(crate) fn half(way: Way) -> String {
    match way {
        Way::Webdis => cut_off(r#"{"EVALSHA":[1,"#),
        Way::Rest => cut_off(r#"{"result":[1,"#),
        _ => "*4\r\n:1\r\n:3\r\n".to_owned(),
    }
}

/// What another server answers that listens in the store's place.
pub(crate) fn garbage(way: Way) -> String {
    match way {
        Way::Webdis | Way::Rest => http("200 OK", "<h1>It works!</h1>"),
        _ => "HTTP/1.1 400 Bad Request\r\n\r\n".to_owned(),
    }
}

/// A reply that is in order but for its length.
pub(crate) fn oversized(way: Way) -> String {
    let long = "1".repeat(TOO_LONG);
    match way {
        Way::Webdis => http("200 OK", &json!({ "EVALSHA": long }).to_string()),
        Way::Rest => http("200 OK", &json!({ "result": long }).to_string()),
        _ => format!("${TOO_LONG}\r\n{long}\r\n"),
    }
}

fn http(status: &str, body: &str) -> String {
    let (kind, length) = ("content-type: application/json", body.len());
    format!("HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn cut_off(body: &str) -> String {
    let length = body.len() * 2;
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
}
