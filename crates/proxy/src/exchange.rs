//! One request and its answer.
//!
//! The request's head stays in the client's buffer until the answer begins, so that it can be sent
//! once more. Each step between two awaits borrows the heads where they were read and encodes them
//! into the core's scratch; nothing of a head is copied besides.

use std::cell::Cell;
use std::io;
use std::time::Instant;

use baton_http1::{BodyDecoder, FieldSlots, Framing, RequestFacts, RequestHead, encode_request};
use baton_runtime::Stream;

use crate::account::add;
use crate::admission::{Door, Slots, admit};
use crate::answer::{Answer, Answered};
use crate::downstream::Client;
use crate::error::ProxyError;
use crate::proxy::{Proxy, Way};
use crate::relay::{Trailers, append_body, write_now};
use crate::reply::{ALLOW, Reply};
use crate::upload::{Sending, Upload, both};
use crate::upstream::{AttemptOutcome, Connection, Pick, Replay, Tried};

mod trials;

pub(crate) use trials::{Retry, Trials, connect, leave};
use trials::{no_endpoint, try_again};

/// The pseudonym in Via (RFC 9110 §7.6.3).
const VIA: &[u8] = b"baton";

/// What becomes of the client's connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    KeepAlive,
    /// The request was read to its end: the connection ends in order.
    Close,
    /// The client may still send its request: that is read away before the connection ends, so
    /// that the answer arrives.
    Linger,
    /// The answer was cut short, or nobody is there to take one: the connection ends at once.
    Abandon,
}

/// An exchange that ended before its time.
pub(crate) struct Failure {
    pub(crate) error: ProxyError,
    /// How much of an answer the client has seen.
    pub(crate) seen: Seen,
    /// The facts of the request, if its head was accepted.
    pub(crate) facts: Option<RequestFacts>,
    /// Whether the request was taken from the client's connection to its last byte.
    pub(crate) request_complete: bool,
    /// Leave to send the request once more.
    pub(crate) retry: Option<Retry>,
}

/// How much of an answer has gone out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// No final head: the client can still be told what happened.
    Nothing,
    /// A head whose body shows by itself that it is cut short.
    Part,
    /// A head whose body ends with the connection: only a reset shows that it is cut short.
    PartUntilClose,
}

impl Failure {
    /// A failure before the request went out.
    pub(crate) fn early(error: ProxyError, facts: Option<RequestFacts>) -> Box<Failure> {
        let request_complete = false;
        Box::new(Failure { error, seen: Seen::Nothing, facts, request_complete, retry: None })
    }
}

/// What a complete head leads to.
pub(crate) enum Begun {
    /// The head is not complete yet.
    Incomplete,
    /// The proxy answers itself; the bytes that the head takes.
    Reply(RequestFacts, usize, Box<Reply>),
    /// The request is on its way.
    Sent(Attempt),
    /// No idle connection to the chosen endpoint was there.
    Connect(Way, RequestFacts, Pick),
}

/// A request sent to an endpoint.
pub(crate) struct Attempt {
    pub(crate) way: Way,
    /// None from the moment it has failed: who tries again may wait for the place it took.
    connection: Option<Connection>,
    facts: RequestFacts,
    /// The request body, decoded as far as it was there with the head.
    body: BodyDecoder,
    /// Bytes of the client's buffer that the head and this part of the body take.
    taken: usize,
    /// Body bytes that may still follow.
    allowance: u64,
    /// What the socket did not take at once.
    unsent: Vec<u8>,
    /// How far it and its answer have come.
    upload: Upload,
    sent: Instant,
    trials: Trials,
}

impl Attempt {
    /// The connection it was sent on.
    pub(crate) fn upstream(&self) -> &Stream {
        &self.connection().stream
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("only a failed attempt has none")
    }
}

/// Looks at the client's buffer and sends the request if its head is complete and an idle
/// connection is there. Does not wait.
pub(crate) fn begin(proxy: &Proxy, client: &mut Client) -> Result<Begun, Box<Failure>> {
    let current = client.current.clone();
    let limits = &current.plan.listener(client.listener).request_head;
    let input = client.buffer.filled();
    if !client.progress.should_parse(input, limits) {
        return Ok(Begun::Incomplete);
    }
    let mut slots = FieldSlots::new();
    let refused = |error| Failure::early(ProxyError::RequestHead(error), None);
    let Some(head) = RequestHead::parse(input, limits, &mut slots).map_err(refused)? else {
        return Ok(Begun::Incomplete);
    };
    client.progress.reset();
    proxy.counters().requests.add(1);
    let facts = head.facts;
    let door = Door { listener: client.listener, peer: client.peer };
    let slots =
        Slots { account: &mut client.account, dress: &mut client.dress, way: &mut client.way };
    if let Err(reply) = admit(proxy, &current, door, &head, slots) {
        return Ok(Begun::Reply(facts, head.bytes, reply));
    }
    let way = client.way.clone().expect("who is admitted has a way");
    if let (Framing::Length(bytes), Some(most)) = (facts.framing, way.limits().body_bytes)
        && bytes > most
    {
        return Err(Failure::early(ProxyError::RequestBodyBytes(most), Some(facts)));
    }
    if facts.max_forwards == Some(0) {
        // It asks the proxy itself (RFC 9110 §7.6.2).
        let reply = Reply::empty(200, vec![("Allow", ALLOW.to_owned())]);
        return Ok(Begun::Reply(facts, head.bytes, Box::new(reply)));
    }
    let Some(mut pick) = way.upstream().pick(client.dress.key, &Tried::default()) else {
        return Err(no_endpoint(client, &way, facts));
    };
    loop {
        let connection = match way.upstream().lease(pick) {
            Ok(connection) => connection,
            Err(pick) => return Ok(Begun::Connect(way, facts, pick)),
        };
        match transmit(proxy, client, &head, &way, connection) {
            Ok(attempt) => {
                proxy.counters().upstream_reuses.add(1);
                return Ok(Begun::Sent(attempt));
            }
            Err(TransmitError::Refused(failure)) => return Err(failure),
            // It ended while it was idle and took no byte: as if it had not been there.
            Err(TransmitError::Broken(connection, _)) => pick = connection.into_pick(),
        }
    }
}

enum TransmitError {
    /// The request must not be sent.
    Refused(Box<Failure>),
    /// The connection took no byte.
    Broken(Box<Connection>, io::Error),
}

/// As [`transmit`], for a head that was parsed before an await.
fn transmit_again(
    proxy: &Proxy,
    client: &Client,
    way: &Way,
    connection: Connection,
) -> Result<Attempt, TransmitError> {
    let mut slots = FieldSlots::new();
    let head = parse_again(client, &mut slots);
    transmit(proxy, client, &head, way, connection)
}

/// The head that the client's buffer begins with, which was accepted before.
fn parse_again<'h, 'b>(client: &'b Client, slots: &'h mut FieldSlots<'b>) -> RequestHead<'h, 'b> {
    RequestHead::parse(client.buffer.filled(), &client.rule().request_head, slots)
        .ok()
        .flatten()
        .expect("the same bytes were parsed before")
}

/// Encodes the request and writes it, with what is there of its body, as far as the socket takes it.
fn transmit(
    proxy: &Proxy,
    client: &Client,
    head: &RequestHead<'_, '_>,
    way: &Way,
    connection: Connection,
) -> Result<Attempt, TransmitError> {
    let facts = head.facts;
    let refused = |error| TransmitError::Refused(Failure::early(error, Some(facts)));
    let mut scratch = proxy.scratch.borrow_mut();
    scratch.clear();
    let context = client.dress.context(way, &client.peer_text, connection.host(), VIA);
    encode_request(head, &context, &mut scratch);
    let trailers = Trailers::Forward(context.edits.remove);
    let mut body = BodyDecoder::new(facts.framing);
    let input = &client.buffer.filled()[head.bytes..];
    let taken = append_body(input, &mut body, facts.framing, trailers, &mut scratch);
    let taken = taken.map_err(|error| refused(ProxyError::RequestBody(error)))?;
    let most = way.limits().body_bytes.unwrap_or(u64::MAX);
    let allowance = most
        .checked_sub(taken.body_bytes as u64)
        .ok_or_else(|| refused(ProxyError::RequestBodyBytes(most)))?;
    let unsent = match write_now(&scratch, &connection.stream) {
        Ok(unsent) => unsent,
        Err(error) => return Err(TransmitError::Broken(Box::new(connection), error)),
    };
    proxy.counters().request_body_bytes.add(taken.body_bytes as u64);
    add(&client.account.body_in, taken.body_bytes as u64);
    client.account.endpoint.set(Some((connection.address(), connection.reused)));
    let taken = head.bytes + taken.input_bytes;
    Ok(Attempt {
        way: way.clone(),
        connection: Some(connection),
        facts,
        body,
        taken,
        allowance,
        unsent,
        upload: Upload::default(),
        // Without a wait the first byte of the request was there just now.
        sent: client.account.connected_at.get().unwrap_or_else(|| client.account.started()),
        trials: Trials::default(),
    })
}

/// Waits for the answer and brings it to the client; tries once more where that is safe.
pub(crate) async fn conclude(
    proxy: &Proxy,
    client: &mut Client,
    attempt: &mut Attempt,
) -> Result<Answered, Box<Failure>> {
    loop {
        let mut failure = match settle(proxy, client, attempt).await {
            Ok(answered) => return Ok(answered),
            Err(failure) => failure,
        };
        if let Some(kind) = failure.error.kind() {
            attempt.connection().report(AttemptOutcome::Failed(kind));
        }
        let Some(retry) = failure.retry.take() else { return Err(failure) };
        match Box::pin(try_again(proxy, client, attempt, &failure, retry)).await? {
            Some(next) => *attempt = next,
            None => {
                // It was kept for an attempt that does not come.
                client.buffer.consume(attempt.taken);
                return Err(failure);
            }
        }
    }
}

/// One attempt to its end.
async fn settle(
    proxy: &Proxy,
    client: &mut Client,
    attempt: &mut Attempt,
) -> Result<Answered, Box<Failure>> {
    let complete = attempt.body.is_complete() && attempt.unsent.is_empty();
    attempt.upload.complete.set(complete);
    let connection = attempt.connection.as_ref().expect("only a failed attempt has none");
    let answer = Answer {
        proxy,
        way: &attempt.way,
        client: &client.stream,
        timer: &client.answer_timer,
        account: &client.account,
        dress: &client.dress,
        connection,
        facts: &attempt.facts,
        upload: &attempt.upload,
        sent: attempt.sent,
        replay: Replay {
            idempotent: attempt.facts.is_idempotent(),
            replayable: complete,
            attempts: attempt.trials.tried.count() + 1,
        },
        may_race: connection.reused && !attempt.trials.raced,
        interim_relayed: Cell::new(false),
        last: client.is_last_request(proxy),
    };
    if complete {
        let outcome = answer.run().await;
        if !matches!(&outcome, Err(failure) if failure.retry.is_some()) {
            client.buffer.consume(attempt.taken);
        }
        return outcome;
    }
    client.buffer.consume(attempt.taken);
    let sending = Sending {
        proxy,
        way: &attempt.way,
        account: &client.account,
        client: &client.stream,
        timer: &client.timer,
        unsent: std::mem::take(&mut attempt.unsent),
        allowance: attempt.allowance,
        without: client.dress.request(&attempt.way).remove,
    };
    let coding = attempt.facts.framing;
    let sent = sending.run(connection, coding, &mut client.buffer, &mut attempt.body);
    Box::pin(both(answer, sent)).await
}

/// The answer is through: what becomes of the two connections.
pub(crate) fn finish(attempt: Attempt, answered: &Answered) -> Outcome {
    let complete = attempt.upload.complete.get();
    let connection = attempt.connection.expect("an answer came by it");
    connection.report(AttemptOutcome::Answered { first_byte: answered.first_byte });
    if answered.upstream_reusable && complete {
        attempt.way.upstream().give_back(connection);
    }
    match (complete, answered.keep_client) {
        (true, true) => Outcome::KeepAlive,
        (true, false) => Outcome::Close,
        (false, _) => Outcome::Linger,
    }
}
