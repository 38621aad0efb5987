//! What requests are told apart by: hosts, paths, methods.

use super::{Refusal, Text, is_token, refuse, text};
use crate::route::{HostPattern, PathPattern};

pub(crate) const HOST: Text<HostPattern> = Text {
    pattern: r"^((\*\.)?[^/:*]+|\[.*\])$",
    ..text(
        |text| {
            HostPattern::parse(text).map_err(|error| {
                let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
                let bare = bare.split(['/', ':']).next().unwrap_or("");
                let fix = match HostPattern::parse(bare) {
                    _ if text == "*" || text == "_" => "leave `host` out for any host".to_owned(),
                    Ok(_) => format!("write \"{bare}\""),
                    Err(_) => String::new(),
                };
                Refusal::new(error.to_string(), fix)
            })
        },
        HostPattern::to_string,
        r#""example.com", "*.example.com", "192.0.2.1" or "[::1]""#,
    )
};

pub(crate) const PATH: Text<PathPattern> = Text {
    pattern: "^[/~]",
    ..text(
        |text| {
            PathPattern::parse(text).map_err(|error| {
                let rooted = format!("/{text}");
                let near = !text.starts_with(['/', '~', '^', '.', '*'])
                    && PathPattern::parse(&rooted).is_ok();
                let fix = if near {
                    format!("write \"{rooted}\"")
                } else if text.starts_with('^') {
                    format!("write \"~{text}\" for an expression")
                } else {
                    String::new()
                };
                Refusal::new(error.to_string(), fix)
            })
        },
        PathPattern::to_string,
        r#""/exact", "/prefix/*", or "~" and a regular expression"#,
    )
};

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"];

pub(crate) const METHOD: Text<String> = Text {
    pattern: r"^[A-Z!#$%&'*+.^_`|~0-9-]+$",
    ..text(
        |text| {
            if !is_token(text) {
                return refuse("it is no method");
            }
            let upper = text.to_ascii_uppercase();
            if upper != text && METHODS.contains(&upper.as_str()) {
                return Err(Refusal::new("methods have a case", format!("write \"{upper}\"")));
            }
            Ok(text.to_owned())
        },
        String::clone,
        r#"a method such as "GET""#,
    )
};

pub(crate) const PREFIX: Text<String> = Text {
    pattern: r"^/.*[^/*]$",
    ..text(prefix, String::clone, r#"the beginning of a path such as "/v1""#)
};

/// What comes in place of a prefix; may be empty.
pub(crate) const NEW_PREFIX: Text<String> = text(
    |text| if text.is_empty() { Ok(String::new()) } else { prefix(text) },
    String::clone,
    r#"the beginning of a path such as "/v2", or "" for none"#,
);

fn prefix(text: &str) -> Result<String, Refusal> {
    let bad = |c: char| c.is_control() || " ?#*\"".contains(c) || !c.is_ascii();
    let bare = text.trim_end_matches('*').trim_end_matches('/');
    if !text.starts_with('/') {
        let fix = if bare.contains(bad) || bare.is_empty() {
            String::new()
        } else {
            format!("write \"/{bare}\"")
        };
        return Err(Refusal::new("it does not begin with `/`", fix));
    }
    if bare.is_empty() {
        return refuse("it is the prefix of every path, and nothing is left");
    }
    if bare.contains(bad) {
        return refuse("it has a character that no path has");
    }
    if bare != text {
        return Err(Refusal::new(
            "a prefix ends with its last segment",
            format!("write \"{bare}\""),
        ));
    }
    Ok(text.to_owned())
}

/// The target of a health check.
pub(crate) const TARGET: Text<String> = Text {
    pattern: "^/",
    ..text(
        |text| {
            if !text.starts_with('/') {
                let fix = if is_token(text) { format!("write \"/{text}\"") } else { String::new() };
                return Err(Refusal::new("it does not begin with `/`", fix));
            }
            if text.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
                return refuse("it has a character that no path has");
            }
            Ok(text.to_owned())
        },
        String::clone,
        r#"a path such as "/healthz""#,
    )
};

/// The Host of requests to an upstream.
pub(crate) const HOST_FIELD: Text<String> = text(
    |text| {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port)),
            _ => (text, None),
        };
        let is_port = |port: &str| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        };
        if port.is_some_and(|port| !is_port(port)) && !text.contains("://") {
            return refuse("its port is no number up to 65535");
        }
        match HostPattern::parse(if text.contains("://") { text } else { name }) {
            Ok(HostPattern::Exact(_)) => Ok(text.to_owned()),
            Ok(HostPattern::Below(_)) => refuse("one name is sent, and `*` stands for many"),
            Err(error) => refuse(error.to_string()),
        }
    },
    String::clone,
    r#"a host such as "api.internal", with a port where it is not the usual one"#,
);
