//! A path in the one form that routes look at.
//!
//! `/%61dmin`, `//admin` and `/public/../admin` mean `/admin` to many servers, so routes see them
//! as that: unreserved characters are decoded, the digits of other triplets are upper case, a `%` of
//! no triplet is `%25`, dot segments are resolved, and repeated slashes count as one (RFC 3986 §6.2.2). What is sent on is
//! the path as it came, unless it had dot segments: then what routes saw.
//!
//! `\`, `%2F`, `%5C` and `%00` stay data: an endpoint that takes an encoded slash for a slash sees
//! another path than the routes.

use std::borrow::Cow;
use std::fmt;

/// A path as routes see it, and as it is sent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved<'a> {
    sent: &'a [u8],
    normal: Cow<'a, [u8]>,
    had_dots: bool,
}

/// Why a path means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// Its dot segments lead above `/`.
    AboveRoot,
    /// A dot segment has a parameter (`..;x`), which servers read in different ways.
    DotParameter,
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathFault::AboveRoot => "the path leads above its root",
            PathFault::DotParameter => "the path has a dot segment with a parameter",
        })
    }
}

impl<'a> Resolved<'a> {
    /// `path` without a look at it, for a table whose routes have no use for paths.
    pub(crate) fn as_sent(path: &'a [u8]) -> Resolved<'a> {
        Resolved { sent: path, normal: Cow::Borrowed(path), had_dots: false }
    }

    /// The path that routes see.
    pub(crate) fn normal(&self) -> &[u8] {
        &self.normal
    }

    /// The path that is sent on.
    pub(crate) fn onward(&self) -> &[u8] {
        if self.had_dots { &self.normal } else { self.sent }
    }

    /// Whether it must not be sent on as it came.
    pub(crate) fn had_dots(&self) -> bool {
        self.had_dots
    }
}

/// Resolves `path`, which begins with `/` or is `*`, and has no query. Allocates only if the path is
/// not in its normal form.
pub(crate) fn resolve(path: &[u8]) -> Result<Resolved<'_>, PathFault> {
    if is_plain(path) || !path.starts_with(b"/") || is_normal(path) {
        return Ok(Resolved::as_sent(path));
    }
    rebuild(path)
}

/// Whether there is nothing in `path` that could need a closer look. Without branches, so that the
/// compiler compares many bytes at once.
fn is_plain(path: &[u8]) -> bool {
    let behind = path.get(1..).unwrap_or_default();
    let suspect = path.iter().zip(behind).fold(false, |suspect, (&before, &b)| {
        suspect | (b == b'%') | ((before == b'/') & ((b == b'/') | (b == b'.')))
    });
    !suspect
}

/// Whether `path`, which begins with `/`, is its own normal form.
fn is_normal(path: &[u8]) -> bool {
    let mut segments = path[1..].split(|&b| b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        if (segment.is_empty() && !last) || is_dot(segment) {
            return false;
        }
        let triplets = segment.iter().enumerate().filter(|(_, b)| **b == b'%');
        for (at, _) in triplets {
            let digits = &segment[at + 1..segment.len().min(at + 3)];
            let lower = digits.iter().any(u8::is_ascii_lowercase);
            if decoded(digits).is_none_or(|byte| is_unreserved(byte) || lower) {
                return false;
            }
        }
    }
    true
}

/// Whether `segment` is a dot segment, or one with a parameter.
fn is_dot(segment: &[u8]) -> bool {
    matches!(segment, b"." | b"..") || has_dot_parameter(segment)
}

fn has_dot_parameter(segment: &[u8]) -> bool {
    segment.starts_with(b".;") || segment.starts_with(b"..;")
}

fn rebuild(path: &[u8]) -> Result<Resolved<'_>, PathFault> {
    let mut out = Vec::with_capacity(path.len());
    let mut had_dots = false;
    let mut segments = path[1..].split(|&b| b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        let start = out.len();
        out.push(b'/');
        decode_unreserved(segment, &mut out);
        let segment = &out[start + 1..];
        if has_dot_parameter(segment) {
            return Err(PathFault::DotParameter);
        }
        match segment {
            b"" if !last => out.truncate(start),
            b"." => {
                had_dots = true;
                out.truncate(start + usize::from(last));
            }
            b".." => {
                had_dots = true;
                let parent = out[..start].iter().rposition(|&b| b == b'/');
                out.truncate(parent.ok_or(PathFault::AboveRoot)?);
                if last {
                    out.push(b'/');
                }
            }
            _ => {}
        }
    }
    Ok(Resolved { sent: path, normal: Cow::Owned(out), had_dots })
}

/// Appends `text` with unreserved characters decoded and the digits of other triplets in upper
/// case. A `%` of no triplet becomes one, else it could become that of another with what is decoded
/// behind it: `%%32e` is no way to write `%2e`.
fn decode_unreserved(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = behind;
        let digits = &behind[..behind.len().min(2)];
        match decoded(digits).filter(|_| *first == b'%') {
            Some(byte) if is_unreserved(byte) => {
                out.push(byte);
                rest = &behind[2..];
            }
            Some(_) => {
                out.push(b'%');
                out.extend(digits.iter().map(u8::to_ascii_uppercase));
                rest = &behind[2..];
            }
            None if *first == b'%' => out.extend_from_slice(b"%25"),
            None => out.push(*first),
        }
    }
}

/// The byte that two hex digits stand for.
fn decoded(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let value = |digit: &u8| (*digit as char).to_digit(16);
    u8::try_from(value(high)? * 16 + value(low)?).ok()
}

/// RFC 3986 §2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Appends `text` with every byte that no target has as a triplet.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        if byte.is_ascii_graphic() && byte != b'#' {
            out.push(byte);
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            let (high, low) = (DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'%', high, low]);
        }
    }
}

/// A path as a configuration writes it, in the form that routes see.
pub(crate) fn normal_pattern(text: &str) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len());
    encode(text.as_bytes(), &mut encoded);
    match resolve(&encoded) {
        Ok(resolved) => resolved.normal().to_vec(),
        // No path is ever equal to it.
        Err(_) => encoded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::ids::Random;

    fn normal(path: &str) -> String {
        let resolved = resolve(path.as_bytes()).expect("the row is valid");
        String::from_utf8(resolved.normal().to_vec()).expect("rows are ASCII")
    }

    #[test]
    fn a_path_above_its_root_is_refused() {
        for path in [
            "/..",
            "/../",
            "/../a",
            "/a/../..",
            "/%2e%2e",
            "/.%2E/a",
            "/%2e./a",
            "//../a",
            "/a//../../b",
            "/./..",
            "/a/%2E%2e/../b",
        ] {
            assert_eq!(resolve(path.as_bytes()), Err(PathFault::AboveRoot), "{path}");
        }
    }

    #[test]
    fn a_dot_segment_with_a_parameter_is_refused() {
        for path in ["/a/..;/b", "/..;a=b", "/.;/a", "/a/%2e%2e;x/b", "/a/.%2e;", "/a/b/..;"] {
            assert_eq!(resolve(path.as_bytes()), Err(PathFault::DotParameter), "{path}");
        }
        assert_eq!(normal("/a;..;b/...;c"), "/a;..;b/...;c");
    }

    #[test]
    fn every_spelling_of_a_path_is_seen_as_one() {
        for path in [
            "/admin/x",
            "//admin/x",
            "/admin//x",
            "///admin///x",
            "/%61dmin/x",
            "/%61%64%6d%69%6E/x",
            "/./admin/x",
            "/admin/./x",
            "/%2e/admin/x",
            "/public/../admin/x",
            "/public/%2e%2e/admin/x",
            "/public/.%2E/admin/x",
            "/public/%2E./admin/x",
            "/a/b/../../admin/x",
            "/a/b/..//../admin/x",
            "/admin/y/../x",
            "/%2e%2f/../%61dmin/./x",
        ] {
            assert_eq!(normal(path), "/admin/x", "{path}");
        }
    }

    #[test]
    fn what_is_not_equivalent_stays_apart() {
        let rows = [
            ("/", "/"),
            ("//", "/"),
            ("/a/", "/a/"),
            ("/a//", "/a/"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/../", "/"),
            ("/...", "/..."),
            ("/.a/..b/c..", "/.a/..b/c.."),
            ("/.well-known/x", "/.well-known/x"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%5cb", "/a%5Cb"),
            ("/a\\b", "/a\\b"),
            ("/a\\..\\b", "/a\\..\\b"),
            ("/%00", "/%00"),
            ("/..%2f..%2fa", "/..%2F..%2Fa"),
            ("/%252e%252e/a", "/%252e%252e/a"),
            ("/%2561dmin", "/%2561dmin"),
            ("/%c3%a9", "/%C3%A9"),
            ("/%", "/%25"),
            ("/%4", "/%254"),
            ("/%4g", "/%254g"),
            ("/%%61", "/%25a"),
            ("/%%32e%%32e/a", "/%252e%252e/a"),
            ("/x/../%4%31", "/%2541"),
            ("/%u0061", "/%25u0061"),
            ("/%+1", "/%25+1"),
            ("/a;b/c", "/a;b/c"),
            ("/ADMIN", "/ADMIN"),
            ("/~a", "/~a"),
            ("/%7Ea", "/~a"),
            ("*", "*"),
        ];
        for (path, expected) in rows {
            assert_eq!(normal(path), expected, "{path}");
        }
    }

    #[test]
    fn only_dot_segments_change_what_is_sent_on() {
        let onward = |path: &'static str| {
            let resolved = resolve(path.as_bytes()).expect("the row is valid");
            String::from_utf8(resolved.onward().to_vec()).expect("rows are ASCII")
        };
        for path in ["/a//b", "/%61", "/%2f", "/.well-known", "/a", "*"] {
            assert_eq!(onward(path), path);
        }
        assert_eq!(onward("/a/../%62//c"), "/b/c");
        assert_eq!(onward("/a/%2E"), "/a/");
    }

    #[test]
    fn an_ordinary_path_is_borrowed() {
        for path in ["/", "/a/b.c", "/a%20b/%C3%A9", "/.well-known/a", "/a/..b", "*", ""] {
            let resolved = resolve(path.as_bytes()).expect("valid");
            assert!(matches!(resolved.normal, Cow::Borrowed(_)), "{path}");
        }
    }

    #[test]
    fn a_normal_form_is_its_own_and_has_nothing_to_resolve() {
        const PARTS: [&str; 14] =
            ["/", "/", ".", "..", "%2e", "%2E", "a", "%61", "%2f", "%", "4", ";", "%c3", "admin"];
        let mut random = Random::seeded(7);
        for _ in 0..20_000 {
            let mut path = String::from("/");
            for _ in 0..random.below(12) {
                path.push_str(PARTS[random.below(PARTS.len() as u64) as usize]);
            }
            let Ok(resolved) = resolve(path.as_bytes()) else { continue };
            let normal = resolved.normal();
            assert!(normal.starts_with(b"/"), "{path}");
            let segments = normal[1..].split(|&b| b == b'/').collect::<Vec<_>>();
            let inner = &segments[..segments.len() - 1];
            assert!(inner.iter().all(|segment| !segment.is_empty()), "{path}");
            assert!(!segments.iter().any(|segment| is_dot(segment)), "{path}");
            assert_eq!(resolve(normal).expect("resolved").normal(), normal, "{path}");
        }
    }
}
