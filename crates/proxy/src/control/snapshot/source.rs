//! Takes snapshots: reads the cores' atomics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, UNIX_EPOCH};

use baton_platform as platform;
use baton_runtime::{Counter, LAG_BOUNDS_US};

use super::*;
use crate::config;
use crate::control::limits::CORE_SILENCE_MAX;
use crate::counters::Counters;
use crate::live::Live;
use crate::plan::RouteState;
use crate::upstream::{EndpointState, Health, UpstreamState};

/// Where snapshots come from.
pub(crate) struct Source {
    live: Arc<Live>,
    ready: Arc<AtomicBool>,
    /// When this was made, and how old the process was then.
    made: (Instant, Duration),
    /// One per core. Locked by the control plane's own threads alone.
    beats: Mutex<Vec<Beat>>,
}

/// The last change of a core's heartbeats.
struct Beat {
    count: u64,
    seen: Instant,
}

impl Source {
    pub(crate) fn new(live: Arc<Live>, ready: Arc<AtomicBool>) -> Source {
        let now = Instant::now();
        let beats = (0..live.runtime.cores()).map(|_| Beat { count: 0, seen: now }).collect();
        let age = live.started.elapsed().unwrap_or_default();
        Source { live, ready, made: (now, age), beats: Mutex::new(beats) }
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// Looks whether the cores' heartbeats have moved since the last look.
    pub(crate) fn look(&self) {
        let now = Instant::now();
        for (index, beat) in self.beats().iter_mut().enumerate() {
            let count = self.live.runtime.counters(index).heartbeats.read();
            if count != beat.count {
                *beat = Beat { count, seen: now };
            }
        }
    }

    /// The first core that has had no heartbeat for `CORE_SILENCE_MAX`, and since when.
    pub(crate) fn silent_core(&self) -> Option<(usize, Duration)> {
        self.look();
        let beats = self.beats();
        let mut silences = beats.iter().map(|beat| beat.seen.elapsed()).enumerate();
        silences.find(|(_, silence)| *silence >= CORE_SILENCE_MAX)
    }

    /// All numbers as they are now.
    pub(crate) fn take(&self) -> Snapshot {
        self.look();
        let plan = self.live.plan();
        let (made, age) = self.made;
        let started = self.live.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            driver: self.live.runtime.driver().to_string(),
            generation: plan.generation,
            reloads: ReloadNumbers {
                taken: self.live.reloads.taken.load(Ordering::Relaxed),
                refused: self.live.reloads.refused.load(Ordering::Relaxed),
            },
            ready: self.ready.load(Ordering::Relaxed),
            started_unix_ms: milliseconds(started),
            uptime_ms: milliseconds(age + made.elapsed()),
            connections: self.live.runtime.connections() as u64,
            process: process(),
            lag_bounds_us: LAG_BOUNDS_US.to_vec(),
            duration_bounds_us: histogram::BOUNDS_US.to_vec(),
            cores: self.beats().iter().enumerate().map(|(i, beat)| self.core(i, beat)).collect(),
            counters: sum(&self.live.shared.counters),
            logs: self.logs(),
            routes: plan.routes.iter().map(|route| self::route(route)).collect(),
            upstreams: plan.upstreams.iter().map(|upstream| self::upstream(upstream)).collect(),
        }
    }

    fn core(&self, index: usize, beat: &Beat) -> CoreNumbers {
        let core = self.live.runtime.counters(index);
        let counters = self.live.shared.counters.get(index);
        let count = |counter: fn(&Counters) -> &Counter| {
            counters.map_or(0, |counters| counter(counters).read())
        };
        CoreNumbers {
            index,
            busy_ns: core.cpu_ns.read(),
            connections: core.connections.read(),
            tasks: core.tasks.read(),
            accepted: core.accepted.read(),
            accept_starved: core.accept_starved.read(),
            accept_paused: core.accept_paused.read(),
            panics: core.panics.read(),
            messages: core.messages.read(),
            heartbeats: core.heartbeats.read(),
            silent_ms: milliseconds(beat.seen.elapsed()),
            lag: Times {
                classes: core.lag.iter().map(Counter::read).collect(),
                sum_us: core.lag_sum_us.read(),
            },
            lag_worst_us: core.lag_worst_us.read(),
            requests: count(|counters| &counters.requests),
            answers_5xx: count(|counters| &counters.answers_5xx),
        }
    }

    fn logs(&self) -> LogNumbers {
        let lines = &self.live.shared.lines;
        let mut numbers = LogNumbers {
            access_queued: lines.iter().map(|core| core.queued.read()).sum(),
            access_dropped: lines.iter().map(|core| core.dropped.read()).sum(),
            dropped: crate::log::dropped(),
            ..LogNumbers::default()
        };
        if let Some(sink) = self.live.shared.sink.current() {
            numbers.access_lost = sink.counts().lost.load(Ordering::Relaxed);
            numbers.access_errors = sink.counts().errors.load(Ordering::Relaxed);
        }
        numbers
    }

    /// As if no core had had a heartbeat for `silence` that this has seen.
    #[cfg(test)]
    pub(crate) fn pretend_silence(&self, silence: Duration) {
        for beat in self.beats().iter_mut() {
            let seen = beat.seen.checked_sub(silence).expect("the machine runs for longer");
            beat.seen = seen;
        }
    }

    fn beats(&self) -> MutexGuard<'_, Vec<Beat>> {
        self.beats.lock().expect("no holder of this lock panics")
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn process() -> ProcessNumbers {
    ProcessNumbers {
        resident_bytes: platform::resident_bytes(),
        descriptors: platform::open_descriptors().map(|count| count as u64),
        descriptors_max: platform::descriptor_limit().ok(),
    }
}

fn sum(cores: &[Counters]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, value) in cores.iter().flat_map(Counters::read) {
        *sums.entry(name.to_owned()).or_insert(0) += value;
    }
    sums
}

fn route(route: &RouteState) -> RouteNumbers {
    let mut numbers = RouteNumbers {
        name: route.name.clone(),
        in_flight: route.in_flight() as u64,
        ..RouteNumbers::default()
    };
    for core in route.all_counters() {
        for (sum, counter) in numbers.answers.iter_mut().zip(&core.answers) {
            *sum += counter.read();
        }
        numbers.unanswered += core.unanswered.read();
        numbers.rate_limited += core.rate_limited.read();
        numbers.over_concurrency += core.over_concurrency.read();
        numbers.denied += core.denied.read();
    }
    numbers.duration = Times::of(route.all_counters().iter().map(|core| &core.duration));
    numbers
}

fn upstream(upstream: &UpstreamState) -> UpstreamNumbers {
    let config = upstream.config();
    let endpoints = upstream.endpoints();
    UpstreamNumbers {
        name: config.name.clone(),
        retries: u64::from(upstream.retries()),
        retry_budget_exhausted: upstream.retry_budget_exhausted.load(Ordering::Relaxed),
        endpoints: endpoints.iter().map(|state| endpoint(config, state)).collect(),
    }
}

fn endpoint(config: &config::Upstream, endpoint: &EndpointState) -> EndpointNumbers {
    let configured = config.endpoints.get(endpoint.entry);
    let mut numbers = EndpointNumbers {
        address: endpoint.address.to_string(),
        configured: configured.map(|entry| entry.address.to_string()).unwrap_or_default(),
        weight: endpoint.weight,
        backup: endpoint.backup,
        health: match endpoint.health() {
            Health::Unknown => HealthWord::Unknown,
            Health::Up => HealthWord::Up,
            Health::Down => HealthWord::Down,
        },
        ejected: endpoint.ejected_for().is_some(),
        drained: endpoint.is_drained(),
        in_flight: u64::from(endpoint.in_flight.load(Ordering::Relaxed)),
        connections: u64::from(endpoint.connections.load(Ordering::Relaxed)),
        queued: u64::from(endpoint.queued()),
        checks: endpoint.checks.checks.load(Ordering::Relaxed),
        checks_failed: endpoint.checks.failures.load(Ordering::Relaxed),
        failures_in_a_row: u64::from(endpoint.failures_in_a_row.load(Ordering::Relaxed)),
        ..EndpointNumbers::default()
    };
    for core in endpoint.all_counters() {
        numbers.requests += core.requests.read();
        numbers.failures += core.failures.read();
        numbers.retries += core.retries.read();
        numbers.connects += core.connects.read();
        numbers.ejections += core.ejections.read();
    }
    numbers.first_byte = Times::of(endpoint.all_counters().iter().map(|core| &core.first_byte));
    numbers
}
