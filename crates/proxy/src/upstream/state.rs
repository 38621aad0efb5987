//! What all cores know of an upstream: its endpoints, and how each of them does.
//!
//! Shared for the process and kept over reloads as long as the upstream is configured as it was.
//! Atomics alone on the way of a request; the list of endpoints is behind a lock that a core takes
//! only when its version says that the list has changed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use baton_runtime::Counter;

use crate::config;
use crate::histogram::Histogram;

/// An upstream, for all cores.
pub(crate) struct UpstreamState {
    config: config::Upstream,
    cores: usize,
    endpoints: Mutex<Arc<[Arc<EndpointState>]>>,
    /// Rises with each change of `endpoints`. Written under the lock (Release); cores that see a
    /// new value (Acquire) read the list.
    version: AtomicU64,
}

/// An endpoint, for all cores.
pub(crate) struct EndpointState {
    /// Where it is.
    pub(crate) address: SocketAddr,
    /// Which entry of the configured endpoints it came from.
    pub(crate) entry: usize,
    pub(crate) weight: u32,
    pub(crate) backup: bool,
    /// Requests under way.
    pub(crate) in_flight: AtomicU32,
    /// Connections open, idle ones included.
    pub(crate) connections: AtomicU32,
    /// Failures since the last success.
    pub(crate) failures_in_a_row: AtomicU32,
    health: AtomicU8,
    drained: AtomicBool,
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

impl UpstreamState {
    /// Endpoints that are addresses are there at once; names follow by [`UpstreamState::resolved`].
    pub(crate) fn new(config: config::Upstream, cores: usize) -> UpstreamState {
        let mut endpoints = Vec::new();
        for (entry, endpoint) in config.endpoints.iter().enumerate() {
            if let config::UpstreamAddr::Ip(address) = endpoint.address {
                endpoints.push(Arc::new(EndpointState::new(address, entry, endpoint, cores)));
            }
        }
        UpstreamState {
            config,
            cores,
            endpoints: Mutex::new(endpoints.into()),
            version: AtomicU64::new(1),
        }
    }

    pub(crate) fn config(&self) -> &config::Upstream {
        &self.config
    }

    /// Rises with each change of the endpoints.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The endpoints there are now, in the order of the configuration.
    pub(crate) fn endpoints(&self) -> Arc<[Arc<EndpointState>]> {
        self.lock().clone()
    }

    /// The name of entry `entry` stands for these addresses now. What is known of an endpoint that
    /// stays is kept.
    pub(crate) fn resolved(&self, entry: usize, addresses: &[SocketAddr]) {
        let mut endpoints = self.lock();
        let mut next: Vec<Arc<EndpointState>> =
            endpoints.iter().filter(|endpoint| endpoint.entry != entry).cloned().collect();
        for address in addresses {
            if next.iter().any(|known| known.address == *address) {
                continue;
            }
            let known = endpoints.iter().find(|known| known.address == *address);
            next.push(known.cloned().unwrap_or_else(|| {
                let config = &self.config.endpoints[entry];
                Arc::new(EndpointState::new(*address, entry, config, self.cores))
            }));
        }
        next.sort_by_key(|endpoint| (endpoint.entry, endpoint.address));
        let same = next.len() == endpoints.len()
            && next.iter().zip(endpoints.iter()).all(|(a, b)| Arc::ptr_eq(a, b));
        if !same {
            *endpoints = next.into();
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<[Arc<EndpointState>]>> {
        self.endpoints.lock().expect("no holder of this lock panics")
    }
}

impl EndpointState {
    fn new(
        address: SocketAddr,
        entry: usize,
        config: &config::Endpoint,
        cores: usize,
    ) -> EndpointState {
        EndpointState {
            address,
            entry,
            weight: config.weight,
            backup: config.backup,
            in_flight: AtomicU32::new(0),
            connections: AtomicU32::new(0),
            failures_in_a_row: AtomicU32::new(0),
            health: AtomicU8::new(0),
            drained: AtomicBool::new(false),
            counters: (0..cores).map(|_| EndpointCounters::default()).collect(),
        }
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
        match self.health.load(Ordering::Relaxed) {
            1 => Health::Up,
            2 => Health::Down,
            _ => Health::Unknown,
        }
    }

    pub(crate) fn set_health(&self, health: Health) {
        let value = match health {
            Health::Unknown => 0,
            Health::Up => 1,
            Health::Down => 2,
        };
        self.health.store(value, Ordering::Relaxed);
    }

    /// Whether an operator has taken it out: no new request goes to it.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Relaxed)
    }

    pub(crate) fn set_drained(&self, drained: bool) {
        self.drained.store(drained, Ordering::Relaxed);
    }
}
