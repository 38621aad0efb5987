//! The verdict on a head, and that it does not depend on how the head arrives.

use super::relay::cuts;
use crate::scan::{self, Stop};
use crate::{
    Edits, FieldSlots, Framing, HeadError, HeadLimits, HeadProgress, MethodKind, RequestContext,
    RequestFacts, RequestHead, ResponseHead, Version, encode_interim, encode_request,
    encode_response, plan_response,
};

/// The proxy's side of a request in tests.
pub(crate) const CONTEXT: RequestContext<'_> =
    RequestContext::new(b"192.0.2.7", "http", b"fallback.test", b"baton");

/// The current time in tests.
pub(crate) const DATE: &[u8] = b"Tue, 11 Jun 2024 09:12:45 GMT";

/// What becomes of the bytes of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// More bytes are needed.
    Incomplete,
    /// The head is refused with this error.
    Refused(HeadError),
    /// The head is accepted.
    Accepted {
        /// Its length in the input.
        bytes: usize,
        /// How it is sent on.
        encoded: Vec<u8>,
    },
}

/// The verdict on a request head; panics if it depends on how the input is cut.
pub(crate) fn request_verdict(input: &[u8], limits: &HeadLimits) -> Verdict {
    every_way(input, limits, |input| request_once(input, limits))
}

/// The verdict on a response to `method`; panics if it depends on how the input is cut.
pub(crate) fn response_verdict(input: &[u8], limits: &HeadLimits, method: MethodKind) -> Verdict {
    every_way(input, limits, |input| response_once(input, limits, method))
}

fn every_way(input: &[u8], limits: &HeadLimits, once: impl Fn(&[u8]) -> Verdict) -> Verdict {
    let whole = once(input);
    for cut in cuts(input.len()) {
        let first = once(&input[..cut]);
        if first != Verdict::Incomplete {
            assert_same(&first, &whole, cut);
        }
    }
    let mut progress = HeadProgress::default();
    let arrivals = (1..=input.len()).map(|end| &input[..end]);
    let gated = arrivals
        .filter(|start| progress.should_parse(start, limits))
        .map(&once)
        .find(|verdict| *verdict != Verdict::Incomplete);
    match gated {
        Some(verdict) => assert_same(&verdict, &whole, input.len()),
        // Only a fault in a line that has no end yet may wait for that end.
        None => assert!(!matches!(whole, Verdict::Accepted { .. })),
    }
    whole
}

/// Faults may get a more exact reason from more bytes, but never another status.
fn assert_same(early: &Verdict, whole: &Verdict, cut: usize) {
    match (early, whole) {
        (Verdict::Refused(early), Verdict::Refused(whole)) => {
            assert_eq!(early.status(), whole.status(), "{early} and {whole}, cut at {cut}");
        }
        _ => assert_eq!(early, whole, "cut at {cut}"),
    }
}

fn request_once(input: &[u8], limits: &HeadLimits) -> Verdict {
    let mut slots = FieldSlots::new();
    let scanned = scan::request(limits.window(input), limits);
    match RequestHead::parse(input, limits, &mut slots) {
        Ok(None) => {
            assert_eq!(scanned, Err(Stop::Incomplete));
            Verdict::Incomplete
        }
        Ok(Some(head)) => {
            assert_eq!(scanned, Ok(head.bytes), "the fast parser is as strict as the scan");
            let mut encoded = Vec::new();
            if head.facts.max_forwards != Some(0) {
                encode_request(&head, &CONTEXT, &mut encoded);
            } else {
                encoded.extend_from_slice(b"OPTIONS * HTTP/1.1\r\nHost: proxy\r\n\r\n");
            }
            Verdict::Accepted { bytes: head.bytes, encoded }
        }
        Err(error) => refused(error, scanned),
    }
}

fn response_once(input: &[u8], limits: &HeadLimits, method: MethodKind) -> Verdict {
    let facts = RequestFacts {
        version: Version::Http11,
        framing: Framing::None,
        method,
        persistent: true,
        expects_continue: false,
        accepts_trailers: true,
        upgrade: true,
        max_forwards: None,
    };
    let mut slots = FieldSlots::new();
    let scanned = scan::response(limits.window(input), limits);
    match ResponseHead::parse(input, limits, &mut slots, method) {
        Ok(None) => {
            assert_eq!(scanned, Err(Stop::Incomplete));
            Verdict::Incomplete
        }
        Ok(Some(head)) => {
            assert_eq!(scanned, Ok(head.bytes), "the fast parser is as strict as the scan");
            let mut encoded = Vec::new();
            if head.is_interim() {
                encode_interim(&head, crate::Edits::NONE.remove, &mut encoded);
            } else {
                match plan_response(&facts, &head, false) {
                    Ok(plan) => encode_response(&head, &plan, DATE, &Edits::NONE, &mut encoded),
                    Err(error) => return Verdict::Refused(error),
                }
            }
            Verdict::Accepted { bytes: head.bytes, encoded }
        }
        Err(error) => refused(error, scanned),
    }
}

/// A refusal is either the fault that the scan finds, or a judgement on a head without one.
fn refused(error: HeadError, scanned: Result<usize, Stop>) -> Verdict {
    assert_ne!(error, HeadError::Syntax, "the scan names every fault");
    match scanned {
        Err(Stop::Fault(fault)) => assert_eq!(error, fault),
        Err(Stop::Incomplete) => assert!(matches!(error, HeadError::HeadBytes { .. })),
        Ok(_) => {}
    }
    Verdict::Refused(error)
}
