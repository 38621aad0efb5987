//! The body of a request, pulled piece by piece.

use std::io;
use std::mem;

use baton_http1::{BodyDecoder, Framing, PieceKind};
use baton_runtime::BufferSize;

use super::connection::Connection;
use super::fault::Fault;
use super::limits::BODY_IDLE;

/// A piece of a body.
#[derive(Debug)]
pub(super) enum Part<'b> {
    /// Data, not empty.
    Data(&'b [u8]),
    /// The trailer section: valid field lines and the empty line.
    Trailers(&'b [u8]),
}

/// The body at the front of a connection's input.
pub(super) struct Body<'c> {
    connection: &'c mut Connection,
    decoder: BodyDecoder,
    /// Input bytes of the part given out last, consumed with the next call.
    given: usize,
    /// Bytes of data that may still come.
    left: u64,
    bytes_max: u64,
}

impl<'c> Body<'c> {
    /// Begins a body of at most `bytes_max` bytes. Errors: `BodyBytes` if it is announced longer.
    pub(super) fn new(
        connection: &'c mut Connection,
        framing: Framing,
        bytes_max: u64,
    ) -> Result<Body<'c>, Fault> {
        match framing {
            Framing::Length(length) if length > bytes_max => Err(Fault::BodyBytes(bytes_max)),
            _ => Ok(Body {
                connection,
                decoder: BodyDecoder::new(framing),
                given: 0,
                left: bytes_max,
                bytes_max,
            }),
        }
    }

    /// Lets a client that holds its body back send it (RFC 9110 §10.1.1). Not needed if some of
    /// it is there.
    pub(super) fn invite(&mut self) {
        if self.connection.filled().is_empty() {
            self.connection.output().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// The next part; `None` behind the last one. Sends all answers before it waits.
    pub(super) async fn next(&mut self) -> Result<Option<Part<'_>>, Fault> {
        self.connection.consume(mem::take(&mut self.given));
        let piece = loop {
            let piece = self.decoder.decode(self.connection.filled())?;
            if piece.kind != PieceKind::NeedMore {
                break piece;
            }
            self.connection.consume(piece.consumed);
            self.wait().await?;
        };
        self.given = piece.consumed;
        match piece.kind {
            PieceKind::Data(range) => {
                let bytes = range.len() as u64;
                self.left = self.left.checked_sub(bytes).ok_or(Fault::BodyBytes(self.bytes_max))?;
                Ok(Some(Part::Data(&self.connection.filled()[range])))
            }
            PieceKind::Trailers(range) => {
                Ok(Some(Part::Trailers(&self.connection.filled()[range])))
            }
            PieceKind::End | PieceKind::NeedMore => {
                self.connection.consume(mem::take(&mut self.given));
                Ok(None)
            }
        }
    }

    async fn wait(&mut self) -> Result<(), Fault> {
        self.connection.flush().await?;
        self.connection.allow(BODY_IDLE);
        match self.connection.fill(BufferSize::Body).await {
            Ok(0) => Ok(self.decoder.finish_at_eof()?),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(Fault::BodyTimeout(BODY_IDLE))
            }
            Err(error) => Err(error.into()),
        }
    }
}
