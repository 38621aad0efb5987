//! What an intermediary removes and adds (RFC 9110 §7.6): the only place that edits a head.

use crate::connection::ResponsePlan;
use crate::encode::{
    encode_content_length, encode_decimal, encode_persistence, encode_status_line,
};
use crate::fields::encode_field;
use crate::framing::Framing;
use crate::request::RequestHead;
use crate::response::ResponseHead;
use crate::upgrade;
use crate::version::Version;

/// What the proxy knows about a request and the request does not say.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// The client's address without port, for X-Forwarded-For.
    pub peer: &'a [u8],
    /// The client's scheme, `http` or `https`, for X-Forwarded-Proto.
    pub proto: &'a str,
    /// Host for an HTTP/1.0 request that names none; a valid `host[:port]`.
    pub fallback_host: &'a [u8],
    /// The pseudonym of this proxy in Via: a token (RFC 9110 §7.6.3).
    pub via: &'a [u8],
}

/// Longest text that [`encode_request`] adds by itself, apart from the context's. Bytes.
const REQUEST_ADDITIONS_BYTES_MAX: usize = 320;

/// Longest text that [`encode_response`] adds by itself, apart from the date. Bytes.
const RESPONSE_ADDITIONS_BYTES_MAX: usize = 128;

/// Appends the head of `head`'s request as it goes to an upstream, always as HTTP/1.1.
///
/// Field order and names stay. Removed: Connection and what it names (except fields meant for
/// every recipient), Keep-Alive, Proxy-Connection, TE, Transfer-Encoding, Upgrade,
/// HTTP2-Settings, Proxy, and what a client says about itself in X-Forwarded-*, X-Real-IP and
/// Forwarded. Written anew: Host after an absolute-form target, the framing field, TE and
/// Upgrade where they hold, X-Forwarded-For, -Proto and -Host, Max-Forwards less one, and one
/// more Via.
///
/// A request with Max-Forwards 0 must not be sent on (RFC 9110 §7.6.2).
pub fn encode_request(head: &RequestHead<'_, '_>, context: &RequestContext<'_>, out: &mut Vec<u8>) {
    let facts = &head.facts;
    let host = head.host.unwrap_or(context.fallback_host);
    out.reserve(
        head.lines.encoded_bytes_max()
            + context.peer.len()
            + context.via.len()
            + 2 * host.len()
            + REQUEST_ADDITIONS_BYTES_MAX,
    );
    if head.start_line_in_place {
        out.extend_from_slice(head.lines.start_line());
    } else {
        out.extend_from_slice(head.method.as_str().as_bytes());
        out.push(b' ');
        head.target.encode(out);
        out.extend_from_slice(b" HTTP/1.1\r\n");
    }
    if !head.host_in_place {
        encode_field(b"Host", host, out);
    }
    head.lines.encode(out);
    encode_field(b"X-Forwarded-For", context.peer, out);
    encode_field(b"X-Forwarded-Proto", context.proto.as_bytes(), out);
    encode_field(b"X-Forwarded-Host", host, out);
    out.extend_from_slice(match head.version {
        Version::Http10 => b"Via: 1.0 ",
        Version::Http11 => b"Via: 1.1 ",
    });
    out.extend_from_slice(context.via);
    out.extend_from_slice(b"\r\n");
    if let Some(hops) = facts.max_forwards {
        debug_assert!(hops > 0, "a request with no hops left is answered by the proxy");
        out.extend_from_slice(b"Max-Forwards: ");
        encode_decimal(u64::from(hops.saturating_sub(1)), out);
        out.extend_from_slice(b"\r\n");
    }
    match facts.framing {
        Framing::Length(length) => encode_content_length(length, out),
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::None | Framing::UntilClose => {}
    }
    if facts.upgrade {
        upgrade::encode(&head.lines, out);
    }
    out.extend_from_slice(match (facts.upgrade, facts.accepts_trailers) {
        (true, true) => b"TE: trailers\r\nConnection: upgrade, TE\r\n",
        (true, false) => b"Connection: upgrade\r\n",
        (false, true) => b"TE: trailers\r\nConnection: TE\r\n",
        (false, false) => b"",
    });
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a final response, or of a 101, as it goes to the client.
///
/// Always an HTTP/1.1 status line (RFC 9110 §6.2). Removed and written anew as for a request,
/// with the framing of `plan`; `date` is added if the upstream sent none (RFC 9110 §6.6.1).
/// Content-Length stays on an answer to HEAD and on a 304, and goes from a 204. Upgrade stays on
/// a 101 and on a 426, which must have it (RFC 9110 §15.5.22).
pub fn encode_response(
    head: &ResponseHead<'_, '_>,
    plan: &ResponsePlan,
    date: &[u8],
    out: &mut Vec<u8>,
) {
    out.reserve(head.lines.encoded_bytes_max() + date.len() + RESPONSE_ADDITIONS_BYTES_MAX);
    encode_start_line(head, out);
    if plan.trailers {
        head.lines.encode(out);
    } else {
        head.lines.encode_without_trailer(out);
    }
    if !head.has_date {
        encode_field(b"Date", date, out);
    }
    match (plan.downstream, head.declared_length) {
        (Framing::Length(length), _) | (Framing::None, Some(length)) => {
            encode_content_length(length, out);
        }
        (Framing::Chunked, _) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        (Framing::None | Framing::UntilClose, _) => {}
    }
    if plan.tunnel {
        upgrade::encode(&head.lines, out);
        out.extend_from_slice(b"Connection: upgrade\r\n");
    } else if head.status == 426 && head.switches_protocol() {
        upgrade::encode(&head.lines, out);
        out.extend_from_slice(match plan.keep_downstream {
            true => b"Connection: upgrade\r\n",
            false => b"Connection: upgrade, close\r\n",
        });
    } else {
        encode_persistence(plan.keep_downstream, plan.client, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of an interim response as it goes to the client (RFC 9110 §15.2).
///
/// Only for HTTP/1.1 clients: HTTP/1.0 has no interim responses.
pub fn encode_interim(head: &ResponseHead<'_, '_>, out: &mut Vec<u8>) {
    debug_assert!(head.is_interim(), "a final response has a plan");
    out.reserve(head.lines.encoded_bytes_max() + RESPONSE_ADDITIONS_BYTES_MAX);
    encode_start_line(head, out);
    head.lines.encode(out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the status line; as it came if it is an HTTP/1.1 one with a reason, behind which alone
/// the space before the reason may be missing.
fn encode_start_line(head: &ResponseHead<'_, '_>, out: &mut Vec<u8>) {
    if head.version == Version::Http11 && !head.reason.is_empty() {
        out.extend_from_slice(head.lines.start_line());
    } else {
        encode_status_line(head.status, head.reason, out);
    }
}

#[cfg(test)]
mod tests;
