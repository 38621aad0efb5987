//! What the proxy does at one moment, as plain numbers: what the page, `baton top`, `/status` and
//! the metrics are made of.
//!
//! Taken by reading the cores' atomics. Each number is exact; two numbers may be of moments a few
//! microseconds apart. Nothing is taken from a core, and none waits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::{self, Durations, Histogram};

mod source;

pub(crate) use source::Source;

/// The moment. Numbers that only rise do so from the start of the process, or, in a route or an
/// endpoint, from when it came into the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) version: String,
    /// How the cores wait for I/O.
    pub(crate) driver: String,
    /// Which configuration is in force, from 1; rises with each reload.
    pub(crate) generation: u64,
    pub(crate) reloads: ReloadNumbers,
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

/// What became of the reloads that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReloadNumbers {
    /// The configuration that was read is in force.
    pub(crate) taken: u64,
    /// Nothing has changed.
    pub(crate) refused: u64,
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
}
