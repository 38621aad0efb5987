//! How long one core needs to parse a head and to encode it for the other side.
//!
//! Run with `cargo run --release -p baton-http1 --example parse_rate`. Each figure is the best of
//! several rounds; the machine should be otherwise idle.

use std::hint::black_box;
use std::time::{Duration, Instant};

use baton_http1::{
    Edits, FieldSlots, HeadLimits, MethodKind, RequestContext, RequestHead, ResponseHead,
    encode_request, encode_response, plan_response,
};

const REQUEST: &[u8] = b"GET /assets/app/main.3f9c2a.js?v=20240611 HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Referer: https://www.example.com/\r\n\
    Cookie: session=6f1d2c3b4a5968778695a4b3c2d1e0ff; theme=dark\r\n\
    Connection: keep-alive\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Server: origin\r\n\
    Date: Tue, 11 Jun 2024 09:12:44 GMT\r\n\
    Content-Type: text/html; charset=utf-8\r\n\
    Content-Length: 14532\r\n\
    Last-Modified: Mon, 10 Jun 2024 17:01:02 GMT\r\n\
    Cache-Control: public, max-age=3600\r\n\
    ETag: \"6f1d2c3b4a59-38c4\"\r\n\
    Connection: keep-alive\r\n\r\n";

const CONTEXT: RequestContext<'_> =
    RequestContext::new(b"203.0.113.7", "http", b"localhost", b"baton");

const DATE: &[u8] = b"Tue, 11 Jun 2024 09:12:45 GMT";

fn main() {
    let limits = HeadLimits::default();
    let mut out = Vec::with_capacity(4096);
    report("request  parse", REQUEST.len(), || {
        let mut slots = FieldSlots::new();
        black_box(RequestHead::parse(black_box(REQUEST), &limits, &mut slots))
            .expect("the request is valid");
    });
    report("request  parse + encode", REQUEST.len(), || {
        let mut slots = FieldSlots::new();
        let head = RequestHead::parse(black_box(REQUEST), &limits, &mut slots)
            .expect("the request is valid")
            .expect("the request is complete");
        out.clear();
        encode_request(&head, &CONTEXT, &mut out);
        black_box(&out);
    });
    let mut slots = FieldSlots::new();
    let facts = RequestHead::parse(REQUEST, &limits, &mut slots)
        .expect("the request is valid")
        .expect("the request is complete")
        .facts;
    report("response parse", RESPONSE.len(), || {
        let mut slots = FieldSlots::new();
        black_box(ResponseHead::parse(black_box(RESPONSE), &limits, &mut slots, MethodKind::Get))
            .expect("the response is valid");
    });
    report("response parse + plan + encode", RESPONSE.len(), || {
        let mut slots = FieldSlots::new();
        let head = ResponseHead::parse(black_box(RESPONSE), &limits, &mut slots, MethodKind::Get)
            .expect("the response is valid")
            .expect("the response is complete");
        let plan = plan_response(&facts, &head, false).expect("the response was asked for");
        out.clear();
        encode_response(&head, &plan, DATE, &Edits::NONE, &mut out);
        black_box(&out);
    });
}

/// Prints the time of one call of `work`, which handles `bytes` bytes of input.
fn report(name: &str, bytes: usize, mut work: impl FnMut()) {
    const ROUNDS: u32 = 400;
    const CALLS: u32 = 5_000;
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            work();
        }
        best = best.min(start.elapsed());
    }
    let nanoseconds = best.as_secs_f64() * 1e9 / f64::from(CALLS);
    println!("{name:32} {nanoseconds:7.1} ns  {:10.0} inputs/s  {bytes} bytes", 1e9 / nanoseconds);
}
