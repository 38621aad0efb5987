//! When the requests of a core are due.

use std::cell::Cell;
use std::time::{Duration, Instant};

use baton_runtime::Core;

/// The schedule that the clients of a core share.
pub(super) struct Pace {
    start: Instant,
    end: Instant,
    /// Time between two requests of an open loop; `None` for a closed one.
    interval: Option<Duration>,
    /// Requests of an open loop that a client has taken on.
    taken: Cell<u32>,
}

/// How close to its end a sleep is exact. The rest is spent looking at the clock.
const SLEEP_GRAIN: Duration = Duration::from_millis(2);

impl Pace {
    /// `rate`: requests per second of an open loop.
    pub(super) fn new(start: Instant, duration: Duration, rate: Option<f64>) -> Pace {
        let interval = rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
        Pace { start, end: start + duration, interval, taken: Cell::new(0) }
    }

    /// Waits until the next request is due and tells when that was or is; `None` at the end.
    pub(super) async fn next(&self, core: &Core) -> Option<Instant> {
        let now = Instant::now();
        let due = match self.interval {
            None => now,
            Some(interval) => self.start + interval * self.taken.get(),
        };
        if due >= self.end || now >= self.end {
            return None;
        }
        self.taken.set(self.taken.get() + 1);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(due);
            }
            match left.checked_sub(SLEEP_GRAIN) {
                Some(long) if !long.is_zero() => core.sleep(long).await,
                _ => core.yield_now().await,
            }
        }
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Requests of an open loop that were due and that no client was free to send.
    pub(super) fn unsent(&self) -> u64 {
        let Some(interval) = self.interval else { return 0 };
        let whole = (self.end - self.start).as_secs_f64() / interval.as_secs_f64();
        (whole.ceil() as u64).saturating_sub(u64::from(self.taken.get()))
    }
}
