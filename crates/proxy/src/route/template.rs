//! Texts with placeholders: `https://{host}{uri}`.

use std::fmt::{self, Write as _};

use super::host_name;

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text as it is.
    Text(String),
    /// Something of the request.
    Placeholder(Placeholder),
}

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// The client's address.
    ClientIp,
    /// The host of the request, without port.
    Host,
    /// Path and query as the client sent them.
    Uri,
    /// The path as the client sent it.
    Path,
    /// The query with its `?`, or nothing.
    Query,
    /// `http` or `https`.
    Scheme,
    /// The method.
    Method,
    /// The request's ID.
    RequestId,
    /// The route's name.
    Route,
}

/// Every placeholder with its name.
const PLACEHOLDERS: [(&str, Placeholder); 9] = [
    ("client_ip", Placeholder::ClientIp),
    ("host", Placeholder::Host),
    ("uri", Placeholder::Uri),
    ("path", Placeholder::Path),
    ("query", Placeholder::Query),
    ("scheme", Placeholder::Scheme),
    ("method", Placeholder::Method),
    ("request_id", Placeholder::RequestId),
    ("route", Placeholder::Route),
];

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// No placeholder has this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// A brace has no partner. A brace that is meant is written twice.
    Brace,
    /// A character that no field value has.
    Character,
}

impl TemplateError {
    /// The names there are.
    pub fn known() -> impl Iterator<Item = &'static str> {
        PLACEHOLDERS.iter().map(|(name, _)| *name)
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Unknown { name } => write!(f, "unknown placeholder {{{name}}}"),
            TemplateError::Brace => {
                f.write_str("a brace without its partner; a brace that is meant is written twice")
            }
            TemplateError::Character => f.write_str("a control character cannot be in a field"),
        }
    }
}

impl Template {
    /// Reads a text in which `{name}` is a placeholder, and `{{` and `}}` are braces.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        if text.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
            return Err(TemplateError::Character);
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(TemplateError::Brace);
            }
            let (name, after) = rest.split_once('}').ok_or(TemplateError::Brace)?;
            let known = PLACEHOLDERS.iter().find(|(known, _)| *known == name);
            let (_, placeholder) =
                known.ok_or_else(|| TemplateError::Unknown { name: name.to_owned() })?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Placeholder(*placeholder));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Template { text: text.to_owned(), pieces })
    }

    /// Whether it says the same of every request.
    pub(crate) fn is_plain(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// Appends the text with what the placeholders stand for.
    ///
    /// The result fits in a field: control bytes of a value are left out (those of the template
    /// were refused). A path at the very start, or with nothing but slashes in front, begins with one
    /// `/` only, because a Location of `//name` leads to another host, and so does `/\name` in
    /// browsers.
    pub(crate) fn render(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Placeholder(placeholder) => {
                    let at = out.len();
                    values.append(*placeholder, out);
                    let is_path = matches!(placeholder, Placeholder::Uri | Placeholder::Path);
                    if is_path && out[start..at].iter().all(is_slash) {
                        join_slashes(start, out);
                    }
                    if out[at..].iter().any(u8::is_ascii_control) {
                        let clean = out.split_off(at);
                        out.extend(clean.into_iter().filter(|b| !b.is_ascii_control()));
                    }
                }
            }
        }
    }

    /// The text as the value of Location: a reference (RFC 3986 §4.1), so that bytes which none has
    /// become triplets. `None`: it names the host of a request that names none, and without it
    /// `https://{host}{path}` would lead to a host that the path names.
    pub(crate) fn location(&self, values: &Values<'_>) -> Option<String> {
        let host = Piece::Placeholder(Placeholder::Host);
        if host_name(values.host).is_empty() && self.pieces.contains(&host) {
            return None;
        }
        // A request about the server as a whole has no path.
        let path = if values.path == "*" { "/" } else { values.path };
        let mut text = Vec::new();
        self.render(&Values { path, ..*values }, &mut text);
        let mut location = String::with_capacity(text.len());
        for byte in text {
            match byte.is_ascii_graphic() {
                true => location.push(char::from(byte)),
                false => write!(location, "%{byte:02X}").expect("a string takes every text"),
            }
        }
        Some(location)
    }
}

fn is_slash(byte: &u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// Leaves one slash of those, and of backslashes, that `out` has from `start` on.
fn join_slashes(start: usize, out: &mut Vec<u8>) {
    let slashes = out[start..].iter().take_while(|b| is_slash(b)).count();
    if slashes > 1 {
        out.drain(start + 1..start + slashes);
    }
}

/// What the placeholders stand for in one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    pub(crate) client_ip: &'a str,
    /// `host[:port]` of the request; the port is left out.
    pub(crate) host: &'a [u8],
    /// As the client sent it.
    pub(crate) path: &'a str,
    /// Without its `?`.
    pub(crate) query: Option<&'a str>,
    /// `http` or `https`.
    pub(crate) scheme: &'a str,
    pub(crate) method: &'a str,
    pub(crate) request_id: &'a str,
    /// The route's name.
    pub(crate) route: &'a str,
}

impl Values<'_> {
    /// Of no request.
    pub(crate) const NONE: Values<'static> = Values {
        client_ip: "",
        host: b"",
        path: "",
        query: None,
        scheme: "",
        method: "",
        request_id: "",
        route: "",
    };

    fn append(&self, placeholder: Placeholder, out: &mut Vec<u8>) {
        let text: &[u8] = match placeholder {
            Placeholder::ClientIp => self.client_ip.as_bytes(),
            Placeholder::Host => host_name(self.host),
            Placeholder::Path => self.path.as_bytes(),
            Placeholder::Uri => {
                out.extend_from_slice(self.path.as_bytes());
                return self.append(Placeholder::Query, out);
            }
            Placeholder::Query => {
                let Some(query) = self.query else { return };
                out.push(b'?');
                query.as_bytes()
            }
            Placeholder::Scheme => self.scheme.as_bytes(),
            Placeholder::Method => self.method.as_bytes(),
            Placeholder::RequestId => self.request_id.as_bytes(),
            Placeholder::Route => self.route.as_bytes(),
        };
        out.extend_from_slice(text);
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'_> = Values {
        client_ip: "192.0.2.7",
        host: b"Example.com:8080",
        path: "/a/%20b",
        query: Some("c=d"),
        scheme: "http",
        method: "GET",
        request_id: "id-1",
        route: "site",
    };

    fn render(text: &str, values: &Values<'_>) -> String {
        let mut out = b"x".to_vec();
        Template::parse(text).expect("the row is valid").render(values, &mut out);
        String::from_utf8(out.split_off(1)).expect("rows are UTF-8")
    }

    #[test]
    fn each_placeholder_stands_for_its_part_of_the_request() {
        let rows = [
            ("https://{host}{uri}", "https://Example.com/a/%20b?c=d"),
            ("{path}|{query}", "/a/%20b|?c=d"),
            ("{client_ip} {scheme} {method} {request_id} {route}", "192.0.2.7 http GET id-1 site"),
            ("{{{method}}}", "{GET}"),
            ("", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(render(text, &VALUES), expected, "{text}");
        }
        let bare = Values { query: None, host: b"[::1]:80", ..VALUES };
        assert_eq!(render("{host}{uri}{query}", &bare), "[::1]/a/%20b");
        assert_eq!(render("{uri}", &Values { query: Some(""), ..VALUES }), "/a/%20b?");
    }

    #[test]
    fn a_rendered_value_never_ends_a_line_or_leads_to_another_host() {
        let evil = Values {
            path: "/a\r\nSet-Cookie: b\0",
            query: Some("\u{7f}q\n"),
            host: b"a\r\nb",
            ..VALUES
        };
        assert_eq!(render("{host}{uri}", &evil), "ab/aSet-Cookie: b?q");
        for path in ["//evil.example", "///evil.example", "/\\evil.example", "\\/evil.example"] {
            let out = render("{uri}", &Values { path, ..VALUES });
            assert_eq!(&out[1..], "evil.example?c=d", "{path}");
        }
        for text in ["/{uri}", "//{uri}", "/\\{path}", "{query}/{uri}"] {
            let evil = Values { path: "/evil.example", query: None, ..VALUES };
            assert_eq!(render(text, &evil), "/evil.example", "{text}");
        }
        assert_eq!(render("//{host}{uri}", &VALUES), "//Example.com/a/%20b?c=d");
        let double = Values { path: "//a", ..VALUES };
        assert_eq!(render("https://{host}{path}", &double), "https://Example.com//a");
    }

    #[test]
    fn a_location_is_a_reference_and_leads_nowhere_else() {
        let location = |text: &str, values: &Values<'_>| {
            Template::parse(text).expect("the row is valid").location(values)
        };
        for host in ["", ".", ":80", ".:80"] {
            let values = Values { host: host.as_bytes(), path: "/evil.example", ..VALUES };
            assert_eq!(location("https://{host}{uri}", &values), None, "{host}");
            assert!(location("https://a{uri}", &values).is_some());
        }
        for (text, expected) in [
            ("https://b/caf\u{e9} x#{method}", "https://b/caf%C3%A9%20x#GET"),
            ("/new\t{path}", "/new%09/a/%20b"),
            ("{uri}", "/a/%20b?c=d"),
        ] {
            assert_eq!(location(text, &VALUES).as_deref(), Some(expected), "{text}");
        }
        let server = Values { path: "*", query: None, ..VALUES };
        assert_eq!(location("https://b{uri}", &server).as_deref(), Some("https://b/"));
    }
}
