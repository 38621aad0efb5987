//! Body bytes from one side to the other, at the pace of the slower one.
//!
//! One buffer per direction: nothing is read while what was read before is not written, which is
//! the back-pressure. What is forwarded is decoded first and framed anew.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::time::Duration;

use baton_http1::{
    BodyDecoder, BodyError, CHUNK_END, CHUNK_HEADER_BYTES_MAX, FieldNames, Framing, LAST_CHUNK,
    PieceKind, chunk_header, encode_trailers,
};
use baton_runtime::{Buffer, Core, Stream, TICK, Timer};

use crate::limits::RELAY_TURN_BYTES;

/// What may become of trailers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trailers<'a> {
    /// Forwarded, minus the fields that must not be there and those that the route takes away.
    Forward(&'a FieldNames),
    /// Dropped: the recipient did not ask for them.
    Drop,
}

/// How much of its input a step along a body took, and how much of that was body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) input_bytes: usize,
    pub(crate) body_bytes: usize,
}

/// Appends what `input` holds of a body to `out`, framed as `coding`; leaves `input` as it is.
///
/// For the part of a body that came with its head and goes out with it in one write.
pub(crate) fn append_body(
    input: &[u8],
    decoder: &mut BodyDecoder,
    coding: Framing,
    trailers: Trailers<'_>,
    out: &mut Vec<u8>,
) -> Result<Taken, BodyError> {
    if decoder.is_complete() && coding != Framing::Chunked {
        return Ok(Taken { input_bytes: 0, body_bytes: 0 });
    }
    let chunked = coding == Framing::Chunked;
    if chunked {
        // The size of a chunk stands in front of it, so a copy of the decoder goes ahead.
        let (mut ahead, mut decoder) = (Walk::new(), decoder.clone());
        while ahead.step(input, &mut decoder)?.is_some() {}
        append_chunk_line(ahead.taken.body_bytes, out);
    }
    let mut walk = Walk::new();
    while let Some(run) = walk.step(input, decoder)? {
        out.extend_from_slice(&input[run]);
    }
    if chunked && walk.taken.body_bytes > 0 {
        out.extend_from_slice(CHUNK_END);
    }
    if chunked && decoder.is_complete() {
        append_last_chunk(&input[walk.trailers], trailers, out);
    }
    Ok(walk.taken)
}

/// A way along the pieces of a body.
struct Walk {
    taken: Taken,
    /// Where the trailer section is in the input, if the body ended with one.
    trailers: Range<usize>,
}

impl Walk {
    fn new() -> Walk {
        Walk { taken: Taken { input_bytes: 0, body_bytes: 0 }, trailers: 0..0 }
    }

    /// The next run of data in `input`; `None` at the end of the body, or of what is there of it.
    fn step(
        &mut self,
        input: &[u8],
        decoder: &mut BodyDecoder,
    ) -> Result<Option<Range<usize>>, BodyError> {
        while !decoder.is_complete() {
            let start = self.taken.input_bytes;
            let piece = decoder.decode(&input[start..])?;
            self.taken.input_bytes += piece.consumed;
            match piece.kind {
                PieceKind::Data(run) => {
                    self.taken.body_bytes += run.len();
                    return Ok(Some(start + run.start..start + run.end));
                }
                PieceKind::Trailers(section) => {
                    self.trailers = start + section.start..start + section.end;
                }
                PieceKind::End => {}
                PieceKind::NeedMore => break,
            }
        }
        Ok(None)
    }

    /// Walks along all that `input` holds and moves the runs of data together, over the framing
    /// between them. Returns where they are then.
    fn gather(
        &mut self,
        input: &mut [u8],
        decoder: &mut BodyDecoder,
    ) -> Result<Range<usize>, BodyError> {
        let Some(mut data) = self.step(input, decoder)? else { return Ok(0..0) };
        while let Some(run) = self.step(input, decoder)? {
            let length = run.len();
            input.copy_within(run, data.end);
            data.end += length;
        }
        Ok(data)
    }
}

fn append_chunk_line(body_bytes: usize, out: &mut Vec<u8>) {
    if body_bytes > 0 {
        out.extend_from_slice(chunk_header(body_bytes, &mut [0; CHUNK_HEADER_BYTES_MAX]));
    }
}

fn append_last_chunk(section: &[u8], trailers: Trailers<'_>, out: &mut Vec<u8>) {
    match trailers {
        Trailers::Forward(without) => encode_trailers(section, without, out),
        Trailers::Drop => out.extend_from_slice(LAST_CHUNK),
    }
}

/// Writes what fits of `bytes` now; returns the rest for a later [`Stream::write_all`].
pub(crate) fn write_now(bytes: &[u8], to: &Stream) -> io::Result<Vec<u8>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    match to.try_write(bytes) {
        Ok(written) => Ok(bytes[written..].to_vec()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(bytes.to_vec()),
        Err(error) => Err(error),
    }
}

/// Why a body stopped on its way.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// The source broke.
    Read(io::Error),
    /// The source was silent for too long.
    ReadTimeout,
    /// The source's framing is broken or cut short.
    Body(BodyError),
    /// The body is over its limit.
    TooLong,
    /// The destination broke.
    Write(io::Error),
    /// The destination took nothing for too long.
    WriteTimeout,
}

/// One direction of an exchange.
pub(crate) struct Pump<'a> {
    pub(crate) core: &'a Core,
    pub(crate) from: &'a Stream,
    pub(crate) to: &'a Stream,
    pub(crate) timer: &'a Timer,
    /// Bound of a wait for the source.
    pub(crate) read_bound: Duration,
    /// Bound of one write.
    pub(crate) write_bound: Duration,
    /// How the body is framed where it goes.
    pub(crate) coding: Framing,
    pub(crate) trailers: Trailers<'a>,
    /// Most bytes read at once, so that no more is read ahead of the next message.
    pub(crate) read_bytes_max: usize,
    /// Bytes that must be read before the bound of a wait begins anew.
    pub(crate) progress_bytes_min: usize,
    /// Body bytes still allowed.
    pub(crate) allowance: u64,
}

impl Pump<'_> {
    /// Moves the rest of a body, beginning with what `buffer` holds, until it is complete.
    /// `moved` is told the body bytes after each write. What follows the body stays in `buffer`.
    pub(crate) async fn run(
        mut self,
        buffer: &mut Buffer,
        decoder: &mut BodyDecoder,
        moved: impl Fn(usize),
    ) -> Result<(), PumpError> {
        let mut turn_bytes = 0;
        let mut more_is_there = false;
        let mut patience = Patience::new(self.read_bound, self.progress_bytes_min);
        loop {
            turn_bytes += self.forward(buffer, decoder, &moved).await?;
            if decoder.is_complete() {
                return Ok(());
            }
            if turn_bytes >= RELAY_TURN_BYTES {
                self.core.yield_now().await;
                turn_bytes = 0;
            }
            buffer.compact();
            let read = self.read(buffer, more_is_there, &mut patience).await?;
            if read == 0 {
                decoder.finish_at_eof().map_err(PumpError::Body)?;
                self.finish_after_eof().await?;
                return Ok(());
            }
            more_is_there = buffer.spare().is_empty();
        }
    }

    /// Writes all of the body that `buffer` holds; returns its bytes.
    async fn forward(
        &mut self,
        buffer: &mut Buffer,
        decoder: &mut BodyDecoder,
        moved: &impl Fn(usize),
    ) -> Result<usize, PumpError> {
        if buffer.is_empty() || decoder.is_complete() {
            return Ok(0);
        }
        // One write takes all of the data, however small the chunks are.
        let input = buffer.filled_mut();
        let mut walk = Walk::new();
        let data = walk.gather(input, decoder).map_err(PumpError::Body)?;
        let Taken { input_bytes, body_bytes } = walk.taken;
        self.allowance = self.allowance.checked_sub(body_bytes as u64).ok_or(PumpError::TooLong)?;
        let mut line = [0; CHUNK_HEADER_BYTES_MAX];
        let mut tail = Vec::new();
        let (mut front, mut end): (&[u8], &[u8]) = (&[], &[]);
        if self.coding == Framing::Chunked {
            if body_bytes > 0 {
                front = chunk_header(body_bytes, &mut line);
                end = CHUNK_END;
            }
            if decoder.is_complete() {
                append_last_chunk(&input[walk.trailers], self.trailers, &mut tail);
            }
        }
        let mut parts = [front, &input[data], end, &tail].map(IoSlice::new);
        self.timer.set(self.write_bound);
        self.to.write_all(&mut parts, self.timer).await.map_err(write_error)?;
        moved(body_bytes);
        buffer.consume(input_bytes);
        Ok(body_bytes)
    }

    async fn read(
        &self,
        buffer: &mut Buffer,
        more_is_there: bool,
        patience: &mut Patience,
    ) -> Result<usize, PumpError> {
        let room = buffer.spare();
        let most = room.len().min(self.read_bytes_max);
        let room = &mut room[..most];
        debug_assert!(!room.is_empty(), "an undecodable rest is smaller than the buffer");
        self.timer.set(patience.left());
        let since = self.core.tick();
        let outcome = match more_is_there.then(|| self.from.try_read(room)) {
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => None,
            other => other,
        };
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => self.from.read(room, self.timer).await,
        };
        let count = outcome.map_err(|error| {
            if crate::error::is_timeout(&error) {
                PumpError::ReadTimeout
            } else {
                PumpError::Read(error)
            }
        })?;
        buffer.advance(count);
        patience.waited(self.core.tick() - since);
        patience.progress(count);
        Ok(count)
    }

    /// The source ended where its body may end: so must ours.
    async fn finish_after_eof(&self) -> Result<(), PumpError> {
        if self.coding == Framing::Chunked {
            self.timer.set(self.write_bound);
            let mut last = [IoSlice::new(LAST_CHUNK)];
            self.to.write_all(&mut last, self.timer).await.map_err(write_error)?;
        }
        Ok(())
    }
}

/// How long a source may take for its next bytes: a source that sends a byte now and then to stay
/// connected does not extend its bound, one that makes progress does.
///
/// Only time spent waiting for the source counts, not what the destination takes.
pub(crate) struct Patience {
    bound: Duration,
    bytes_min: usize,
    /// Bytes read since the bound began.
    bytes: usize,
    /// Ticks of waiting since the bound began.
    ticks: u64,
}

impl Patience {
    /// `bytes_min`: bytes after which the bound begins anew.
    pub(crate) fn new(bound: Duration, bytes_min: usize) -> Patience {
        Patience { bound, bytes_min, bytes: 0, ticks: 0 }
    }

    /// What is left of the bound.
    pub(crate) fn left(&self) -> Duration {
        let ticks = u32::try_from(self.ticks).unwrap_or(u32::MAX);
        self.bound.saturating_sub(TICK.saturating_mul(ticks))
    }

    /// A wait took this long.
    pub(crate) fn waited(&mut self, ticks: u64) {
        self.ticks = self.ticks.saturating_add(ticks);
    }

    fn progress(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= self.bytes_min {
            self.bytes = 0;
            self.ticks = 0;
        }
    }
}

/// What a failed write means to the direction it belongs to.
pub(crate) fn write_error(error: io::Error) -> PumpError {
    if crate::error::is_timeout(&error) { PumpError::WriteTimeout } else { PumpError::Write(error) }
}

#[cfg(test)]
mod tests;
