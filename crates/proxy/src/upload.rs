//! The rest of a request, on its way to the endpoint while the answer may come back.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::Poll;

use baton_http1::{BodyDecoder, BodyError, FieldNames, Framing, RequestFacts};
use baton_runtime::{Buffer, BufferSize, Stream, Timer};

use crate::account::{Account, add};
use crate::answer::{Answer, Answered};
use crate::error::ProxyError;
use crate::exchange::{Failure, Seen};
use crate::limits::ANSWER_AFTER_REFUSED_BODY;
use crate::proxy::{Proxy, Way};
use crate::relay::{Pump, PumpError, Trailers};
use crate::upstream::Connection;

/// How far the request has come, told by its direction to the other one.
pub(crate) struct Upload {
    /// All of it was sent.
    pub(crate) complete: Cell<bool>,
    /// The endpoint took no more of it.
    pub(crate) refused: Cell<bool>,
    /// How much of the answer the client has seen, told the other way.
    pub(crate) seen: Cell<Seen>,
}

impl Default for Upload {
    fn default() -> Upload {
        Upload {
            complete: Cell::new(false),
            refused: Cell::new(false),
            seen: Cell::new(Seen::Nothing),
        }
    }
}

/// The rest of a request that did not fit into its first write.
pub(crate) struct Sending<'a> {
    pub(crate) proxy: &'a Proxy,
    pub(crate) way: &'a Way,
    pub(crate) account: &'a Account,
    pub(crate) client: &'a Stream,
    pub(crate) timer: &'a Timer,
    pub(crate) unsent: Vec<u8>,
    /// Body bytes that may still follow what was sent.
    pub(crate) allowance: u64,
    /// Trailer fields that the route takes away.
    pub(crate) without: &'a FieldNames,
}

impl Sending<'_> {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        coding: Framing,
        buffer: &mut Buffer,
        body: &mut BodyDecoder,
    ) -> Result<(), PumpError> {
        let timeouts = self.way.timeouts();
        let limits = self.way.limits();
        self.timer.set(timeouts.upstream_idle);
        let mut first = [IoSlice::new(&self.unsent)];
        let written = connection.stream.write_all(&mut first, self.timer).await;
        written.map_err(crate::relay::write_error)?;
        if buffer.is_empty() {
            *buffer = self.proxy.core.buffer(BufferSize::Body);
        }
        let pump = Pump {
            core: &self.proxy.core,
            from: self.client,
            to: &connection.stream,
            timer: self.timer,
            read_bound: timeouts.body_idle,
            write_bound: timeouts.upstream_idle,
            coding,
            trailers: Trailers::Forward(self.without),
            read_bytes_max: limits.pipelined_bytes,
            progress_bytes_min: limits.body_progress_bytes,
            allowance: self.allowance,
        };
        let counters = self.proxy.counters();
        let moved = |bytes: usize| {
            counters.request_body_bytes.add(bytes as u64);
            add(&self.account.body_in, bytes as u64);
        };
        pump.run(buffer, body, moved).await
    }
}

/// Brings the request up and the answer down at once, until the answer is through or the client
/// fails to send its request.
pub(crate) async fn both(
    answer: Answer<'_>,
    sent: impl Future<Output = Result<(), PumpError>>,
) -> Result<Answered, Box<Failure>> {
    let (upload, timer, facts, way) = (answer.upload, answer.timer, *answer.facts, answer.way);
    let mut sent = pin!(sent);
    let mut answer = pin!(answer.run());
    let mut sending = true;
    poll_fn(|cx| {
        if sending && let Poll::Ready(outcome) = sent.as_mut().poll(cx) {
            sending = false;
            let answer_begun = upload.seen.get() != Seen::Nothing;
            match outcome {
                Ok(()) => upload.complete.set(true),
                // The endpoint takes no more. It may have answered already, or be about to.
                Err(PumpError::Write(_) | PumpError::WriteTimeout) => {
                    upload.refused.set(true);
                    if !answer_begun {
                        timer.set(ANSWER_AFTER_REFUSED_BODY);
                    }
                }
                Err(error) => {
                    return Poll::Ready(Err(upload_failure(way, error, facts, upload)));
                }
            }
        }
        answer.as_mut().poll(cx)
    })
    .await
}

/// What a client's failure to send its request is called.
fn upload_failure(
    way: &Way,
    error: PumpError,
    facts: RequestFacts,
    upload: &Upload,
) -> Box<Failure> {
    let error = match error {
        PumpError::Read(error) | PumpError::Write(error) => ProxyError::ClientGone(error),
        PumpError::Body(BodyError::Truncated) => {
            ProxyError::ClientGone(io::ErrorKind::UnexpectedEof.into())
        }
        PumpError::Body(error) => ProxyError::RequestBody(error),
        PumpError::ReadTimeout | PumpError::WriteTimeout => {
            ProxyError::RequestBodyTimeout(way.timeouts().body_idle)
        }
        PumpError::TooLong => {
            ProxyError::RequestBodyBytes(way.limits().body_bytes.unwrap_or(u64::MAX))
        }
    };
    Box::new(Failure { seen: upload.seen.get(), ..*Failure::early(error, Some(facts)) })
}
