//! Request methods.

use crate::syntax::{TOKEN, span};

/// A request method as it was sent. Methods are case-sensitive (RFC 9110 §9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method<'b> {
    text: &'b str,
    kind: MethodKind,
}

impl<'b> Method<'b> {
    pub(crate) fn new(text: &'b str) -> Self {
        Self { text, kind: MethodKind::of(text) }
    }

    /// The method's text: a token of 1 to [`METHOD_BYTES_MAX`](crate::METHOD_BYTES_MAX) bytes.
    pub fn as_str(&self) -> &'b str {
        self.text
    }

    /// Which known method it is.
    pub fn kind(&self) -> MethodKind {
        self.kind
    }
}

/// The methods that a proxy may treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// GET.
    Get,
    /// HEAD: the answer has no body.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
    /// OPTIONS: may have the target `*`, and Max-Forwards counts.
    Options,
    /// TRACE: always refused.
    Trace,
    /// CONNECT: always refused.
    Connect,
    /// PATCH.
    Patch,
    /// Any other token.
    Other,
}

impl MethodKind {
    fn of(text: &str) -> Self {
        match text {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "CONNECT" => Self::Connect,
            "PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }

    /// The method of a head that was refused, as far as its first bytes tell, for the answer to
    /// be framed as that of a HEAD where it is one (RFC 9112 §6.3).
    pub fn of_refused(input: &[u8]) -> Self {
        let line = input.strip_prefix(b"\r\n").unwrap_or(input);
        let end = span(line, &TOKEN);
        match line.get(end) {
            Some(b' ') => std::str::from_utf8(&line[..end]).map_or(Self::Other, Self::of),
            _ => Self::Other,
        }
    }

    /// Whether a repeated request has the effect of one (RFC 9110 §9.2.2). An unknown method
    /// is taken as not idempotent.
    pub fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace => true,
            Self::Post | Self::Connect | Self::Patch | Self::Other => false,
        }
    }
}
