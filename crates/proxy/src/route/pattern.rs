//! Patterns for hosts and paths, as routes name them.

use std::fmt;
use std::sync::Arc;

use regex::bytes::Regex;

/// A host as a route names it, in lower case, without port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// This host.
    Exact(String),
    /// Every host below it: `.example.com` of `*.example.com`.
    Below(String),
}

/// Paths as a route names them.
#[derive(Clone, Debug)]
pub enum PathPattern {
    /// This path.
    Exact(String),
    /// The path without its `/*` and every path below it; empty for every path.
    Prefix(String),
    /// Every path with a match of the expression, which is `~` without its sign.
    Regex(Arc<Regex>),
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for PathPattern {}

impl Default for PathPattern {
    fn default() -> Self {
        PathPattern::Prefix(String::new())
    }
}

/// Why a text is no pattern. `Display` says what is wrong; the text is not repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes of memory a compiled expression may take. Over it: refused.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl HostPattern {
    /// Reads `example.com`, `*.example.com`, `192.0.2.1` or `[::1]`.
    pub fn parse(text: &str) -> Result<HostPattern, PatternError> {
        let refuse = |what: &str| Err(PatternError(what.to_owned()));
        let (name, below) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if name.is_empty() {
            return refuse("it is empty");
        }
        if name.contains("://") || name.contains('/') {
            return refuse("it is a URL, not a host");
        }
        if name.contains('*') {
            return refuse("`*` stands only at the start, as in *.example.com");
        }
        if let Some(address) = name.strip_prefix('[') {
            let address = address.strip_suffix(']').unwrap_or("");
            return match address.parse::<std::net::Ipv6Addr>() {
                Ok(_) if !below => Ok(HostPattern::Exact(name.to_ascii_lowercase())),
                _ => refuse("what stands in brackets is no IPv6 address"),
            };
        }
        if name.contains(':') {
            return refuse("a port is no part of it: the listener has it");
        }
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if !name.trim_end_matches('.').split('.').all(label) || name.len() > 253 {
            return refuse("it is no host name");
        }
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        Ok(if below { HostPattern::Below(format!(".{name}")) } else { HostPattern::Exact(name) })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(name) => f.write_str(name),
            HostPattern::Below(suffix) => write!(f, "*{suffix}"),
        }
    }
}

impl PathPattern {
    /// Reads `/exact`, `/prefix/*`, or `~` with a regular expression.
    pub fn parse(text: &str) -> Result<PathPattern, PatternError> {
        let refuse = |what: String| Err(PatternError(what));
        if let Some(expression) = text.strip_prefix('~') {
            let compiled =
                regex::bytes::RegexBuilder::new(expression).size_limit(REGEX_BYTES_MAX).build();
            return match compiled {
                Ok(regex) => Ok(PathPattern::Regex(Arc::new(regex))),
                Err(regex::Error::CompiledTooBig(_)) => {
                    refuse("the expression takes too much memory".into())
                }
                Err(error) => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or("").trim();
                    refuse(format!(
                        "the expression is wrong: {}",
                        last.trim_start_matches("error: ")
                    ))
                }
            };
        }
        if !text.starts_with('/') {
            return refuse("it does not begin with `/`".into());
        }
        if text.bytes().any(|b| b.is_ascii_control() || b == b' ' || b == b'?' || b == b'#') {
            return refuse("it has a character that no path has".into());
        }
        // A pattern with dot segments would never match.
        if !super::path::resolve(text.as_bytes()).is_ok_and(|path| !path.had_dots()) {
            return refuse("`.` and `..` are resolved before routes look at a path".into());
        }
        if let Some(prefix) = text.strip_suffix("/*") {
            if prefix.contains('*') {
                return refuse("`*` stands only at the end, as in /static/*".into());
            }
            return Ok(PathPattern::Prefix(prefix.to_owned()));
        }
        if text.contains('*') {
            return refuse("`*` stands only after a `/` at the end, as in /static/*".into());
        }
        Ok(PathPattern::Exact(text.to_owned()))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathPattern::Exact(path) => f.write_str(path),
            PathPattern::Prefix(prefix) => write!(f, "{prefix}/*"),
            PathPattern::Regex(regex) => write!(f, "~{}", regex.as_str()),
        }
    }
}
