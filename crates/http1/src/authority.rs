//! The grammar of `host[:port]` (RFC 3986 §3.2, RFC 9110 §4.2).

use std::net::Ipv6Addr;
use std::str;

use crate::syntax::{HOST, span};

/// Whether `text` is `uri-host [ ":" port ]` with a host and a port that fits 16 bits.
///
/// Refuses what RFC 9110 §4.2 forbids in `http` (an empty host, user information), the comma
/// (two joined Host fields), and IPvFuture, of which no version was ever defined.
pub(crate) fn is_authority(text: &[u8]) -> bool {
    let port = match text {
        [b'[', rest @ ..] => {
            let Some(end) = memchr::memchr(b']', rest) else { return false };
            let address = str::from_utf8(&rest[..end]).ok();
            if address.and_then(|address| address.parse::<Ipv6Addr>().ok()).is_none() {
                return false;
            }
            &rest[end + 1..]
        }
        _ => {
            let end = span(text, &HOST);
            if end == 0 || !percent_triplets(&text[..end]) {
                return false;
            }
            &text[end..]
        }
    };
    match port {
        [] => true,
        [b':', digits @ ..] => is_port(digits),
        _ => false,
    }
}

/// `port = *DIGIT` (RFC 3986 §3.2.3), of at most five digits and at most 65535.
fn is_port(digits: &[u8]) -> bool {
    digits.len() <= 5
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().fold(0, |port, b| port * 10 + u32::from(b - b'0')) <= 65535
}

/// Whether each `%` starts a triplet of itself and two hex digits.
fn percent_triplets(host: &[u8]) -> bool {
    memchr::memchr_iter(b'%', host)
        .all(|at| host.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests {
    use super::is_authority;

    #[test]
    fn authorities_off_the_grammar_are_refused() {
        let rows = [
            "",
            ":",
            ":80",
            "a b",
            "a,b",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "u@a",
            "u:p@a",
            "a:x",
            "a:-1",
            "a:+1",
            "a: 80",
            "a:80 ",
            "a:65536",
            "a:99999",
            "a:000080",
            "a:80:80",
            "::1",
            "a[",
            "a]",
            "[",
            "]",
            "[]",
            "[:",
            "[::1",
            "::1]",
            "[::1]x",
            "[::1]:x",
            "[::1]80",
            "[12345]",
            "[123g::1]",
            "[::1%25eth0]",
            "[1.2.3.4]",
            "[v1.a]",
            "[::1]]",
            "[[::1]]",
            "a%",
            "a%4",
            "a%4g",
            "a%%41",
            "a\"b",
            "a<b",
            "a{b",
            "a|b",
            "a^b",
            "a`b",
        ];
        for text in rows {
            assert!(!is_authority(text.as_bytes()), "{text}");
        }
        for text in [b"a\x00b".as_slice(), b"a\tb", b"a\x7f", b"\xc3\xa9", b"[\xff]"] {
            assert!(!is_authority(text), "{text:?}");
        }
    }

    #[test]
    fn names_addresses_and_ports_are_accepted() {
        let rows = [
            "a",
            "A.example.",
            "a_b-c.d~e",
            "a:",
            "a:0",
            "a:80",
            "a:00080",
            "a:65535",
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:",
            "[2001:DB8::1]:443",
            "[::ffff:192.0.2.1]",
            "%41",
            "a%2Fb",
            "a!$&'()*+;=",
        ];
        for text in rows {
            assert!(is_authority(text.as_bytes()), "{text}");
        }
    }
}
