//! What a request asks for: one command, a pipeline or a transaction.

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::form_urlencoded;

/// The query parameter that may hold the token.
const TOKEN: &str = "_token";

/// Commands that would change the connection, which all share, or keep it waiting.
const REFUSED: [&str; 22] = [
    "AUTH",
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    "CLIENT",
    "DISCARD",
    "EXEC",
    "HELLO",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "QUIT",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "WATCH",
];

/// A command's name and its arguments.
pub(super) type Command = Vec<Vec<u8>>;

pub(super) enum Request {
    One(Command),
    Pipeline(Vec<Command>),
    Transaction(Vec<Command>),
}

impl Request {
    /// Reads a request; an error is what the client is told.
    pub(super) fn read(uri: &Uri, body: &[u8]) -> Result<Self, String> {
        match uri.path() {
            "/" => Ok(Self::One(command(&json(body)?)?)),
            "/pipeline" => Ok(Self::Pipeline(commands(body)?)),
            "/multi-exec" => Ok(Self::Transaction(commands(body)?)),
            path => Ok(Self::One(allowed(in_path(path, uri.query().unwrap_or(""), body))?)),
        }
    }
}

/// The token in the query.
pub(super) fn token(uri: &Uri) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find(|(name, _)| name == TOKEN).map(|(_, value)| value.into_owned())
}

/// `/set/key?EX=100` with a body: the body comes after the path's words and before the query's.
fn in_path(path: &str, query: &str, body: &[u8]) -> Command {
    let words = path.trim_start_matches('/').split('/');
    let mut command: Command = words.map(|word| percent_decode_str(word).collect()).collect();
    if !body.is_empty() {
        command.push(body.to_vec());
    }
    let pairs = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != TOKEN);
    for (name, value) in pairs {
        command.push(name.as_bytes().to_vec());
        if !value.is_empty() {
            command.push(value.as_bytes().to_vec());
        }
    }
    command
}

fn json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| format!("ERR failed to parse the body: {error}"))
}

fn commands(body: &[u8]) -> Result<Vec<Command>, String> {
    match json(body)? {
        Value::Array(rows) if !rows.is_empty() => rows.iter().map(command).collect(),
        _ => Err("ERR the body is no array of commands".to_owned()),
    }
}

fn command(value: &Value) -> Result<Command, String> {
    let Value::Array(words) = value else {
        return Err("ERR a command is an array".to_owned());
    };
    allowed(words.iter().map(word).collect::<Result<_, _>>()?)
}

fn word(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Number(number) => Ok(number.to_string().into_bytes()),
        Value::Bool(bool) => Ok(bool.to_string().into_bytes()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err("ERR an argument is a string, a number or a boolean".to_owned())
        }
    }
}

fn allowed(command: Command) -> Result<Command, String> {
    let Some(name) = command.first().filter(|name| !name.is_empty()) else {
        return Err("ERR an empty command".to_owned());
    };
    let name = String::from_utf8_lossy(name).to_uppercase();
    if REFUSED.contains(&name.as_str()) {
        return Err(format!("ERR command is not available: '{name}'"));
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, body: &str, expected: &[&[u8]]) {
        let request = Request::read(&uri.parse().unwrap(), body.as_bytes());
        let Ok(Request::One(command)) = request else { panic!("no command") };
        assert_eq!(command, expected);
    }

    #[track_caller]
    fn check_refused(uri: &str, body: &str) {
        assert!(Request::read(&uri.parse().unwrap(), body.as_bytes()).is_err());
    }

    #[test]
    fn a_command_is_an_array_or_a_path() {
        check("/", r#"["SET", "a/b", 1, true]"#, &[b"SET", b"a/b", b"1", b"true"]);
        check("/get/a%2Fb%FF", "", &[b"get", b"a/b\xff"]);
    }

    #[test]
    fn the_body_stands_between_path_and_query() {
        let expected: [&[u8]; 6] = [b"set", b"a", b"v/?", b"EX", b"100", b"NX"];
        check("/set/a?EX=100&_token=t&NX", "v/?", &expected);
    }

    #[test]
    fn the_token_may_be_in_the_query() {
        assert_eq!(token(&"/get/a?b=c&_token=t%2B".parse().unwrap()).as_deref(), Some("t+"));
        assert_eq!(token(&"/get/a".parse().unwrap()), None);
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for body in ["", "{}", "[]", "[null]", "[[\"GET\"]]", "[\"\"]", "[\"multi\"]"] {
            check_refused("/", body);
        }
        check_refused("/pipeline", "[]");
        check_refused("/multi-exec", r#"["GET", "a"]"#);
        check_refused("/subscribe/a", "");
    }
}
