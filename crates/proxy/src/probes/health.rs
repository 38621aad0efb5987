//! Active health checks: a supervisor per upstream, a task per endpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::Task;
use super::check::{Bad, check, request};
use super::limits::{FIRST_CHECK_WITHIN, JITTER_PERCENT, LIST_LOOK};
use crate::config::HealthConfig;
use crate::upstream::{EndpointState, Health, UpstreamState};

/// Keeps one task for each endpoint that `upstream` has. `listed`: told when the list may have
/// changed. `checks`: leave for one check each. Ends at once if its health is not to be checked.
pub(super) async fn supervise(
    upstream: Arc<UpstreamState>,
    listed: Arc<Notify>,
    checks: Arc<Semaphore>,
) {
    let Some(config) = upstream.config().health.clone() else { return };
    let config = Arc::new(config);
    let handle = Handle::current();
    let mut tasks: Vec<(Arc<EndpointState>, Task)> = Vec::new();
    let mut seen = None;
    loop {
        // Before the list: a change in between is seen next time.
        let version = upstream.version();
        if seen != Some(version) {
            seen = Some(version);
            let endpoints = upstream.endpoints();
            tasks.retain(|(old, _)| endpoints.iter().any(|new| Arc::ptr_eq(old, new)));
            for endpoint in endpoints.iter() {
                if tasks.iter().any(|(known, _)| Arc::ptr_eq(known, endpoint)) {
                    continue;
                }
                let name = upstream.config().name.clone();
                let checked = Checked { upstream: name, endpoint: endpoint.clone() };
                let task = handle.spawn(checked.keep(config.clone(), checks.clone()));
                tasks.push((endpoint.clone(), Task(task)));
            }
        }
        // Over the time is one of the two ordinary ways here.
        let _told = timeout(LIST_LOOK, listed.notified()).await;
    }
}

/// An endpoint that is checked.
struct Checked {
    /// The name of its upstream.
    upstream: String,
    endpoint: Arc<EndpointState>,
}

impl Checked {
    async fn keep(self, config: Arc<HealthConfig>, checks: Arc<Semaphore>) {
        let address = self.endpoint.address;
        let request = request(&config, address);
        let mut tally = Tally { health: self.endpoint.health(), in_a_row: 0 };
        let mut next = Instant::now() + first_pause(config.interval);
        let mut is_first = true;
        loop {
            sleep_until(next).await;
            let outcome = {
                let Ok(_turn) = checks.acquire().await else { return };
                // Counted from the start of the check: it does not shift with what checks take.
                next = Instant::now() + pause(config.interval, is_first);
                check(&config, address, &request).await
            };
            is_first = false;
            self.take(&mut tally, &config, outcome);
        }
    }

    /// Counts the outcome; says and puts in force what changes by it.
    fn take(&self, tally: &mut Tally, config: &HealthConfig, outcome: Result<u16, Bad>) {
        let counters = &self.endpoint.checks;
        counters.checks.fetch_add(1, Ordering::Relaxed);
        if outcome.is_err() {
            counters.failures.fetch_add(1, Ordering::Relaxed);
        }
        let Some(health) = tally.take(config, outcome.is_ok()) else { return };
        self.endpoint.set_health(health);
        let (upstream, endpoint) = (&self.upstream, &self.endpoint.address);
        match outcome {
            Ok(status) => {
                tracing::info!(upstream, %endpoint, status, "the endpoint passes its health checks");
            }
            Err(reason) => {
                let failures = config.fall;
                tracing::warn!(
                    upstream, %endpoint, failures, %reason, "the endpoint fails its health checks"
                );
            }
        }
    }
}

/// What the checks so far say.
struct Tally {
    health: Health,
    /// Checks in a row that speak against `health`.
    in_a_row: u32,
}

impl Tally {
    /// Counts a check; what the endpoint is from now on, if that changes.
    fn take(&mut self, config: &HealthConfig, is_good: bool) -> Option<Health> {
        let (next, needed) = match (self.health, is_good) {
            // Unknown -> Up: one is enough.
            (Health::Unknown, true) => (Health::Up, 1),
            // Down -> Up
            (Health::Down, true) => (Health::Up, config.rise),
            // Unknown, Up -> Down
            (Health::Unknown | Health::Up, false) => (Health::Down, config.fall),
            (Health::Up, true) | (Health::Down, false) => {
                self.in_a_row = 0;
                return None;
            }
        };
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row < needed {
            return None;
        }
        *self = Tally { health: next, in_a_row: 0 };
        Some(next)
    }
}

/// From the start of the task to the first check: soon, yet not all endpoints at once.
fn first_pause(interval: Duration) -> Duration {
    interval.min(FIRST_CHECK_WITHIN).mul_f64(fastrand::f64())
}

/// From one check to the next. After the first, up to half an interval less: the checks of many
/// endpoints, which all began soon, are spread over the interval.
fn pause(interval: Duration, is_first: bool) -> Duration {
    if is_first {
        return interval.mul_f64(0.5 + fastrand::f64() / 2.0);
    }
    let jitter = JITTER_PERCENT as f64 / 100.0;
    interval.mul_f64(1.0 - jitter + 2.0 * jitter * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_changes_after_as_many_in_a_row_as_configured() {
        let config = HealthConfig { rise: 2, fall: 3, ..HealthConfig::new("/".into()) };
        let mut tally = Tally { health: Health::Unknown, in_a_row: 0 };
        let rows = [
            (false, None),
            (false, None),
            (true, Some(Health::Up)),
            (false, None),
            (false, None),
            (true, None),
            (false, None),
            (false, None),
            (false, Some(Health::Down)),
            (false, None),
            (true, None),
            (false, None),
            (true, None),
            (true, Some(Health::Up)),
            (true, None),
        ];
        for (row, (is_good, expected)) in rows.into_iter().enumerate() {
            assert_eq!(tally.take(&config, is_good), expected, "row {row}");
        }
        let mut unknown = Tally { health: Health::Unknown, in_a_row: 0 };
        let bad: Vec<_> = (0..3).map(|_| unknown.take(&config, false)).collect();
        assert_eq!(bad, [None, None, Some(Health::Down)]);
    }

    #[test]
    fn checks_are_spread_but_begin_soon() {
        let interval = Duration::from_secs(10);
        for _ in 0..1_000 {
            assert!(first_pause(interval) <= FIRST_CHECK_WITHIN);
            assert!(first_pause(Duration::from_millis(1)) <= Duration::from_millis(1));
            assert!((5.0..=10.0).contains(&pause(interval, true).as_secs_f64()));
            assert!((8.99..=11.01).contains(&pause(interval, false).as_secs_f64()));
        }
    }
}
