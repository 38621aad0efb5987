use super::*;
use crate::fuzzing::{Verdict, request_verdict};

/// Every row runs whole, cut at every index and byte by byte; `request_verdict` panics if the
/// outcome differs.
fn verdict(input: &[u8]) -> Verdict {
    request_verdict(input, &HeadLimits::default())
}

fn refusal(input: &[u8]) -> HeadError {
    match verdict(input) {
        Verdict::Refused(error) => error,
        other => panic!("{:?} is {other:?}", String::from_utf8_lossy(input)),
    }
}

/// Parses a request that must be complete and acceptable, and hands it to `check`.
fn accepted<T>(input: &[u8], check: impl Fn(RequestHead<'_, '_>) -> T) -> T {
    assert!(
        matches!(verdict(input), Verdict::Accepted { .. }),
        "{:?} is {:?}",
        String::from_utf8_lossy(input),
        verdict(input)
    );
    let mut slots = FieldSlots::new();
    let head = RequestHead::parse(input, &HeadLimits::default(), &mut slots);
    check(head.expect("no fault").expect("complete"))
}

fn assert_all_refused(rows: &[(&[u8], HeadError)]) {
    for (input, error) in rows {
        assert_eq!(refusal(input), *error, "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn request_lines_off_the_grammar_are_refused() {
    assert_all_refused(&[
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
        (b"GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Method),
        (b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Method),
        (b"G\x00T / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Method),
        (b"GET: / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Method),
        (b"\xff\xfe\r\n", HeadError::Method),
        (b"BAD\r\n\r\n", HeadError::Method),
        (b"GET /\r\n", HeadError::Target),
        (b"GET /\nHTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
        (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Protocol),
        (b"GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
        (b"GET /a\x7fb HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
        (b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
        (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
        (b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
        (b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", HeadError::LineEnd { line: 1 }),
        (b"GET / HTTP/1.1\nHost: a\n\n", HeadError::LineEnd { line: 1 }),
        (b"GET / HTTP/1.1\rHost: a\r\r", HeadError::LineEnd { line: 1 }),
    ]);
}

#[test]
fn versions_other_than_1_0_and_1_1_are_refused() {
    assert_all_refused(&[
        (b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", HeadError::Version),
        (b"GET / HTTP/1.32\r\nHost: a\r\n\r\n", HeadError::Version),
        (b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", HeadError::Version),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", HeadError::Version),
        (b"GET / HTTP/3\r\nHost: a\r\n\r\n", HeadError::Version),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HeadError::Version),
        (b"GET / http/1.1\r\nHost: a\r\n\r\n", HeadError::Protocol),
        (b"GET / HTTP/1.1x\r\nHost: a\r\n\r\n", HeadError::Protocol),
        (b"GET / HTTP/\r\nHost: a\r\n\r\n", HeadError::Protocol),
        (b"GET / HTTPS/1.1\r\nHost: a\r\n\r\n", HeadError::Protocol),
        (b"GET / ICE/1.0\r\nHost: a\r\n\r\n", HeadError::Protocol),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\n", HeadError::Protocol),
        (b"GET / HTTP/1.11111111111111111111", HeadError::Protocol),
    ]);
}

#[test]
fn field_lines_off_the_grammar_are_refused() {
    assert_all_refused(&[
        (b"GET / HTTP/1.1\r\n X: b\r\nHost: a\r\n\r\n", HeadError::FieldName { line: 2 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", HeadError::FieldName { line: 4 }),
        (b"GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\tX: b\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", HeadError::FieldName { line: 2 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nfoo\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-\r\nEncoding: chunked\r\n\r\n", {
            HeadError::FieldName { line: 3 }
        }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX\x85: b\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX(a): b\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", HeadError::FieldValue { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x0bb\r\n\r\n", HeadError::FieldValue { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7fb\r\n\r\n", HeadError::FieldValue { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rY: b\r\n\r\n", HeadError::LineEnd { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n", HeadError::LineEnd { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\nX: a\r\n\r\n", HeadError::LineEnd { line: 2 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\n", HeadError::LineEnd { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\n\r\n", HeadError::LineEnd { line: 2 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\rX", HeadError::LineEnd { line: 3 }),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n", HeadError::LineEnd { line: 3 }),
    ]);
}

#[test]
fn one_empty_line_in_front_is_skipped_and_more_are_refused() {
    accepted(b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", |head| assert_eq!(head.bytes, 29));
    assert_all_refused(&[
        (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::LeadingLines),
        (b"\r\n\r\n\r\n\r\n", HeadError::LeadingLines),
        (b"\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::LeadingLines),
        // As many bytes as a strict one: what is too much in front is missing at the line's end.
        (b"\nGET / HTTP/1.1\nHost: a\r\n\r\n", HeadError::LineEnd { line: 1 }),
        (b"\nGET / HTTP/1.0\n\r\n", HeadError::LineEnd { line: 1 }),
        (b"\r\n\nGET / HTTP/1.1\nHost: a\r\n\r\n", HeadError::LeadingLines),
        (b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::LineEnd { line: 1 }),
        (b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::LineEnd { line: 1 }),
    ]);
}

#[test]
fn framing_that_could_be_read_in_two_ways_is_refused() {
    let with = |fields: &str| {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        refusal(head.as_bytes())
    };
    let rows = [
        ("Content-Length: 6\r\nTransfer-Encoding: chunked", HeadError::FramingConflict),
        ("Transfer-Encoding: chunked\r\nContent-Length: 6", HeadError::FramingConflict),
        ("Transfer-Encoding: \r\nContent-Length: 6", HeadError::FramingConflict),
        ("Transfer-Encoding: identity\r\nContent-Length: 6", HeadError::FramingConflict),
        ("Content-Length: 5\r\nContent-Length: 5", HeadError::ContentLengthCount { count: 2 }),
        ("Content-Length: 5\r\ncontent-length: 6", HeadError::ContentLengthCount { count: 2 }),
        ("Content-Length: \r\nContent-Length: 6", HeadError::ContentLengthCount { count: 2 }),
        ("Content-Length: 5, 5", HeadError::ContentLengthValue),
        ("Content-Length: 5,", HeadError::ContentLengthValue),
        ("Content-Length: ", HeadError::ContentLengthValue),
        ("Content-Length: +5", HeadError::ContentLengthValue),
        ("Content-Length: -5", HeadError::ContentLengthValue),
        ("Content-Length: -0", HeadError::ContentLengthValue),
        ("Content-Length: 0x5", HeadError::ContentLengthValue),
        ("Content-Length: 1_0", HeadError::ContentLengthValue),
        ("Content-Length: 5 5", HeadError::ContentLengthValue),
        ("Content-Length: 5.0", HeadError::ContentLengthValue),
        ("Content-Length: \"5\"", HeadError::ContentLengthValue),
        ("Content-Length: \u{ff15}", HeadError::ContentLengthValue),
        ("Content-Length: 1000000000000000000", HeadError::ContentLengthValue),
        ("Content-Length: 9223372036854775808", HeadError::ContentLengthValue),
        ("Transfer-Encoding: ", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: ,chunked", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: chunked,", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: chunked, chunked", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: chunked, identity", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: gzip, chunked", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: chunked;q=1", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: \"chunked\"", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: \u{a0}chunked", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: xchunked", HeadError::TransferCodingUnknown),
        ("Transfer-Encoding: identity", HeadError::TransferCodingUnknown),
        ("Transfer-Encoding: gzip", HeadError::TransferCodingUnknown),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", {
            HeadError::TransferEncodingCount { count: 2 }
        }),
        ("Transfer-Encoding: chunked\r\ntransfer-encoding: cow", {
            HeadError::TransferEncodingCount { count: 2 }
        }),
    ];
    for (fields, error) in rows {
        assert_eq!(with(fields), error, "{fields}");
    }
    assert_eq!(
        refusal(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        HeadError::TransferEncodingVersion
    );
}

#[test]
fn names_that_resemble_framing_fields_are_refused() {
    let names = [
        "Content_Length",
        "content--length",
        "ContentLength",
        "-Content-Length",
        "_Content-Length_",
        "Transfer_Encoding",
        "TransferEncoding",
        "transfer.encoding",
        "Transfer-Encoding-",
        "!Transfer-Encoding",
    ];
    for name in names {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{name}: 5\r\n\r\n");
        assert_eq!(refusal(head.as_bytes()), HeadError::FramingLookAlike, "{name}");
    }
    // A longer or shorter name frames nothing for anybody.
    for name in ["Content-Lengths", "X-Content-Length", "Content-Length0", "Transfer-Encodin"] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{name}: 5\r\n\r\n");
        accepted(head.as_bytes(), |head| assert_eq!(head.facts.framing, Framing::None));
    }
}

#[test]
fn framing_is_taken_from_the_one_field_that_is_there() {
    let with = |line: &str, fields: &str| {
        let head = format!("{line}\r\nHost: a\r\n{fields}\r\n");
        accepted(head.as_bytes(), |head| head.facts.framing)
    };
    assert_eq!(with("GET / HTTP/1.1", ""), Framing::None);
    assert_eq!(with("POST / HTTP/1.1", ""), Framing::None);
    assert_eq!(with("POST / HTTP/1.0", ""), Framing::None);
    assert_eq!(with("GET / HTTP/1.1", "Content-Length: 0\r\n"), Framing::Length(0));
    assert_eq!(with("HEAD / HTTP/1.1", "Content-Length: 36\r\n"), Framing::Length(36));
    assert_eq!(with("POST / HTTP/1.0", "content-LENGTH:\t5 \t\r\n"), Framing::Length(5));
    assert_eq!(with("POST / HTTP/1.1", "Content-Length: 005\r\n"), Framing::Length(5));
    let longest = 999_999_999_999_999_999;
    let field = format!("Content-Length: {longest}\r\n");
    assert_eq!(with("POST / HTTP/1.1", &field), Framing::Length(longest));
    assert_eq!(with("GET / HTTP/1.1", "Transfer-Encoding: chunked\r\n"), Framing::Chunked);
    assert_eq!(with("PUT / HTTP/1.1", "transfer-encoding:  CHUNKED\t\r\n"), Framing::Chunked);
}

#[test]
fn a_request_needs_one_valid_host() {
    let with = |hosts: &str| {
        let head = format!("GET / HTTP/1.1\r\n{hosts}\r\n");
        verdict(head.as_bytes())
    };
    assert_eq!(with(""), Verdict::Refused(HeadError::HostCount { count: 0 }));
    let twice = with("Host: a\r\nX: y\r\nhost: a\r\n");
    assert_eq!(twice, Verdict::Refused(HeadError::HostCount { count: 2 }));
    assert_eq!(
        refusal(b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
        HeadError::HostCount { count: 2 }
    );
    for host in ["", "a b", "a/b", "a#b", "a?b", "a, b", "a:x", "[::1", "u@a", "a:99999", "a\\b"] {
        let verdict = with(&format!("Host: {host}\r\n"));
        assert_eq!(verdict, Verdict::Refused(HeadError::HostValue), "{host}");
    }
    accepted(b"GET / HTTP/1.0\r\n\r\n", |head| assert_eq!(head.host, None));
    accepted(b"GET / HTTP/1.1\r\nHOST: [::1]:8080\r\n\r\n", |head| {
        assert_eq!(head.host, Some(b"[::1]:8080".as_slice()));
    });
}

#[test]
fn the_authority_of_the_target_replaces_host() {
    accepted(b"GET http://b:81/x?y HTTP/1.1\r\nHost: a\r\n\r\n", |head| {
        assert_eq!(head.host, Some(b"b:81".as_slice()));
        assert_eq!(head.target.path(), "/x");
        assert_eq!(head.target.query(), Some("y"));
    });
    assert_all_refused(&[
        (b"GET http://b/ HTTP/1.1\r\n\r\n", HeadError::HostCount { count: 0 }),
        (b"GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n", HeadError::HostValue),
        (b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetAuthority),
        (b"GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetAuthority),
        (b"GET http://b\\@c/ HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetAuthority),
        (b"GET http://b:x/ HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetAuthority),
        (b"GET http://a#b HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Target),
    ]);
}

#[test]
fn methods_that_a_reverse_proxy_does_not_serve_are_refused() {
    assert_eq!(refusal(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n").status(), 501);
    assert_eq!(refusal(b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n").status(), 405);
    let long = format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "A".repeat(METHOD_BYTES_MAX + 1));
    assert_eq!(refusal(long.as_bytes()), HeadError::MethodBytes { max: METHOD_BYTES_MAX });
    let longest = format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "A".repeat(METHOD_BYTES_MAX));
    accepted(longest.as_bytes(), |head| assert_eq!(head.method.kind(), MethodKind::Other));
    // Methods are case-sensitive: this is not GET.
    accepted(b"get / HTTP/1.1\r\nHost: a\r\n\r\n", |head| {
        assert_eq!((head.method.as_str(), head.method.kind()), ("get", MethodKind::Other));
    });
}

#[test]
fn a_head_at_its_limits_is_accepted_and_one_beyond_is_refused() {
    let limits = HeadLimits { head_bytes_max: 64, fields_max: 3, target_bytes_max: 8 };
    let status = |head: &str| match request_verdict(head.as_bytes(), &limits) {
        Verdict::Refused(error) => error.status(),
        Verdict::Accepted { .. } => 200,
        Verdict::Incomplete => 0,
    };
    assert_eq!(status("GET /2345678 HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    assert_eq!(status("GET /23456789 HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
    assert_eq!(status("GET /23456789"), 414);
    assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\nB: b\r\nC: c\r\n\r\n"), 200);
    assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\nB: b\r\nC: c\r\nD: d\r\n\r\n"), 431);
    // 33 bytes without the padding.
    let padded = |bytes: usize| {
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(bytes - 32))
    };
    assert_eq!(padded(64).len(), 64);
    assert_eq!(status(&padded(64)), 200);
    assert_eq!(status(&padded(65)), 431);
    assert_eq!(status(&padded(65)[..63]), 0);
    // Without a line end the limit is what ends the wait.
    assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: {}", "a".repeat(100))), 431);
}

#[test]
fn more_slots_than_exist_cannot_be_asked_for() {
    let limits = HeadLimits { fields_max: usize::MAX, ..HeadLimits::default() };
    let with =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count - 1));
    let full = with(crate::FIELDS_MAX);
    let Verdict::Accepted { encoded, .. } = request_verdict(full.as_bytes(), &limits) else {
        panic!("all slots may be used");
    };
    assert_eq!(memchr::memmem::find_iter(&encoded, "X: y\r\n").count(), crate::FIELDS_MAX - 1);
    let refused = request_verdict(with(crate::FIELDS_MAX + 1).as_bytes(), &limits);
    let max = crate::FIELDS_MAX;
    assert_eq!(refused, Verdict::Refused(HeadError::FieldCount { max }));
}

#[test]
fn connection_options_decide_whether_the_connection_persists() {
    let persistent = |version: &str, connection: &str| {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
        accepted(head.as_bytes(), |head| head.facts.persistent)
    };
    assert!(persistent("1.1", ""));
    assert!(persistent("1.1", "Connection: keep-alive\r\n"));
    assert!(persistent("1.1", "Connection: X\r\n"));
    assert!(!persistent("1.1", "Connection: close\r\n"));
    assert!(!persistent("1.1", "Connection: keep-alive, ClOsE\r\n"));
    assert!(!persistent("1.1", "Connection:\r\nConnection: ,x ,close,\r\n"));
    assert!(!persistent("1.0", ""));
    assert!(persistent("1.0", "Connection: Keep-Alive\r\n"));
    assert!(!persistent("1.0", "Connection: keep-alive\r\nConnection: close\r\n"));
    // Only Connection counts.
    assert!(!persistent("1.0", "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"));
}

#[test]
fn connection_options_are_bounded_tokens() {
    let with = |value: &str| {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {value}\r\n\r\n");
        verdict(head.as_bytes())
    };
    for value in ["a b", "\"close\"", "close;x", "(a)", "@"] {
        assert_eq!(with(value), Verdict::Refused(HeadError::ConnectionOption), "{value}");
    }
    let max = crate::limits::CONNECTION_OPTIONS_MAX;
    let options = |count: usize| with(&vec!["x"; count].join(","));
    assert!(matches!(options(max), Verdict::Accepted { .. }));
    assert_eq!(options(max + 1), Verdict::Refused(HeadError::ConnectionOptionCount { max }));
}

#[test]
fn only_100_continue_may_be_expected() {
    let with = |line: &str, fields: &str| {
        let head = format!("{line}\r\nHost: a\r\n{fields}\r\n");
        match verdict(head.as_bytes()) {
            Verdict::Refused(error) => Err(error.status()),
            _ => Ok(accepted(head.as_bytes(), |head| head.facts.expects_continue)),
        }
    };
    let post = "POST / HTTP/1.1";
    assert_eq!(with(post, "Expect: x\r\nContent-Length: 5\r\n"), Err(417));
    assert_eq!(with(post, "Expect: \r\nContent-Length: 5\r\n"), Err(417));
    assert_eq!(with(post, "Expect: y 100-continue\r\nContent-Length: 5\r\n"), Err(417));
    let twice = "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5\r\n";
    assert_eq!(with(post, twice), Err(417));
    assert_eq!(with(post, "Expect: 100-Continue\r\nContent-Length: 5\r\n"), Ok(true));
    assert_eq!(with(post, "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"), Ok(true));
    // Nothing to wait with, or nobody who understands a 100.
    assert_eq!(with(post, "Expect: 100-continue\r\n"), Ok(false));
    assert_eq!(with(post, "Expect: 100-continue\r\nContent-Length: 0\r\n"), Ok(false));
    assert_eq!(with("POST / HTTP/1.0", "Expect: 100-continue\r\nContent-Length: 5\r\n"), Ok(false));
    assert_eq!(with(post, "Content-Length: 5\r\n"), Ok(false));
}

#[test]
fn an_upgrade_is_passed_on_only_if_it_leads_away_from_http() {
    let with = |line: &str, fields: &str| {
        let head = format!("{line}\r\nHost: a\r\n{fields}\r\n");
        accepted(head.as_bytes(), |head| head.facts.upgrade)
    };
    let get = "GET / HTTP/1.1";
    assert!(!with(get, "Upgrade: websocket\r\n"), "not named in Connection");
    assert!(!with(get, "Connection: upgrade\r\n"), "no protocol");
    assert!(!with(get, "Connection: upgrade\r\nUpgrade: h2c\r\n"));
    assert!(!with(get, "Connection: upgrade\r\nUpgrade: H2C, HTTP/2.0, http/3\r\n"));
    assert!(!with(get, "Connection: upgrade\r\nUpgrade: web socket, /1, a/, a/b/c\r\n"));
    assert!(!with("GET / HTTP/1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n"));
    let body = "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n";
    assert!(!with(get, body), "a request with a body is not an upgrade");
    assert!(with(get, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    assert!(with(get, "Connection: x, UPGRADE\r\nUpgrade: h2c\r\nUpgrade: foo/1\r\n"));
}

#[test]
fn trailers_are_accepted_by_http_1_1_clients_that_say_so() {
    let with = |version: &str, fields: &str| {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        accepted(head.as_bytes(), |head| head.facts.accepts_trailers)
    };
    assert!(!with("1.1", ""));
    assert!(!with("1.1", "TE: gzip, deflate;q=0.5\r\n"));
    assert!(!with("1.0", "TE: trailers\r\nConnection: TE\r\n"));
    assert!(with("1.1", "TE: trailers\r\nConnection: TE\r\n"));
    assert!(with("1.1", "te: gzip;q=0.5, Trailers\r\n"));
}

#[test]
fn max_forwards_counts_for_options_only() {
    let with = |method: &str, fields: &str| {
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        match verdict(head.as_bytes()) {
            Verdict::Refused(error) => Err(error),
            _ => Ok(accepted(head.as_bytes(), |head| head.facts.max_forwards)),
        }
    };
    for value in ["", "x", "-1", "1, 2", "1 2", "0x1"] {
        let fields = format!("Max-Forwards: {value}\r\n");
        assert_eq!(with("OPTIONS", &fields), Err(HeadError::MaxForwards), "{value}");
    }
    let twice = "Max-Forwards: 1\r\nMax-Forwards: 1\r\n";
    assert_eq!(with("OPTIONS", twice), Err(HeadError::MaxForwards));
    assert_eq!(with("OPTIONS", ""), Ok(None));
    assert_eq!(with("OPTIONS", "Max-Forwards: 0\r\n"), Ok(Some(0)));
    assert_eq!(with("OPTIONS", "max-forwards: 10\r\n"), Ok(Some(10)));
    assert_eq!(with("OPTIONS", "Max-Forwards: 4294967294\r\n"), Ok(Some(u32::MAX - 1)));
    let huge = "Max-Forwards: 99999999999999999999999\r\n";
    assert_eq!(with("OPTIONS", huge), Ok(Some(u32::MAX)));
    assert_eq!(with("GET", "Max-Forwards: x\r\n"), Ok(None));
}

#[test]
fn fields_are_given_as_received() {
    accepted(
        b"GET / HTTP/1.1\r\nhOst: a\r\nX-A:  b \r\nx-a: c\r\nProxy: d\r\nE:\r\n\r\n",
        |head| {
            assert_eq!(head.field("x-a"), Some(b"b".as_slice()));
            assert_eq!(head.field("proxy"), Some(b"d".as_slice()));
            assert_eq!(head.field("x-b"), None);
            let names: Vec<&str> = head.fields().map(|field| field.name).collect();
            assert_eq!(names, ["hOst", "X-A", "x-a", "Proxy", "E"]);
            assert_eq!(head.fields().last().map(|field| field.value), Some(b"".as_slice()));
        },
    );
}

#[test]
fn bytes_behind_the_head_are_not_looked_at() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let input = [head.as_slice(), b"\x00\n\rGET\r\n\r\n"].concat();
    accepted(&input, |parsed| assert_eq!(parsed.bytes, head.len()));
}

#[test]
fn a_refused_head_still_tells_whether_it_was_a_head_request() {
    assert_eq!(MethodKind::of_refused(b"HEAD / HTTP/9.9\r\n"), MethodKind::Head);
    assert_eq!(MethodKind::of_refused(b"\r\nHEAD \x00"), MethodKind::Head);
    assert_eq!(MethodKind::of_refused(b"HEAD"), MethodKind::Other);
    assert_eq!(MethodKind::of_refused(b"head /"), MethodKind::Other);
    assert_eq!(MethodKind::of_refused(b""), MethodKind::Other);
}
