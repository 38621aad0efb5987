//! One endpoint as one core sees it: its idle connections, and the requests that wait for one.
//!
//! Every connection holds a permit; where connections are bounded, a permit that becomes free
//! goes to the request that has waited longest, on this core with its connection, on another without.
//! Nothing is dropped while a part of the endpoint is borrowed: the end of a connection comes back
//! here.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use super::clock::{ms, now_ms};
use super::gate::Gate;
use super::hash::hash_bytes;
use super::permit::{Grant, Permit};
use super::state::{EndpointState, UpstreamState};
use crate::limits::OTHER_CORES_WAIT;
use crate::pool::{Parked, Pool};

/// A connection that can be kept between two requests.
pub(crate) trait Reusable {
    /// Whether it ended, or brought something that nobody asked for, while it was idle.
    fn has_stirred(&self) -> bool;
}

impl Reusable for baton_runtime::Stream {
    fn has_stirred(&self) -> bool {
        baton_runtime::Stream::has_stirred(self)
    }
}

pub(crate) struct Endpoint<C: Reusable> {
    pub(super) state: Arc<EndpointState>,
    pub(super) upstream: Arc<UpstreamState>,
    pub(super) core: usize,
    /// The address as text: the Host of a request that has none.
    pub(super) host: String,
    /// What stands for it in consistent hashing.
    pub(super) seed: u64,
    /// What it has saved up in round robin.
    pub(super) credit: Cell<i64>,
    pool: RefCell<Pool<C>>,
    /// Bound: the places of the gate's queue.
    queue: RefCell<VecDeque<Rc<Waiter<C>>>>,
    /// Whether it is no longer one of the upstream's.
    gone: Cell<bool>,
}

/// A request that waits.
struct Waiter<C> {
    since: u64,
    state: RefCell<WaiterState<C>>,
}

enum WaiterState<C> {
    Waits(Option<Waker>),
    /// It has the permit, perhaps with a connection.
    Has(Option<Parked<C>>),
    Over,
}

/// What a request finds that needs a connection.
pub(super) enum Entry<C: Reusable> {
    Open(Grant<C>),
    Wait(Waiting<C>),
}

/// Too many wait already.
#[derive(Debug)]
pub(super) struct QueueIsFull;

/// Whose turn it is to have what became free.
enum Turn {
    Here,
    Core(usize),
    Nobody,
}

impl<C: Reusable> Endpoint<C> {
    pub(super) fn new(
        upstream: &Arc<UpstreamState>,
        state: &Arc<EndpointState>,
        core: usize,
    ) -> Endpoint<C> {
        let host = state.address.to_string();
        let pool = &upstream.config().pool;
        let share = pool.idle.div_ceil(upstream.cores());
        Endpoint {
            state: state.clone(),
            upstream: upstream.clone(),
            core,
            seed: hash_bytes(host.as_bytes()),
            host,
            credit: Cell::new(0),
            pool: RefCell::new(Pool::new(share, ms(pool.idle_timeout))),
            queue: RefCell::default(),
            gone: Cell::new(false),
        }
    }

    /// An idle connection that is silent and open.
    ///
    /// Each reuse has its look: bytes that came since the last answer would be taken for the answer
    /// to this request, which is another client's.
    pub(super) fn lease(self: &Rc<Self>, now: u64) -> Option<Grant<C>> {
        loop {
            let mut pool = self.pool.borrow_mut();
            let parked = pool.take_newest()?;
            let usable = !pool.is_stale(&parked, now) && !parked.stream.has_stirred();
            self.show_idle(&pool);
            drop(pool);
            if usable {
                return Some(Grant { parked: Some(parked), permit: Permit::of(self) });
            }
            self.close(parked);
        }
    }

    /// Leave for a connection, or a place in the queue for it. `now`: to the millisecond.
    pub(super) fn enter(self: &Rc<Self>, now: u64) -> Result<Entry<C>, QueueIsFull> {
        let open = || Entry::Open(Grant { parked: None, permit: Permit::of(self) });
        let Some(gate) = self.state.gate() else {
            self.state.connections.fetch_add(1, Ordering::Relaxed);
            return Ok(open());
        };
        if self.queue.borrow().is_empty() {
            if let Some(grant) = self.lease(now) {
                return Ok(Entry::Open(grant));
            }
            if gate.take(&self.state.connections) {
                return Ok(open());
            }
        }
        if !gate.enter() {
            return Err(QueueIsFull);
        }
        let state = RefCell::new(WaiterState::Waits(None));
        let waiter = Rc::new(Waiter { since: now, state });
        let first = {
            let mut queue = self.queue.borrow_mut();
            queue.push_back(waiter.clone());
            queue[0].since
        };
        gate.announce(self.core, first);
        // What became free before the announcement was not kept for this one.
        if gate.take(&self.state.connections) {
            self.hand(gate, None);
        } else if let Some(other) = gate.idle_elsewhere(self.core)
            && gate.ask(other)
        {
            self.upstream.tell(other, &self.state);
        }
        Ok(Entry::Wait(Waiting { endpoint: self.clone(), waiter }))
    }

    /// Keeps a connection for the next request. Its permit stays with it.
    pub(super) fn keep(&self, parked: Parked<C>, now: u64) {
        if self.gone.get() || now >= parked.retires {
            return self.close(parked);
        }
        let Some(gate) = self.state.gate() else {
            let refused = self.pool.borrow_mut().give_back(parked);
            return refused.into_iter().for_each(|parked| self.close(parked));
        };
        // A round is taken again only after another core has served one that waits.
        loop {
            match self.turn(gate) {
                Turn::Here if parked.stream.has_stirred() => return self.close(parked),
                Turn::Here => return self.hand(gate, Some(parked)),
                Turn::Core(core) if gate.claim(core) => {
                    drop(parked);
                    return self.grant(gate, core);
                }
                Turn::Core(_) => {}
                Turn::Nobody => break,
            }
        }
        let refused = {
            let mut pool = self.pool.borrow_mut();
            let refused = pool.give_back(parked);
            self.show_idle(&pool);
            refused
        };
        refused.into_iter().for_each(|parked| self.close(parked));
        // One that began to wait before the connection was shown has not asked for it.
        self.give_up(gate, 1);
    }

    /// Takes what other cores left for this one.
    pub(super) fn attend(&self) {
        let Some(gate) = self.state.gate() else { return };
        for _ in 0..gate.take_granted(self.core) {
            if self.queue.borrow().is_empty() {
                self.release();
            } else {
                self.hand(gate, None);
            }
        }
        self.give_up(gate, gate.take_asked(self.core));
    }

    /// Closes the idle connections that have waited too long or have ended.
    pub(super) fn sweep(&self, now: u64) {
        self.attend();
        let mut pool = self.pool.borrow_mut();
        let ended = pool.sweep(now, C::has_stirred);
        self.show_idle(&pool);
        drop(pool);
        ended.into_iter().for_each(|parked| self.close(parked));
    }

    /// Closes all idle connections.
    pub(super) fn clear(&self) {
        let mut pool = self.pool.borrow_mut();
        let all = pool.take_all();
        self.show_idle(&pool);
        drop(pool);
        all.into_iter().for_each(|parked| self.close(parked));
    }

    /// It is, or is not, one of the upstream's from now on. Of one that is not no connection is kept.
    pub(super) fn set_gone(&self, gone: bool) {
        self.gone.set(gone);
        if gone {
            self.clear();
        }
    }

    fn close(&self, parked: Parked<C>) {
        drop(parked);
        self.release();
    }

    /// A connection is closed, or was not made: its permit goes to who waits, or is free.
    pub(super) fn release(&self) {
        let connections = &self.state.connections;
        let Some(gate) = self.state.gate() else {
            connections.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        // A round is taken again only after another core has served one that waits, or has begun to.
        loop {
            match self.turn(gate) {
                Turn::Here => return self.hand(gate, None),
                Turn::Core(core) if gate.claim(core) => return self.grant(gate, core),
                Turn::Core(_) => {}
                Turn::Nobody => {
                    connections.fetch_sub(1, Ordering::SeqCst);
                    if gate.oldest_elsewhere(self.core).is_none() || !gate.take(connections) {
                        return;
                    }
                }
            }
        }
    }

    fn turn(&self, gate: &Gate) -> Turn {
        let here = self.queue.borrow().front().map(|first| first.since);
        match (here, gate.oldest_elsewhere(self.core)) {
            (None, None) => Turn::Nobody,
            (None, Some((core, _))) => Turn::Core(core),
            (Some(here), Some((core, there))) if there + ms(OTHER_CORES_WAIT) < here => {
                Turn::Core(core)
            }
            (Some(_), _) => Turn::Here,
        }
    }

    /// Gives the permit, and perhaps its connection, to the first that waits here.
    fn hand(&self, gate: &Gate, parked: Option<Parked<C>>) {
        let first = self.queue.borrow_mut().pop_front();
        let waiter = first.expect("only a queue that is not empty is handed to");
        self.left_queue(gate);
        let before = waiter.state.replace(WaiterState::Has(parked));
        if let WaiterState::Waits(Some(waker)) = before {
            waker.wake();
        }
    }

    fn grant(&self, gate: &Gate, core: usize) {
        if gate.grant(core) {
            self.upstream.tell(core, &self.state);
        }
    }

    /// Gives up to `most` idle connections up for requests that wait on other cores.
    fn give_up(&self, gate: &Gate, most: u32) {
        for _ in 0..most {
            if self.pool.borrow().len() == 0 {
                return;
            }
            let Some((core, _)) = gate.oldest_elsewhere(self.core) else { return };
            if !gate.claim(core) {
                continue;
            }
            let mut pool = self.pool.borrow_mut();
            let oldest = pool.take_oldest();
            self.show_idle(&pool);
            drop(pool);
            drop(oldest);
            self.grant(gate, core);
        }
    }

    /// One of the queue is gone.
    fn left_queue(&self, gate: &Gate) {
        let queue = self.queue.borrow();
        gate.withdraw(self.core, queue.len(), queue.front().map(|first| first.since));
        gate.leave();
    }

    fn show_idle(&self, pool: &Pool<C>) {
        if let Some(gate) = self.state.gate() {
            gate.show_idle(self.core, pool.len());
        }
    }
}

impl<C: Reusable> Drop for Endpoint<C> {
    fn drop(&mut self) {
        debug_assert!(self.queue.borrow().is_empty(), "those who wait hold their endpoint");
        self.clear();
        self.attend();
    }
}

/// A place in the queue. Given up when dropped; what was handed to it by then goes to the next.
pub(super) struct Waiting<C: Reusable> {
    endpoint: Rc<Endpoint<C>>,
    waiter: Rc<Waiter<C>>,
}

impl<C: Reusable> Waiting<C> {
    /// Ready once it has its turn, or with `None` once `late` is.
    pub(super) fn poll(
        &self,
        cx: &mut Context<'_>,
        late: impl FnOnce(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<Option<Grant<C>>> {
        let mut state = self.waiter.state.borrow_mut();
        match &mut *state {
            WaiterState::Waits(waker) => {
                if waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                late(cx).map(|()| None)
            }
            WaiterState::Has(parked) => {
                let parked = parked.take();
                *state = WaiterState::Over;
                Poll::Ready(Some(Grant { parked, permit: Permit::of(&self.endpoint) }))
            }
            WaiterState::Over => Poll::Ready(None),
        }
    }
}

impl<C: Reusable> Drop for Waiting<C> {
    fn drop(&mut self) {
        let gate = self.endpoint.state.gate().expect("only at a gate requests wait");
        match self.waiter.state.replace(WaiterState::Over) {
            WaiterState::Over => {}
            WaiterState::Has(Some(parked)) => self.endpoint.keep(parked, now_ms()),
            WaiterState::Has(None) => self.endpoint.release(),
            WaiterState::Waits(_) => {
                let mut queue = self.endpoint.queue.borrow_mut();
                queue.retain(|other| !Rc::ptr_eq(other, &self.waiter));
                drop(queue);
                self.endpoint.left_queue(gate);
            }
        }
    }
}
