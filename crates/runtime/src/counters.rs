//! Numbers of one core that other threads read while it runs.
//!
//! Written by their core alone, so that an addition is a plain load and store without a lock prefix.
//! Read with relaxed order: each number is exact, but two numbers may be of different moments.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only one thread writes.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`. Only the owning core may call it.
    pub fn add(&self, amount: u64) {
        self.set(self.read().wrapping_add(amount));
    }

    /// Takes `amount` away, for gauges. Only the owning core may call it.
    pub fn sub(&self, amount: u64) {
        self.set(self.read().wrapping_sub(amount));
    }

    /// Sets the value. Only the owning core may call it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value, from any thread.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the loop-lag classes, in microseconds; the last class is open. The first is above
/// what an idle core shows, since the reactor rounds its waits up by as much as two milliseconds.
pub const LAG_BOUNDS_US: [u64; 5] = [3_000, 5_000, 20_000, 100_000, 500_000];

/// What a core counts. A cache line of its own start, so that two cores never share one.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CoreCounters {
    /// Connections this core accepted or was dealt.
    pub accepted: Counter,
    /// Connections open now.
    pub connections: Counter,
    /// Tasks alive now.
    pub tasks: Counter,
    /// Tasks that panicked. Each was contained: its connection closed, the core went on.
    pub panics: Counter,
    /// Accept calls that failed for want of descriptors or memory; accepting paused for a tick.
    pub accept_starved: Counter,
    /// Times accepting paused since the process was at its connection limit.
    pub accept_paused: Counter,
    /// Messages taken from the mailbox.
    pub messages: Counter,
    /// Heartbeats.
    pub heartbeats: Counter,
    /// Heartbeats by how late they came: see [`LAG_BOUNDS_US`].
    pub lag: [Counter; LAG_BOUNDS_US.len() + 1],
    /// The lag of all heartbeats together, microseconds.
    pub lag_sum_us: Counter,
    /// The worst heartbeat lag so far, microseconds.
    pub lag_worst_us: Counter,
    /// CPU time of the core's thread at its last heartbeat, nanoseconds.
    pub cpu_ns: Counter,
}

impl CoreCounters {
    /// Notes a heartbeat that came `lag` after it was due.
    pub(crate) fn heartbeat(&self, lag: Duration, cpu: Duration) {
        let lag_us = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        let class = LAG_BOUNDS_US.iter().position(|bound| lag_us < *bound);
        self.lag[class.unwrap_or(LAG_BOUNDS_US.len())].add(1);
        self.lag_sum_us.add(lag_us);
        self.heartbeats.add(1);
        self.cpu_ns.set(u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX));
        if lag_us > self.lag_worst_us.read() {
            self.lag_worst_us.set(lag_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_heartbeat_falls_into_one_lag_class_and_the_worst_is_kept() {
        let counters = CoreCounters::default();
        for microseconds in [0, 2_999, 3_000, 99_999, 100_000, 9_000_000] {
            counters.heartbeat(Duration::from_micros(microseconds), Duration::ZERO);
        }
        let classes: Vec<u64> = counters.lag.iter().map(Counter::read).collect();
        assert_eq!(classes, [2, 1, 0, 1, 1, 1]);
        assert_eq!(counters.lag_worst_us.read(), 9_000_000);
        assert_eq!(counters.lag_sum_us.read(), 9_000_000 + 100_000 + 99_999 + 3_000 + 2_999);
        assert_eq!(counters.heartbeats.read(), 6);
    }
}
