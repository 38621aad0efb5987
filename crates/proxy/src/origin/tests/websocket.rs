//! The WebSocket, from handshake to close.

use baton_runtime::Runtime;

use super::{Client, on_each_driver};

const HANDSHAKE: &str = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

const FINAL: u8 = 0x80;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// A client behind its handshake.
pub(super) fn open(origin: &Runtime) -> Client {
    let mut client = Client::connect(origin);
    client.send(HANDSHAKE);
    expect_switch(&mut client);
    client
}

fn expect_switch(client: &mut Client) {
    let answer = client.answer("GET");
    assert_eq!(answer.status, 101);
    assert_eq!(answer.field("upgrade"), Some("websocket"));
    assert_eq!(answer.field("connection"), Some("upgrade"));
    assert_eq!(answer.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
}

/// A masked frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x5a, 0, 0xff, 0x13];
    let mut bytes = head(first, 0x80, payload.len());
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

fn head(first: u8, masked: u8, length: usize) -> Vec<u8> {
    match length {
        0..=125 => vec![first, masked | length as u8],
        126..=0xffff => [&[first, masked | 126][..], &(length as u16).to_be_bytes()].concat(),
        _ => [&[first, masked | 127][..], &(length as u64).to_be_bytes()].concat(),
    }
}

/// Reads one frame, which must be whole, unmasked and of the shortest form.
fn expect_frame(client: &mut Client, opcode: u8, payload: &[u8]) {
    let expected = head(FINAL | opcode, 0, payload.len());
    assert_eq!(client.take(expected.len()), expected);
    assert!(client.take(payload.len()) == payload, "the payload differs");
}

/// Whether a text comes back, and not the close of an origin that goes away.
pub(super) fn echoes(client: &mut Client, text: &str) -> bool {
    client.send(frame(FINAL | TEXT, text.as_bytes()));
    let first = client.take(2);
    let payload = client.take(usize::from(first[1]));
    match first[0] & 0xf {
        TEXT => assert_eq!(payload, text.as_bytes()),
        opcode => assert_eq!((opcode, &payload[..]), (CLOSE, &[0x03, 0xe9][..])),
    }
    first[0] & 0xf == TEXT
}

fn expect_close(client: &mut Client, code: u16) {
    expect_frame(client, CLOSE, &code.to_be_bytes());
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_handshake_that_fails_says_what_it_lacks() {
    let rows = [
        ("Upgrade: websocket\r\n", "", 426, "upgrade", "websocket"),
        ("Connection: Upgrade\r\n", "", 426, "connection", "upgrade"),
        ("Version: 13", "Version: 12", 426, "sec-websocket-version", "13"),
        ("Key: d", "Key: ", 400, "content-type", "text/plain; charset=utf-8"),
        ("GET", "PUT", 405, "allow", "GET"),
    ];
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        for (present, instead, status, name, value) in rows {
            client.send(HANDSHAKE.replace(present, instead));
            let answer = client.answer("GET");
            assert_eq!(answer.status, status, "{present}");
            assert_eq!(answer.field(name), Some(value), "{present}");
        }
    });
}

#[test]
fn a_peer_that_breaks_the_protocol_is_closed_with_the_code_for_it() {
    let unmasked = head(FINAL | TEXT, 0, 1);
    let too_big = head(FINAL | BINARY, 0x80, 1_048_577);
    let rows: [(&[u8], u16); 8] = [
        (&[&unmasked[..], b"x"].concat(), 1002),
        (&frame(FINAL | 0x40 | TEXT, b"x"), 1002),
        (&frame(FINAL | 0x3, b"x"), 1002),
        (&frame(FINAL | CONTINUATION, b"x"), 1002),
        (&frame(PING, b"in parts"), 1002),
        (&frame(FINAL | CLOSE, &[0x03]), 1002),
        (&frame(FINAL | TEXT, b"\xc3\x28"), 1007),
        (&[&too_big[..], &[0; 4]].concat(), 1009),
    ];
    on_each_driver(|origin| {
        for (bytes, code) in rows {
            let mut client = open(origin);
            client.send(frame(FINAL | TEXT, b"before"));
            client.send(bytes);
            expect_frame(&mut client, TEXT, b"before");
            expect_close(&mut client, code);
        }
    });
}

#[test]
fn messages_of_every_length_form_come_back() {
    on_each_driver(|origin| {
        let mut client = open(origin);
        for length in [0, 1, 125, 126, 65_535, 65_536, 1_048_576] {
            let text = "x".repeat(length);
            client.send(frame(FINAL | TEXT, text.as_bytes()));
            expect_frame(&mut client, TEXT, text.as_bytes());
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
            client.send(frame(FINAL | BINARY, &bytes));
            expect_frame(&mut client, BINARY, &bytes);
        }
    });
}

#[test]
fn a_message_in_parts_comes_back_whole_and_pings_between_them_are_answered_at_once() {
    on_each_driver(|origin| {
        let mut client = open(origin);
        client.send(frame(TEXT, b"gr\xc3"));
        client.send(frame(FINAL | PING, b"are you there?"));
        expect_frame(&mut client, PONG, b"are you there?");
        client.send(frame(CONTINUATION, b"\xbc"));
        client.send(frame(FINAL | PONG, b"unasked"));
        client.send(frame(FINAL | CONTINUATION, b"n"));
        expect_frame(&mut client, TEXT, "gr\u{fc}n".as_bytes());
    });
}

#[test]
fn frames_that_come_byte_by_byte_or_all_at_once_mean_the_same() {
    let frames = [
        frame(FINAL | TEXT, b"one"),
        frame(FINAL | PING, b""),
        frame(FINAL | BINARY, &[9; 300]),
        frame(FINAL | CLOSE, b"\x03\xe8done"),
    ]
    .concat();
    let expect_all = |client: &mut Client| {
        expect_frame(client, TEXT, b"one");
        expect_frame(client, PONG, b"");
        expect_frame(client, BINARY, &[9; 300]);
        expect_close(client, 1000);
    };
    on_each_driver(|origin| {
        // Together with the handshake.
        let mut client = Client::connect(origin);
        client.send([HANDSHAKE.as_bytes(), &frames].concat());
        expect_switch(&mut client);
        expect_all(&mut client);

        let mut client = open(origin);
        for byte in &frames {
            client.send([*byte]);
        }
        expect_all(&mut client);
    });
}

#[test]
fn a_close_is_answered_in_kind() {
    on_each_driver(|origin| {
        for (payload, answer) in
            [(&b""[..], &b""[..]), (b"\x0f\xa0", b"\x0f\xa0"), (b"\x03\xe9bye", b"\x03\xe9")]
        {
            let mut client = open(origin);
            client.send(frame(FINAL | CLOSE, payload));
            expect_frame(&mut client, CLOSE, answer);
            assert_eq!(client.rest(), b"");
        }
    });
}

#[test]
fn a_peer_that_leaves_without_a_close_ends_the_connection() {
    on_each_driver(|origin| {
        let mut client = open(origin);
        client.send(&frame(FINAL | TEXT, b"cut")[..7]);
        client.end_sending();
        assert_eq!(client.rest(), b"");
    });
}
