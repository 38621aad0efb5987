//! What all cores know of an upstream: its endpoints, and how each of them does.
//!
//! Shared for the process and kept over reloads as long as the upstream is configured as it was.
//! Atomics alone on the way of a request; the list of endpoints is behind a lock that a core takes
//! only when its version says that the list has changed.

mod endpoint;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::clock::now_ms;
use super::standing::Phase;
use crate::config;
use crate::limits::REMEMBERED_MAX;

use endpoint::Remembered;
pub(crate) use endpoint::{EndpointState, Health};

/// An upstream, for all cores.
pub(crate) struct UpstreamState {
    config: config::Upstream,
    cores: usize,
    list: Mutex<List>,
    /// Rises with each change of the list and of what an endpoint may take (Release); cores that see
    /// a new value (Acquire) look at both again. The endpoints raise it too.
    version: Arc<AtomicU64>,
    /// Retries under way.
    retries: AtomicU32,
    /// Retries that the budget did not leave room for.
    pub(crate) retry_budget_exhausted: AtomicU64,
    postbox: OnceLock<Post>,
}

struct List {
    /// What each configured entry stands for: an address for itself, a name for what it was resolved
    /// to last; `None`: it was not yet.
    entries: Vec<Option<Vec<SocketAddr>>>,
    /// What all entries stand for together. An address that several stand for belongs to the first.
    endpoints: Arc<[Arc<EndpointState>]>,
    /// Endpoints that have left and still have connections. One that returns is the same again, so
    /// that its connections are counted on.
    departed: Vec<Weak<EndpointState>>,
    /// What the state in whose place this came knew of addresses that names may still turn out to
    /// stand for. Each is used once. Empty once every name was looked up.
    remembered: Vec<Remembered>,
}

impl List {
    /// Once no name is left to be looked up, nobody will ask.
    fn forget(&mut self) {
        if self.entries.iter().all(Option::is_some) {
            self.remembered = Vec::new();
        }
    }
}

/// Brings a notice to a core.
pub(crate) type Post = Box<dyn Fn(usize, UpstreamNotice) + Send + Sync>;

/// Tells a core that others left something for it at an endpoint: permits to connect, or the wish
/// for an idle connection. What it is stands at the endpoint, so that a notice that is lost only
/// delays it until the next sweep.
pub(crate) struct UpstreamNotice {
    pub(crate) upstream: Arc<UpstreamState>,
    pub(super) endpoint: Arc<EndpointState>,
}

/// A retry under way, within the budget.
pub(crate) struct RetryGuard {
    upstream: Arc<UpstreamState>,
}

impl Drop for RetryGuard {
    fn drop(&mut self) {
        self.upstream.retries.fetch_sub(1, Ordering::Relaxed);
    }
}

impl UpstreamState {
    /// Endpoints that are addresses are there at once; names follow by [`UpstreamState::resolved`].
    /// `before`: what it takes the place of, if its settings are other ones; what an operator or a
    /// check said of an endpoint holds on.
    pub(crate) fn new(
        config: config::Upstream,
        cores: usize,
        before: Option<&UpstreamState>,
    ) -> UpstreamState {
        let mut remembered = before.map(UpstreamState::remember).unwrap_or_default();
        let version = Arc::new(AtomicU64::new(1));
        let mut endpoints = Vec::new();
        let mut entries = Vec::new();
        for (entry, endpoint) in config.endpoints.iter().enumerate() {
            let config::UpstreamAddr::Ip(address) = endpoint.address else {
                entries.push(None);
                continue;
            };
            let state = EndpointState::new(address, entry, &config, cores, &version);
            state.recall(&mut remembered, &config);
            endpoints.push(Arc::new(state));
            entries.push(Some(vec![address]));
        }
        let endpoints = endpoints.into();
        let mut list = List { entries, endpoints, departed: Vec::new(), remembered };
        list.forget();
        UpstreamState {
            config,
            cores,
            list: Mutex::new(list),
            version,
            retries: AtomicU32::new(0),
            retry_budget_exhausted: AtomicU64::new(0),
            postbox: OnceLock::new(),
        }
    }

    pub(crate) fn config(&self) -> &config::Upstream {
        &self.config
    }

    pub(super) fn cores(&self) -> usize {
        self.cores
    }

    /// Rises with each change of the endpoints.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The endpoints there are now, in the order of the configuration.
    pub(crate) fn endpoints(&self) -> Arc<[Arc<EndpointState>]> {
        self.lock().endpoints.clone()
    }

    /// The name of entry `entry` stands for these addresses now. What is known of an endpoint that
    /// stays is kept.
    pub(crate) fn resolved(&self, entry: usize, addresses: &[SocketAddr]) {
        let mut list = self.lock();
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        let first_time = list.entries[entry].replace(addresses).is_none();
        list.departed.retain(|departed| departed.strong_count() > 0);
        let before = list.endpoints.clone();
        let mut remembered = std::mem::take(&mut list.remembered);
        let mut next: Vec<Arc<EndpointState>> = Vec::new();
        for (entry, addresses) in list.entries.iter().enumerate() {
            for address in addresses.iter().flatten() {
                if next.iter().any(|known| known.address == *address) {
                    continue;
                }
                let is_it =
                    |known: &EndpointState| known.address == *address && known.entry == entry;
                if let Some(known) = before.iter().find(|known| is_it(known)) {
                    next.push(known.clone());
                    continue;
                }
                let departed = list.departed.iter().filter_map(Weak::upgrade);
                let returned = departed.into_iter().find(|known| is_it(known));
                let endpoint = returned.unwrap_or_else(|| {
                    let version = &self.version;
                    let (config, cores) = (&self.config, self.cores);
                    let state = EndpointState::new(*address, entry, config, cores, version);
                    state.recall(&mut remembered, config);
                    Arc::new(state)
                });
                if !first_time {
                    endpoint.standing.come_back(now_ms());
                }
                next.push(endpoint);
            }
        }
        list.remembered = remembered;
        list.forget();
        let same = next.len() == before.len()
            && next.iter().zip(before.iter()).all(|(a, b)| Arc::ptr_eq(a, b));
        if same {
            return;
        }
        let stays = |old: &Arc<EndpointState>| next.iter().any(|new| Arc::ptr_eq(new, old));
        let departs = before.iter().filter(|old| !stays(old)).map(Arc::downgrade);
        list.departed.extend(departs);
        list.departed.retain(|old| !next.iter().any(|new| std::ptr::eq(old.as_ptr(), &**new)));
        list.endpoints = next.into();
        self.version.fetch_add(1, Ordering::Release);
    }

    /// What is to be known of its endpoints when other settings take its place. At most
    /// `REMEMBERED_MAX`: what is over it is forgotten, and an endpoint of it is new.
    fn remember(&self) -> Vec<Remembered> {
        let list = self.lock();
        let now = list.endpoints.iter().map(|known| Remembered {
            address: known.address,
            drained: known.is_drained(),
            health: known.health(),
        });
        now.chain(list.remembered.iter().copied()).take(REMEMBERED_MAX).collect()
    }

    /// Requests under way, by the attempts they have under way.
    pub(crate) fn in_flight(&self) -> u64 {
        let endpoints = self.endpoints();
        endpoints.iter().map(|one| u64::from(one.in_flight.load(Ordering::Relaxed))).sum()
    }

    /// Leave for one more retry, if the budget has it: `budget_min`, and `budget_percent` of the
    /// requests under way. Given back when dropped.
    pub(crate) fn try_retry(self: &Arc<Self>) -> Option<RetryGuard> {
        let retry = &self.config.retry;
        let share = self.in_flight() * u64::from(retry.budget_percent) / 100;
        let most = share.saturating_add(u64::from(retry.budget_min));
        let more = |retries: u32| (u64::from(retries) < most).then_some(retries + 1);
        match self.retries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Some(RetryGuard { upstream: self.clone() }),
            Err(_) => {
                self.retry_budget_exhausted.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    /// Retries under way.
    pub(crate) fn retries(&self) -> u32 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How notices reach the cores from here on. The first one stays.
    pub(crate) fn set_postbox(&self, post: Post) {
        // A reload that keeps this upstream offers the same again.
        let _kept = self.postbox.set(post);
    }

    /// Tells `core` to look at `endpoint`.
    pub(super) fn tell(self: &Arc<Self>, core: usize, endpoint: &Arc<EndpointState>) {
        if let Some(post) = self.postbox.get() {
            post(core, UpstreamNotice { upstream: self.clone(), endpoint: endpoint.clone() });
        }
    }

    /// Notes that an attempt at `endpoint` went well.
    pub(super) fn succeeded(&self, endpoint: &EndpointState, now: u64) {
        endpoint.failures_in_a_row.store(0, Ordering::Relaxed);
        if endpoint.standing.succeed(now, &self.config.eject) {
            endpoint.changed();
            tracing::info!(
                upstream = self.config.name,
                endpoint = %endpoint.address,
                "the endpoint answers again"
            );
        }
    }

    /// Notes that an attempt at `endpoint` failed by its fault; whether it is left out from now on.
    pub(super) fn failed(&self, endpoint: &Arc<EndpointState>, now: u64) -> bool {
        let in_a_row = endpoint.failures_in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        let most = self.config.eject.failures;
        let enough = match endpoint.standing.phase(now) {
            Phase::InService => most > 0 && in_a_row >= most,
            Phase::OnProbation => true,
            Phase::LeftOut => false,
        };
        enough && self.eject(endpoint, now)
    }

    /// Leaves `endpoint` out, unless too many are already: one of two or more always may be.
    fn eject(&self, endpoint: &Arc<EndpointState>, now: u64) -> bool {
        // Under the lock, so that two cores do not both take the last place.
        let list = self.lock();
        let others = || list.endpoints.iter().filter(|other| !Arc::ptr_eq(other, endpoint));
        let share = list.endpoints.len() * self.config.eject.max_percent as usize / 100;
        let out = others().filter(|other| other.standing.ejected_until() != 0).count();
        let is_first = endpoint.standing.phase(now) != Phase::LeftOut;
        if !is_first || others().next().is_none() || out >= share.max(1) {
            return false;
        }
        let long = endpoint.standing.eject(now, self.config.eject.period);
        drop(list);
        endpoint.changed();
        tracing::warn!(
            upstream = self.config.name,
            endpoint = %endpoint.address,
            failures = endpoint.failures_in_a_row.load(Ordering::Relaxed),
            milliseconds = long,
            "the endpoint is left out for its failures"
        );
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, List> {
        self.list.lock().expect("no holder of this lock panics")
    }
}
