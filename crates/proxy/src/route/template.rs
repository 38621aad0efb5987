//! Texts with placeholders: `https://{host}{uri}`.

use std::fmt;

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

    /// Its parts, in order.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
