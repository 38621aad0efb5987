//! A request as `baton match` takes it: method, URL and fields.

use std::net::IpAddr;

use crate::config::Config;

/// Which route a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchConfig {
    /// The configuration that is asked.
    pub config: Config,
    /// The request it is asked about.
    pub request: MatchRequest,
}

/// A request, as far as a route looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRequest {
    /// The method, as given.
    pub method: String,
    /// The host, without port; `None`: neither URL nor fields have one.
    pub host: Option<String>,
    /// Path and query, beginning with `/`; or `*`.
    pub target: String,
    /// Fields, as given.
    pub fields: Vec<(String, String)>,
    /// The client.
    pub from: Option<IpAddr>,
    /// The name of the listener it comes in at; `None`: any.
    pub listener: Option<String>,
}

/// `http://host:port/path?query`, `host/path`, `/path` or `*`: host and target. Error, in words.
pub(super) fn parse_url(text: &str) -> Result<(Option<String>, String), String> {
    let expected = "expected http://example.com/path or /path";
    if text.is_empty() || text.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(format!("it has a character that no URL has\n  {expected}"));
    }
    let rest = match text.split_once("://") {
        Some(("http" | "https", rest)) => rest,
        Some((scheme, _)) => return Err(format!("unknown scheme `{scheme}`\n  {expected}")),
        None if text.starts_with('/') || text == "*" => {
            return Ok((None, without_fragment(text).to_owned()));
        }
        None => text,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let host = host_of(authority);
    if host.is_empty() || authority.contains('@') {
        return Err(format!("it has no host\n  {expected}"));
    }
    let target = without_fragment(target);
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    Ok((Some(host.to_owned()), target))
}

fn without_fragment(target: &str) -> &str {
    target.split('#').next().unwrap_or("")
}

/// The host of `host:port`.
pub(super) fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

/// `name: value`. Error, in words.
pub(super) fn parse_field(text: &str) -> Result<(String, String), String> {
    let expected = "expected 'name: value'";
    let Some((name, value)) = text.split_once(':') else {
        return Err(format!("the colon is missing\n  {expected}"));
    };
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
    if !is_name || value.contains(char::is_control) {
        return Err(format!("it is no field\n  {expected}"));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_be_asked_for_is_refused() {
        for (text, expected) in [
            ("", "it has a character that no URL has"),
            ("/a b", "it has a character that no URL has"),
            ("ftp://a/", "unknown scheme `ftp`"),
            ("http:///x", "it has no host"),
            ("http://u@a/x", "it has no host"),
            ("?x", "it has no host"),
        ] {
            let error = parse_url(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_url_gives_host_and_target() {
        for (text, host, target) in [
            ("/", None, "/"),
            ("/a?b#c", None, "/a?b"),
            ("*", None, "*"),
            ("http://a", Some("a"), "/"),
            ("https://a:80/x?y", Some("a"), "/x?y"),
            ("http://[::1]:80/x", Some("[::1]"), "/x"),
            ("http://[::1]", Some("[::1]"), "/"),
            ("http://a?x", Some("a"), "/?x"),
            ("a.example/x", Some("a.example"), "/x"),
        ] {
            assert_eq!(parse_url(text), Ok((host.map(str::to_owned), target.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_field_is_a_name_and_a_value() {
        assert!(parse_field("a").unwrap_err().starts_with("the colon is missing"));
        assert!(parse_field(": x").unwrap_err().starts_with("it is no field"));
        assert!(parse_field("a b: x").unwrap_err().starts_with("it is no field"));
        assert_eq!(parse_field("A: b:c "), Ok(("A".to_owned(), "b:c".to_owned())));
    }
}
