use super::*;
use crate::fuzzing::{Verdict, response_verdict};

/// Every row runs whole, cut at every index and byte by byte; `response_verdict` panics if the
/// outcome differs.
fn verdict(input: &[u8]) -> Verdict {
    response_verdict(input, &HeadLimits::default(), MethodKind::Get)
}

fn refusal(input: &[u8]) -> HeadError {
    match verdict(input) {
        Verdict::Refused(error) => error,
        other => panic!("{:?} is {other:?}", String::from_utf8_lossy(input)),
    }
}

fn accepted<T>(input: &[u8], method: MethodKind, check: impl Fn(ResponseHead<'_, '_>) -> T) -> T {
    let verdict = response_verdict(input, &HeadLimits::default(), method);
    assert!(matches!(verdict, Verdict::Accepted { .. }), "{verdict:?}");
    let mut slots = FieldSlots::new();
    let head = ResponseHead::parse(input, &HeadLimits::default(), &mut slots, method);
    check(head.expect("no fault").expect("complete"))
}

#[test]
fn status_lines_off_the_grammar_are_refused() {
    let rows: [(&[u8], HeadError); 19] = [
        (b"HTTP/2.0 200 OK\r\n\r\n", HeadError::Version),
        (b"HTTP/1.2 200 OK\r\n\r\n", HeadError::Version),
        (b"http/1.1 200 OK\r\n\r\n", HeadError::Protocol),
        (b"ICY 200 OK\r\n\r\n", HeadError::Protocol),
        (b"hello", HeadError::Protocol),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", HeadError::Protocol),
        (b"HTTP/1.1  200 OK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1\t200 OK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 0200 OK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 099 X\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 20 OK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 2000 OK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 -20 OK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 200\tOK\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 200 O\x00K\r\n\r\n", HeadError::Status),
        (b"HTTP/1.1 200 O\rK\r\n\r\n", HeadError::LineEnd { line: 1 }),
        (b"HTTP/1.1 200 OK\n\n", HeadError::LineEnd { line: 1 }),
        (b"HTTP/1.1 200\n\r\n", HeadError::LineEnd { line: 1 }),
    ];
    for (input, error) in rows {
        assert_eq!(refusal(input), error, "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn field_lines_off_the_grammar_are_refused() {
    let rows: [(&[u8], HeadError); 9] = [
        (b"HTTP/1.1 200 OK\r\nBogus\r\n\r\n", HeadError::FieldName { line: 2 }),
        (b"HTTP/1.1 200 OK\r\nX : b\r\n\r\n", HeadError::FieldName { line: 2 }),
        (b"HTTP/1.1 200 OK\r\n X: b\r\n\r\n", HeadError::FieldName { line: 2 }),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", HeadError::FieldName { line: 3 }),
        (b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", HeadError::FieldValue { line: 2 }),
        (b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: x\r\n\r\n", HeadError::LineEnd { line: 2 }),
        (b"HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n", HeadError::LineEnd { line: 2 }),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n\n", HeadError::LineEnd { line: 3 }),
        (b"HTTP/1.1 200 OK\r\nContent_Length: 5\r\n\r\n", HeadError::FramingLookAlike),
    ];
    for (input, error) in rows {
        assert_eq!(refusal(input), error, "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn framing_that_could_be_read_in_two_ways_is_refused_even_without_a_body() {
    let rows = [
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", HeadError::FramingConflict),
        ("Content-Length: -5", HeadError::ContentLengthValue),
        ("Content-Length: 5, 5", HeadError::ContentLengthValue),
        ("Content-Length: 5\r\nContent-Length: 5", HeadError::ContentLengthCount { count: 2 }),
        ("Transfer-Encoding: cow", HeadError::TransferCodingUnknown),
        ("Transfer-Encoding: gzip, chunked", HeadError::TransferEncodingValue),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", {
            HeadError::TransferEncodingCount { count: 2 }
        }),
    ];
    for (fields, error) in rows {
        for status in [103, 200, 204, 304] {
            let head = format!("HTTP/1.1 {status} X\r\n{fields}\r\n\r\n");
            assert_eq!(refusal(head.as_bytes()), error, "{head}");
        }
    }
    assert_eq!(
        refusal(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        HeadError::TransferEncodingVersion
    );
}

#[test]
fn framing_depends_on_status_method_and_fields_in_the_order_of_the_rfc() {
    let framing = |status: u16, method: MethodKind, fields: &str| {
        let head = format!("HTTP/1.1 {status} X\r\n{fields}\r\n");
        accepted(head.as_bytes(), method, |head| (head.framing, head.declared_length))
    };
    let (get, head) = (MethodKind::Get, MethodKind::Head);
    let (length, chunked) = ("Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n");
    for status in [100, 103, 199, 204] {
        for fields in ["", length, chunked] {
            assert_eq!(framing(status, get, fields), (Framing::None, None), "{status} {fields}");
        }
    }
    assert_eq!(framing(304, get, ""), (Framing::None, None));
    assert_eq!(framing(304, get, length), (Framing::None, Some(7)));
    assert_eq!(framing(304, get, chunked), (Framing::None, None));
    assert_eq!(framing(200, head, ""), (Framing::None, None));
    assert_eq!(framing(200, head, length), (Framing::None, Some(7)));
    assert_eq!(framing(204, head, length), (Framing::None, None));
    assert_eq!(framing(200, get, length), (Framing::Length(7), None));
    assert_eq!(framing(500, get, chunked), (Framing::Chunked, None));
    assert_eq!(framing(200, get, ""), (Framing::UntilClose, None));
    assert_eq!(framing(999, get, ""), (Framing::UntilClose, None));
}

#[test]
fn the_reason_may_be_empty_missing_or_not_ascii() {
    let reason = |input: &[u8]| accepted(input, MethodKind::Get, |head| head.reason.to_vec());
    assert_eq!(reason(b"HTTP/1.1 200 \r\n\r\n"), b"");
    assert_eq!(reason(b"HTTP/1.1 200\r\n\r\n"), b"");
    assert_eq!(reason(b"HTTP/1.1 200 A b\tc\r\n\r\n"), b"A b\tc");
    assert_eq!(reason(b"HTTP/1.0 200 \xc3\xa9t\xe9\r\n\r\n"), b"\xc3\xa9t\xe9");
}

#[test]
fn connection_options_decide_whether_the_connection_persists() {
    let persistent = |version: &str, fields: &str| {
        let head = format!("HTTP/{version} 200 OK\r\n{fields}\r\n");
        accepted(head.as_bytes(), MethodKind::Get, |head| head.persistent)
    };
    assert!(persistent("1.1", ""));
    assert!(!persistent("1.1", "Connection: Close\r\n"));
    assert!(!persistent("1.0", ""));
    assert!(persistent("1.0", "Connection: keep-alive\r\n"));
    assert_eq!(refusal(b"HTTP/1.1 200 OK\r\nConnection: a b\r\n\r\n"), HeadError::ConnectionOption);
}

#[test]
fn an_interim_response_is_told_from_a_final_one() {
    let interim = |status: u16| {
        let head = format!("HTTP/1.1 {status} X\r\nUpgrade: x\r\n\r\n");
        accepted(head.as_bytes(), MethodKind::Get, |head| head.is_interim())
    };
    assert!(interim(100) && interim(103) && interim(199));
    assert!(!interim(101) && !interim(200) && !interim(204));
}

#[test]
fn a_head_beyond_its_limits_is_refused() {
    let limits = HeadLimits { head_bytes_max: 40, fields_max: 2, ..HeadLimits::default() };
    let verdict = |head: &str| response_verdict(head.as_bytes(), &limits, MethodKind::Get);
    let line = "HTTP/1.1 200 OK\r\n";
    let fields = |count: usize| format!("{line}{}\r\n", "A: b\r\n".repeat(count));
    assert!(matches!(verdict(&fields(2)), Verdict::Accepted { .. }));
    assert_eq!(verdict(&fields(3)), Verdict::Refused(HeadError::FieldCount { max: 2 }));
    let long = format!("{line}A: {}", "x".repeat(20));
    assert_eq!(verdict(&long), Verdict::Refused(HeadError::HeadBytes { max: 40 }));
}
