//! Request heads to pages. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

use baton_http1::RequestHead;

use super::echo::Report;
use super::limits::{ANSWER_BYTES_MAX, DELAY_MAX, SPIN_MAX};
use super::websocket::{self, Handshake};

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// The list of pages.
    Index,
    /// A body of this many bytes, its length known.
    Bytes(u64),
    /// A body of this many bytes in chunks.
    Chunked(u64),
    /// An answer after this time.
    Delay(Duration),
    /// An answer after this much CPU time.
    Spin(Duration),
    /// An answer with this status.
    Status(u16),
    /// The request itself, so far as its head tells.
    Echo(Box<Report>),
    /// The length and checksum of the request's body.
    Upload,
    /// A WebSocket.
    WebSocket(Handshake),
    /// A refusal before the body is read.
    Early,
    /// An answer after an interim response.
    Hints,
    /// An answer with a trailer field.
    Trailers,
    /// Nothing in particular: `OPTIONS *` (RFC 9110 §9.3.7).
    Server,
    /// No page has this path.
    NotFound,
    /// The number in the path or query is missing or not in this range.
    BadNumber(RangeInclusive<u64>),
}

impl Page {
    /// The page that `head` asks for. `bytes`: those of the head itself.
    pub(super) fn of(head: &RequestHead<'_, '_>, bytes: &[u8]) -> Page {
        if head.target.is_asterisk() {
            return Page::Server;
        }
        let path = head.target.path();
        if path == "/" {
            return Page::Index;
        }
        // The path starts with a slash, which is one byte.
        let (name, rest) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
        match (name, rest) {
            ("bytes", _) => numbered(Some(rest), 0..=ANSWER_BYTES_MAX, Page::Bytes),
            ("chunked", _) => numbered(Some(rest), 0..=ANSWER_BYTES_MAX, Page::Chunked),
            ("delay", _) => numbered(Some(rest), 0..=milliseconds(DELAY_MAX), |number| {
                Page::Delay(Duration::from_millis(number))
            }),
            ("spin", "") => {
                let query = head.target.query().unwrap_or_default();
                let value = query.split('&').find_map(|pair| pair.strip_prefix("us="));
                numbered(value, 0..=microseconds(SPIN_MAX), |number| {
                    Page::Spin(Duration::from_micros(number))
                })
            }
            ("status", _) => numbered(Some(rest), 200..=599, |number| {
                // In range, so it fits.
                Page::Status(u16::try_from(number).unwrap_or(u16::MAX))
            }),
            ("echo", _) => Page::Echo(Box::new(Report::new(head, bytes))),
            ("upload", "") => Page::Upload,
            ("ws", "") => Page::WebSocket(websocket::handshake(head)),
            ("early", "") => Page::Early,
            ("hints", "") => Page::Hints,
            ("trailers", "") => Page::Trailers,
            _ => Page::NotFound,
        }
    }
}

/// The page for the number `text`, which must be decimal digits and within `range`.
fn numbered(text: Option<&str>, range: RangeInclusive<u64>, page: impl Fn(u64) -> Page) -> Page {
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(number) if range.contains(&number) => page(number),
        _ => Page::BadNumber(range),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What `/` shows.
pub(super) const INDEX: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>baton origin</title>
<h1>baton origin</h1>
<p>A server to try a proxy with. Every page answers every method.</p>
<dl>
<dt><a href=\"/bytes/100\">/bytes/N</a></dt><dd>N bytes with Content-Length</dd>
<dt><a href=\"/chunked/100\">/chunked/N</a></dt><dd>N bytes in chunks</dd>
<dt><a href=\"/delay/500\">/delay/MS</a></dt><dd>answers after MS milliseconds</dd>
<dt><a href=\"/spin?us=1000\">/spin?us=N</a></dt><dd>answers after N microseconds of CPU time</dd>
<dt><a href=\"/status/418\">/status/N</a></dt><dd>answers with status N</dd>
<dt><a href=\"/echo\">/echo</a></dt><dd>gives the request back as JSON</dd>
<dt>/upload</dt><dd>takes a body and tells its length and CRC-32</dd>
<dt>/ws</dt><dd>a WebSocket that sends each message back</dd>
<dt>/early</dt><dd>answers 413 without reading the body, and closes</dd>
<dt><a href=\"/hints\">/hints</a></dt><dd>sends 103 Early Hints before the answer</dd>
<dt><a href=\"/trailers\">/trailers</a></dt><dd>sends a trailer field behind the body</dd>
</dl>
";

#[cfg(test)]
mod tests {
    use baton_http1::{FieldSlots, HeadLimits};

    use super::*;

    fn page(method: &str, target: &str) -> Page {
        let text = format!("{method} {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut slots = FieldSlots::new();
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default(), &mut slots);
        let head = head.expect("the head is valid").expect("the head is whole");
        Page::of(&head, text.as_bytes())
    }

    #[test]
    fn a_number_that_is_missing_malformed_or_out_of_range_is_told_the_range() {
        for target in ["/bytes", "/bytes/", "/bytes/-1", "/bytes/+1", "/bytes/1x", "/bytes/1/2"] {
            assert_eq!(page("GET", target), Page::BadNumber(0..=ANSWER_BYTES_MAX), "{target}");
        }
        for target in ["/bytes/10737418241", "/bytes/99999999999999999999999"] {
            assert_eq!(page("GET", target), Page::BadNumber(0..=ANSWER_BYTES_MAX), "{target}");
        }
        for target in ["/status/199", "/status/600", "/status/100", "/status/abc"] {
            assert_eq!(page("GET", target), Page::BadNumber(200..=599), "{target}");
        }
        for target in ["/spin", "/spin?us=", "/spin?us=1000001", "/spin?ms=1"] {
            assert_eq!(page("GET", target), Page::BadNumber(0..=1_000_000), "{target}");
        }
        assert_eq!(page("GET", "/delay/600001"), Page::BadNumber(0..=600_000));
    }

    #[test]
    fn a_path_that_no_page_has_is_not_found() {
        for target in ["//", "/byte", "/Bytes/1", "/upload/x", "/ws/1", "/%65cho", "/hints/a"] {
            assert_eq!(page("GET", target), Page::NotFound, "{target}");
        }
    }

    #[test]
    fn each_path_has_its_page() {
        let rows = [
            ("/", Page::Index),
            ("/?q", Page::Index),
            ("http://other/", Page::Index),
            ("http://other?q", Page::Index),
            ("/bytes/0", Page::Bytes(0)),
            ("/bytes/10737418240", Page::Bytes(ANSWER_BYTES_MAX)),
            ("/bytes/7?q=1", Page::Bytes(7)),
            ("/chunked/100", Page::Chunked(100)),
            ("/delay/600000", Page::Delay(DELAY_MAX)),
            ("/spin?us=1000000", Page::Spin(SPIN_MAX)),
            ("/spin?a=1&us=5&b", Page::Spin(Duration::from_micros(5))),
            ("/status/200", Page::Status(200)),
            ("/status/599", Page::Status(599)),
            ("/upload", Page::Upload),
            ("/early", Page::Early),
            ("/hints", Page::Hints),
            ("/trailers", Page::Trailers),
        ];
        for (target, expected) in rows {
            assert_eq!(page("POST", target), expected, "{target}");
        }
        assert_eq!(page("OPTIONS", "*"), Page::Server);
        assert!(matches!(page("GET", "/echo/any/path?q"), Page::Echo(_)));
        assert!(matches!(page("GET", "/ws"), Page::WebSocket(Err(_))));
    }
}
