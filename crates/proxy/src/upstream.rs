//! The endpoints requests are sent to, as one core sees them.
//!
//! ```text
//! pick ──► Pick ──► lease ─────────────► Connection ──► give_back
//!                     │ no idle one         ▲
//!                     └──► connect, perhaps after a wait for its turn
//! ```
//!
//! What is taken is given back by being dropped: a [`Pick`] counts as a request under way at its
//! endpoint, a [`Connection`] as one that is open, until then.

mod balance;
mod clock;
mod endpoint;
mod gate;
mod hash;
mod permit;
mod retry;
mod standing;
mod state;
#[cfg(test)]
mod tests;
mod view;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use baton_runtime::{Core, Stream, Timer};

use self::clock::{ms, now_ms};
use self::endpoint::{Entry, Reusable};
use self::permit::{Grant, Permit};
use self::view::View;
use crate::config::RetryOn;
use crate::error::{ProxyError, is_timeout};
use crate::pool::Parked;

pub(crate) use hash::{HashInput, hash_request};
pub(crate) use retry::{After, Replay, may_retry};
pub(crate) use state::{EndpointState, Health, RetryGuard, UpstreamNotice, UpstreamState};
pub(crate) use view::Tried;

/// The endpoint chosen for an attempt.
pub(crate) type Pick = view::Pick<Stream>;

/// A connection to an endpoint, for one exchange.
pub(crate) type Connection = Leased<Stream>;

/// A connection while an exchange uses it. In this order: it ends before its permit goes on.
pub(crate) struct Leased<C: Reusable> {
    pub(crate) stream: C,
    permit: Permit<C>,
    pick: view::Pick<C>,
    /// Whether an earlier exchange used it: it may have ended unnoticed.
    pub(crate) reused: bool,
    /// From when on it is no longer kept, milliseconds of the process.
    retires: u64,
}

/// How an attempt ended at its endpoint. What the client broke off is no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// It answered, whatever the status: a 5xx is an answer.
    Answered {
        /// From the request sent to the head of the answer.
        first_byte: Duration,
    },
    /// It failed.
    Failed(RetryOn),
}

impl<C: Reusable> Leased<C> {
    pub(crate) fn address(&self) -> SocketAddr {
        self.pick.address()
    }

    /// The endpoint's address as text: the Host of a request that has none.
    pub(crate) fn host(&self) -> &[u8] {
        self.pick.endpoint.host.as_bytes()
    }

    /// Closes it and goes back to the choice it came from.
    pub(crate) fn into_pick(self) -> view::Pick<C> {
        let Leased { stream, permit, pick, .. } = self;
        drop(stream);
        drop(permit);
        pick
    }

    /// Notes how the attempt ended. At the end of the exchange, so that an answer that breaks off
    /// is not first counted as a success.
    pub(crate) fn report(&self, outcome: AttemptOutcome) {
        // Under the keep-alive race the endpoint may close just as we send: no sign of a fault.
        let raced = self.reused && outcome == AttemptOutcome::Failed(RetryOn::NoAnswer);
        report(&self.pick, outcome, raced);
    }

    fn new(pick: view::Pick<C>, grant: Grant<C>) -> Result<Leased<C>, (view::Pick<C>, Permit<C>)> {
        let Grant { parked, permit } = grant;
        match parked {
            Some(Parked { stream, retires, .. }) => {
                Ok(Leased { stream, permit, pick, reused: true, retires })
            }
            None => Err((pick, permit)),
        }
    }

    /// Counts it as an attempt.
    fn counted(self) -> Leased<C> {
        let endpoint = &self.pick.endpoint;
        let counters = endpoint.state.counters(endpoint.core);
        counters.requests.add(1);
        counters.retries.add(u64::from(self.pick.is_retry));
        self
    }
}

/// Counts an outcome. `raced`: a failure that says nothing of the endpoint.
fn report<C: Reusable>(pick: &view::Pick<C>, outcome: AttemptOutcome, raced: bool) {
    let endpoint = &pick.endpoint;
    let counters = endpoint.state.counters(endpoint.core);
    match outcome {
        AttemptOutcome::Answered { first_byte } => {
            counters.first_byte.add(first_byte);
            // Nearly always there is nothing to make good, and no need to know the time.
            if endpoint.state.has_failed() {
                endpoint.upstream.succeeded(&endpoint.state, now_ms());
            }
        }
        AttemptOutcome::Failed(_) => {
            counters.failures.add(1);
            if !raced && endpoint.upstream.failed(&endpoint.state, now_ms()) {
                counters.ejections.add(1);
            }
        }
    }
}

/// An upstream and this core's connections to its endpoints.
pub(crate) struct Upstream {
    core: Core,
    view: View<Stream>,
    /// A tick of the core, and its time in milliseconds of the process.
    now: Cell<(u64, u64)>,
}

impl Upstream {
    pub(crate) fn new(core: &Core, state: Arc<UpstreamState>) -> Upstream {
        let now = now_ms();
        let view = View::new(state, core.index(), fastrand::Rng::new(), now);
        Upstream { core: core.clone(), view, now: Cell::new((core.tick(), now)) }
    }

    /// What all cores know of it.
    pub(crate) fn state(&self) -> &Arc<UpstreamState> {
        &self.view.state
    }

    /// What a request is balanced by, where that is something of the request.
    pub(crate) fn key<'a, F>(&self, input: HashInput<'a, F>) -> Option<u64>
    where
        F: IntoIterator<Item = (&'a [u8], &'a [u8])>,
    {
        match &self.state().config().balance {
            crate::config::Balance::Hash(key) => hash_request(key, input),
            _ => None,
        }
    }

    /// The endpoint for the next attempt of a request; `None`: there is none that can be used.
    /// Those tried are chosen again only if there is no other.
    pub(crate) fn pick(&self, key: Option<u64>, tried: &Tried) -> Option<Pick> {
        self.view.pick(self.now(), key, tried)
    }

    /// An idle connection to the endpoint that is silent and open; the choice back if there is none.
    pub(crate) fn lease(&self, pick: Pick) -> Result<Connection, Pick> {
        match pick.endpoint.lease(self.now()) {
            Some(grant) => Leased::new(pick, grant).map(Leased::counted).map_err(|(pick, _)| pick),
            None => Err(pick),
        }
    }

    /// A connection to the endpoint: a new one, or after a wait for its turn one that became free.
    /// `client`: who asks; once it has broken off there is nothing to wait for.
    ///
    /// # Errors
    /// `QueueFull`, `QueueTimeout` and `ClientGone` where its connections are bounded;
    /// `OutOfResources`; `Connect`
    /// and `ConnectTimeout`, which are reported as failures of the endpoint.
    pub(crate) async fn connect(
        &self,
        pick: Pick,
        timer: &Timer,
        bound: Duration,
        client: &Stream,
    ) -> Result<Connection, ProxyError> {
        let address = pick.address();
        let grant = self.admit(&pick, timer, client).await?;
        let (pick, permit) = match Leased::new(pick, grant) {
            Ok(connection) => return Ok(connection.counted()),
            Err(parts) => parts,
        };
        timer.set(bound);
        let stream = self.core.connect(address, timer).await;
        let stream = stream.map_err(|error| {
            if is_shortage(&error) {
                return ProxyError::OutOfResources(error);
            }
            report(&pick, AttemptOutcome::Failed(RetryOn::Connect), false);
            if is_timeout(&error) {
                ProxyError::ConnectTimeout(address, bound)
            } else {
                ProxyError::Connect(address, error)
            }
        })?;
        pick.endpoint.state.counters(self.core.index()).connects.add(1);
        let max_age = ms(self.state().config().pool.max_age);
        // Less up to a tenth by chance, so that what was opened at once is not closed at once.
        let age = max_age - fastrand::u64(..=max_age / 10);
        let retires = now_ms().saturating_add(age);
        Ok(Leased { stream, permit, pick, reused: false, retires }.counted())
    }

    /// Leave to connect, at once or after a wait.
    async fn admit(
        &self,
        pick: &Pick,
        timer: &Timer,
        client: &Stream,
    ) -> Result<Grant<Stream>, ProxyError> {
        let queue = &self.state().config().queue;
        let waiting = match pick.endpoint.enter(now_ms()) {
            Ok(Entry::Open(grant)) => return Ok(grant),
            Ok(Entry::Wait(waiting)) => waiting,
            Err(_) => return Err(ProxyError::QueueFull(pick.address(), queue.length)),
        };
        timer.set(queue.timeout);
        let mut broken = pin!(client.broken());
        poll_fn(|cx| {
            if let Poll::Ready(granted) = waiting.poll(cx, |cx| timer.poll_expired(cx)) {
                let late = ProxyError::QueueTimeout(pick.address(), queue.timeout);
                return Poll::Ready(granted.ok_or(late));
            }
            broken.as_mut().poll(cx).map(|error| Err(ProxyError::ClientGone(error)))
        })
        .await
    }

    /// Keeps a connection whose exchange ended at a message boundary.
    pub(crate) fn give_back(&self, connection: Connection) {
        if self.core.is_draining() {
            return;
        }
        let Leased { stream, permit, pick, retires, .. } = connection;
        let now = self.now();
        permit.lay_down();
        pick.endpoint.keep(Parked { stream, since: now, retires }, now);
    }

    /// Leave for one more retry, if the budget has it.
    pub(crate) fn try_retry(&self) -> Option<RetryGuard> {
        self.state().try_retry()
    }

    /// Takes what another core left for this one.
    pub(crate) fn handle(&self, notice: &UpstreamNotice) {
        self.view.handle(notice);
    }

    /// Closes what has waited too long or has ended.
    pub(crate) fn sweep(&self) {
        self.view.sweep(self.now());
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.view.clear();
    }

    /// The time, right to a tick.
    fn now(&self) -> u64 {
        let (tick, now) = self.now.get();
        if tick == self.core.tick() {
            return now;
        }
        let now = now_ms();
        self.now.set((self.core.tick(), now));
        now
    }
}

/// The upstreams of one core, over all generations of the configuration that are in use. They are
/// owned by those generations; one that several have is the same in all.
#[derive(Default)]
pub(crate) struct Upstreams {
    /// Bound: the upstreams of the generations in use.
    list: RefCell<Vec<Weak<Upstream>>>,
}

impl Upstreams {
    /// This core's side of `state`: the one there is, with its connections, or a new one.
    pub(crate) fn open(&self, core: &Core, state: &Arc<UpstreamState>) -> Rc<Upstream> {
        self.list.borrow_mut().retain(|known| known.strong_count() > 0);
        if let Some(known) = self.find(state) {
            return known;
        }
        let upstream = Rc::new(Upstream::new(core, state.clone()));
        self.list.borrow_mut().push(Rc::downgrade(&upstream));
        upstream
    }

    /// Takes what another core left for this one.
    pub(crate) fn handle(&self, notice: &UpstreamNotice) {
        if let Some(upstream) = self.find(&notice.upstream) {
            upstream.handle(notice);
        }
    }

    /// Closes what has waited too long or has ended.
    pub(crate) fn sweep(&self) {
        self.all().iter().for_each(|upstream| upstream.sweep());
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.all().iter().for_each(|upstream| upstream.clear());
    }

    fn all(&self) -> Vec<Rc<Upstream>> {
        self.list.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    fn find(&self, state: &Arc<UpstreamState>) -> Option<Rc<Upstream>> {
        self.all().into_iter().find(|known| Arc::ptr_eq(known.state(), state))
    }
}

/// Whether a connection failed for want of descriptors, memory or ports of ours.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::AddrNotAvailable)
        || baton_runtime::is_out_of_descriptors(error)
}
