use super::*;
use crate::limits::{CHUNK_LINE_BYTES_MAX, CHUNK_SIZE_DIGITS_MAX, CHUNK_SIZE_MAX};

/// What a decoder makes of bytes that arrive in some way.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The body ended: its data, its trailer section, and the bytes behind it.
    Complete {
        data: String,
        trailers: String,
        behind: String,
    },
    NeedsMore {
        data: String,
    },
    Refused(BodyError),
}

fn complete(data: &str, trailers: &str, behind: &str) -> Outcome {
    Outcome::Complete { data: data.into(), trailers: trailers.into(), behind: behind.into() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn decode_parts(framing: Framing, parts: &[&[u8]]) -> Outcome {
    let mut decoder = BodyDecoder::new(framing);
    let (mut unread, mut data, mut trailers) = (Vec::new(), Vec::new(), Vec::new());
    for (index, part) in parts.iter().enumerate() {
        unread.extend_from_slice(part);
        loop {
            let piece = match decoder.decode(&unread) {
                Ok(piece) => piece,
                Err(error) => return Outcome::Refused(error),
            };
            let rest = unread.split_off(piece.consumed);
            match piece.kind {
                PieceKind::Data(range) => data.extend_from_slice(&unread[range]),
                PieceKind::Trailers(range) => trailers.extend_from_slice(&unread[range]),
                PieceKind::NeedMore => {
                    unread = rest;
                    break;
                }
                PieceKind::End => {
                    assert!(decoder.is_complete());
                    let behind = [&rest, parts[index + 1..].concat().as_slice()].concat();
                    return complete(&text(&data), &text(&trailers), &text(&behind));
                }
            }
            unread = rest;
        }
    }
    assert!(!decoder.is_complete());
    Outcome::NeedsMore { data: text(&data) }
}

/// The outcome for `input` whole; checks that every cut and single bytes lead to the same.
fn decode(framing: Framing, input: &[u8]) -> Outcome {
    let whole = decode_parts(framing, &[input]);
    for cut in 0..=input.len() {
        let (start, end) = input.split_at(cut);
        assert_eq!(decode_parts(framing, &[start, end]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(decode_parts(framing, &bytes), whole, "byte by byte");
    whole
}

fn refusal(input: &[u8]) -> BodyError {
    match decode(Framing::Chunked, input) {
        Outcome::Refused(error) => error,
        other => panic!("{:?} is {other:?}", text(input)),
    }
}

#[test]
fn chunk_sizes_off_the_grammar_are_refused() {
    let rows: [(&[u8], BodyError); 18] = [
        (b"G\r\nhello\r\n0\r\n\r\n", BodyError::ChunkSize),
        (b"-5\r\nhello\r\n0\r\n\r\n", BodyError::ChunkSize),
        (b"+5\r\nhello\r\n0\r\n\r\n", BodyError::ChunkSize),
        (b" 5\r\nhello\r\n0\r\n\r\n", BodyError::ChunkSize),
        (b"\r\nhello\r\n0\r\n\r\n", BodyError::ChunkSize),
        (b";a\r\nhello\r\n0\r\n\r\n", BodyError::ChunkSize),
        (b"\n5\r\nhello", BodyError::ChunkSize),
        (b"0x5\r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"0_5\r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"5these\r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"5h\r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"5\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"5\rhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"5 \r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"5\x00\r\nhello\r\n0\r\n\r\n", BodyError::ChunkExtension),
        (b"8000000000000000\r\nhello", BodyError::ChunkBytes { max: CHUNK_SIZE_MAX }),
        (b"00000000000000005\r\nhello", {
            BodyError::ChunkSizeDigits { max: CHUNK_SIZE_DIGITS_MAX }
        }),
        (b"10000000000000005\r\nhello", {
            BodyError::ChunkSizeDigits { max: CHUNK_SIZE_DIGITS_MAX }
        }),
    ];
    for (input, error) in rows {
        assert_eq!(refusal(input), error, "{:?}", text(input));
    }
}

#[test]
fn chunk_extensions_off_the_grammar_are_refused() {
    let lines: [&[u8]; 16] = [
        b"5;",
        b"5; ",
        b"5;;a",
        b"5;a;",
        b"5;a=",
        b"5;=b",
        b"5;a b",
        b"5;a=b c",
        b"5;a ",
        b"5;a=\"b",
        b"5;a=\"b\"c",
        b"5;a=\"\\",
        b"5;a=\x00",
        b"5;a=\"\x00\"",
        b"5;a=\"\\\x7f\"",
        b"5;a=\xff",
    ];
    for line in lines {
        let input = [line, b"\r\nhello\r\n0\r\n\r\n"].concat();
        assert_eq!(refusal(&input), BodyError::ChunkExtension, "{:?}", text(line));
    }
    let line_ends: [&[u8]; 5] = [
        b"5;a\nhello\r\n0\r\n\r\n",
        b"5;a\n0000000000\r\nhello\r\n0\r\n\r\n",
        b"5;a=b\r\rXXXX\r\n0\r\n\r\n",
        b"5;a=\"\r\n0\r\n\r\n\"\r\nhello\r\n0\r\n\r\n",
        b"5;a=\"\n\"\r\nhello\r\n0\r\n\r\n",
    ];
    for input in line_ends {
        assert_eq!(refusal(input), BodyError::ChunkExtension, "{:?}", text(input));
    }
}

#[test]
fn chunk_data_must_be_followed_by_its_line_end() {
    let rows: [&[u8]; 6] = [
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello!!\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhello\r0\r\n\r\n",
        b"4\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\r\n0\r\n\r\n",
    ];
    for input in rows {
        assert_eq!(refusal(input), BodyError::ChunkDataEnd, "{:?}", text(input));
    }
    // Too long a size takes the line end for data, and then misses its own.
    assert_eq!(refusal(b"7\r\nhello\r\n0\r\n\r\n"), BodyError::ChunkDataEnd);
}

#[test]
fn trailer_lines_off_the_grammar_are_refused() {
    let rows: [(&[u8], usize); 9] = [
        (b"0\r\nfoo\r\n\r\n", 1),
        (b"0\r\nXXGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
        (b"0\r\n\rX\r\n", 1),
        (b"0\r\n\n", 1),
        (b"0\r\nA: b\n\r\n", 1),
        (b"0\r\nA: b\r\n\n", 2),
        (b"0\r\nA: b\r\n c\r\n\r\n", 2),
        (b"0\r\nA: b\r\nC : d\r\n\r\n", 2),
        (b"0\r\nA: \x00\r\n\r\n", 1),
    ];
    for (input, line) in rows {
        assert_eq!(refusal(input), BodyError::TrailerLine { line }, "{:?}", text(input));
    }
}

#[test]
fn chunks_are_decoded_and_what_follows_is_left() {
    let rows: [(&[u8], Outcome); 10] = [
        (b"0\r\n\r\n", complete("", "", "")),
        (b"5\r\nhello\r\n0\r\n\r\n", complete("hello", "", "")),
        (b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", complete("hello world", "", "")),
        (b"A\r\n0123456789\r\n00\r\n\r\n", complete("0123456789", "", "")),
        (b"0000000000000005\r\nhello\r\n0\r\n\r\n", complete("hello", "", "")),
        (b"5;a;b=c\r\nhello\r\n0;d\r\n\r\n", complete("hello", "", "")),
        (b"5;a=\"b;\\\"c\xff\t\"\r\nhello\r\n0\r\n\r\n", complete("hello", "", "")),
        (b"5 ;\ta = b ; c\r\nhello\r\n0\r\n\r\n", complete("hello", "", "")),
        (b"2\r\n\r\n\r\n0\r\n\r\nGET /", complete("\r\n", "", "GET /")),
        (b"0\r\nA: b\r\nC:\r\n\r\nGET /", complete("", "A: b\r\nC:\r\n\r\n", "GET /")),
    ];
    for (input, outcome) in rows {
        assert_eq!(decode(Framing::Chunked, input), outcome, "{:?}", text(input));
    }
}

#[test]
fn chunk_lines_are_bounded() {
    let line = |bytes: usize| format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(bytes - 4));
    let outcome = decode(Framing::Chunked, line(CHUNK_LINE_BYTES_MAX).as_bytes());
    assert_eq!(outcome, complete("hello", "", ""));
    let error = BodyError::ChunkLineBytes { max: CHUNK_LINE_BYTES_MAX };
    assert_eq!(refusal(line(CHUNK_LINE_BYTES_MAX + 1).as_bytes()), error);
    // The bound does not wait for the end of the line.
    assert_eq!(refusal(&line(100_000).as_bytes()[..CHUNK_LINE_BYTES_MAX]), error);
}

#[test]
fn all_chunk_extensions_of_a_body_are_bounded_together() {
    let chunk = format!("1;{}\r\nx\r\n", "a".repeat(63));
    let fitting = CHUNK_EXTENSIONS_BYTES_MAX / 64;
    let body = format!("{}0\r\n\r\n", chunk.repeat(fitting));
    let outcome = decode_parts(Framing::Chunked, &[body.as_bytes()]);
    assert_eq!(outcome, complete(&"x".repeat(fitting), "", ""));
    let body = format!("{}0;a\r\n\r\n", chunk.repeat(fitting));
    let max = CHUNK_EXTENSIONS_BYTES_MAX;
    assert_eq!(
        decode_parts(Framing::Chunked, &[body.as_bytes()]),
        Outcome::Refused(BodyError::ChunkExtensionsBytes { max })
    );
}

#[test]
fn the_trailer_section_is_bounded() {
    let section = |bytes: usize| format!("0\r\nA: {}\r\n\r\n", "a".repeat(bytes - 7));
    let longest = section(TRAILER_BYTES_MAX);
    let outcome = decode_parts(Framing::Chunked, &[longest.as_bytes()]);
    assert_eq!(outcome, complete("", &longest[3..], ""));
    let longer = section(TRAILER_BYTES_MAX + 1);
    let error = Outcome::Refused(BodyError::TrailerBytes { max: TRAILER_BYTES_MAX });
    assert_eq!(decode_parts(Framing::Chunked, &[longer.as_bytes()]), error);
    // The bound does not wait for the end of a line.
    let unended = &longer.as_bytes()[..3 + TRAILER_BYTES_MAX];
    assert_eq!(decode_parts(Framing::Chunked, &unended.chunks(100).collect::<Vec<_>>()), error);

    let fields = |count: usize| format!("0\r\n{}\r\n", "A: b\r\n".repeat(count));
    let most = fields(TRAILER_FIELDS_MAX);
    let outcome = decode_parts(Framing::Chunked, &[most.as_bytes()]);
    assert_eq!(outcome, complete("", &most[3..], ""));
    assert_eq!(
        decode_parts(Framing::Chunked, &[fields(TRAILER_FIELDS_MAX + 1).as_bytes()]),
        Outcome::Refused(BodyError::TrailerCount { max: TRAILER_FIELDS_MAX })
    );
}

#[test]
fn a_body_of_known_length_ends_there() {
    assert_eq!(decode(Framing::None, b"GET /"), complete("", "", "GET /"));
    assert_eq!(decode(Framing::Length(0), b"GET /"), complete("", "", "GET /"));
    assert_eq!(decode(Framing::Length(5), b"helloGET /"), complete("hello", "", "GET /"));
    let cut = Outcome::NeedsMore { data: "hel".into() };
    assert_eq!(decode(Framing::Length(5), b"hel"), cut);
    assert_eq!(decode(Framing::Length(u64::MAX), b"hel"), cut);
}

#[test]
fn only_a_body_that_may_end_with_the_connection_does() {
    let finish = |framing: Framing, input: &[u8]| {
        let mut decoder = BodyDecoder::new(framing);
        let mut at = 0;
        while let Ok(piece) = decoder.decode(&input[at..]) {
            at += piece.consumed;
            if !matches!(piece.kind, PieceKind::Data(_)) {
                break;
            }
        }
        let finished = decoder.finish_at_eof();
        assert_eq!(finished.is_ok(), decoder.is_complete());
        finished
    };
    assert_eq!(finish(Framing::Length(5), b"hell"), Err(BodyError::Truncated));
    assert_eq!(finish(Framing::Chunked, b""), Err(BodyError::Truncated));
    assert_eq!(finish(Framing::Chunked, b"5\r\nhello"), Err(BodyError::Truncated));
    assert_eq!(finish(Framing::Chunked, b"5\r\nhello\r\n0\r\n"), Err(BodyError::Truncated));
    assert_eq!(finish(Framing::Length(5), b"hello"), Ok(()));
    assert_eq!(finish(Framing::Chunked, b"0\r\n\r\n"), Ok(()));
    assert_eq!(finish(Framing::UntilClose, b""), Ok(()));
    assert_eq!(finish(Framing::UntilClose, b"hello"), Ok(()));
}

#[test]
fn data_until_close_is_passed_on_as_it_comes() {
    let mut decoder = BodyDecoder::new(Framing::UntilClose);
    let data = Piece { consumed: 5, kind: PieceKind::Data(0..5) };
    assert_eq!(decoder.decode(b"hello"), Ok(data));
    assert_eq!(decoder.decode(b""), Ok(Piece { consumed: 0, kind: PieceKind::NeedMore }));
    assert_eq!(decoder.finish_at_eof(), Ok(()));
    assert_eq!(decoder.decode(b""), Ok(Piece { consumed: 0, kind: PieceKind::End }));
}

#[test]
fn one_call_skips_to_the_next_data() {
    let mut decoder = BodyDecoder::new(Framing::Chunked);
    let input = b"5\r\nhello\r\n3\r\nabc";
    let first = Piece { consumed: 8, kind: PieceKind::Data(3..8) };
    assert_eq!(decoder.decode(input), Ok(first));
    let second = Piece { consumed: 8, kind: PieceKind::Data(5..8) };
    assert_eq!(decoder.decode(&input[8..]), Ok(second));
    // The line end behind the data is done with; the incomplete line is to be kept.
    let more = Piece { consumed: 2, kind: PieceKind::NeedMore };
    assert_eq!(decoder.decode(b"\r\n1;a"), Ok(more));
}
