//! A client's frames to messages (RFC 6455 §5.4, §5.5). Pure.

use super::frame::{CONTROL_BYTES_MAX, CloseCode, FrameHead, Opcode, apply_mask};
use crate::origin::limits::WEBSOCKET_MESSAGE_BYTES_MAX;

/// Puts messages together.
///
/// Invariants: `message.len()` ≤ `WEBSOCKET_MESSAGE_BYTES_MAX`; `control.len()` ≤
/// `CONTROL_BYTES_MAX`; `done` ≤ `frame.length`.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// The frame under way, and how many of its payload bytes are here.
    frame: Option<(FrameHead, u64)>,
    /// Kind of the message under way: text or binary.
    kind: Option<Opcode>,
    message: Vec<u8>,
    control: Vec<u8>,
}

/// What some bytes led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step<'i> {
    /// Input bytes that are done with.
    pub(super) consumed: usize,
    pub(super) event: Event<'i>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'i> {
    /// All input is consumed but for the front of a frame's head.
    NeedMore,
    /// A whole message: `Text`, which is UTF-8, or `Binary`.
    Message(Opcode, &'i [u8]),
    /// A ping; the pong owes it these bytes.
    Ping(&'i [u8]),
    Pong,
    /// A close, with what the answer to it holds.
    Close(&'i [u8]),
}

impl Incoming {
    /// Takes `input`, unread bytes cut anywhere, up to the first event.
    ///
    /// Errors: the code to close with; nothing may be handled after it.
    pub(super) fn handle(&mut self, input: &[u8]) -> Result<Step<'_>, CloseCode> {
        if self.kind.is_none() {
            // The last message, if any, has been given out; its memory is not kept for the next.
            self.message = Vec::new();
        }
        let mut consumed = 0;
        loop {
            let (head, done) = match self.frame {
                Some(frame) => frame,
                None => {
                    let Some(head) = FrameHead::parse(&input[consumed..])? else {
                        return Ok(Step { consumed, event: Event::NeedMore });
                    };
                    self.begin(&head)?;
                    consumed += head.bytes;
                    (head, 0)
                }
            };
            let rest = &input[consumed..];
            let left = head.length - done;
            let count = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
            self.take(&head, done, &rest[..count]);
            consumed += count;
            let done = done + count as u64;
            if done < head.length {
                self.frame = Some((head, done));
                return Ok(Step { consumed, event: Event::NeedMore });
            }
            self.frame = None;
            if head.opcode.is_control() || head.is_final {
                let event = self.end(&head)?;
                return Ok(Step { consumed, event });
            }
        }
    }

    /// Checks a frame against what came before it.
    fn begin(&mut self, head: &FrameHead) -> Result<(), CloseCode> {
        match (head.opcode, self.kind) {
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => {
                debug_assert!(head.length <= CONTROL_BYTES_MAX);
                self.control.clear();
                return Ok(());
            }
            (Opcode::Continuation, Some(_)) => {}
            (Opcode::Text | Opcode::Binary, None) => self.kind = Some(head.opcode),
            (Opcode::Continuation, None) | (Opcode::Text | Opcode::Binary, Some(_)) => {
                return Err(CloseCode::PROTOCOL);
            }
        }
        let room = WEBSOCKET_MESSAGE_BYTES_MAX - self.message.len();
        if head.length > room as u64 { Err(CloseCode::TOO_BIG) } else { Ok(()) }
    }

    /// Unmasks and keeps payload bytes that start at `offset` of their frame.
    fn take(&mut self, head: &FrameHead, offset: u64, payload: &[u8]) {
        let is_control = head.opcode.is_control();
        let kept = if is_control { &mut self.control } else { &mut self.message };
        let start = kept.len();
        kept.extend_from_slice(payload);
        apply_mask(&mut kept[start..], head.mask, offset);
    }

    /// The event that the end of a control frame, or of a message's last frame, is.
    fn end(&mut self, head: &FrameHead) -> Result<Event<'_>, CloseCode> {
        match head.opcode {
            Opcode::Ping => Ok(Event::Ping(&self.control)),
            Opcode::Pong => Ok(Event::Pong),
            Opcode::Close => close_answer(&self.control).map(Event::Close),
            Opcode::Continuation | Opcode::Text | Opcode::Binary => {
                let kind = self.kind.take().expect("a message has begun before it ends");
                if kind == Opcode::Text && std::str::from_utf8(&self.message).is_err() {
                    return Err(CloseCode::INVALID_DATA);
                }
                Ok(Event::Message(kind, &self.message))
            }
        }
    }
}

/// The code that answers a close: the same (RFC 6455 §5.5.1).
fn close_answer(payload: &[u8]) -> Result<&[u8], CloseCode> {
    match payload {
        [] => Ok(payload),
        &[high, low, ref reason @ ..] => {
            if !CloseCode::may_be_sent(u16::from_be_bytes([high, low])) {
                return Err(CloseCode::PROTOCOL);
            }
            std::str::from_utf8(reason).map_err(|_| CloseCode::INVALID_DATA)?;
            Ok(&payload[..2])
        }
        _ => Err(CloseCode::PROTOCOL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client's frame: first byte, payload.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            length @ 0..=125 => bytes.push(0x80 | length as u8),
            length => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&u16::try_from(length).expect("short").to_be_bytes());
            }
        }
        let mask = [0x11, 0x22, 0x44, 0x88];
        bytes.extend_from_slice(&mask);
        bytes.extend_from_slice(payload);
        let start = bytes.len() - payload.len();
        apply_mask(&mut bytes[start..], mask, 0);
        bytes
    }

    /// All events of some pieces, as text, up to the first error.
    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let (mut incoming, mut seen, mut unread) = (Incoming::default(), Vec::new(), Vec::new());
        for piece in pieces {
            unread.extend_from_slice(piece);
            loop {
                let Step { consumed, event } = match incoming.handle(&unread) {
                    Ok(step) => step,
                    Err(code) => {
                        seen.push(format!("error {}", u16::from_be_bytes(code.to_bytes())));
                        return seen;
                    }
                };
                let is_starved = event == Event::NeedMore;
                if !is_starved {
                    seen.push(format!("{event:?}"));
                }
                unread.drain(..consumed);
                if is_starved {
                    break;
                }
            }
        }
        seen
    }

    /// Asserts the events of `bytes`: whole, byte by byte, and cut at every index.
    fn assert_events(bytes: &[u8], expected: &[String]) {
        assert_eq!(events(&[bytes]), expected, "whole");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(events(&single), expected, "byte by byte");
        for cut in 0..=bytes.len() {
            assert_eq!(events(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn frames_that_do_not_follow_each_other_are_errors() {
        type Frames<'f> = &'f [(u8, &'f [u8])];
        let rows: [(Frames<'_>, u16); 11] = [
            (&[(0x80, b"x")], 1002),                  // continuation of nothing
            (&[(0x01, b"x"), (0x81, b"y")], 1002),    // text within text
            (&[(0x02, b"x"), (0x82, b"y")], 1002),    // binary within binary
            (&[(0x81, b"\xff")], 1007),               // not UTF-8
            (&[(0x01, b"\xc3"), (0x80, b"x")], 1007), // not UTF-8 once put together
            (&[(0x88, b"x")], 1002),                  // half a close code
            (&[(0x88, b"\x03\xed")], 1002),           // 1005 does not travel
            (&[(0x88, b"\x03\xee")], 1002),           // nor does 1006
            (&[(0x88, b"\x00\x00")], 1002),
            (&[(0x88, b"\x13\x88")], 1002),     // 5000
            (&[(0x88, b"\x03\xe8\xff")], 1007), // the reason is not UTF-8
        ];
        for (frames, code) in rows {
            let bytes: Vec<u8> =
                frames.iter().flat_map(|(first, payload)| frame(*first, payload)).collect();
            assert_events(&bytes, &[format!("error {code}")]);
        }
    }

    #[test]
    fn a_message_over_the_limit_is_an_error_before_it_is_kept() {
        let half = frame(0x02, &[0; 40_000]);
        let mut incoming = Incoming::default();
        let mut frames = 0;
        let code = loop {
            let bytes = if frames == 0 { half.clone() } else { frame(0x00, &[0; 40_000]) };
            match incoming.handle(&bytes) {
                Ok(step) => assert_eq!(step.event, Event::NeedMore),
                Err(code) => break code,
            }
            frames += 1;
            assert!(incoming.message.len() <= WEBSOCKET_MESSAGE_BYTES_MAX);
        };
        assert_eq!(code, CloseCode::TOO_BIG);
        assert_eq!(frames, WEBSOCKET_MESSAGE_BYTES_MAX / 40_000);
    }

    #[test]
    fn messages_come_out_whole_with_control_frames_between_their_parts() {
        let bytes = [
            frame(0x81, b"one"),
            frame(0x01, b"tw\xc3"),
            frame(0x89, b"ping"),
            frame(0x00, b""),
            frame(0x8a, b"pong"),
            frame(0x80, b"\xa4"),
            frame(0x82, b""),
            frame(0x82, &[7; 200]),
            frame(0x88, b"\x03\xe8bye"),
        ]
        .concat();
        let expected = [
            Event::Message(Opcode::Text, b"one"),
            Event::Ping(b"ping"),
            Event::Pong,
            Event::Message(Opcode::Text, "tw\u{e4}".as_bytes()),
            Event::Message(Opcode::Binary, b""),
            Event::Message(Opcode::Binary, &[7; 200]),
            Event::Close(b"\x03\xe8"),
        ];
        assert_events(&bytes, &expected.map(|event| format!("{event:?}")));
    }

    #[test]
    fn a_close_without_a_code_is_answered_without_one() {
        assert_events(&frame(0x88, b""), &[format!("{:?}", Event::Close(b""))]);
    }
}
