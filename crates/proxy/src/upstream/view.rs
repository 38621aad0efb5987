//! An upstream as one core sees it: its endpoints, and which of them can take a request now.
//!
//! Looked at anew when the upstream's version has changed, and from one tick to the next while time
//! alone changes what an endpoint takes; a choice costs one atomic load besides.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastrand::Rng;

use super::balance::{Candidate, Candidates};
use super::endpoint::{Endpoint, Reusable};
use super::standing::{Phase, SHARE};
use super::state::{EndpointState, Health, UpstreamNotice, UpstreamState};
use crate::config::Balance;
use crate::limits::PICK_LOOKS;

/// The endpoints a request was already sent to. Empty, it owns no memory. Bound: the attempts.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    addresses: Vec<SocketAddr>,
}

impl Tried {
    pub(crate) fn add(&mut self, endpoint: SocketAddr) {
        self.addresses.push(endpoint);
    }

    /// How many attempts were made.
    pub(crate) fn count(&self) -> usize {
        self.addresses.len()
    }

    fn contains(&self, endpoint: SocketAddr) -> bool {
        self.addresses.contains(&endpoint)
    }
}

/// The endpoint chosen for an attempt, which counts as under way there until this is dropped.
pub(crate) struct Pick<C: Reusable> {
    pub(super) endpoint: Rc<Endpoint<C>>,
    /// Whether the request was tried before.
    pub(super) is_retry: bool,
    /// Whether it was tried at this very endpoint, since no other can be used.
    pub(crate) again: bool,
}

impl<C: Reusable> Pick<C> {
    fn new(endpoint: &Rc<Endpoint<C>>, tried: &Tried) -> Pick<C> {
        endpoint.state.in_flight.fetch_add(1, Ordering::Relaxed);
        let again = tried.contains(endpoint.state.address);
        Pick { endpoint: endpoint.clone(), is_retry: tried.count() > 0, again }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.endpoint.state.address
    }
}

impl<C: Reusable> Drop for Pick<C> {
    fn drop(&mut self) {
        self.endpoint.state.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) struct View<C: Reusable> {
    pub(super) state: Arc<UpstreamState>,
    core: usize,
    known: RefCell<Known<C>>,
}

struct Known<C: Reusable> {
    /// The version it is of; 0: none.
    version: u64,
    /// When it was looked at, milliseconds of the process.
    at: u64,
    /// Whether it changes with time alone.
    changing: bool,
    list: Arc<[Arc<EndpointState>]>,
    /// In the order of `list`.
    endpoints: Vec<Rc<Endpoint<C>>>,
    /// Endpoints that have left and are still in use.
    departed: Vec<Weak<Endpoint<C>>>,
    /// Those that can take a request.
    ready: Candidates,
    /// Those that can where none of `ready` is left for a request.
    spare: Candidates,
    rng: Rng,
}

impl<C: Reusable> View<C> {
    pub(super) fn new(state: Arc<UpstreamState>, core: usize, rng: Rng, now: u64) -> View<C> {
        let mut known = Known {
            version: 0,
            at: now,
            changing: false,
            list: Arc::new([]),
            endpoints: Vec::new(),
            departed: Vec::new(),
            ready: Candidates::default(),
            spare: Candidates::default(),
            rng,
        };
        known.refresh(&state, core, now);
        // The cores begin at different endpoints, so that a few requests are spread too.
        for _ in 0..core * known.endpoints.len() / state.cores().max(1) {
            known.ready.in_turn(|index| &known.endpoints[index].credit);
        }
        View { state, core, known: RefCell::new(known) }
    }

    /// The endpoint for the next attempt of a request; `None`: there is none that can be used.
    pub(super) fn pick(&self, now: u64, key: Option<u64>, tried: &Tried) -> Option<Pick<C>> {
        let mut known = self.known.borrow_mut();
        let known = &mut *known;
        for look in 1..=PICK_LOOKS {
            known.refresh(&self.state, self.core, now);
            let balance = &self.state.config().balance;
            let chosen = if tried.count() == 0 {
                choose(&known.ready, &known.endpoints, &mut known.rng, balance, key)?
            } else {
                let untried = known.untried(tried);
                choose(&untried, &known.endpoints, &mut known.rng, balance, key)?
            };
            let endpoint = &known.endpoints[chosen.index];
            if chosen.probe {
                // Whoever tries it, it takes no other request for now.
                known.version = 0;
                if !endpoint.state.standing.claim_probe(now) && look < PICK_LOOKS {
                    continue;
                }
            }
            return Some(Pick::new(endpoint, tried));
        }
        None
    }

    /// Takes what another core left for this one.
    pub(super) fn handle(&self, notice: &UpstreamNotice) {
        let known = self.known.borrow();
        let departed: Vec<_> = known.departed.iter().filter_map(Weak::upgrade).collect();
        let mut all = known.endpoints.iter().chain(&departed);
        if let Some(endpoint) = all.find(|one| Arc::ptr_eq(&one.state, &notice.endpoint)) {
            endpoint.attend();
        }
    }

    /// Closes the idle connections that have waited too long or have ended.
    pub(super) fn sweep(&self, now: u64) {
        let mut known = self.known.borrow_mut();
        known.refresh(&self.state, self.core, now);
        known.departed.retain(|departed| departed.strong_count() > 0);
        for endpoint in known.all() {
            endpoint.sweep(now);
        }
    }

    /// Closes all idle connections.
    pub(super) fn clear(&self) {
        for endpoint in self.known.borrow().all() {
            endpoint.clear();
        }
    }
}

impl<C: Reusable> Drop for View<C> {
    fn drop(&mut self) {
        for endpoint in self.known.borrow().all() {
            endpoint.set_gone(true);
        }
    }
}

impl<C: Reusable> Known<C> {
    fn all(&self) -> Vec<Rc<Endpoint<C>>> {
        let departed = self.departed.iter().filter_map(Weak::upgrade);
        self.endpoints.iter().cloned().chain(departed).collect()
    }

    fn refresh(&mut self, state: &Arc<UpstreamState>, core: usize, now: u64) {
        let version = state.version();
        if version == self.version && !(self.changing && now != self.at) {
            return;
        }
        if version != self.version {
            // Read before the list: a change in between is looked at next time.
            self.version = version;
            let list = state.endpoints();
            if !Arc::ptr_eq(&list, &self.list) {
                self.take_list(list, state, core);
            }
        }
        self.at = now;
        self.look(state, now);
    }

    fn take_list(
        &mut self,
        list: Arc<[Arc<EndpointState>]>,
        state: &Arc<UpstreamState>,
        core: usize,
    ) {
        let known = self.all();
        let find = |wanted: &Arc<EndpointState>| {
            known.iter().find(|one| Arc::ptr_eq(&one.state, wanted)).cloned()
        };
        let endpoint = |one| find(one).unwrap_or_else(|| Rc::new(Endpoint::new(state, one, core)));
        self.endpoints = list.iter().map(endpoint).collect();
        self.departed.clear();
        for one in &known {
            let gone = !self.endpoints.iter().any(|endpoint| Rc::ptr_eq(endpoint, one));
            one.set_gone(gone);
            if gone {
                self.departed.push(Rc::downgrade(one));
            }
        }
        self.list = list;
    }

    /// Which endpoints can take a request: those that are well; without any, those kept for that
    /// case; without any, all that are not drained, since a request that may fail is better than one
    /// that must.
    fn look(&mut self, state: &UpstreamState, now: u64) {
        let slow_start = state.config().slow_start;
        self.ready.clear();
        self.spare.clear();
        self.changing = false;
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let one = &endpoint.state;
            self.changing |= one.standing.is_changing(now, slow_start);
            let phase = one.standing.phase(now);
            let probe = phase == Phase::OnProbation;
            let usable = !one.is_drained()
                && one.health() != Health::Down
                && phase != Phase::LeftOut
                && (!probe || one.standing.may_probe(now));
            if usable {
                let weight = u64::from(one.weight) * one.standing.share(now, slow_start);
                let tier = if one.backup { &mut self.spare } else { &mut self.ready };
                tier.push(index, weight, probe);
            }
        }
        if self.ready.is_empty() {
            std::mem::swap(&mut self.ready, &mut self.spare);
        }
        if self.ready.is_empty() {
            let endpoints = self.endpoints.iter().enumerate();
            for (index, endpoint) in endpoints.filter(|(_, one)| !one.state.is_drained()) {
                self.ready.push(index, u64::from(endpoint.state.weight) * SHARE, false);
            }
        }
    }

    /// What is left for a request that was tried: not the endpoints that were, nor those that are
    /// not sure to be well; what is left of the spare ones; else any that was not tried; else any.
    fn untried(&self, tried: &Tried) -> Candidates {
        let left = |index: usize| !tried.contains(self.endpoints[index].state.address);
        let sure = |index: usize| {
            left(index) && self.endpoints[index].state.standing.phase(self.at) == Phase::InService
        };
        let mut some = self.ready.filtered(sure);
        if some.is_empty() {
            some = self.spare.filtered(sure);
        }
        if some.is_empty() {
            some = self.ready.filtered(left);
        }
        if some.is_empty() { self.ready.filtered(|_| true) } else { some }
    }
}

fn choose<C: Reusable>(
    candidates: &Candidates,
    endpoints: &[Rc<Endpoint<C>>],
    rng: &mut Rng,
    balance: &Balance,
    key: Option<u64>,
) -> Option<Candidate> {
    match (balance, key) {
        (Balance::RoundRobin, _) => candidates.in_turn(|index| &endpoints[index].credit),
        (Balance::Hash(_), Some(key)) => candidates.by_key(key, |index| endpoints[index].seed),
        (Balance::P2c | Balance::Hash(_), _) => candidates
            .less_loaded(rng, |index| endpoints[index].state.in_flight.load(Ordering::Relaxed)),
    }
}
