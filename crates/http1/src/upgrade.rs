//! Protocols named in Upgrade fields (RFC 9110 §7.8).

use crate::fields::FieldLines;
use crate::syntax::{is_token, list};

/// The protocols that an intermediary may pass on, in order.
///
/// Left out are HTTP itself and its versions (`h2c`, `h2`, `HTTP/…`): behind such a switch
/// requests would pass that nobody here reads. Also what is not `token[/token]`.
pub(crate) fn protocols<'l>(lines: &'l FieldLines<'_, '_>) -> impl Iterator<Item = &'l [u8]> {
    lines.upgrade_values().flat_map(list).filter(|protocol| is_forwardable(protocol))
}

/// Appends `Upgrade: ` with the protocols of [`protocols`], of which there must be one.
pub(crate) fn encode(lines: &FieldLines<'_, '_>, out: &mut Vec<u8>) {
    let mut separator: &[u8] = b"Upgrade: ";
    for protocol in protocols(lines) {
        out.extend_from_slice(separator);
        out.extend_from_slice(protocol);
        separator = b", ";
    }
    out.extend_from_slice(b"\r\n");
}

fn is_forwardable(protocol: &[u8]) -> bool {
    let mut parts = protocol.splitn(2, |&b| b == b'/');
    let name = parts.next().unwrap_or_default();
    let is_http =
        [b"h2c".as_slice(), b"h2", b"http"].iter().any(|http| name.eq_ignore_ascii_case(http));
    is_token(name) && parts.all(is_token) && !is_http
}
