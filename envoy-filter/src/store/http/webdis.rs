//! Webdis: a command is a path of its words in the body of a POST, and the reply is JSON.
//!
//! The words are separated by `/` and decoded from percent-encoding, but for the command's name;
//! what follows the last `.` behind the last `/` chooses the format of the reply. So everything
//! but letters and digits is encoded, and the path ends with `.json`. (Its raw format breaks on
//! integers beyond 32 bits, and times in microseconds are such.)
//!
//! The reply is an object of one field, the command. An array of integers is an array of numbers,
//! and an error is `[false, "text"]`; nothing else holds `false`.

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
    let mut body = Vec::new();
    for (place, word) in command.words(by).iter().enumerate() {
        if place > 0 {
            body.push(b'/');
        }
        encode(word, &mut body);
    }
    body.extend_from_slice(b".json");
    Request { path: "/", content_type: "text/plain", body }
}

/// The reply in a body; `None` for one that is none.
#[must_use]
pub fn reply(body: &[u8]) -> Option<Reply> {
    let Value::Object(fields) = serde_json::from_slice(body).ok()? else { return None };
    let mut values = fields.values();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    match value.as_array().map(Vec::as_slice) {
        Some([Value::Bool(false), Value::String(error)]) => {
            Some(Reply::Error(error.clone().into_bytes()))
        }
        _ => integers(value),
    }
}

fn encode(word: &[u8], to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |four: u8| DIGITS.get(usize::from(four)).copied().unwrap_or(b'0');
    for &byte in word {
        if byte.is_ascii_alphanumeric() {
            to.push(byte);
        } else {
            to.extend([b'%', digit(byte >> 4), digit(byte & 0xf)]);
        }
    }
}
