//! WebSocket frames (RFC 6455 §5.2). Pure.

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0x0 => Opcode::Continuation,
            0x1 => Opcode::Text,
            0x2 => Opcode::Binary,
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xa => Opcode::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0x0,
            Opcode::Text => 0x1,
            Opcode::Binary => 0x2,
            Opcode::Close => 0x8,
            Opcode::Ping => 0x9,
            Opcode::Pong => 0xa,
        }
    }

    /// Whether it stands between the frames of a message.
    pub(super) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// Why a connection is closed (RFC 6455 §7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CloseCode(u16);

impl CloseCode {
    /// The origin stops, or nothing came for long.
    pub(super) const GOING_AWAY: CloseCode = CloseCode(1001);
    /// The peer broke the protocol.
    pub(super) const PROTOCOL: CloseCode = CloseCode(1002);
    /// What should be text is not UTF-8.
    pub(super) const INVALID_DATA: CloseCode = CloseCode(1007);
    /// A message is over the limit.
    pub(super) const TOO_BIG: CloseCode = CloseCode(1009);

    /// Whether a peer may send `code`: those of the specification that travel, the ones
    /// registered later, and the private ones (RFC 6455 §7.4.2).
    pub(super) fn may_be_sent(code: u16) -> bool {
        matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }

    pub(super) fn to_bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }
}

/// Most payload of a control frame, bytes (RFC 6455 §5.5).
pub(super) const CONTROL_BYTES_MAX: u64 = 125;

/// The head of a client's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    /// Whether the message ends with this frame.
    pub(super) is_final: bool,
    pub(super) opcode: Opcode,
    pub(super) mask: [u8; 4],
    /// Payload bytes.
    pub(super) length: u64,
    /// Bytes of the head itself.
    pub(super) bytes: usize,
}

impl FrameHead {
    /// Parses the head at the start of `input`; `None` if more bytes are needed.
    ///
    /// Errors: `PROTOCOL` for reserved bits and opcodes, a frame without mask, a length that is
    /// not in its shortest form or over 63 bits, and a control frame that is long or in parts.
    pub(super) fn parse(input: &[u8]) -> Result<Option<FrameHead>, CloseCode> {
        let &[first, second, ref rest @ ..] = input else { return Ok(None) };
        let opcode = Opcode::from_bits(first & 0x0f).ok_or(CloseCode::PROTOCOL)?;
        let is_final = first & 0x80 != 0;
        let (is_plain, is_masked) = (first & 0x70 == 0, second & 0x80 != 0);
        let short = u64::from(second & 0x7f);
        let is_sound_control = is_final && short <= CONTROL_BYTES_MAX;
        if !is_plain || !is_masked || (opcode.is_control() && !is_sound_control) {
            return Err(CloseCode::PROTOCOL);
        }
        let (length_bytes, least) = match short {
            126 => (2, 126),
            127 => (8, 1 << 16),
            _ => (0, 0),
        };
        let (Some(extended), Some(mask)) =
            (rest.get(..length_bytes), rest.get(length_bytes..length_bytes + 4))
        else {
            return Ok(None);
        };
        let extended = extended.iter().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
        let length = if length_bytes == 0 { short } else { extended };
        if length < least || length >> 63 != 0 {
            return Err(CloseCode::PROTOCOL);
        }
        let mask = [mask[0], mask[1], mask[2], mask[3]];
        let bytes = 2 + length_bytes + mask.len();
        Ok(Some(FrameHead { is_final, opcode, mask, length, bytes }))
    }
}

/// Appends the head of a whole, unmasked frame with `length` payload bytes.
pub(super) fn append_frame_head(opcode: Opcode, length: usize, out: &mut Vec<u8>) {
    out.push(0x80 | opcode.bits());
    if let Ok(short @ 0..=125) = u8::try_from(length) {
        out.push(short);
    } else if let Ok(medium) = u16::try_from(length) {
        out.push(126);
        out.extend_from_slice(&medium.to_be_bytes());
    } else {
        out.push(127);
        out.extend_from_slice(&(length as u64).to_be_bytes());
    }
}

/// Masks or unmasks `payload`, whose first byte is at `offset` of its frame (RFC 6455 §5.3).
pub(super) fn apply_mask(payload: &mut [u8], mask: [u8; 4], offset: u64) {
    let mut mask = mask;
    mask.rotate_left((offset % 4) as usize);
    for (at, byte) in payload.iter_mut().enumerate() {
        *byte ^= mask[at % 4];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_that_break_the_protocol_are_refused() {
        let rows: [&[u8]; 12] = [
            &[0xc1, 0x80],                                           // reserved bit 1
            &[0xa1, 0x80],                                           // reserved bit 2
            &[0x91, 0x80],                                           // reserved bit 3
            &[0x83, 0x80],                                           // reserved opcode
            &[0x8b, 0x80],                                           // reserved control opcode
            &[0x81, 0x05],                                           // not masked
            &[0x09, 0x80],                                           // ping in parts
            &[0x88, 0xfe, 0, 126, 0, 0, 0, 0],                       // close over 125 bytes
            &[0x82, 0xfe, 0, 125, 0, 0, 0, 0],                       // 125 in two bytes
            &[0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0], // 65535 in eight bytes
            &[0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],    // over 63 bits
            &[0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        ];
        for row in rows {
            assert_eq!(FrameHead::parse(row), Err(CloseCode::PROTOCOL), "{row:x?}");
        }
    }

    #[test]
    fn a_head_is_whole_at_its_last_byte_and_not_before() {
        let rows: [(&[u8], u64); 5] = [
            (&[0x81, 0x80, 1, 2, 3, 4], 0),
            (&[0x81, 0xfd, 1, 2, 3, 4], 125),
            (&[0x81, 0xfe, 0, 126, 1, 2, 3, 4], 126),
            (&[0x81, 0xfe, 0xff, 0xff, 1, 2, 3, 4], 65_535),
            (&[0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4], 65_536),
        ];
        for (row, length) in rows {
            for cut in 0..row.len() {
                assert_eq!(FrameHead::parse(&row[..cut]), Ok(None), "{row:x?} cut at {cut}");
            }
            let head = FrameHead::parse(row).expect("it is valid").expect("it is whole");
            let expected = FrameHead {
                is_final: true,
                opcode: Opcode::Text,
                mask: [1, 2, 3, 4],
                length,
                bytes: row.len(),
            };
            assert_eq!(head, expected);
        }
    }

    #[test]
    fn what_is_written_is_read_back_once_it_is_masked() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let mut out = Vec::new();
            append_frame_head(Opcode::Binary, length, &mut out);
            out[1] |= 0x80;
            out.extend_from_slice(&[0; 4]);
            let head = FrameHead::parse(&out).expect("it is valid").expect("it is whole");
            assert_eq!((head.length, head.bytes), (length as u64, out.len()));
        }
    }

    #[test]
    fn a_mask_goes_on_where_the_last_piece_ended() {
        let mask = [1, 2, 4, 8];
        let mut whole = *b"seven by";
        apply_mask(&mut whole, mask, 0);
        for cut in 0..whole.len() {
            let mut pieces = *b"seven by";
            let (front, back) = pieces.split_at_mut(cut);
            apply_mask(front, mask, 0);
            apply_mask(back, mask, cut as u64);
            assert_eq!(pieces, whole, "cut at {cut}");
        }
    }
}
