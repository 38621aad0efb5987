//! A record as a line.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use baton_http1::Version;

use super::LINE_BYTES_MAX;
use super::clock::Moment;
use super::escape::{self, CUT, ESCAPE_BYTES_MAX, Escape, Escaped};
use super::record::{
    FIELD_BYTES_MAX, HOST_BYTES_MAX, ID_BYTES_MAX, Part, Record, TARGET_BYTES_MAX,
};
use crate::error::ProxyError;

/// Longest name of a route or an upstream. Bytes, as written. A longer one is cut.
const NAME_BYTES_MAX: usize = 256;

/// Longest address with its port. Bytes.
const ADDRESS_BYTES_MAX: usize = 64;

/// Longest reason of a failure. Bytes, as written. A longer one is cut.
const FAILURE_BYTES_MAX: usize = 512;

/// All texts of a line are bounded by their constants, with what may stand behind the bound. The
/// rest, names of fields and numbers, is less than 1.5 KiB.
const TEXTS_BYTES_MAX: usize = TARGET_BYTES_MAX
    + HOST_BYTES_MAX
    + 2 * FIELD_BYTES_MAX
    + ID_BYTES_MAX
    + 2 * NAME_BYTES_MAX
    + 3 * ADDRESS_BYTES_MAX
    + FAILURE_BYTES_MAX
    + 12 * (ESCAPE_BYTES_MAX + CUT.len());
const _: () = assert!(TEXTS_BYTES_MAX + 1536 <= LINE_BYTES_MAX);

/// Between whom a request went, and how it ended: what the record does not own.
pub(crate) struct Parties<'a> {
    /// When the request ended.
    pub(crate) ended: Instant,
    /// The client's address as text, as far as trusted proxies tell it.
    pub(crate) client: &'a [u8],
    /// The other end of the connection.
    pub(crate) peer: SocketAddr,
    pub(crate) route: Option<&'a str>,
    pub(crate) upstream: Option<&'a str>,
    /// The endpoint that answered, or was tried last.
    pub(crate) endpoint: Option<SocketAddr>,
    /// Why there is no proper answer.
    pub(crate) cause: Option<Cause<'a>>,
}

/// Why a request has no proper answer.
#[derive(Clone, Copy)]
pub(crate) enum Cause<'a> {
    /// It failed.
    Failure(&'a ProxyError),
    /// The proxy would not: a limit, an address.
    Refusal(&'static str),
}

/// Appends a line of the Combined Log Format, exactly.
pub(super) fn combined(
    out: &mut Vec<u8>,
    record: &Record,
    parties: &Parties<'_>,
    began: Moment<'_>,
) {
    let escape: Escape = escape::combined;
    escape::append(parties.client, ADDRESS_BYTES_MAX, escape, out);
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(began.combined);
    out.extend_from_slice(b"] \"");
    let target = record.part(Part::Target);
    match record.version() {
        Some(version) => {
            part(record, Part::Method, escape, out);
            out.push(b' ');
            part(record, Part::Target, escape, out);
            out.push(b' ');
            out.extend_from_slice(version_text(version));
        }
        None if target.is_empty() => out.push(b'-'),
        None => part(record, Part::Target, escape, out),
    }
    out.extend_from_slice(b"\" ");
    // Three digits in any case, which is what readers of the format expect.
    let status = record.status.min(999);
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status)]);
    out.push(b' ');
    number(record.body_out.saturating_add(record.tunnel_out), out);
    for field in [Part::Referer, Part::UserAgent] {
        out.extend_from_slice(b" \"");
        if record.part(field).is_empty() {
            out.push(b'-');
        } else {
            part(record, field, escape, out);
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

/// Appends a line that is a JSON object. Each name stands in docs/operations-logs.md.
pub(super) fn json(
    out: &mut Vec<u8>,
    record: &Record,
    parties: &Parties<'_>,
    began: Moment<'_>,
    core: usize,
) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(began.iso);
    micros(began.micros, out);
    out.extend_from_slice(b"Z\",\"client\":\"");
    escape::append(parties.client, ADDRESS_BYTES_MAX, escape::json, out);
    out.extend_from_slice(b"\",\"peer\":\"");
    address(parties.peer, out);
    out.push(b'"');
    json_request(out, record);
    if record.status > 0 {
        json_number(b",\"status\":", u64::from(record.status), out);
    }
    json_number(b",\"bytes_in\":", record.body_in, out);
    json_number(b",\"bytes_out\":", record.body_out, out);
    if record.tunnel_in > 0 || record.tunnel_out > 0 {
        json_number(b",\"tunnel_bytes_in\":", record.tunnel_in, out);
        json_number(b",\"tunnel_bytes_out\":", record.tunnel_out, out);
    }
    json_times(out, record, parties.ended);
    json_way(out, record, parties);
    json_number(b",\"core\":", core as u64, out);
    match parties.cause {
        Some(Cause::Failure(error)) => {
            out.extend_from_slice(b",\"fault\":\"");
            Escaped::display(&error.side(), FAILURE_BYTES_MAX, escape::json, out);
            out.extend_from_slice(b"\",\"failure\":\"");
            Escaped::display(error, FAILURE_BYTES_MAX, escape::json, out);
            out.push(b'"');
        }
        Some(Cause::Refusal(reason)) => {
            json_text(b",\"failure\":\"", reason.as_bytes(), FAILURE_BYTES_MAX, out);
        }
        None => {}
    }
    out.extend_from_slice(b"}\n");
}

/// What the client asked for.
fn json_request(out: &mut Vec<u8>, record: &Record) {
    match record.version() {
        Some(version) => {
            json_part(b",\"method\":\"", record, Part::Method, out);
            json_part(b",\"target\":\"", record, Part::Target, out);
            out.extend_from_slice(b",\"version\":\"");
            out.extend_from_slice(version_text(version));
            out.push(b'"');
        }
        None => json_part(b",\"refused_line\":\"", record, Part::Target, out),
    }
    json_part(b",\"host\":\"", record, Part::Host, out);
    json_part(b",\"referer\":\"", record, Part::Referer, out);
    json_part(b",\"user_agent\":\"", record, Part::UserAgent, out);
    json_part(b",\"request_id\":\"", record, Part::RequestId, out);
}

/// How long it took, and the phases that are known.
fn json_times(out: &mut Vec<u8>, record: &Record, ended: Instant) {
    json_number(b",\"duration_us\":", between(record.started, ended), out);
    let Some(head_at) = record.head_at else { return };
    json_number(b",\"head_us\":", between(record.started, head_at), out);
    let Some(connected_at) = record.connected_at else { return };
    json_number(b",\"connect_us\":", between(head_at, connected_at), out);
    let Some(first_byte_at) = record.first_byte_at else { return };
    json_number(b",\"first_byte_us\":", between(connected_at, first_byte_at), out);
}

/// Which way it went.
fn json_way(out: &mut Vec<u8>, record: &Record, parties: &Parties<'_>) {
    if let Some(route) = parties.route {
        json_text(b",\"route\":\"", route.as_bytes(), NAME_BYTES_MAX, out);
    }
    let Some(upstream) = parties.upstream else { return };
    json_text(b",\"upstream\":\"", upstream.as_bytes(), NAME_BYTES_MAX, out);
    if let Some(endpoint) = parties.endpoint {
        out.extend_from_slice(b",\"endpoint\":\"");
        address(endpoint, out);
        out.push(b'"');
    }
    let reused: &[u8] = if record.reused { b",\"reused\":true" } else { b",\"reused\":false" };
    out.extend_from_slice(reused);
    json_number(b",\"retries\":", u64::from(record.retries), out);
}

fn part(record: &Record, part: Part, escape: Escape, out: &mut Vec<u8>) {
    escape::append(record.part(part), part.bytes_max(), escape, out);
}

/// A part that is there. `name`: with its comma, colon and quotes.
fn json_part(name: &[u8], record: &Record, part: Part, out: &mut Vec<u8>) {
    let text = record.part(part);
    if !text.is_empty() {
        json_text(name, text, part.bytes_max(), out);
    }
}

fn json_text(name: &[u8], text: &[u8], max: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    escape::append(text, max, escape::json, out);
    out.push(b'"');
}

fn json_number(name: &[u8], value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    number(value, out);
}

fn number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `.` and six digits.
fn micros(value: u32, out: &mut Vec<u8>) {
    let mut text = *b".000000";
    let mut left = value;
    for digit in text[1..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&text);
}

/// Microseconds from `start` to `end`.
fn between(start: Instant, end: Instant) -> u64 {
    let time = end.saturating_duration_since(start);
    time.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(time.subsec_micros()))
}

/// An address with its port. IPv4 without the machinery of `Display`, which takes as long as the
/// rest of a line.
fn address(address: SocketAddr, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    match address.ip() {
        IpAddr::V4(ip) => {
            for octet in ip.octets() {
                out.extend_from_slice(digits.format(octet).as_bytes());
                out.push(b'.');
            }
            out.pop();
            out.push(b':');
            out.extend_from_slice(digits.format(address.port()).as_bytes());
        }
        IpAddr::V6(_) => {
            let text: &dyn Display = &address;
            Escaped::display(text, ADDRESS_BYTES_MAX, escape::json, out);
        }
    }
}

fn version_text(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
    }
}
