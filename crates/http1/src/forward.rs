//! What an intermediary removes and adds (RFC 9110 §7.6): the only place that edits a head.

use crate::client::{self, ClientFields, Origin};
use crate::connection::ResponsePlan;
use crate::edits::{Edits, FieldNames};
use crate::encode::{
    encode_content_length, encode_decimal, encode_persistence, encode_status_line,
};
use crate::fields::{Without, encode_field};
use crate::framing::Framing;
use crate::request::RequestHead;
use crate::response::ResponseHead;
use crate::target::{Authority, OriginForm};
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
    /// What the upstream is told about the client.
    pub client: ClientFields,
    /// The target to send instead of the client's. `*` (RFC 9112 §3.2.4) stays.
    pub target: Option<OriginForm<'a>>,
    /// The Host to send instead of the client's, which X-Forwarded-Host tells.
    pub host: Option<Authority<'a>>,
    /// What the operator changes of the fields.
    pub edits: Edits<'a>,
}

impl<'a> RequestContext<'a> {
    /// A request of `peer` over `proto` that goes on as it is. The other two as the fields say.
    pub const fn new(
        peer: &'a [u8],
        proto: &'a str,
        fallback_host: &'a [u8],
        via: &'a [u8],
    ) -> RequestContext<'a> {
        let client = ClientFields { x_forwarded: true, forwarded: false, peer_trusted: false };
        let edits = Edits::NONE;
        RequestContext { peer, proto, fallback_host, via, client, target: None, host: None, edits }
    }
}

/// Longest text that [`encode_request`] adds by itself, apart from the context's. Bytes.
const REQUEST_ADDITIONS_BYTES_MAX: usize = 320 + client::ADDITIONS_BYTES_MAX;

/// Longest text that [`encode_response`] adds by itself, apart from the date. Bytes.
const RESPONSE_ADDITIONS_BYTES_MAX: usize = 128;

/// Appends the head of `head`'s request as it goes to an upstream, always as HTTP/1.1.
///
/// Field order and names stay. Removed: Connection and what it names (except fields meant for
/// every recipient), Keep-Alive, Proxy-Connection, TE, Transfer-Encoding, Upgrade,
/// HTTP2-Settings, Proxy, what a client says about itself in X-Forwarded-*, X-Real-IP and
/// Forwarded, and what `context.edits` removes. Added behind the rest: the lines of the edits.
/// Written anew: the framing field, TE and Upgrade where they hold, Host after an absolute-form
/// target or where the context has another, the fields of `context.client`, Max-Forwards less
/// one, and one more Via.
///
/// A request with Max-Forwards 0 must not be sent on (RFC 9110 §7.6.2).
pub fn encode_request(head: &RequestHead<'_, '_>, context: &RequestContext<'_>, out: &mut Vec<u8>) {
    let edits = &context.edits;
    let host = head.host.unwrap_or(context.fallback_host);
    out.reserve(
        head.lines.encoded_bytes_max()
            + 2 * context.peer.len()
            + context.via.len()
            + 3 * host.len()
            + edits.append.as_bytes().len()
            + REQUEST_ADDITIONS_BYTES_MAX,
    );
    encode_request_line(head, context.target, out);
    match context.host {
        Some(other) => encode_field(b"Host", other.as_bytes(), out),
        None if head.host_in_place => {}
        None => encode_field(b"Host", host, out),
    }
    if context.host.is_none() && edits.remove.is_empty() {
        head.lines.encode(out);
    } else {
        let without = Without { host: context.host.is_some(), trailer: false };
        head.lines.encode_without(without, edits.remove, out);
    }
    out.extend_from_slice(edits.append.as_bytes());
    let removed = |name: &[u8]| edits.remove.contains(name);
    let origin = Origin { peer: context.peer, proto: context.proto, host };
    client::encode(head, context.client, &origin, removed, out);
    if !removed(b"Via") {
        out.extend_from_slice(match head.version {
            Version::Http10 => b"Via: 1.0 ",
            Version::Http11 => b"Via: 1.1 ",
        });
        out.extend_from_slice(context.via);
        out.extend_from_slice(b"\r\n");
    }
    encode_request_framing(head, out);
}

fn encode_request_line(
    head: &RequestHead<'_, '_>,
    target: Option<OriginForm<'_>>,
    out: &mut Vec<u8>,
) {
    let target = target.filter(|_| !head.target.is_asterisk());
    if target.is_none() && head.start_line_in_place {
        return out.extend_from_slice(head.lines.start_line());
    }
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    match target {
        Some(other) => out.extend_from_slice(other.as_bytes()),
        None => head.target.encode(out),
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Appends what holds for the next hop and the framing, and the end of the head.
fn encode_request_framing(head: &RequestHead<'_, '_>, out: &mut Vec<u8>) {
    let facts = &head.facts;
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
/// a 101 and on a 426, which must have it (RFC 9110 §15.5.22). `edits` is applied to the rest.
pub fn encode_response(
    head: &ResponseHead<'_, '_>,
    plan: &ResponsePlan,
    date: &[u8],
    edits: &Edits<'_>,
    out: &mut Vec<u8>,
) {
    out.reserve(
        head.lines.encoded_bytes_max()
            + date.len()
            + edits.append.as_bytes().len()
            + RESPONSE_ADDITIONS_BYTES_MAX,
    );
    encode_start_line(head, out);
    let without = Without { host: false, trailer: !plan.trailers };
    head.lines.encode_without(without, edits.remove, out);
    out.extend_from_slice(edits.append.as_bytes());
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
/// Only for HTTP/1.1 clients: HTTP/1.0 has no interim responses. `remove`: fields that the operator
/// takes away from answers.
pub fn encode_interim(head: &ResponseHead<'_, '_>, remove: &FieldNames, out: &mut Vec<u8>) {
    debug_assert!(head.is_interim(), "a final response has a plan");
    out.reserve(head.lines.encoded_bytes_max() + RESPONSE_ADDITIONS_BYTES_MAX);
    encode_start_line(head, out);
    head.lines.encode_without(Without::default(), remove, out);
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
