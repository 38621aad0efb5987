//! `/ws`: a WebSocket that sends each message back (RFC 6455).

mod frame;
mod incoming;

use std::fmt;
use std::io;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use baton_http1::{MethodKind, RequestHead};
use baton_runtime::BufferSize;
use sha1::{Digest, Sha1};

use super::connection::{After, Connection};
use super::fault::Fault;
use super::limits::WEBSOCKET_IDLE;
use frame::{CloseCode, Opcode, append_frame_head};
use incoming::{Event, Incoming, Step};

/// Value of Sec-WebSocket-Accept.
pub(super) type AcceptKey = String;

/// What becomes of a handshake.
pub(super) type Handshake = Result<AcceptKey, HandshakeError>;

/// Why a handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeError {
    /// The method is not GET.
    Method,
    /// No upgrade to `websocket` is asked for.
    NotAsked,
    /// The version is not 13.
    Version,
    /// The key is not the base64 form of 16 bytes.
    Key,
}

/// The answer to a handshake (RFC 6455 §4.2.1).
pub(super) fn handshake(head: &RequestHead<'_, '_>) -> Handshake {
    if head.facts.method != MethodKind::Get {
        return Err(HandshakeError::Method);
    }
    let protocols = values(head, "upgrade").flat_map(|value| value.split(|&byte| byte == b','));
    let asked = |protocol: &[u8]| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket");
    if !head.facts.upgrade || !protocols.into_iter().any(asked) {
        return Err(HandshakeError::NotAsked);
    }
    if !values(head, "sec-websocket-version").eq([b"13".as_slice()]) {
        return Err(HandshakeError::Version);
    }
    let mut keys = values(head, "sec-websocket-key");
    let (Some(key), None) = (keys.next(), keys.next()) else { return Err(HandshakeError::Key) };
    match BASE64_STANDARD.decode(key) {
        Ok(bytes) if bytes.len() == 16 => Ok(accept_key(key)),
        _ => Err(HandshakeError::Key),
    }
}

fn values<'b>(head: &RequestHead<'_, 'b>, name: &str) -> impl Iterator<Item = &'b [u8]> {
    head.fields()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .map(|field| field.value)
}

fn accept_key(key: &[u8]) -> AcceptKey {
    // RFC 6455 §1.3.
    const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    BASE64_STANDARD.encode(digest)
}

impl HandshakeError {
    pub(super) fn status(self) -> u16 {
        match self {
            HandshakeError::Method => 405,
            HandshakeError::NotAsked | HandshakeError::Version => 426,
            HandshakeError::Key => 400,
        }
    }

    /// Field lines that the status asks for (RFC 9110 §15.5.6, §15.5.22; RFC 6455 §4.4).
    pub(super) fn fields(self) -> &'static str {
        match self {
            HandshakeError::Method => "Allow: GET\r\n",
            HandshakeError::NotAsked => "Upgrade: websocket\r\nConnection: upgrade\r\n",
            HandshakeError::Version => {
                "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
            }
            HandshakeError::Key => "",
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandshakeError::Method => "a WebSocket begins with GET",
            HandshakeError::NotAsked => "no upgrade to websocket is asked for",
            HandshakeError::Version => "the version of the WebSocket is not 13",
            HandshakeError::Key => "the WebSocket key is not 16 bytes in base64",
        })
    }
}

/// Sends messages back until either side closes.
pub(super) async fn run(connection: &mut Connection) -> Result<After, Fault> {
    let mut incoming = Incoming::default();
    loop {
        let Step { consumed, event } = match incoming.handle(connection.filled()) {
            Ok(step) => step,
            Err(code) => return close(connection, code).await,
        };
        match event {
            Event::NeedMore => {
                connection.consume(consumed);
                if connection.core().is_draining() {
                    return close(connection, CloseCode::GOING_AWAY).await;
                }
                connection.flush().await?;
                connection.allow_idle(WEBSOCKET_IDLE);
                match connection.fill(BufferSize::Head).await {
                    Ok(0) => return Ok(After::Close),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        return close(connection, CloseCode::GOING_AWAY).await;
                    }
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            Event::Message(opcode, data) => send(connection, opcode, data).await?,
            Event::Ping(data) => send(connection, Opcode::Pong, data).await?,
            Event::Pong => {}
            Event::Close(body) => {
                send(connection, Opcode::Close, body).await?;
                return Ok(After::Linger);
            }
        }
        connection.consume(consumed);
    }
}

async fn close(connection: &mut Connection, code: CloseCode) -> Result<After, Fault> {
    send(connection, Opcode::Close, &code.to_bytes()).await?;
    Ok(After::Linger)
}

/// Sends one whole frame.
async fn send(connection: &mut Connection, opcode: Opcode, data: &[u8]) -> Result<(), Fault> {
    append_frame_head(opcode, data.len(), connection.output());
    Ok(connection.send(&[data]).await?)
}

#[cfg(test)]
mod tests {
    use baton_http1::{FieldSlots, HeadLimits};

    use super::*;

    fn answer(request_line: &str, fields: &str) -> Handshake {
        let text = format!("{request_line}\r\nHost: h\r\n{fields}\r\n");
        let mut slots = FieldSlots::new();
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default(), &mut slots);
        handshake(&head.expect("the head is valid").expect("the head is whole"))
    }

    #[test]
    fn a_handshake_that_lacks_something_is_refused_with_what_it_lacks() {
        const UPGRADE: &str = "Connection: upgrade\r\nUpgrade: websocket\r\n";
        const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        const VERSION: &str = "Sec-WebSocket-Version: 13\r\n";
        let rows = [
            ("POST / HTTP/1.1", format!("{UPGRADE}{KEY}{VERSION}"), HandshakeError::Method),
            ("HEAD / HTTP/1.1", format!("{UPGRADE}{KEY}{VERSION}"), HandshakeError::Method),
            ("GET / HTTP/1.0", format!("{UPGRADE}{KEY}{VERSION}"), HandshakeError::NotAsked),
            ("GET / HTTP/1.1", format!("{KEY}{VERSION}"), HandshakeError::NotAsked),
            (
                "GET / HTTP/1.1",
                format!("Upgrade: websocket\r\n{KEY}{VERSION}"),
                HandshakeError::NotAsked,
            ),
            (
                "GET / HTTP/1.1",
                format!("Connection: upgrade\r\nUpgrade: irc\r\n{KEY}{VERSION}"),
                HandshakeError::NotAsked,
            ),
            ("GET / HTTP/1.1", format!("{UPGRADE}{KEY}"), HandshakeError::Version),
            (
                "GET / HTTP/1.1",
                format!("{UPGRADE}{KEY}Sec-WebSocket-Version: 8\r\n"),
                HandshakeError::Version,
            ),
            (
                "GET / HTTP/1.1",
                format!("{UPGRADE}{KEY}{VERSION}{VERSION}"),
                HandshakeError::Version,
            ),
            ("GET / HTTP/1.1", format!("{UPGRADE}{VERSION}"), HandshakeError::Key),
            ("GET / HTTP/1.1", format!("{UPGRADE}{VERSION}{KEY}{KEY}"), HandshakeError::Key),
            (
                "GET / HTTP/1.1",
                format!("{UPGRADE}{VERSION}Sec-WebSocket-Key: c2hvcnQ=\r\n"),
                HandshakeError::Key,
            ),
            (
                "GET / HTTP/1.1",
                format!("{UPGRADE}{VERSION}Sec-WebSocket-Key: not base64\r\n"),
                HandshakeError::Key,
            ),
        ];
        for (line, fields, expected) in rows {
            assert_eq!(answer(line, &fields), Err(expected), "{line}\n{fields}");
        }
    }

    #[test]
    fn the_key_of_the_specification_gets_the_answer_of_the_specification() {
        // RFC 6455 §1.3.
        let fields = "Connection: keep-alive, Upgrade\r\nUpgrade: irc, WebSocket\r\n\
                      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
        assert_eq!(answer("GET / HTTP/1.1", fields), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned()));
    }
}
