//! What must hold for any bytes: one function for each fuzz target, called by tests as well.
//!
//! What we send on is read back by [`naive`], a reader that shares no code with the parsers: it
//! must find exactly the messages that it finds in the bytes we were sent, but for what edits
//! change of their fields.

mod edited;
mod naive;
mod relay;
mod verdict;

pub(crate) use verdict::{DATE, Verdict, request_verdict, response_verdict};

use crate::{
    BodyDecoder, Edits, FieldSlots, Framing, HeadLimits, MethodKind, PieceKind, RequestFacts,
    RequestHead, ResponseHead, Version, encode_interim, encode_response, plan_response,
};
use relay::{Decoded, Relayed, relay_body};
use verdict::CONTEXT;

/// Separates what the client sends from what the upstream sends in an [`exchange`].
pub const MARK: &[u8] = b"--MARK--";

/// Limits that a fuzzer reaches with short inputs.
const SMALL: HeadLimits = HeadLimits { head_bytes_max: 256, fields_max: 6, target_bytes_max: 48 };

/// A request head gets the same verdict however it is cut, and what is sent on reads back as the
/// same request, once by the naive reader and once by ourselves; also if edits are applied to it.
pub fn request_head(input: &[u8]) {
    edited::request(input);
    for limits in [HeadLimits::default(), SMALL] {
        let verdict = request_verdict(input, &limits);
        let Verdict::Accepted { bytes, encoded } = verdict else { continue };
        let theirs = naive::head(&input[..bytes]).expect("an accepted head is a strict one");
        let ours = naive::head(&encoded).expect("what is sent on is strict");
        assert_eq!(ours.bytes, encoded.len(), "what is sent on is one head");
        naive::assert_forwarded_request(&theirs, &ours);
        let again = HeadLimits { head_bytes_max: usize::MAX, ..HeadLimits::default() };
        let mut slots = FieldSlots::new();
        if ours.fields.len() <= again.fields_max && ours.target_bytes() <= again.target_bytes_max {
            let head = RequestHead::parse(&encoded, &again, &mut slots)
                .expect("what is sent on is acceptable")
                .expect("what is sent on is complete");
            assert_eq!(head.bytes, encoded.len());
            assert_eq!(naive::framing(&ours), head.facts.framing);
        }
    }
}

/// A response head gets the same verdict however it is cut, and what is sent on reads back as the
/// same response; also if edits are applied to it.
pub fn response_head(input: &[u8]) {
    edited::response(input);
    for limits in [HeadLimits::default(), SMALL] {
        for method in [MethodKind::Get, MethodKind::Head] {
            let verdict = response_verdict(input, &limits, method);
            let Verdict::Accepted { bytes, encoded } = verdict else { continue };
            let theirs = naive::head(&input[..bytes]).expect("an accepted head is a strict one");
            let ours = naive::head(&encoded).expect("what is sent on is strict");
            assert_eq!(ours.bytes, encoded.len(), "what is sent on is one head");
            naive::assert_forwarded_response(&theirs, &ours);
        }
    }
}

/// A chunked body decodes to the same data, trailers and end however it is cut, and a body that
/// is complete to us is the same one to the naive reader.
pub fn chunked(input: &[u8]) {
    let whole = relay::decode(Framing::Chunked, [input]);
    let mut cuts = relay::cuts(input.len());
    cuts.push(input.len());
    for cut in cuts {
        let (start, end) = input.split_at(cut);
        assert_same_body(&[start, end], &whole);
    }
    assert_same_body(&input.chunks(1).collect::<Vec<_>>(), &whole);
    if whole.complete {
        let body = naive::chunked(input).expect("a complete body is a strict one");
        assert_eq!(body.data, whole.data);
        assert_eq!(body.bytes, whole.consumed);
        assert_eq!(body.trailers, whole.trailers);
    }
}

/// The requests before [`MARK`] arrive upstream as the same requests, and the responses behind it
/// arrive at the client as the same responses, no more and no less.
pub fn exchange(input: &[u8]) {
    let at = memchr::memmem::find(input, MARK);
    let (client, upstream) = match at {
        Some(at) => (&input[..at], &input[at + MARK.len()..]),
        None => input.split_at(input.len() / 2),
    };
    let requests = forward_requests(client);
    let facts = requests.last().copied().unwrap_or(DEFAULT_FACTS);
    forward_response(upstream, &facts);
}

/// A fault in a line without an end may wait for that end; else the cuts change nothing.
fn assert_same_body(parts: &[&[u8]], whole: &Decoded) {
    let decoded = relay::decode(Framing::Chunked, parts.iter().copied());
    if decoded != *whole {
        assert!(whole.refused.is_some() && !decoded.complete, "{decoded:?}, whole: {whole:?}");
        let ended = parts.iter().copied().chain([b"\r\n".as_slice()]);
        assert_eq!(relay::decode(Framing::Chunked, ended), *whole);
    }
}

const DEFAULT_FACTS: RequestFacts = RequestFacts {
    version: Version::Http11,
    framing: Framing::None,
    method: MethodKind::Get,
    persistent: true,
    expects_continue: false,
    accepts_trailers: true,
    upgrade: true,
    max_forwards: None,
};

/// Sends on the requests at the start of `client` and checks each; returns their facts.
fn forward_requests(client: &[u8]) -> Vec<RequestFacts> {
    let mut done = Vec::new();
    let mut rest = client;
    loop {
        let mut slots = FieldSlots::new();
        let parsed = RequestHead::parse(rest, &HeadLimits::default(), &mut slots);
        let Ok(Some(head)) = parsed else { return done };
        if head.facts.max_forwards == Some(0) {
            return done;
        }
        let mut sent = Vec::new();
        crate::encode_request(&head, &CONTEXT, &mut sent);
        let head_bytes = sent.len();
        let body =
            relay_body(head.facts.framing, head.facts.framing, &rest[head.bytes..], &mut sent);
        let Relayed { consumed, complete } = body;
        match naive::message(&sent, head.facts.framing) {
            Some(ours) => {
                assert!(complete, "an incomplete request must not be completed upstream");
                assert_eq!(ours.bytes, sent.len(), "exactly one request goes upstream");
                let theirs = naive::message(skip_empty_line(rest), head.facts.framing)
                    .expect("a complete request is a strict one");
                assert_eq!(ours.body, theirs.body);
                naive::assert_forwarded_request(&theirs.head, &ours.head);
                naive::assert_forwarded_trailers(&theirs.trailers, &ours.trailers);
            }
            None => assert!(!complete && sent.len() >= head_bytes),
        }
        done.push(head.facts);
        if !complete || !head.facts.persistent {
            return done;
        }
        rest = &rest[head.bytes + consumed..];
    }
}

/// Sends on interim responses and the final one at the start of `upstream`, and checks them.
fn forward_response(upstream: &[u8], facts: &RequestFacts) {
    let mut rest = upstream;
    loop {
        let mut slots = FieldSlots::new();
        let parsed = ResponseHead::parse(rest, &HeadLimits::default(), &mut slots, facts.method);
        let Ok(Some(head)) = parsed else { return };
        let mut sent = Vec::new();
        if head.is_interim() {
            encode_interim(&head, crate::Edits::NONE.remove, &mut sent);
            assert_eq!(naive::head(&sent).map(|head| head.bytes), Some(sent.len()));
            rest = &rest[head.bytes..];
            continue;
        }
        let Ok(plan) = plan_response(facts, &head, false) else { return };
        encode_response(&head, &plan, DATE, &Edits::NONE, &mut sent);
        let ours = naive::head(&sent).expect("what is sent on is strict");
        assert_eq!(ours.bytes, sent.len(), "what is sent on is one head");
        let theirs = naive::head(rest).expect("an accepted head is a strict one");
        naive::assert_forwarded_response(&theirs, &ours);
        if plan.tunnel {
            return;
        }
        let body = &rest[head.bytes..];
        let mut decoder = BodyDecoder::new(plan.upstream_body);
        let mut relayed = relay_body(plan.upstream_body, plan.downstream, body, &mut sent);
        let expected = relay::decode(plan.upstream_body, [body]);
        if plan.upstream_body == Framing::UntilClose {
            assert_eq!(decoder.finish_at_eof(), Ok(()));
            relayed.complete = true;
            if plan.downstream == Framing::Chunked {
                sent.extend_from_slice(crate::LAST_CHUNK);
            }
        }
        match naive::message(&sent, plan.downstream) {
            Some(message) if relayed.complete => {
                assert_eq!(message.bytes, sent.len(), "exactly one response goes to the client");
                assert_eq!(message.body, expected.data);
            }
            // An HTTP/1.0 client takes the end of the connection for the end of the body.
            Some(_) => assert_eq!(plan.downstream, Framing::UntilClose),
            None => assert!(!relayed.complete),
        }
        return;
    }
}

fn skip_empty_line(input: &[u8]) -> &[u8] {
    input.strip_prefix(b"\r\n").unwrap_or(input)
}

/// Whether `kind` says that more bytes are needed.
fn needs_more(kind: &PieceKind) -> bool {
    *kind == PieceKind::NeedMore
}

#[cfg(test)]
mod tests;
