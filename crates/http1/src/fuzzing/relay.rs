//! Bodies taken apart and put together again, as a proxy does.

use super::needs_more;
use crate::{
    BodyDecoder, BodyError, CHUNK_END, CHUNK_HEADER_BYTES_MAX, Framing, LAST_CHUNK, PieceKind,
    chunk_header, encode_trailers,
};

/// Where inputs of `length` bytes are cut: everywhere if they are short.
pub(crate) fn cuts(length: usize) -> Vec<usize> {
    const EVERYWHERE_MAX: usize = 256;
    const CUTS_MAX: usize = 64;
    let step = if length <= EVERYWHERE_MAX { 1 } else { length / CUTS_MAX };
    (0..length).step_by(step).collect()
}

/// What a decoder made of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) data: Vec<u8>,
    /// The trailer section, or nothing.
    pub(crate) trailers: Vec<u8>,
    /// Bytes from the start of the body to its end; counts only if `complete`.
    pub(crate) consumed: usize,
    pub(crate) complete: bool,
    /// The status owed for a fault.
    pub(crate) refused: Option<u16>,
}

/// Decodes a body that arrives in `parts`.
pub(crate) fn decode<'p>(framing: Framing, parts: impl IntoIterator<Item = &'p [u8]>) -> Decoded {
    let mut decoder = BodyDecoder::new(framing);
    let mut decoded = Decoded::default();
    let mut unread = Vec::new();
    for part in parts {
        unread.extend_from_slice(part);
        match drain(&mut decoder, &mut unread, &mut decoded) {
            Ok(()) if decoded.complete => break,
            Ok(()) => {}
            Err(error) => {
                // How much was done before a fault depends on the cuts; that there is one does not.
                return Decoded { refused: Some(error.status()), ..Decoded::default() };
            }
        }
    }
    if !decoded.complete {
        decoded.consumed = 0;
    }
    decoded
}

fn drain(
    decoder: &mut BodyDecoder,
    unread: &mut Vec<u8>,
    decoded: &mut Decoded,
) -> Result<(), BodyError> {
    loop {
        let piece = decoder.decode(unread)?;
        assert!(piece.consumed <= unread.len());
        match &piece.kind {
            PieceKind::NeedMore => {}
            PieceKind::End => {
                assert!(decoder.is_complete());
                decoded.complete = true;
            }
            PieceKind::Data(range) => {
                assert!(!range.is_empty() && range.end == piece.consumed);
                decoded.data.extend_from_slice(&unread[range.clone()]);
            }
            PieceKind::Trailers(range) => {
                assert!(decoder.is_complete() && range.end == piece.consumed);
                decoded.trailers.extend_from_slice(&unread[range.clone()]);
            }
        }
        unread.drain(..piece.consumed);
        decoded.consumed += piece.consumed;
        if decoded.complete || needs_more(&piece.kind) {
            return Ok(());
        }
    }
}

/// How far a body was sent on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relayed {
    /// Bytes of the input done with.
    pub(crate) consumed: usize,
    /// Whether the body has ended.
    pub(crate) complete: bool,
}

/// Sends on the body at the start of `input`, as far as it is there and faultless.
pub(crate) fn relay_body(from: Framing, to: Framing, input: &[u8], out: &mut Vec<u8>) -> Relayed {
    let mut decoder = BodyDecoder::new(from);
    let mut consumed = 0;
    let mut has_trailers = false;
    while let Ok(piece) = decoder.decode(&input[consumed..]) {
        let part =
            |range: std::ops::Range<usize>| &input[consumed + range.start..consumed + range.end];
        match piece.kind {
            PieceKind::NeedMore => break,
            PieceKind::Data(range) if to == Framing::Chunked => {
                let mut header = [0; CHUNK_HEADER_BYTES_MAX];
                out.extend_from_slice(chunk_header(range.len(), &mut header));
                out.extend_from_slice(part(range));
                out.extend_from_slice(CHUNK_END);
            }
            PieceKind::Data(range) => out.extend_from_slice(part(range)),
            PieceKind::Trailers(range) => {
                has_trailers = true;
                if to == Framing::Chunked {
                    encode_trailers(part(range), crate::Edits::NONE.remove, out);
                }
            }
            PieceKind::End => {
                if to == Framing::Chunked && !has_trailers {
                    out.extend_from_slice(LAST_CHUNK);
                }
                return Relayed { consumed: consumed + piece.consumed, complete: true };
            }
        }
        consumed += piece.consumed;
    }
    Relayed { consumed, complete: false }
}
