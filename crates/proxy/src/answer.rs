//! The answer of an endpoint on its way to the client.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use baton_http1::{
    BodyDecoder, BodyError, FieldSlots, RequestFacts, ResponseHead, ResponsePlan, Version,
    encode_interim, encode_response, plan_response,
};
use baton_runtime::{Buffer, BufferSize, Stream, Timer};

use crate::account::{Account, add};
use crate::admission::Dress;
use crate::error::{ProxyError, is_timeout};
use crate::exchange::{Failure, Retry, Seen, leave};
use crate::proxy::{Proxy, Way};
use crate::relay::{Patience, Pump, PumpError, Trailers, append_body, write_now};
use crate::upload::Upload;
use crate::upstream::{After, Connection, Replay};

mod wait;

/// An answer that reached the client whole.
pub(crate) struct Answered {
    /// Whether the client's connection may serve another request.
    pub(crate) keep_client: bool,
    /// Whether the endpoint's connection is at a message boundary.
    pub(crate) upstream_reusable: bool,
    /// From the request sent to the head of the answer.
    pub(crate) first_byte: Duration,
    /// The connections are a tunnel now; what the endpoint sent behind its head.
    pub(crate) tunnel: Option<Buffer>,
}

/// The downward half of an exchange.
pub(crate) struct Answer<'a> {
    pub(crate) proxy: &'a Proxy,
    pub(crate) way: &'a Way,
    pub(crate) account: &'a Account,
    pub(crate) dress: &'a Dress,
    pub(crate) client: &'a Stream,
    pub(crate) timer: &'a Timer,
    pub(crate) connection: &'a Connection,
    pub(crate) facts: &'a RequestFacts,
    pub(crate) upload: &'a Upload,
    /// When the request was sent.
    pub(crate) sent: Instant,
    /// What a retry needs to know of the request.
    pub(crate) replay: Replay,
    /// Whether the connection may have ended unnoticed before the request came.
    pub(crate) may_race: bool,
    /// Whether the client was sent an interim response.
    pub(crate) interim_relayed: Cell<bool>,
    /// Whether the client's connection ends after this answer in any case.
    pub(crate) last: bool,
}

/// What the bytes from the endpoint begin with.
enum Next {
    /// A head that is not complete.
    Incomplete,
    /// A 1xx that was relayed, or dropped for an HTTP/1.0 client; what the socket did not take.
    Interim(Vec<u8>),
    /// The final head, on its way to the client with the first part of its body.
    Final(Begun),
}

struct Begun {
    first_byte: Duration,
    plan: ResponsePlan,
    body: BodyDecoder,
    unsent: Vec<u8>,
}

impl Answer<'_> {
    /// Waits for the answer and relays it.
    pub(crate) async fn run(self) -> Result<Answered, Box<Failure>> {
        let limit = self.way.answer_head().head_bytes_max;
        let mut buffer = None;
        let mut interims = 0;
        let mut patience = self.patience();
        loop {
            self.wait(buffer.is_none(), &mut patience).await?;
            let buffer = buffer.get_or_insert_with(|| self.proxy.core.buffer(BufferSize::Head));
            if !self.read(buffer, limit, interims)? {
                continue;
            }
            loop {
                match self.next(buffer, interims)? {
                    Next::Incomplete => break,
                    Next::Interim(unsent) => {
                        interims += 1;
                        if !unsent.is_empty() {
                            Box::pin(self.write_interim(&unsent)).await?;
                        }
                        patience = self.patience();
                    }
                    Next::Final(begun) => return self.relay(buffer, begun).await,
                }
            }
        }
    }

    /// How long the endpoint may take from the end of the request, or from its last interim
    /// response, to the end of its next head: one that sends a byte now and then gets no longer.
    fn patience(&self) -> Patience {
        Patience::new(self.way.timeouts().first_byte, usize::MAX)
    }

    /// Reads what is there; `false` if nothing was, after all.
    fn read(
        &self,
        buffer: &mut Buffer,
        limit: usize,
        interims: usize,
    ) -> Result<bool, Box<Failure>> {
        let first = buffer.is_empty() && interims == 0;
        make_room(self.proxy, buffer, limit);
        match self.connection.stream.try_read(buffer.spare()) {
            Ok(0) => Err(self.no_answer(io::ErrorKind::UnexpectedEof.into(), first)),
            Ok(count) => {
                buffer.advance(count);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.no_answer(error, first)),
        }
    }

    /// Takes the next head off the buffer and relays it as far as the client's socket takes it.
    /// `interims`: how many interim ones were taken before.
    fn next(&self, buffer: &mut Buffer, interims: usize) -> Result<Next, Box<Failure>> {
        let refused = |error| self.failure(ProxyError::AnswerHead(self.address(), error));
        let mut slots = FieldSlots::new();
        let head = ResponseHead::parse(
            buffer.filled(),
            self.way.answer_head(),
            &mut slots,
            self.facts.method,
        );
        let Some(head) = head.map_err(refused)? else { return Ok(Next::Incomplete) };
        let mut scratch = self.proxy.scratch.borrow_mut();
        scratch.clear();
        if head.is_interim() {
            self.check_interims(interims + 1)?;
            if self.facts.version == Version::Http11 {
                encode_interim(&head, self.dress.response(self.way).remove, &mut scratch);
            }
            self.interim_relayed.set(true);
            let unsent = self.write_now(&scratch)?;
            let bytes = head.bytes;
            buffer.consume(bytes);
            return Ok(Next::Interim(unsent));
        }
        if self.way.has_retry_status(head.status)
            && let Some(retry) = self.leave(After::Status(head.status))
        {
            let error = ProxyError::AnswerStatus(self.address(), head.status);
            return Err(Box::new(Failure { retry: Some(retry), ..*self.final_failure(error) }));
        }
        // An answer before the request's end: what follows of the request is read away, at most.
        let early = !self.upload.complete.get();
        let last = self.last || early || self.proxy.core.is_draining();
        let plan = plan_response(self.facts, &head, last).map_err(refused)?;
        encode_response(
            &head,
            &plan,
            &self.proxy.date(),
            &self.dress.response(self.way),
            &mut scratch,
        );
        let mut body = BodyDecoder::new(plan.upstream_body);
        let input = if plan.tunnel { &[] } else { &buffer.filled()[head.bytes..] };
        let trailers = self.trailers(&plan);
        let taken = append_body(input, &mut body, plan.downstream, trailers, &mut scratch);
        let taken = taken.map_err(|error| self.body_refused(error))?;
        self.upload.seen.set(match plan.downstream {
            baton_http1::Framing::UntilClose => Seen::PartUntilClose,
            _ => Seen::Part,
        });
        let unsent = self.write_now(&scratch)?;
        let now = Instant::now();
        self.account.first_byte_at.set(Some(now));
        self.account.status.set(head.status);
        add(&self.account.body_out, taken.body_bytes as u64);
        self.proxy.counters().answered(head.status);
        self.proxy.counters().answer_body_bytes.add(taken.body_bytes as u64);
        let taken = head.bytes + taken.input_bytes;
        buffer.consume(taken);
        Ok(Next::Final(Begun {
            first_byte: now.saturating_duration_since(self.sent),
            plan,
            body,
            unsent,
        }))
    }

    /// Brings the rest of the answer to the client.
    async fn relay(&self, buffer: &mut Buffer, begun: Begun) -> Result<Answered, Box<Failure>> {
        let Begun { first_byte, plan, mut body, unsent } = begun;
        if !unsent.is_empty() {
            Box::pin(self.write(&unsent)).await?;
        }
        if plan.tunnel {
            let rest = std::mem::replace(buffer, self.proxy.core.buffer(BufferSize::Head));
            return Ok(Answered {
                keep_client: false,
                upstream_reusable: false,
                first_byte,
                tunnel: Some(rest),
            });
        }
        if !body.is_complete() {
            if buffer.is_empty() {
                *buffer = self.proxy.core.buffer(BufferSize::Body);
            }
            Box::pin(self.pump(&plan, buffer, &mut body)).await?;
        }
        self.timer.clear();
        Ok(Answered {
            keep_client: plan.keep_downstream,
            // What follows the answer was not asked for: such a connection is not used again.
            upstream_reusable: plan.upstream_may_persist && buffer.is_empty(),
            first_byte,
            tunnel: None,
        })
    }

    async fn pump(
        &self,
        plan: &ResponsePlan,
        buffer: &mut Buffer,
        body: &mut BodyDecoder,
    ) -> Result<(), Box<Failure>> {
        let timeouts = self.way.timeouts();
        let pump = Pump {
            core: &self.proxy.core,
            from: &self.connection.stream,
            to: self.client,
            timer: self.timer,
            read_bound: timeouts.upstream_idle,
            write_bound: timeouts.body_idle,
            coding: plan.downstream,
            trailers: self.trailers(plan),
            read_bytes_max: usize::MAX,
            progress_bytes_min: 0,
            allowance: u64::MAX,
        };
        let counters = self.proxy.counters();
        let moved = |bytes: usize| {
            counters.answer_body_bytes.add(bytes as u64);
            add(&self.account.body_out, bytes as u64);
        };
        pump.run(buffer, body, moved).await.map_err(|error| match error {
            PumpError::Read(error) => self.failure(ProxyError::AnswerBroken(self.address(), error)),
            PumpError::ReadTimeout => {
                self.failure(ProxyError::AnswerStalled(self.address(), timeouts.upstream_idle))
            }
            PumpError::Body(error) => self.body_refused(error),
            PumpError::Write(error) => self.failure(ProxyError::ClientGone(error)),
            PumpError::WriteTimeout => self.failure(ProxyError::ClientStalled(timeouts.body_idle)),
            PumpError::TooLong => unreachable!("an answer's length is not bounded"),
        })
    }

    /// Writes what the client's socket did not take at once of an interim response. Until it has
    /// gone out whole, no other answer may begin.
    async fn write_interim(&self, unsent: &[u8]) -> Result<(), Box<Failure>> {
        self.upload.seen.set(Seen::Part);
        self.write(unsent).await?;
        self.upload.seen.set(Seen::Nothing);
        Ok(())
    }

    /// Writes what a socket did not take at once.
    async fn write(&self, unsent: &[u8]) -> Result<(), Box<Failure>> {
        if unsent.is_empty() {
            return Ok(());
        }
        let bound = self.way.timeouts().body_idle;
        self.timer.set(bound);
        let written = self.client.write_all(&mut [IoSlice::new(unsent)], self.timer).await;
        written.map_err(|error| {
            if is_timeout(&error) {
                self.failure(ProxyError::ClientStalled(bound))
            } else {
                self.failure(ProxyError::ClientGone(error))
            }
        })
    }

    fn write_now(&self, bytes: &[u8]) -> Result<Vec<u8>, Box<Failure>> {
        write_now(bytes, self.client).map_err(|error| self.failure(ProxyError::ClientGone(error)))
    }

    fn check_interims(&self, interims: usize) -> Result<(), Box<Failure>> {
        let most = self.way.limits().interim_responses;
        if interims <= most {
            return Ok(());
        }
        Err(self.failure(ProxyError::AnswerInterims(self.address(), most)))
    }

    fn trailers(&self, plan: &ResponsePlan) -> Trailers<'_> {
        match plan.trailers {
            true => Trailers::Forward(self.dress.response(self.way).remove),
            false => Trailers::Drop,
        }
    }

    fn address(&self) -> std::net::SocketAddr {
        self.connection.address()
    }

    fn late(&self) -> Box<Failure> {
        let bound = self.way.timeouts().first_byte;
        self.failure(ProxyError::AnswerTimeout(self.address(), bound))
    }

    /// The connection ended before a final head. `first`: before any byte of an answer.
    fn no_answer(&self, error: io::Error, first: bool) -> Box<Failure> {
        let error = ProxyError::NoAnswer(self.address(), error);
        let raced = first
            && self.may_race
            && self.replay.replayable
            && self.replay.idempotent
            && !self.interim_relayed.get();
        if raced {
            return Box::new(Failure { retry: Some(Retry::Raced), ..*self.final_failure(error) });
        }
        self.failure(error)
    }

    fn body_refused(&self, error: BodyError) -> Box<Failure> {
        self.failure(ProxyError::AnswerBody(self.address(), error))
    }

    /// The failure, with leave to try once more where there is any.
    fn failure(&self, error: ProxyError) -> Box<Failure> {
        let retry = error.kind().and_then(|kind| self.leave(After::Failed(kind)));
        Box::new(Failure { retry, ..*self.final_failure(error) })
    }

    fn final_failure(&self, error: ProxyError) -> Box<Failure> {
        Box::new(Failure {
            error,
            seen: self.upload.seen.get(),
            facts: Some(*self.facts),
            request_complete: self.upload.complete.get(),
            retry: None,
        })
    }

    /// Leave to send the request once more, while the client has seen nothing of an answer.
    fn leave(&self, after: After) -> Option<Retry> {
        let unseen = self.upload.seen.get() == Seen::Nothing && !self.interim_relayed.get();
        unseen
            .then(|| leave(self.proxy, self.way, after, self.replay))
            .flatten()
            .map(Retry::Budgeted)
    }
}

/// Makes spare room in `buffer`, which holds a part of a head of at most `limit` bytes.
pub(crate) fn make_room(proxy: &Proxy, buffer: &mut Buffer, limit: usize) {
    if !buffer.spare().is_empty() {
        return;
    }
    buffer.compact();
    if buffer.spare().is_empty() {
        debug_assert!(limit <= BufferSize::Body.bytes(), "settings bound a head to a buffer");
        let mut larger = proxy.core.buffer(BufferSize::Body);
        let filled = buffer.len();
        larger.spare()[..filled].copy_from_slice(buffer.filled());
        larger.advance(filled);
        *buffer = larger;
    }
}
