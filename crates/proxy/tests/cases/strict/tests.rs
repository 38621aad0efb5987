//! The strict parsers catch each violation they know, and find none in a good message.
//!
//! Each bad message is a good one with one change. The good ones are read whole and cut at every
//! byte: a part of a good message must not look like a bad one.

use super::Violation::*;
use super::{Asked, Violation, request, responses};

const POST: &str = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-Y: z\r\n\r\nhello";
const CHUNKED: &str = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                       5 ;x=\"y\"\r\nhello\r\n0\r\nX-T: 1\r\n\r\n";
const GET_10: &str = "GET /a HTTP/1.0\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Y: z\r\n\r\nok";
const ANSWER_CHUNKED: &str = "HTTP/1.1 103 \r\nLink: <a>\r\n\r\nHTTP/1.1 200 \r\n\
                              Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

/// A good request, what is replaced in it by what, and what is wrong with the result.
const BAD_REQUESTS: &[(&str, &str, &str, &[Violation])] = &[
    (POST, "z", "\0", &[Nul]),
    (POST, "z", "a\rb", &[BareCr]),
    (POST, "z\r\n\r\n", "z\r\r\n\r\n", &[BareCr]),
    (POST, "a\r\nContent", "a\nContent", &[BareLf]),
    (POST, "z\r\n\r\n", "z\n\r\n", &[BareLf]),
    (POST, "z\r\n\r\n", "z\r\n\n", &[BareLf]),
    (POST, "X-Y: z", "X-Y: z\r\n w", &[ObsFold]),
    (POST, "X-Y: z", "X-Y: z\r\n\tw", &[ObsFold]),
    (POST, "X-Y: z", "X-Y", &[NoColon]),
    (POST, "X-Y:", "X-Y :", &[BadName]),
    (POST, "X-Y:", "X(Y):", &[BadName]),
    (POST, "X-Y:", ":", &[BadName]),
    (POST, "POST /a", "POST  /a", &[BadRequestLine]),
    (POST, "POST /a", "PO(ST /a", &[BadRequestLine]),
    (POST, "/a HTTP", "/a b HTTP", &[BadRequestLine]),
    (POST, "/a HTTP", "/a\t HTTP", &[BadRequestLine]),
    (POST, "/a HTTP", "/\x7f HTTP", &[BadRequestLine]),
    (POST, "HTTP/1.1", "HTTP/1.2", &[BadRequestLine]),
    (POST, "HTTP/1.1", "HTTP/1.1 ", &[BadRequestLine]),
    (POST, "HTTP/1.1", "http/1.1", &[BadRequestLine]),
    (POST, " /a HTTP/1.1", " /a", &[BadRequestLine]),
    (POST, "Host: a\r\n", "", &[NoHost]),
    (POST, "Host: a", "Host: a\r\nhost: a", &[TwoHosts]),
    (POST, "X-Y: z", "Transfer-Encoding: chunked", &[ClTeBoth]),
    (POST, "X-Y: z", "content-length: 5", &[MultiCl]),
    (POST, ": 5", ": +5", &[BadCl]),
    (POST, ": 5", ": 5, 5", &[BadCl]),
    (POST, ": 5", ": 0x5", &[BadCl]),
    (POST, ": 5", ":", &[BadCl]),
    (POST, ": 5", ": 99999999999999999999", &[BadCl]),
    (CHUNKED, ": chunked", ": gzip", &[BadTe]),
    (CHUNKED, ": chunked", ": chunked, gzip", &[BadTe]),
    (CHUNKED, ": chunked", ": chunked, chunked", &[BadTe]),
    (CHUNKED, ": chunked", ": , chunked", &[BadTe]),
    (CHUNKED, ": chunked", ": \x0bchunked", &[BadTe]),
    (CHUNKED, ": chunked", ": gzip\r\nTransfer-Encoding: chunked", &[BadTe]),
    (CHUNKED, "HTTP/1.1", "HTTP/1.0", &[TeIn10]),
    (CHUNKED, "5 ;", "-5 ;", &[BadChunk]),
    (CHUNKED, "5 ;", "0x5 ;", &[BadChunk]),
    (CHUNKED, "5 ;", "5 x;", &[BadChunk]),
    (CHUNKED, "5 ;", ";", &[BadChunk]),
    (CHUNKED, "5 ;x=\"y\"", "5 ", &[BadChunk]),
    (CHUNKED, "5 ;", "10000000000000005 ;", &[BadChunk]),
    (CHUNKED, "5 ;", "FFFFFFFFFFFFFFFF ;", &[BadChunk]),
    (CHUNKED, "\"y\"", "\0", &[BadChunk]),
    (CHUNKED, "\"y\"\r\n", "\"y\"\n", &[BadChunk]),
    (CHUNKED, "hello", "hell", &[BadChunk]),
    (CHUNKED, "hello", "hello!", &[BadChunk]),
    (CHUNKED, "X-T: 1", "X-T", &[BadChunk]),
    (CHUNKED, "X-T:", "X T:", &[BadChunk]),
    (CHUNKED, "X-T: 1", "X-T: 1\r2", &[BadChunk]),
    (CHUNKED, "1\r\n\r\n", "1\n\r\n", &[BadChunk]),
    (POST, "/a", "/smuggled?", &[Canary]),
];

/// As above, of answers.
const BAD_ANSWERS: &[(&str, &str, &str, &[Violation])] = &[
    (ANSWER, "z", "\0", &[Nul]),
    (ANSWER, "z", "a\rSet-Cookie: b", &[BareCr]),
    (ANSWER, "z\r\n\r\n", "z\n\r\n", &[BareLf]),
    (ANSWER, "X-Y: z", "X-Y: z\r\n w", &[ObsFold]),
    (ANSWER, "X-Y: z", "X-Y", &[NoColon]),
    (ANSWER, "X-Y:", "X-Y :", &[BadName]),
    (ANSWER, "200 OK", "20 OK", &[BadStatusLine]),
    (ANSWER, "200 OK", "2000 OK", &[BadStatusLine]),
    (ANSWER, "200 OK", "200", &[BadStatusLine]),
    (ANSWER, "1.1 ", "1.1", &[BadStatusLine]),
    (ANSWER, "1.1", "1.10", &[BadStatusLine]),
    (ANSWER, "1.1", "1.2", &[Version]),
    (ANSWER, "HTTP/1.1", "HTTP/2.0", &[Garbage]),
    (ANSWER, "HTTP/1.1", "ICY", &[Garbage]),
    (ANSWER, "ok", "ok\r\n", &[Garbage]),
    (ANSWER, "ok", "oks", &[Garbage]),
    (ANSWER, "200 OK", "204 No Content", &[Garbage]),
    (ANSWER, "X-Y: z", "Transfer-Encoding: chunked", &[ClTeBoth]),
    (ANSWER, "X-Y: z", "Content-Length: 2", &[MultiCl]),
    (ANSWER, ": 2", ": -2", &[BadCl]),
    (ANSWER_CHUNKED, ": chunked", ": cow", &[BadTe]),
    (ANSWER_CHUNKED, "HTTP/1.1 200", "HTTP/1.0 200", &[TeIn10]),
    (ANSWER_CHUNKED, "2\r\nok", "3\r\nok", &[BadChunk]),
    (ANSWER_CHUNKED, "\r\n0\r\n\r\n", "\r\n0\r\n\r\n0\r\n\r\n", &[Garbage]),
];

#[test]
fn each_violation_of_a_request_is_found() {
    for &(good, from, to, wanted) in BAD_REQUESTS {
        let bad = changed(good, from, to);
        let found = request(bad.as_bytes()).expect("its head is complete");
        assert_eq!(found.violations, wanted, "{bad:?}");
    }
}

#[test]
fn each_violation_of_an_answer_is_found() {
    for &(good, from, to, wanted) in BAD_ANSWERS {
        let bad = changed(good, from, to);
        let found = responses(bad.as_bytes(), true, Asked::PLAIN);
        assert_eq!(found.violations, wanted, "{bad:?}");
    }
}

#[test]
fn chunks_and_interim_responses_are_not_for_clients_of_http_10() {
    let versions = ["1.0".to_owned()];
    let asked = Asked { methods: &[], versions: &versions };
    let found = responses(ANSWER_CHUNKED.as_bytes(), true, asked);
    assert_eq!(found.violations, [InterimTo10, TeIn10]);
}

#[test]
fn a_body_where_the_method_has_none_is_garbage() {
    let methods = ["HEAD".to_owned()];
    let found = responses(ANSWER.as_bytes(), true, Asked { methods: &methods, versions: &[] });
    assert_eq!(found.violations, [Garbage]);
}

#[test]
fn a_good_request_has_no_violation_and_is_complete_at_its_last_byte() {
    for good in [POST, CHUNKED, GET_10] {
        for cut in 0..good.len() {
            if let Some(part) = request(&good.as_bytes()[..cut]) {
                assert!(part.violations.is_empty() && !part.complete, "{cut} of {good:?}");
            }
        }
        let followed = format!("{good}GET / HTTP/1.1\r\n");
        let whole = request(followed.as_bytes()).expect("its head is complete");
        assert!(whole.violations.is_empty() && whole.complete, "{good:?}");
        assert_eq!(whole.used, good.len());
    }
    let chunked = request(CHUNKED.as_bytes()).expect("its head is complete");
    assert_eq!(chunked.body, b"hello");
    assert_eq!(chunked.trailers, [("x-t".to_owned(), "1".to_owned())]);
}

#[test]
fn good_answers_have_no_violation_and_are_complete_at_their_last_byte() {
    for good in [ANSWER, ANSWER_CHUNKED] {
        for cut in 0..good.len() {
            let part = responses(&good.as_bytes()[..cut], true, Asked::PLAIN);
            assert!(part.violations.is_empty() && part.complete() == 0, "{cut} of {good:?}");
        }
        let twice = good.repeat(2);
        let both = responses(twice.as_bytes(), false, Asked::PLAIN);
        assert!(both.violations.is_empty(), "{good:?}");
        assert_eq!(both.complete(), 2);
        assert!(both.finals.iter().all(|one| one.status == 200 && one.body == b"ok"));
    }
    let interim = responses(ANSWER_CHUNKED.as_bytes(), false, Asked::PLAIN).interim;
    assert_eq!(interim, [103]);
}

#[test]
fn an_answer_without_a_length_is_complete_only_when_the_connection_ends_in_order() {
    let answer = b"HTTP/1.1 200 OK\r\n\r\nok";
    assert_eq!(responses(answer, false, Asked::PLAIN).complete(), 0);
    assert_eq!(responses(answer, true, Asked::PLAIN).complete(), 1);
}

#[test]
fn what_follows_a_switch_of_protocols_is_no_http() {
    let found = responses(b"HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n\0\r\n", false, Asked::PLAIN);
    assert!(found.violations.is_empty());
    assert_eq!(found.finals[0].tunnel, b"\0\r\n");
}

fn changed(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from:?} is not in {good:?}");
    good.replacen(from, to, 1)
}
