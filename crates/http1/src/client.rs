//! What an upstream is told about the client: X-Forwarded-* and Forwarded (RFC 7239).

use crate::fields::encode_field;
use crate::request::RequestHead;
use crate::syntax::{is_token, trim};

/// Which fields tell the upstream about the client. Of a family that is off it gets none, from
/// whomever it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFields {
    /// X-Forwarded-For, -Proto and -Host.
    pub x_forwarded: bool,
    /// Forwarded (RFC 7239).
    pub forwarded: bool,
    /// Whether the peer is a proxy that is believed: then its X-Forwarded-For and Forwarded are
    /// continued, and its X-Forwarded-Proto and -Host stay. Else all of them begin here.
    pub peer_trusted: bool,
}

impl Default for ClientFields {
    fn default() -> Self {
        Self { x_forwarded: true, forwarded: false, peer_trusted: false }
    }
}

/// Longest text that [`encode`] adds by itself, apart from peer, scheme, host and what the client
/// said. Bytes.
pub(crate) const ADDITIONS_BYTES_MAX: usize = 128;

/// A request as it came in.
pub(crate) struct Origin<'a> {
    pub(crate) peer: &'a [u8],
    pub(crate) proto: &'a str,
    pub(crate) host: &'a [u8],
}

/// Appends the fields of `which` but for those that `removed` names.
pub(crate) fn encode(
    head: &RequestHead<'_, '_>,
    which: ClientFields,
    origin: &Origin<'_>,
    removed: impl Fn(&[u8]) -> bool,
    out: &mut Vec<u8>,
) {
    match (which.x_forwarded, which.peer_trusted) {
        (true, true) => encode_believed(head, origin, &removed, out),
        (true, false) => encode_own(origin, &removed, out),
        (false, _) => {}
    }
    if which.forwarded && !removed(b"Forwarded") {
        encode_forwarded(head, which, origin, out);
    }
}

/// X-Forwarded-* that begin here.
#[inline(always)]
fn encode_own(origin: &Origin<'_>, removed: impl Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
    let own: [(&[u8], &[u8]); 3] = [
        (b"X-Forwarded-For", origin.peer),
        (b"X-Forwarded-Proto", origin.proto.as_bytes()),
        (b"X-Forwarded-Host", origin.host),
    ];
    for (name, value) in own {
        if !removed(name) {
            encode_field(name, value, out);
        }
    }
}

/// X-Forwarded-For with one more hop; -Proto and -Host as the peer said, if it did.
fn encode_believed(
    head: &RequestHead<'_, '_>,
    origin: &Origin<'_>,
    removed: impl Fn(&[u8]) -> bool,
    out: &mut Vec<u8>,
) {
    let kept: [(&[u8], &[u8]); 2] =
        [(b"X-Forwarded-Proto", origin.proto.as_bytes()), (b"X-Forwarded-Host", origin.host)];
    if !removed(b"X-Forwarded-For") {
        out.extend_from_slice(b"X-Forwarded-For: ");
        if encode_said(head, b"x-forwarded-for", out) {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(origin.peer);
        out.extend_from_slice(b"\r\n");
    }
    for (name, own) in kept {
        if !removed(name) {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            if !encode_said(head, name, out) {
                out.extend_from_slice(own);
            }
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Appends the values that the peer sent under exactly `name`, as one list; `false` if none.
fn encode_said(head: &RequestHead<'_, '_>, name: &[u8], out: &mut Vec<u8>) -> bool {
    let mut any = false;
    for value in head.lines.identity_values(name) {
        if !value.is_empty() {
            if any {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(value);
            any = true;
        }
    }
    any
}

/// Forwarded with one more element: `for=192.0.2.1;host=example.com;proto=http`.
fn encode_forwarded(
    head: &RequestHead<'_, '_>,
    which: ClientFields,
    origin: &Origin<'_>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"Forwarded: ");
    // An element with an open quote would swallow ours: then what was said is not continued.
    let whole = || head.lines.identity_values(b"forwarded").all(is_list_of_whole_strings);
    if which.peer_trusted && whole() && encode_said(head, b"forwarded", out) {
        out.extend_from_slice(b", ");
    }
    out.extend_from_slice(b"for=");
    // RFC 7239 §6: an IPv6 address stands in brackets, and so in quotes.
    if origin.peer.contains(&b':') {
        out.extend_from_slice(b"\"[");
        out.extend_from_slice(origin.peer);
        out.extend_from_slice(b"]\"");
    } else {
        encode_value(origin.peer, out);
    }
    out.extend_from_slice(b";host=");
    encode_value(origin.host, out);
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(origin.proto.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// `value = token / quoted-string` (RFC 7239 §4).
fn encode_value(value: &[u8], out: &mut Vec<u8>) {
    if is_token(value) {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    for &byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Whether each quoted string in `value` (RFC 9110 §5.6.4) ends in it.
fn is_list_of_whole_strings(value: &[u8]) -> bool {
    let mut quoted = false;
    let mut bytes = trim(value).iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted && bytes.next().is_none() => return false,
            _ => {}
        }
    }
    !quoted
}
