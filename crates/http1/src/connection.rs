//! May a connection be used again, and how does the answer travel on?

use crate::error::HeadError;
use crate::fields::ConnectionOptions;
use crate::framing::Framing;
use crate::request::RequestFacts;
use crate::response::ResponseHead;
use crate::version::Version;

/// Whether the sender of a head wants its connection to persist (RFC 9112 §9.3).
pub(crate) fn persists(version: Version, options: ConnectionOptions) -> bool {
    !options.close && (version == Version::Http11 || options.keep_alive)
}

/// What to do with a final response, decided from its head and the facts of its request.
///
/// The relay may lower `keep_downstream` and `upstream_may_persist` further, for instance when
/// the request body was not read to its end.
#[derive(Clone, Copy, Debug)]
pub struct ResponsePlan {
    /// How the body from the upstream ends.
    pub upstream_body: Framing,
    /// How the body to the client ends.
    pub downstream: Framing,
    /// Whether the client's connection is used again; if not, `Connection: close` is sent.
    pub keep_downstream: bool,
    /// Whether the upstream's connection is at a message boundary when the body has ended.
    pub upstream_may_persist: bool,
    /// Whether trailer fields are sent to the client.
    pub trailers: bool,
    /// Whether both connections become a tunnel behind this head (101).
    pub tunnel: bool,
    /// Version of the client.
    pub(crate) client: Version,
}

/// Plans the answer to `request` from the head of a final response or a 101.
///
/// A body that ends with the upstream's connection is sent in chunks to an HTTP/1.1 client, so
/// that the client can tell the end from a broken connection; an HTTP/1.0 client gets what has
/// no length until its connection ends (RFC 9112 §6.3, §7.1). `draining`: no connection is to
/// outlive its exchange.
///
/// Errors: `UpgradeNotAsked` for a 101 that the request did not ask for or that names no
/// protocol (RFC 9110 §15.2.2).
///
/// `response` must not be an interim one: that has no plan, see
/// [`encode_interim`](crate::encode_interim).
pub fn plan_response(
    request: &RequestFacts,
    response: &ResponseHead<'_, '_>,
    draining: bool,
) -> Result<ResponsePlan, HeadError> {
    debug_assert!(!response.is_interim(), "an interim response has no plan");
    let tunnel = response.status == 101;
    if tunnel && !(request.upgrade && response.switches_protocol()) {
        return Err(HeadError::UpgradeNotAsked);
    }
    let downstream = match (response.framing, request.version) {
        (Framing::None, _) => Framing::None,
        (Framing::Length(length), _) => Framing::Length(length),
        (Framing::Chunked | Framing::UntilClose, Version::Http11) => Framing::Chunked,
        (Framing::Chunked | Framing::UntilClose, Version::Http10) => Framing::UntilClose,
    };
    let delimited = downstream != Framing::UntilClose;
    Ok(ResponsePlan {
        upstream_body: response.framing,
        downstream,
        keep_downstream: request.persistent && !draining && delimited && !tunnel,
        upstream_may_persist: response.persistent
            && response.framing != Framing::UntilClose
            && !tunnel,
        trailers: request.accepts_trailers
            && response.framing == Framing::Chunked
            && downstream == Framing::Chunked,
        tunnel,
        client: request.version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::FieldSlots;
    use crate::limits::HeadLimits;
    use crate::method::MethodKind;

    const FACTS: RequestFacts = RequestFacts {
        version: Version::Http11,
        framing: Framing::None,
        method: MethodKind::Get,
        persistent: true,
        expects_continue: false,
        accepts_trailers: false,
        upgrade: false,
        max_forwards: None,
    };

    fn plan(facts: &RequestFacts, head: &str, draining: bool) -> ResponsePlan {
        let mut slots = FieldSlots::new();
        let head = format!("HTTP/1.1 {head}\r\n\r\n");
        let limits = HeadLimits::default();
        let head = ResponseHead::parse(head.as_bytes(), &limits, &mut slots, facts.method)
            .expect("no fault")
            .expect("complete");
        plan_response(facts, &head, draining).expect("the response was asked for")
    }

    #[test]
    fn a_connection_is_used_again_only_at_a_message_boundary() {
        let reuse = |facts: &RequestFacts, head: &str, draining: bool| {
            let plan = plan(facts, head, draining);
            (plan.keep_downstream, plan.upstream_may_persist)
        };
        let length = "200 OK\r\nContent-Length: 2";
        assert_eq!(reuse(&FACTS, length, false), (true, true));
        assert_eq!(reuse(&FACTS, length, true), (false, true));
        assert_eq!(reuse(&FACTS, "200 OK\r\nTransfer-Encoding: chunked", false), (true, true));
        assert_eq!(reuse(&FACTS, "204 OK", false), (true, true));
        assert_eq!(reuse(&FACTS, "200 OK", false), (true, false), "until close, sent in chunks");
        assert_eq!(reuse(&FACTS, "204 OK\r\nConnection: close", false), (true, false));
        let closing = RequestFacts { persistent: false, ..FACTS };
        assert_eq!(reuse(&closing, length, false), (false, true));
        let http10 = RequestFacts { version: Version::Http10, ..FACTS };
        assert_eq!(reuse(&http10, length, false), (true, true));
        assert_eq!(reuse(&http10, "200 OK\r\nTransfer-Encoding: chunked", false), (false, true));
        let upgrade = RequestFacts { upgrade: true, ..FACTS };
        let switch = plan(&upgrade, "101 Switching\r\nUpgrade: x", false);
        assert!(switch.tunnel && !switch.keep_downstream && !switch.upstream_may_persist);
        assert!(!plan(&upgrade, "200 OK\r\nUpgrade: x", false).tunnel);
    }

    #[test]
    fn trailers_travel_only_from_chunks_to_chunks() {
        let trailers = |facts: &RequestFacts, head: &str| plan(facts, head, false).trailers;
        let chunked = "200 OK\r\nTransfer-Encoding: chunked";
        let accepting = RequestFacts { accepts_trailers: true, ..FACTS };
        assert!(trailers(&accepting, chunked));
        assert!(!trailers(&FACTS, chunked));
        assert!(!trailers(&accepting, "200 OK"));
        assert!(!trailers(&accepting, "200 OK\r\nContent-Length: 1"));
        let head = RequestFacts { method: MethodKind::Head, ..accepting };
        assert!(!trailers(&head, chunked));
    }
}
