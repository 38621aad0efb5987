//! Heads as they are sent on.

use super::*;
use crate::connection::plan_response;
use crate::edits::{FieldBlock, FieldName};
use crate::error::HeadError;
use crate::fields::FieldSlots;
use crate::fuzzing::{DATE, Verdict, request_verdict};
use crate::limits::HeadLimits;
use crate::request::RequestFacts;

/// What goes upstream for `input`, which is also checked in every cut.
fn forwarded(input: &str) -> String {
    match request_verdict(input.as_bytes(), &HeadLimits::default()) {
        Verdict::Accepted { encoded, .. } => String::from_utf8(encoded).expect("rows are UTF-8"),
        other => panic!("{input:?} is {other:?}"),
    }
}

/// What goes upstream for a GET with `fields`, without the start line, Host, and what is added.
fn kept(fields: &str) -> String {
    let out = forwarded(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    let start = "GET / HTTP/1.1\r\nHost: a\r\n".len();
    let added = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\n\
                 Via: 1.1 baton\r\n";
    let (kept, behind) = out[start..].split_once(added).expect("our fields follow the others");
    format!("{kept}|{}", behind.strip_suffix("\r\n").expect("the head ends"))
}

fn facts_of(input: &str) -> RequestFacts {
    let mut slots = FieldSlots::new();
    RequestHead::parse(input.as_bytes(), &HeadLimits::default(), &mut slots)
        .expect("no fault")
        .expect("complete")
        .facts
}

/// What goes to the client, which asked with `request`, for the head `response`.
fn answered(request: &str, response: &str) -> Result<String, HeadError> {
    let facts = facts_of(request);
    let mut slots = FieldSlots::new();
    let head =
        ResponseHead::parse(response.as_bytes(), &HeadLimits::default(), &mut slots, facts.method)?
            .expect("complete");
    let plan = plan_response(&facts, &head, false)?;
    let mut out = Vec::new();
    encode_response(&head, &plan, DATE, &Edits::NONE, &mut out);
    Ok(String::from_utf8(out).expect("rows are UTF-8"))
}

mod edited;
mod requests;
mod responses;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_1_0: &str = "GET / HTTP/1.0\r\n\r\n";
const GET_1_0_KEEP: &str = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_TRAILERS: &str = "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n";
const GET_UPGRADE: &str =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
