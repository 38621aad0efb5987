//! What the proxy does at one moment, as plain numbers: what the page, `baton top`, `/status` and
//! the metrics are made of.
//!
//! Taken by reading the cores' atomics. Each number is exact; two numbers may be of moments a few
//! microseconds apart. Nothing is taken from a core, and none waits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, UNIX_EPOCH};

use baton_platform as platform;
use baton_runtime::{Counter, LAG_BOUNDS_US};
use serde::{Deserialize, Serialize};

use super::limits::CORE_SILENCE_MAX;
use crate::config;
use crate::counters::Counters;
use crate::histogram::{self, Durations, Histogram};
use crate::live::Live;
use crate::plan::RouteState;
use crate::upstream::{EndpointState, Health, UpstreamState};

/// The moment. Numbers that only rise do so from the start of the process, or, in a route or an
/// endpoint, from when it came into the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) version: String,
    /// How the cores wait for I/O.
    pub(crate) driver: String,
    /// Which configuration is in force, from 1; rises with each reload.
    pub(crate) generation: u64,
    /// Whether new requests are welcome.
    pub(crate) ready: bool,
    pub(crate) started_unix_ms: u64,
    /// Never goes back, unlike the clock on the wall.
    pub(crate) uptime_ms: u64,
    /// Client connections open.
    pub(crate) connections: u64,
    pub(crate) process: ProcessNumbers,
    /// Upper bounds of the classes of heartbeat lag; the last class is open.
    pub(crate) lag_bounds_us: Vec<u64>,
    /// Upper bounds of the classes of durations; the last class is open.
    pub(crate) duration_bounds_us: Vec<u64>,
    pub(crate) cores: Vec<CoreNumbers>,
    /// Every counter of exchanges, summed over the cores.
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) logs: LogNumbers,
    pub(crate) routes: Vec<RouteNumbers>,
    pub(crate) upstreams: Vec<UpstreamNumbers>,
}

/// Lines of the access log, and of the log of the proxy itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogNumbers {
    /// Access log lines that cores handed over.
    pub(crate) access_queued: u64,
    /// Access log lines dropped since writing was too slow.
    pub(crate) access_dropped: u64,
    /// Access log lines lost to errors of writing, since its file was opened.
    pub(crate) access_lost: u64,
    /// Errors of writing the access log, since its file was opened.
    pub(crate) access_errors: u64,
    /// Lines of the log dropped since writing was too slow.
    pub(crate) dropped: u64,
}

/// What the system says of the process; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessNumbers {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) descriptors: Option<u64>,
    pub(crate) descriptors_max: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CoreNumbers {
    pub(crate) index: usize,
    /// CPU time of its thread, as of its last heartbeat.
    pub(crate) busy_ns: u64,
    pub(crate) connections: u64,
    pub(crate) tasks: u64,
    pub(crate) accepted: u64,
    pub(crate) accept_starved: u64,
    pub(crate) accept_paused: u64,
    pub(crate) panics: u64,
    pub(crate) messages: u64,
    pub(crate) heartbeats: u64,
    /// Since a heartbeat was last seen, to about a second.
    pub(crate) silent_ms: u64,
    /// Heartbeats by how late they came.
    pub(crate) lag: Times,
    pub(crate) lag_worst_us: u64,
    pub(crate) requests: u64,
    /// Its answers with a 5xx status.
    pub(crate) answers_5xx: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RouteNumbers {
    pub(crate) name: String,
    pub(crate) in_flight: u64,
    /// Requests by the class of their status, 1xx to 5xx.
    pub(crate) answers: [u64; 5],
    pub(crate) unanswered: u64,
    pub(crate) rate_limited: u64,
    pub(crate) over_concurrency: u64,
    pub(crate) denied: u64,
    pub(crate) duration: Times,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpstreamNumbers {
    pub(crate) name: String,
    /// Retries under way.
    pub(crate) retries: u64,
    /// Requests not tried again, as too many retries were under way.
    pub(crate) retry_budget_exhausted: u64,
    pub(crate) endpoints: Vec<EndpointNumbers>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointNumbers {
    pub(crate) address: String,
    /// As it is configured; a name may stand for several.
    pub(crate) configured: String,
    pub(crate) weight: u32,
    pub(crate) backup: bool,
    pub(crate) health: HealthWord,
    /// Left out for its failures.
    pub(crate) ejected: bool,
    /// Taken out by an operator.
    pub(crate) drained: bool,
    pub(crate) in_flight: u64,
    pub(crate) connections: u64,
    /// Requests that wait for a connection.
    pub(crate) queued: u64,
    /// Active checks that ended, and those that failed.
    pub(crate) checks: u64,
    pub(crate) checks_failed: u64,
    pub(crate) failures_in_a_row: u64,
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    pub(crate) retries: u64,
    pub(crate) connects: u64,
    pub(crate) ejections: u64,
    pub(crate) first_byte: Times,
}

/// What active checks say of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HealthWord {
    /// Not checked, or not often enough yet.
    #[default]
    Unknown,
    Up,
    Down,
}

/// Durations by class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// By class, not cumulative.
    pub(crate) classes: Vec<u64>,
    pub(crate) sum_us: u64,
}

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

impl Times {
    fn of<'a>(cores: impl Iterator<Item = &'a Histogram>) -> Times {
        let mut sum = Durations::default();
        cores.for_each(|core| core.sum_into(&mut sum));
        Times { classes: sum.classes.to_vec(), sum_us: sum.sum_us }
    }

    pub(crate) fn count(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// What came since `before`. After a restart of what is counted: all of it.
    pub(crate) fn since(&self, before: &Times) -> Times {
        let classes = self.classes.iter().enumerate().map(|(index, count)| {
            let before = before.classes.get(index).copied().unwrap_or(0);
            count.checked_sub(before)
        });
        match classes.collect() {
            Some(classes) => Times { classes, sum_us: self.sum_us.wrapping_sub(before.sum_us) },
            None => self.clone(),
        }
    }

    /// The class that the `share` of all lie in or below; `None` without any.
    pub(crate) fn quantile_class(&self, share: f64) -> Option<usize> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        self.classes.iter().position(|count| {
            seen += count;
            seen >= wanted
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(classes: &[u64]) -> Times {
        Times { classes: classes.to_vec(), sum_us: 10 }
    }

    #[test]
    fn what_began_anew_counts_whole() {
        assert_eq!(times(&[3, 4]).since(&times(&[5, 1])), times(&[3, 4]));
        assert_eq!(times(&[3, 4]).since(&Times::default()).classes, [3, 4]);
        let since = times(&[3, 4]).since(&times(&[1, 4]));
        assert_eq!((since.classes, since.sum_us), (vec![2, 0], 0));
    }

    #[test]
    fn a_quantile_is_in_a_class_that_holds_something() {
        assert_eq!(times(&[0, 0]).quantile_class(0.5), None);
        assert_eq!(Times::default().quantile_class(0.5), None);
        assert_eq!(times(&[0, 1]).quantile_class(0.0), Some(1));
        assert_eq!(times(&[99, 1]).quantile_class(0.99), Some(0));
        assert_eq!(times(&[99, 1]).quantile_class(1.0), Some(1));
    }

    impl Source {
        /// As if no core had had a heartbeat for `silence` that this has seen.
        pub(crate) fn pretend_silence(&self, silence: Duration) {
            for beat in self.beats().iter_mut() {
                let seen = beat.seen.checked_sub(silence).expect("the machine runs for longer");
                beat.seen = seen;
            }
        }
    }
}
