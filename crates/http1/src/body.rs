//! Body bytes to data, whatever the framing (RFC 9112 §6, §7).

use std::ops::Range;

use memchr::memchr2;

use crate::chunk::ChunkLine;
use crate::error::{BodyError, HeadError};
use crate::framing::Framing;
use crate::limits::{CHUNK_EXTENSIONS_BYTES_MAX, TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX};
use crate::scan::{self, FieldBounds, Stop};

/// Takes a body apart, piece by piece.
///
/// The caller passes its unread bytes, removes `consumed` of them, and calls again until it sees
/// `NeedMore` (then it reads more) or `End`. It never has to keep more than
/// [`TRAILER_BYTES_MAX`] bytes.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    state: State,
    /// Bytes of chunk extensions so far, at most [`CHUNK_EXTENSIONS_BYTES_MAX`].
    extensions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Data up to a known length. `left > 0`.
    Length { left: u64 },
    /// Data until the connection ends.
    UntilClose,
    /// In front of a chunk line.
    ChunkLine,
    /// Within the data of a chunk. `left > 0`.
    ChunkData { left: u64 },
    /// In front of the CRLF behind the data of a chunk.
    ChunkDataEnd,
    /// Behind the line of the last chunk. `seen` bytes of the section were looked at.
    Trailers { seen: usize },
    /// The body has ended.
    Complete,
}

/// A step through a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the input that are done with. `consumed <= input.len()`.
    pub consumed: usize,
    /// What they held.
    pub kind: PieceKind,
}

/// What a step through a body found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// More bytes are needed; those behind `consumed` are to be kept.
    NeedMore,
    /// A run of data within the input; not empty, `end <= consumed`.
    Data(Range<usize>),
    /// The trailer section within the input, with its final CRLF: field lines that follow the
    /// grammar, and at least one. Occurs at most once, right before `End`.
    Trailers(Range<usize>),
    /// The body has ended; what follows `consumed` belongs to the next message.
    End,
}

impl BodyDecoder {
    /// A decoder for one body.
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Complete,
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => State::ChunkLine,
            Framing::UntilClose => State::UntilClose,
        };
        Self { state, extensions: 0 }
    }

    /// Whether the body has ended, so that the connection is at a message boundary.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Decodes the next piece.
    ///
    /// `input`: unread bytes, cut anywhere. The loop makes progress in `input` or returns.
    /// Errors: the connection cannot be used again, and no end of the message may be sent on.
    /// Does not allocate, or look past the end of the body.
    pub fn decode(&mut self, input: &[u8]) -> Result<Piece, BodyError> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.state {
                State::Complete => return Ok(Piece { consumed: at, kind: PieceKind::End }),
                // Length -> (Length | Complete)
                State::Length { left } => {
                    let (piece, left) = take(at, rest, left);
                    self.state = if left == 0 { State::Complete } else { State::Length { left } };
                    return Ok(piece);
                }
                State::UntilClose => return Ok(take(at, rest, u64::MAX).0),
                // ChunkLine -> (ChunkData | Trailers)
                State::ChunkLine => match ChunkLine::parse(rest)? {
                    None => return Ok(need_more(at)),
                    Some(line) => {
                        at += line.bytes;
                        self.count_extensions(line.extensions)?;
                        self.state = match line.size {
                            0 => State::Trailers { seen: 0 },
                            left => State::ChunkData { left },
                        };
                    }
                },
                // ChunkData -> (ChunkData | ChunkDataEnd)
                State::ChunkData { left } => {
                    let (piece, left) = take(at, rest, left);
                    self.state =
                        if left == 0 { State::ChunkDataEnd } else { State::ChunkData { left } };
                    return Ok(piece);
                }
                // ChunkDataEnd -> ChunkLine
                State::ChunkDataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        at += 2;
                        self.state = State::ChunkLine;
                    }
                    [] | [b'\r'] => return Ok(need_more(at)),
                    _ => return Err(BodyError::ChunkDataEnd),
                },
                // Trailers -> (Trailers | Complete)
                State::Trailers { seen } => return self.decode_trailers(at, rest, seen),
            }
        }
    }

    /// The connection has ended. Errors: `Truncated` unless that is where the body ends.
    pub fn finish_at_eof(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::Complete => Ok(()),
            State::UntilClose => {
                self.state = State::Complete;
                Ok(())
            }
            _ => Err(BodyError::Truncated),
        }
    }

    fn count_extensions(&mut self, bytes: usize) -> Result<(), BodyError> {
        self.extensions += bytes;
        if self.extensions > CHUNK_EXTENSIONS_BYTES_MAX {
            return Err(BodyError::ChunkExtensionsBytes { max: CHUNK_EXTENSIONS_BYTES_MAX });
        }
        Ok(())
    }

    /// Decodes the trailer section at `at`, of which `section` starts at its first byte.
    fn decode_trailers(
        &mut self,
        at: usize,
        section: &[u8],
        seen: usize,
    ) -> Result<Piece, BodyError> {
        let window = &section[..section.len().min(TRAILER_BYTES_MAX)];
        self.state = State::Trailers { seen: window.len() };
        // Without CR or LF among the new bytes the section can neither end nor turn out faulty
        // in a whole line; so a sender of single bytes costs one scan for each line.
        let fresh = window.get(seen..).unwrap_or(window);
        if window.len() < TRAILER_BYTES_MAX && memchr2(b'\r', b'\n', fresh).is_none() {
            return Ok(need_more(at));
        }
        match scan::fields(window, 0, FieldBounds { first_line: 1, max: TRAILER_FIELDS_MAX }) {
            Ok(bytes) => {
                self.state = State::Complete;
                let end = at + bytes;
                let is_empty = bytes == b"\r\n".len();
                let kind = if is_empty { PieceKind::End } else { PieceKind::Trailers(at..end) };
                Ok(Piece { consumed: end, kind })
            }
            Err(Stop::Incomplete) if window.len() < TRAILER_BYTES_MAX => Ok(need_more(at)),
            Err(Stop::Incomplete) => Err(BodyError::TrailerBytes { max: TRAILER_BYTES_MAX }),
            Err(Stop::Fault(fault)) => Err(trailer_fault(fault)),
        }
    }
}

fn need_more(consumed: usize) -> Piece {
    Piece { consumed, kind: PieceKind::NeedMore }
}

/// Takes up to `left` bytes of data that start at `at`. Returns the piece and what is then left.
fn take(at: usize, rest: &[u8], left: u64) -> (Piece, u64) {
    let bytes = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
    if bytes == 0 {
        return (need_more(at), left);
    }
    let end = at + bytes;
    (Piece { consumed: end, kind: PieceKind::Data(at..end) }, left - bytes as u64)
}

fn trailer_fault(fault: HeadError) -> BodyError {
    match fault {
        HeadError::FieldCount { max } => BodyError::TrailerCount { max },
        HeadError::LineEnd { line }
        | HeadError::FieldName { line }
        | HeadError::FieldValue { line } => BodyError::TrailerLine { line },
        _ => unreachable!("a scan of field lines has no other fault"),
    }
}

#[cfg(test)]
mod tests;
