//! One client: a connection that is asked for the same thing again and again.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use baton_http1::{BodyDecoder, FieldSlots, Framing, HeadLimits, PieceKind, ResponseHead};
use baton_runtime::{Buffer, BufferSize, Core, Stream, Timer};

use super::args::Plan;
use super::report::Failure;

/// Longest wait for a connection, for a request to be sent, and for each piece of its answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Client {
    core: Core,
    plan: Arc<Plan>,
    timer: Timer,
    stream: Option<Stream>,
    input: Buffer,
}

/// The head of an answer, as far as its client needs it.
struct AnswerHead {
    /// Bytes of the head.
    bytes: usize,
    status: u16,
    framing: Framing,
    persistent: bool,
}

impl Client {
    pub(super) fn new(core: &Core, plan: Arc<Plan>) -> Client {
        Client {
            core: core.clone(),
            plan,
            timer: core.timer(),
            stream: None,
            input: core.buffer(BufferSize::Body),
        }
    }

    /// Opens a connection, if there is none.
    pub(super) async fn connect(&mut self) -> Result<(), Failure> {
        if self.stream.is_none() {
            self.timer.set(PATIENCE);
            let connected = self.core.connect(self.plan.address, &self.timer).await;
            self.stream = Some(connected.map_err(|error| failure(&error, Failure::Connect))?);
            self.input.consume(self.input.len());
        }
        Ok(())
    }

    /// Sends the request and reads its answer. Returns the bytes of the answer's body.
    ///
    /// The request is sent whole before the answer is read: a server that answers a large body
    /// at length before it has read it makes the send time out.
    pub(super) async fn exchange(&mut self) -> Result<u64, Failure> {
        let outcome = self.try_exchange().await;
        if outcome.is_err() || self.plan.args.new_connections {
            self.stream = None;
        }
        outcome
    }

    async fn try_exchange(&mut self) -> Result<u64, Failure> {
        self.connect().await?;
        self.timer.set(PATIENCE);
        let stream = self.stream.as_ref().ok_or(Failure::Connect)?;
        let sent = stream.write_all(&mut [IoSlice::new(&self.plan.request)], &self.timer).await;
        sent.map_err(|error| failure(&error, Failure::Send))?;
        let head = loop {
            let head = self.read_head().await?;
            if !(100..=199).contains(&head.status) {
                break head;
            }
        };
        let bytes = self.read_body(head.framing).await?;
        if !head.persistent || !self.input.is_empty() {
            self.stream = None;
        }
        match head.status {
            200..=399 => Ok(bytes),
            status => Err(Failure::Status(status)),
        }
    }

    async fn read_head(&mut self) -> Result<AnswerHead, Failure> {
        loop {
            if let Some(head) = self.parse_head()? {
                self.input.consume(head.bytes);
                return Ok(head);
            }
            if self.fill().await? == 0 {
                return Err(Failure::Ended);
            }
        }
    }

    fn parse_head(&self) -> Result<Option<AnswerHead>, Failure> {
        let mut slots = FieldSlots::new();
        let (input, limits) = (self.input.filled(), HeadLimits::default());
        let parsed = ResponseHead::parse(input, &limits, &mut slots, self.plan.method);
        let Some(head) = parsed.map_err(|_| Failure::Malformed)? else { return Ok(None) };
        if head.status == 101 {
            // Not asked for.
            return Err(Failure::Malformed);
        }
        let ResponseHead { bytes, status, framing, persistent, .. } = head;
        Ok(Some(AnswerHead { bytes, status, framing, persistent }))
    }

    async fn read_body(&mut self, framing: Framing) -> Result<u64, Failure> {
        let mut decoder = BodyDecoder::new(framing);
        let mut bytes = 0;
        loop {
            let piece = decoder.decode(self.input.filled()).map_err(|_| Failure::Malformed)?;
            self.input.consume(piece.consumed);
            match piece.kind {
                PieceKind::Data(range) => bytes += range.len() as u64,
                PieceKind::Trailers(_) => {}
                PieceKind::End => return Ok(bytes),
                PieceKind::NeedMore => {
                    if self.fill().await? == 0 {
                        decoder.finish_at_eof().map_err(|_| Failure::Ended)?;
                    }
                }
            }
        }
    }

    /// Reads; 0 is the end of the connection.
    async fn fill(&mut self) -> Result<usize, Failure> {
        self.input.compact();
        self.timer.set(PATIENCE);
        let stream = self.stream.as_ref().ok_or(Failure::Ended)?;
        let count = stream.read(self.input.spare(), &self.timer).await;
        let count = count.map_err(|error| failure(&error, Failure::Receive))?;
        self.input.advance(count);
        Ok(count)
    }
}

fn failure(error: &io::Error, otherwise: Failure) -> Failure {
    if error.kind() == io::ErrorKind::TimedOut { Failure::TimedOut } else { otherwise }
}
