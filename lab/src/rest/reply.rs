//! Redis's replies as JSON.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use redis::{ServerError, Value};
use serde_json::json;

/// How strings are written.
#[derive(Clone, Copy)]
pub(super) enum Strings {
    /// As text: what is not UTF-8 is replaced.
    Text,
    /// In base64, but for the status `OK`.
    Base64,
}

impl Strings {
    /// One object for each reply: its result or its error.
    pub(super) fn results(self, replies: &[Value]) -> serde_json::Value {
        let object = |reply| match self.result(reply) {
            Ok(result) => json!({ "result": result }),
            Err(error) => json!({ "error": error }),
        };
        replies.iter().map(object).collect()
    }

    /// A reply's value, or its error.
    pub(super) fn result(self, reply: &Value) -> Result<serde_json::Value, String> {
        match reply {
            Value::ServerError(error) => Err(text(error)),
            Value::Okay => Ok(json!("OK")),
            reply => Ok(self.value(reply)),
        }
    }

    fn value(self, reply: &Value) -> serde_json::Value {
        match reply {
            Value::Int(number) => json!(number),
            Value::BulkString(bytes) => self.string(bytes),
            Value::SimpleString(text) => self.string(text.as_bytes()),
            Value::Okay => self.string(b"OK"),
            Value::ServerError(error) => self.string(text(error).as_bytes()),
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            // Nil, and what there is in RESP3 alone.
            _ => serde_json::Value::Null,
        }
    }

    fn string(self, bytes: &[u8]) -> serde_json::Value {
        match self {
            Self::Text => json!(String::from_utf8_lossy(bytes)),
            Self::Base64 => json!(BASE64_STANDARD.encode(bytes)),
        }
    }
}

/// An error as Redis wrote it.
pub(super) fn text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: &Value, text: &str, base64: &str) {
        let shown = |strings: Strings| strings.result(reply).unwrap().to_string();
        assert_eq!(
            (shown(Strings::Text).as_str(), shown(Strings::Base64).as_str()),
            (text, base64)
        );
    }

    #[test]
    fn all_strings_but_the_status_ok_are_encoded() {
        check(&Value::Okay, r#""OK""#, r#""OK""#);
        check(&Value::SimpleString("PONG".to_owned()), r#""PONG""#, r#""UE9ORw==""#);
        check(&Value::BulkString(b"OK".to_vec()), r#""OK""#, r#""T0s=""#);
        check(&Value::BulkString(b"\xff".to_vec()), "\"\u{fffd}\"", r#""/w==""#);
        let nested = Value::Array(vec![Value::Okay, Value::Nil, Value::Int(i64::MIN)]);
        check(
            &nested,
            r#"["OK",null,-9223372036854775808]"#,
            r#"["T0s=",null,-9223372036854775808]"#,
        );
    }
}
