//! An endpoint as all cores share it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use baton_runtime::Counter;
use crossbeam_utils::CachePadded;

use crate::config;
use crate::histogram::Histogram;
use crate::upstream::clock::now_ms;
use crate::upstream::gate::Gate;
use crate::upstream::standing::Standing;

/// An endpoint, for all cores.
pub(crate) struct EndpointState {
    /// Where it is.
    pub(crate) address: SocketAddr,
    /// Which entry of the configured endpoints it came from.
    pub(crate) entry: usize,
    pub(crate) weight: u32,
    pub(crate) backup: bool,
    /// Requests under way, those that wait for a connection included. Written by every request:
    /// apart, so that the rest stays in the caches of all cores.
    pub(crate) in_flight: CachePadded<AtomicU32>,
    /// Connections open, idle ones included.
    pub(crate) connections: AtomicU32,
    /// Failures since the last success.
    pub(crate) failures_in_a_row: AtomicU32,
    health: AtomicU8,
    /// Its active checks, counted by the control thread.
    pub(crate) checks: CheckCounters,
    drained: AtomicBool,
    pub(in crate::upstream) standing: Standing,
    /// Where its connections are bounded: who waits for one.
    gate: Option<Gate>,
    /// The upstream's version.
    version: Arc<AtomicU64>,
    counters: Box<[EndpointCounters]>,
}

/// What active checks say of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Not checked, or not often enough yet: taken for well.
    Unknown,
    Up,
    Down,
}

/// What active checks of an endpoint came to.
#[derive(Debug, Default)]
pub(crate) struct CheckCounters {
    /// Checks that ended.
    pub(crate) checks: AtomicU64,
    /// Those of them that failed.
    pub(crate) failures: AtomicU64,
}

/// What one core counts of one endpoint.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct EndpointCounters {
    /// Requests sent to it, each attempt of them.
    pub(crate) requests: Counter,
    /// Attempts that failed: no connection, no answer, too late, not HTTP.
    pub(crate) failures: Counter,
    /// Attempts that followed a failure elsewhere.
    pub(crate) retries: Counter,
    /// Connections opened.
    pub(crate) connects: Counter,
    /// Times it was left out for its failures.
    pub(crate) ejections: Counter,
    /// From the request sent to the head of the answer.
    pub(crate) first_byte: Histogram,
}

/// What outlives a change of an upstream's settings.
#[derive(Clone, Copy)]
pub(super) struct Remembered {
    pub(super) address: SocketAddr,
    pub(super) drained: bool,
    pub(super) health: Health,
}

impl EndpointState {
    /// Takes over what is remembered of its address, which is known by this endpoint from then on.
    pub(super) fn recall(&self, remembered: &mut Vec<Remembered>, upstream: &config::Upstream) {
        let Some(place) = remembered.iter().position(|known| known.address == self.address) else {
            return;
        };
        let known = remembered.swap_remove(place);
        self.drained.store(known.drained, Ordering::Relaxed);
        // Without checks nothing would ever lift what an earlier one said.
        if upstream.health.is_some() {
            self.health.store(known.health as u8, Ordering::Relaxed);
        }
    }

    pub(super) fn new(
        address: SocketAddr,
        entry: usize,
        upstream: &config::Upstream,
        cores: usize,
        version: &Arc<AtomicU64>,
    ) -> EndpointState {
        let config = &upstream.endpoints[entry];
        let gate = upstream.max_conns.map(|most| Gate::new(most, upstream.queue.length, cores));
        EndpointState {
            address,
            entry,
            weight: config.weight,
            backup: config.backup,
            in_flight: CachePadded::new(AtomicU32::new(0)),
            connections: AtomicU32::new(0),
            failures_in_a_row: AtomicU32::new(0),
            health: AtomicU8::new(0),
            checks: CheckCounters::default(),
            drained: AtomicBool::new(false),
            standing: Standing::default(),
            gate,
            version: version.clone(),
            counters: (0..cores).map(|_| EndpointCounters::default()).collect(),
        }
    }

    /// Whether a success would change what is thought of it.
    pub(in crate::upstream) fn has_failed(&self) -> bool {
        self.failures_in_a_row.load(Ordering::Relaxed) != 0 || self.standing.has_been_out()
    }

    /// Where its connections are bounded: who waits for one.
    pub(in crate::upstream) fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    /// Requests that wait for a connection to it, on all cores.
    pub(crate) fn queued(&self) -> u32 {
        self.gate.as_ref().map_or(0, Gate::queued)
    }

    /// How long it is left out for its failures; zero: it is on probation. `None`: it is not.
    pub(crate) fn ejected_for(&self) -> Option<Duration> {
        let until = self.standing.ejected_until();
        (until != 0).then(|| Duration::from_millis(until.saturating_sub(now_ms())))
    }

    /// What it may take has changed: all cores look again.
    pub(super) fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// What core `core` counts of it; written by that core alone.
    pub(crate) fn counters(&self, core: usize) -> &EndpointCounters {
        &self.counters[core]
    }

    /// What each core counts of it.
    pub(crate) fn all_counters(&self) -> &[EndpointCounters] {
        &self.counters
    }

    pub(crate) fn health(&self) -> Health {
        const UP: u8 = Health::Up as u8;
        const DOWN: u8 = Health::Down as u8;
        match self.health.load(Ordering::Relaxed) {
            UP => Health::Up,
            DOWN => Health::Down,
            _ => Health::Unknown,
        }
    }

    pub(crate) fn set_health(&self, health: Health) {
        let before = self.health();
        if before == health {
            return;
        }
        if before == Health::Down {
            // Its checks are proof enough: what it failed before is over, and it starts slowly.
            self.failures_in_a_row.store(0, Ordering::Relaxed);
            self.standing.come_back(now_ms());
        }
        self.health.store(health as u8, Ordering::Relaxed);
        self.changed();
    }

    /// Whether an operator has taken it out: no new request goes to it.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Relaxed)
    }

    pub(crate) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Relaxed);
        self.changed();
    }
}
