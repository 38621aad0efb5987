//! One connection: its socket, its deadline, what was read ahead and what is not sent yet.
//!
//! Owns: the stream and both buffers. Called by: the service, and by the pages for bytes in and
//! out. Invariants: a connection that waits for a client holds no unsent answer; one that waits
//! for the next request or frame owns no buffer.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use baton_http1::{FieldSlots, HeadLimits, HeadProgress, RequestFacts, RequestHead};
use baton_runtime::{Buffer, BufferSize, Core, Stream, Timer};

use super::date::DATE_BYTES;
use super::fault::Fault;
use super::limits::{
    HEAD_TIME, INLINE_BODY_BYTES_MAX, KEEP_ALIVE, LINGER, LINGER_BYTES_MAX, OUTPUT_BYTES,
    OUTPUTS_FREE_MAX, TURN_BYTES, TURN_BYTES_PER_REQUEST, WRITE_TIME,
};
use super::page::Page;
use super::{Origin, answer};

/// Slices of one [`Connection::send`]: a chunk's line, data and end.
const SEND_PARTS_MAX: usize = 3;

/// A request whose head is read and whose body is not.
pub(super) struct Request {
    pub(super) page: Page,
    pub(super) facts: RequestFacts,
}

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The next request.
    Request,
    /// The end; the client knows, and has sent all it will send.
    Close,
    /// The end; the client may be sending something.
    Linger,
}

/// Serves a connection to its end.
pub(super) async fn serve(origin: Rc<Origin>, stream: Stream) {
    let mut connection = Connection::new(origin, stream);
    let after = match connection.serve_requests().await {
        Ok(after) => after,
        Err(fault) => match answer::refuse(&mut connection, &fault) {
            Some(after) => after,
            None => return,
        },
    };
    if connection.flush().await.is_ok() {
        connection.is_answering = false;
        if after == After::Linger {
            connection.linger().await;
        }
    }
}

/// A client's connection.
pub(super) struct Connection {
    origin: Rc<Origin>,
    stream: Stream,
    timer: Timer,
    /// Bytes not yet consumed; `None` if there are none.
    input: Option<Buffer>,
    /// Whether the last read left bytes in the socket, as far as can be told.
    more_is_there: bool,
    /// Answers not yet sent. Less than `OUTPUT_BYTES` before a head and an inline body are added.
    output: Vec<u8>,
    progress: HeadProgress,
    /// Whether some of an answer may be unsent.
    is_answering: bool,
    /// Bytes moved in this turn.
    turn_bytes: usize,
}

impl Connection {
    fn new(origin: Rc<Origin>, stream: Stream) -> Connection {
        Connection {
            timer: origin.core.timer(),
            origin,
            stream,
            input: None,
            more_is_there: false,
            output: Vec::new(),
            progress: HeadProgress::default(),
            is_answering: false,
            turn_bytes: 0,
        }
    }

    pub(super) fn core(&self) -> &Core {
        &self.origin.core
    }

    /// The value of a Date field.
    pub(super) fn date(&self) -> [u8; DATE_BYTES] {
        self.origin.date.at(self.origin.core.tick())
    }

    /// The bytes read and not yet consumed.
    pub(super) fn filled(&self) -> &[u8] {
        filled(&self.input)
    }

    /// Drops the first `count` filled bytes, and the buffer with the last of them.
    pub(super) fn consume(&mut self, count: usize) {
        if let Some(buffer) = &mut self.input {
            buffer.consume(count);
        }
        self.release_empty_input();
    }

    /// Sets the deadline of the coming [`Connection::fill`].
    pub(super) fn allow(&self, duration: Duration) {
        self.timer.set(duration);
    }

    /// As [`Connection::allow`], for a wait that is cut short when the core drains.
    pub(super) fn allow_idle(&self, duration: Duration) {
        self.timer.set_idle(duration);
    }

    /// Waits for input and reads it; 0 is the end of the stream. All answers must be sent.
    ///
    /// `size`: of the buffer, if none is there. Errors: `TimedOut` at the deadline.
    pub(super) async fn fill(&mut self, size: BufferSize) -> io::Result<usize> {
        debug_assert!(self.output.is_empty(), "a client is owed its answer before we wait for it");
        loop {
            if !mem::take(&mut self.more_is_there) {
                self.stream.readable(&self.timer).await?;
            }
            match self.read(size) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(count) => {
                    self.spend(count).await;
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn read(&mut self, size: BufferSize) -> io::Result<usize> {
        let buffer = self.input.get_or_insert_with(|| self.origin.core.buffer(size));
        buffer.compact();
        let outcome = self.stream.try_read(buffer.spare());
        if let Ok(count) = outcome {
            buffer.advance(count);
            self.more_is_there = count > 0 && buffer.spare().is_empty();
        }
        self.release_empty_input();
        outcome
    }

    /// Where heads and small bodies are written to; sent with the next [`Connection::flush`].
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        if self.output.capacity() == 0 {
            self.output = self.origin.outputs.take();
        }
        &mut self.output
    }

    /// Sends body bytes behind what is in the output: small ones are left there.
    /// `parts`: at most [`SEND_PARTS_MAX`].
    pub(super) async fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        if bytes <= INLINE_BODY_BYTES_MAX {
            let output = self.output();
            parts.iter().for_each(|part| output.extend_from_slice(part));
            return self.flush_if_full().await;
        }
        let mut slices = [IoSlice::new(&[]); SEND_PARTS_MAX + 1];
        slices[0] = IoSlice::new(&self.output);
        for (slice, part) in slices[1..].iter_mut().zip(parts) {
            *slice = IoSlice::new(part);
        }
        self.timer.set(WRITE_TIME);
        self.stream.write_all(&mut slices, &self.timer).await?;
        self.release_output();
        self.spend(bytes).await;
        Ok(())
    }

    async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.output.len() < OUTPUT_BYTES { Ok(()) } else { self.flush().await }
    }

    /// Sends all answers.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            self.timer.set(WRITE_TIME);
            self.stream.write_all(&mut [IoSlice::new(&self.output)], &self.timer).await?;
            self.release_output();
        }
        Ok(())
    }

    /// Waits `duration`, all answers before it sent.
    pub(super) async fn pause(&mut self, duration: Duration) -> io::Result<()> {
        self.flush().await?;
        self.core().sleep(duration).await;
        Ok(())
    }

    async fn serve_requests(&mut self) -> Result<After, Fault> {
        loop {
            let Some(request) = self.next_request().await? else { return Ok(After::Close) };
            match self.origin.mood() {
                None => return Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()),
                Some(Duration::ZERO) => {}
                Some(pause) => self.pause(pause).await?,
            }
            self.is_answering = true;
            match answer::respond(self, request).await? {
                After::Request => {}
                after => return Ok(after),
            }
            self.flush_if_full().await?;
            self.spend(TURN_BYTES_PER_REQUEST).await;
        }
    }

    /// The next request; `None` if the client sends none.
    async fn next_request(&mut self) -> Result<Option<Request>, Fault> {
        let mut head_begun = false;
        loop {
            if let Some(request) = self.take_request()? {
                return Ok(Some(request));
            }
            self.flush().await?;
            self.is_answering = false;
            if self.filled().is_empty() {
                self.allow_idle(KEEP_ALIVE);
            } else if !mem::replace(&mut head_begun, true) {
                self.allow(HEAD_TIME);
            }
            match self.fill(BufferSize::Head).await {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() != io::ErrorKind::TimedOut => return Err(error.into()),
                Err(_) if head_begun => return Err(Fault::HeadTimeout(HEAD_TIME)),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Parses and consumes a head; `None` if there is no whole one.
    fn take_request(&mut self) -> Result<Option<Request>, Fault> {
        let limits = HeadLimits::default();
        let input = filled(&self.input);
        if input.is_empty() || !self.progress.should_parse(input, &limits) {
            return Ok(None);
        }
        let mut slots = FieldSlots::new();
        let Some(head) = RequestHead::parse(input, &limits, &mut slots)? else { return Ok(None) };
        let bytes = head.bytes;
        let request = Request { page: Page::of(&head, &input[..bytes]), facts: head.facts };
        self.progress.reset();
        self.consume(bytes);
        Ok(Some(request))
    }

    /// Counts `bytes` against the turn, and lets others run once it is used up.
    async fn spend(&mut self, bytes: usize) {
        self.turn_bytes += bytes;
        if self.turn_bytes >= TURN_BYTES {
            self.turn_bytes = 0;
            self.core().yield_now().await;
        }
    }

    fn release_empty_input(&mut self) {
        self.input.take_if(|buffer| buffer.is_empty());
    }

    fn release_output(&mut self) {
        self.origin.outputs.give(mem::take(&mut self.output));
    }

    /// Ends our side, then reads away what the client still sends, within bounds.
    async fn linger(&mut self) {
        if self.stream.shutdown_write().is_err() {
            return;
        }
        self.allow(LINGER);
        let mut bytes = 0;
        while bytes < LINGER_BYTES_MAX {
            self.input = None;
            match self.fill(BufferSize::Head).await {
                Ok(0) | Err(_) => return,
                Ok(count) => bytes += count,
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_answering {
            // An answer without a length would look complete if it ended in order. If the reset
            // fails the connection is broken already.
            drop(self.stream.reset_on_close());
        }
    }
}

fn filled(input: &Option<Buffer>) -> &[u8] {
    input.as_ref().map_or(&[], Buffer::filled)
}

/// Output buffers of one core that no connection uses.
#[derive(Default)]
pub(super) struct Outputs {
    free: RefCell<Vec<Vec<u8>>>,
}

impl Outputs {
    fn take(&self) -> Vec<u8> {
        self.free.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(1024))
    }

    fn give(&self, mut output: Vec<u8>) {
        let mut free = self.free.borrow_mut();
        if output.capacity() > 0 && free.len() < OUTPUTS_FREE_MAX {
            output.clear();
            free.push(output);
        }
    }
}
