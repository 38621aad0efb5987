//! Which field names this crate acts on, and how a name is recognised in one step.

/// What a field name means to an intermediary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Passed on as it is.
    Other,
    Connection,
    ContentLength,
    Date,
    Expect,
    Host,
    MaxForwards,
    Te,
    Trailer,
    TransferEncoding,
    Upgrade,
    /// Meant for one connection, or never meant to travel at all: Keep-Alive, Proxy-Connection,
    /// HTTP2-Settings, and Proxy, which CGI turns into the variable HTTP_PROXY.
    HopByHop,
    /// Says who the client is or what it asked for: only the proxy's own word counts. Spellings
    /// with `_` are included, because CGI and WSGI fold both into one variable.
    ClientIdentity,
    /// Not a framing field, yet read as one by a recipient that ignores punctuation.
    FramingLookAlike,
}

/// Classifies a field name, which must be a token (so never empty).
///
/// Length and first letter select at most two candidates, so a name of no interest costs one
/// jump and no comparison.
pub(crate) fn classify(name: &[u8]) -> Name {
    let first = name[0] | 0x20;
    match (name.len(), first) {
        (2, b't') if is(name, b"te") => Name::Te,
        (4, b'd') if is(name, b"date") => Name::Date,
        (4, b'h') if is(name, b"host") => Name::Host,
        (5, b'p') if is(name, b"proxy") => Name::HopByHop,
        (6, b'e') if is(name, b"expect") => Name::Expect,
        (7, b't') if is(name, b"trailer") => Name::Trailer,
        (7, b'u') if is(name, b"upgrade") => Name::Upgrade,
        (9, b'f') if is(name, b"forwarded") => Name::ClientIdentity,
        (9, b'x') if is_to_cgi(name, b"x-real-ip") => Name::ClientIdentity,
        (10, b'c') if is(name, b"connection") => Name::Connection,
        (10, b'k') if is(name, b"keep-alive") => Name::HopByHop,
        (12, b'm') if is(name, b"max-forwards") => Name::MaxForwards,
        (14, b'c') if is(name, b"content-length") => Name::ContentLength,
        (14, b'h') if is(name, b"http2-settings") => Name::HopByHop,
        (15, b'x') if is_to_cgi(name, b"x-forwarded-for") => Name::ClientIdentity,
        (16, b'p') if is(name, b"proxy-connection") => Name::HopByHop,
        (16, b'x') if is_to_cgi(name, b"x-forwarded-host") => Name::ClientIdentity,
        (16, b'x') if is_to_cgi(name, b"x-forwarded-port") => Name::ClientIdentity,
        (17, b't') if is(name, b"transfer-encoding") => Name::TransferEncoding,
        (17, b'x') if is_to_cgi(name, b"x-forwarded-proto") => Name::ClientIdentity,
        (18, b'x') if is_to_cgi(name, b"x-forwarded-server") => Name::ClientIdentity,
        _ => unlisted(name, first),
    }
}

/// Whether `text` is `lower` in any case. `lower` consists of `a-z`, `0-9` and `-`; `text` holds
/// no control bytes.
///
/// Setting bit 5 makes letters lower case and leaves digits and `-` alone; only control bytes
/// would become one of these and be none. Without branches and with a known length this becomes
/// a few wide comparisons.
#[inline(always)]
pub(crate) fn is<const N: usize>(text: &[u8], lower: &[u8; N]) -> bool {
    let Ok(text) = <&[u8; N]>::try_from(text) else { return false };
    text.iter().zip(lower).fold(0, |difference, (&a, &b)| difference | ((a | 0x20) ^ b)) == 0
}

/// As [`is`], with `_` taken for `-`.
fn is_to_cgi<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    let fold = |b: u8| if b == b'_' { b'-' } else { b | 0x20 };
    name.len() == N && name.iter().zip(lower).all(|(&a, &b)| fold(a) == b)
}

fn unlisted(name: &[u8], first: u8) -> Name {
    const SHORTEST: usize = b"contentlength".len();
    let may_be = matches!(first, b'c' | b't') || !name[0].is_ascii_alphanumeric();
    if name.len() >= SHORTEST && may_be && looks_like_framing(name) {
        return Name::FramingLookAlike;
    }
    Name::Other
}

/// Whether the letters and digits of `name` spell a framing field.
pub(crate) fn looks_like_framing(name: &[u8]) -> bool {
    let spells = |lower: &[u8]| {
        let letters = name.iter().filter(|b| b.is_ascii_alphanumeric());
        letters.map(u8::to_ascii_lowercase).eq(lower.iter().copied())
    };
    spells(b"contentlength") || spells(b"transferencoding")
}

/// Fields that no Connection option removes.
///
/// RFC 9110 §7.6.1 says that what Connection names is removed, and that fields meant for all
/// recipients must not be named. A sender that names them all the same gets them kept: else it
/// could strip what decides on access, caching or framing from a request that passed through us.
pub(crate) fn is_protected(name: &[u8]) -> bool {
    const PROTECTED: &[&[u8]] = &[
        b"age",
        b"authorization",
        b"cache-control",
        b"cookie",
        b"date",
        b"etag",
        b"expect",
        b"expires",
        b"host",
        b"location",
        b"max-forwards",
        b"origin",
        b"pragma",
        b"range",
        b"set-cookie",
        b"strict-transport-security",
        b"trailer",
        b"vary",
        b"via",
        b"www-authenticate",
    ];
    name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-"))
        || PROTECTED.iter().any(|protected| name.eq_ignore_ascii_case(protected))
}

/// Whether a field may stand in a trailer section that we pass on (RFC 9110 §6.5.1): not if it
/// frames, routes, authenticates, modifies the request, steers caches, says how to read the
/// content, or belongs to one connection.
pub(crate) fn may_be_trailer(name: &[u8]) -> bool {
    const FORBIDDEN: &[&[u8]] = &[
        b"age",
        b"authentication-info",
        b"authorization",
        b"cache-control",
        b"cookie",
        b"date",
        b"expires",
        b"location",
        b"origin",
        b"pragma",
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"proxy-authorization",
        b"range",
        b"retry-after",
        b"set-cookie",
        b"vary",
        b"via",
        b"warning",
        b"www-authenticate",
    ];
    let starts_with = |prefix: &[u8]| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    classify(name) == Name::Other
        && !starts_with(b"content-")
        && !starts_with(b"if-")
        && !FORBIDDEN.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_in_any_case() {
        let rows = [
            ("TE", Name::Te),
            ("date", Name::Date),
            ("HOST", Name::Host),
            ("Proxy", Name::HopByHop),
            ("Expect", Name::Expect),
            ("trailer", Name::Trailer),
            ("Upgrade", Name::Upgrade),
            ("Forwarded", Name::ClientIdentity),
            ("X-Real-IP", Name::ClientIdentity),
            ("Connection", Name::Connection),
            ("Keep-Alive", Name::HopByHop),
            ("Max-Forwards", Name::MaxForwards),
            ("cONTENT-lENGTH", Name::ContentLength),
            ("HTTP2-Settings", Name::HopByHop),
            ("X-Forwarded-For", Name::ClientIdentity),
            ("Proxy-Connection", Name::HopByHop),
            ("X-Forwarded-Host", Name::ClientIdentity),
            ("X-Forwarded-Port", Name::ClientIdentity),
            ("Transfer-Encoding", Name::TransferEncoding),
            ("X-Forwarded-Proto", Name::ClientIdentity),
            ("X-Forwarded-Server", Name::ClientIdentity),
            ("x_forwarded-FOR", Name::ClientIdentity),
        ];
        for (name, meaning) in rows {
            assert_eq!(classify(name.as_bytes()), meaning, "{name}");
        }
    }

    #[test]
    fn names_that_differ_in_one_byte_are_other_names() {
        let names = ["te", "host", "connection", "transfer-encoding", "x-forwarded-for"];
        for name in names {
            let meaning = classify(name.as_bytes());
            for index in 0..name.len() {
                // `9` and `~` fold to themselves and stand in none of these names.
                for other in [b'9', b'~'] {
                    let mut name = name.as_bytes().to_vec();
                    name[index] = other;
                    assert_ne!(classify(&name), meaning, "{}", String::from_utf8_lossy(&name));
                }
            }
        }
        for name in ["keep_alive", "Conection", "Hostt", "X", "Content-Type", "Trailers"] {
            assert_eq!(classify(name.as_bytes()), Name::Other, "{name}");
        }
    }

    #[test]
    fn trailers_hold_only_what_changes_nothing_before_them() {
        let forbidden = [
            "Content-Length",
            "transfer-encoding",
            "Transfer_Encoding",
            "Host",
            "Trailer",
            "TE",
            "Connection",
            "Authorization",
            "Set-Cookie",
            "Content-Type",
            "If-Match",
            "Cache-Control",
            "X-Forwarded-For",
            "Max-Forwards",
            "Date",
        ];
        for name in forbidden {
            assert!(!may_be_trailer(name.as_bytes()), "{name}");
        }
        for name in ["grpc-status", "Digest", "Server-Timing", "ETag", "X-Checksum", "I"] {
            assert!(may_be_trailer(name.as_bytes()), "{name}");
        }
    }
}
