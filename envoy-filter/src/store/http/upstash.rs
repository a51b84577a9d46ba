//! Upstash's REST protocol: a command is a JSON array of its words in the body of a POST, and the
//! reply is `{"result": …}` or `{"error": "…"}`.

use super::{
    super::{
        command::{By, Command},
        resp::Reply,
    },
    Request, integers,
};
use serde_json::Value;

/// The request for a command.
#[must_use]
pub fn request(command: &Command, by: By) -> Request {
    let words = command.words(by);
    // All words are text: scripts, digests in base64, and numbers.
    let words = words.iter().map(|word| Value::from(String::from_utf8_lossy(word)));
    let body = Value::from_iter(words).to_string().into_bytes();
    Request { path: "/", content_type: "application/json", body }
}

/// The reply in a body; `None` for one that is none.
#[must_use]
pub fn reply(body: &[u8]) -> Option<Reply> {
    let Value::Object(fields) = serde_json::from_slice(body).ok()? else { return None };
    match (fields.get("result"), fields.get("error")) {
        (Some(result), None) => integers(result),
        (None, Some(Value::String(error))) => Some(Reply::Error(error.clone().into_bytes())),
        _ => None,
    }
}
