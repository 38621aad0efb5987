//! The endpoints that one request is tried on, one after the other.

use std::time::Instant;

use baton_http1::{FieldSlots, Framing, RequestFacts};

use super::{Attempt, Failure, TransmitError, parse_again, transmit_again};
use crate::config::RetryOn;
use crate::downstream::Client;
use crate::error::ProxyError;
use crate::proxy::{Proxy, Way};
use crate::upstream::{After, AttemptOutcome, Pick, Replay, RetryGuard, Tried, may_retry};

/// Leave to send a request once more.
pub(crate) enum Retry {
    /// A connection that was used before has ended just as the request came: that says nothing of
    /// the endpoint, and costs it nothing.
    Raced,
    /// Within the upstream's budget, for as long as this is held.
    Budgeted(RetryGuard),
}

/// What was tried before for one request.
#[derive(Default)]
pub(crate) struct Trials {
    pub(super) tried: Tried,
    /// A budget's leave for the attempt under way.
    _retry: Option<RetryGuard>,
    /// Whether a used connection has ended under the request before.
    pub(super) raced: bool,
}

/// No endpoint can be used for the request that the client's buffer begins with.
pub(super) fn no_endpoint(client: &mut Client, way: &Way, facts: RequestFacts) -> Box<Failure> {
    let name = way.upstream().state().config().name.as_str();
    undelivered(client, facts, ProxyError::NoEndpoint(name.into()))
}

/// Connects, as picked or if that fails to another endpoint, and sends the request that the client's
/// buffer begins with.
pub(crate) async fn connect(
    proxy: &Proxy,
    client: &mut Client,
    way: Way,
    facts: RequestFacts,
    mut chosen: Pick,
    mut trials: Trials,
) -> Result<Attempt, Box<Failure>> {
    let bound = way.timeouts().connect;
    loop {
        let timer = &client.answer_timer;
        let address = chosen.address();
        client.account.endpoint.set(Some((address, false)));
        let error = match way.upstream().connect(chosen, timer, bound, &client.stream).await {
            Ok(connection) => {
                proxy.counters().upstream_connects.add(1);
                client.account.connected_at.set(Some(Instant::now()));
                match transmit_again(proxy, client, &way, connection) {
                    Ok(attempt) => return Ok(Attempt { trials, ..attempt }),
                    Err(TransmitError::Refused(failure)) => return Err(failure),
                    Err(TransmitError::Broken(connection, error)) => {
                        connection.report(AttemptOutcome::Failed(RetryOn::Connect));
                        ProxyError::NoAnswer(address, error)
                    }
                }
            }
            Err(error) => error,
        };
        trials.tried.add(address);
        // All of the request is still there, and no endpoint has seen a byte of it.
        let replay = Replay { idempotent: true, replayable: true, attempts: trials.tried.count() };
        let no_connection = matches!(
            error,
            ProxyError::Connect(..) | ProxyError::ConnectTimeout(..) | ProxyError::NoAnswer(..)
        );
        let retry = match no_connection {
            true => leave(proxy, &way, After::Failed(RetryOn::Connect), replay),
            false => None,
        };
        let Some(retry) = retry else { return Err(undelivered(client, facts, error)) };
        let Some(next) = way.upstream().pick(client.dress.key, &trials.tried) else {
            return Err(undelivered(client, facts, error));
        };
        if next.again && matches!(error, ProxyError::ConnectTimeout(..)) {
            // Waiting once more for the one endpoint there is would only double the bound.
            return Err(undelivered(client, facts, error));
        }
        proxy.retried(&error, client);
        trials._retry = Some(retry);
        chosen = next;
    }
}

/// Leave to send the request once more, by its upstream's rules and budget.
pub(crate) fn leave(proxy: &Proxy, way: &Way, after: After, replay: Replay) -> Option<RetryGuard> {
    let config = &way.upstream().state().config().retry;
    if !may_retry(config, after, replay) {
        return None;
    }
    let retry = way.upstream().try_retry();
    if retry.is_none() {
        proxy.counters().retry_budget_exhausted.add(1);
    }
    retry
}

/// No endpoint took the request. One without a body is done with: its client may send the next, so
/// that an outage does not make every client connect anew.
fn undelivered(client: &mut Client, facts: RequestFacts, error: ProxyError) -> Box<Failure> {
    let mut failure = Failure::early(error, Some(facts));
    if matches!(facts.framing, Framing::None | Framing::Length(0)) {
        let bytes = parse_again(client, &mut FieldSlots::new()).bytes;
        client.buffer.consume(bytes);
        failure.request_complete = true;
    }
    failure
}

/// The next attempt of a request after `failure`; `None` where there is nobody else to ask.
pub(super) async fn try_again(
    proxy: &Proxy,
    client: &mut Client,
    attempt: &mut Attempt,
    failure: &Failure,
    retry: Retry,
) -> Result<Option<Attempt>, Box<Failure>> {
    let mut trials = std::mem::take(&mut attempt.trials);
    match retry {
        // The same endpoint is as good as any other.
        Retry::Raced => trials.raced = true,
        Retry::Budgeted(guard) => {
            trials.tried.add(attempt.connection().address());
            trials._retry = Some(guard);
        }
    }
    // It ends before the next one is asked for: where connections are bounded, the next one may wait
    // for its place.
    attempt.connection = None;
    let way = attempt.way.clone();
    let Some(chosen) = way.upstream().pick(client.dress.key, &trials.tried) else {
        return Ok(None);
    };
    // Where no other endpoint can be used, one that has just failed would fail again. A status that
    // an operator wants tried again may pass.
    if chosen.again && !matches!(failure.error, ProxyError::AnswerStatus(..)) {
        return Ok(None);
    }
    proxy.retried(&failure.error, client);
    connect(proxy, client, way, attempt.facts, chosen, trials).await.map(Some)
}
