//! Request targets (RFC 9112 §3.2).

use crate::authority::is_authority;
use crate::error::HeadError;
use crate::method::MethodKind;
use crate::syntax::is_target;

/// What a request asks for, in the form it is sent on: origin-form, or `*` for OPTIONS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'b> {
    /// `*`, or what the client sent from the path on. It starts with `/`, or with `?` where an
    /// absolute-form target has a query and no path.
    text: &'b str,
}

/// A target in origin-form (RFC 9112 §3.2.1) that may go into a request line: it begins with `/`
/// and has no bytes but those of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginForm<'a>(&'a [u8]);

impl<'a> OriginForm<'a> {
    /// Checks a path with its query.
    pub fn new(text: &'a [u8]) -> Option<OriginForm<'a>> {
        (text.first() == Some(&b'/') && is_target(text)).then_some(OriginForm(text))
    }

    /// The target as it is sent.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// A valid `host[:port]` (RFC 9110 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a>(&'a [u8]);

impl<'a> Authority<'a> {
    /// Checks `host[:port]`.
    pub fn new(text: &'a [u8]) -> Option<Authority<'a>> {
        is_authority(text).then_some(Authority(text))
    }

    /// The text as it is sent.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// A target, with the authority that an absolute-form target brings.
pub(crate) struct ParsedTarget<'b> {
    pub(crate) target: Target<'b>,
    pub(crate) authority: Option<&'b [u8]>,
}

impl<'b> Target<'b> {
    /// Parses a target that holds only bytes of [`crate::syntax::TARGET`].
    ///
    /// Errors: `TargetForm` for `*` without OPTIONS, for any other scheme than `http` and
    /// `https`, and for anything that is not a path; `TargetAuthority`.
    pub(crate) fn parse(text: &'b str, method: MethodKind) -> Result<ParsedTarget<'b>, HeadError> {
        let origin = |text| ParsedTarget { target: Self { text }, authority: None };
        match text.as_bytes() {
            [b'/', ..] => Ok(origin(text)),
            b"*" if method == MethodKind::Options => Ok(origin(text)),
            _ => {
                let rest = without_scheme(text).ok_or(HeadError::TargetForm)?;
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                let (authority, text) = rest.split_at(end);
                if !is_authority(authority.as_bytes()) {
                    return Err(HeadError::TargetAuthority);
                }
                let text = match (text, method) {
                    // §3.2.4: the last proxy sends `*` for an absolute-form without a path.
                    ("", MethodKind::Options) => "*",
                    ("", _) => "/",
                    _ => text,
                };
                Ok(ParsedTarget { target: Self { text }, authority: Some(authority.as_bytes()) })
            }
        }
    }

    /// The path, which starts with `/`, or is `*` for a request about the server as a whole.
    /// Neither decoded nor normalised.
    pub fn path(&self) -> &'b str {
        match self.text.find('?') {
            Some(0) => "/",
            Some(end) => &self.text[..end],
            None => self.text,
        }
    }

    /// The query without its `?`, if there is one.
    pub fn query(&self) -> Option<&'b str> {
        self.text.split_once('?').map(|(_, query)| query)
    }

    /// Whether the target is `*` (RFC 9112 §3.2.4).
    pub fn is_asterisk(&self) -> bool {
        self.text == "*"
    }

    /// Appends the target as it stands in a request line to an origin server.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if self.text.starts_with('?') {
            out.push(b'/');
        }
        out.extend_from_slice(self.text.as_bytes());
    }
}

/// What follows `http://` or `https://` in any case.
fn without_scheme(text: &str) -> Option<&str> {
    ["http://", "https://"].iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, method: MethodKind) -> Result<(String, Option<String>), HeadError> {
        let parsed = Target::parse(text, method)?;
        let mut sent = Vec::new();
        parsed.target.encode(&mut sent);
        let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((owned(&sent), parsed.authority.map(owned)))
    }

    #[test]
    fn targets_of_no_known_form_are_refused() {
        let rows = [
            "a",
            "a/b",
            "?a",
            "*/",
            "**",
            "../a",
            "http:",
            "http:/",
            "http:/a",
            "httpx://a",
            "ftp://a/",
            "ws://a/",
            "file:///a",
            "://a",
            "a:443",
        ];
        for text in rows {
            assert_eq!(parse(text, MethodKind::Get), Err(HeadError::TargetForm), "{text}");
        }
        for text in ["http://", "http:///a", "http://?a", "http://u@a/", "https://a:b/"] {
            assert_eq!(parse(text, MethodKind::Get), Err(HeadError::TargetAuthority), "{text}");
        }
        for method in [MethodKind::Get, MethodKind::Post, MethodKind::Other] {
            assert_eq!(parse("*", method), Err(HeadError::TargetForm));
        }
    }

    #[test]
    fn absolute_form_is_split_into_authority_and_origin_form() {
        let get = |text| parse(text, MethodKind::Get).expect("the row is valid");
        let sent = |text: &str, authority: &str| (text.to_owned(), Some(authority.to_owned()));
        assert_eq!(get("//a/b"), ("//a/b".to_owned(), None));
        assert_eq!(get("http://a"), sent("/", "a"));
        assert_eq!(get("HtTpS://a:1/b?c"), sent("/b?c", "a:1"));
        assert_eq!(get("http://a?b/c"), sent("/?b/c", "a"));
        assert_eq!(get("http://[::1]/http://x"), sent("/http://x", "[::1]"));
        let options = |text| parse(text, MethodKind::Options).expect("the row is valid");
        assert_eq!(options("*"), ("*".to_owned(), None));
        assert_eq!(options("http://a"), sent("*", "a"));
        assert_eq!(options("http://a/"), sent("/", "a"));
        assert_eq!(options("http://a?b"), sent("/?b", "a"));
    }

    #[test]
    fn what_may_go_into_a_request_line_begins_with_a_slash_and_has_no_other_bytes() {
        for text in ["", "a", "?a", "*", "/a b", "/a#b", "/\r\n", "/\u{e9}", "/\0"] {
            assert_eq!(OriginForm::new(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(OriginForm::new(b"/a?b").map(|target| target.as_bytes()), Some(&b"/a?b"[..]));
        assert_eq!(Authority::new(b"a:b"), None);
        assert_eq!(Authority::new(b"a:80").map(|host| host.as_bytes()), Some(&b"a:80"[..]));
    }

    #[test]
    fn path_and_query_are_told_apart_at_the_first_question_mark() {
        let parts = |text: &'static str| {
            let target = Target::parse(text, MethodKind::Options).expect("valid").target;
            (target.path(), target.query(), target.is_asterisk())
        };
        assert_eq!(parts("/"), ("/", None, false));
        assert_eq!(parts("/a?"), ("/a", Some(""), false));
        assert_eq!(parts("/a?b?c"), ("/a", Some("b?c"), false));
        assert_eq!(parts("http://a?b"), ("/", Some("b"), false));
        assert_eq!(parts("*"), ("*", None, true));
    }
}
