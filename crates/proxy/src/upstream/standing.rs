//! Whether an endpoint is left out for its failures, and how it comes back.
//!
//! ```text
//!            failures in a row                    the period is over
//! in service ─────────────────► left out ─────────────────────────► on probation
//!      ▲                            ▲          a failure                 │  │
//!      │                            └────────────────────────────────────┘  │
//!      └────────────────────────────────────────────────────────────────────┘
//!                                    a success
//! ```
//!
//! Times are milliseconds of the process, passed in. Each number is read and written by itself: a
//! core that sees them of two moments sends a request too many or too few, no more.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::clock::ms;
use crate::config::EjectConfig;
use crate::limits::{EJECT_PERIODS_MAX, PROBE_EVERY};

/// A full share, in the units shares are reckoned in.
pub(super) const SHARE: u64 = 1_000;

/// The share that a slow start begins with.
const SHARE_MIN: u64 = SHARE / 10;

#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Until when it is left out, and on probation from then on; 0: in service.
    ejected_until: AtomicU64,
    /// Until when no other request tries whether it is well again.
    probe_until: AtomicU64,
    /// Times it was left out without having been well for a period in between.
    ejections_in_a_row: AtomicU32,
    /// Since when it is back; 0: it was never away.
    back_since: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    InService,
    LeftOut,
    OnProbation,
}

impl Standing {
    pub(super) fn phase(&self, now: u64) -> Phase {
        match self.ejected_until.load(Ordering::Relaxed) {
            0 => Phase::InService,
            until if until > now => Phase::LeftOut,
            _ => Phase::OnProbation,
        }
    }

    /// Until when it is left out.
    pub(super) fn ejected_until(&self) -> u64 {
        self.ejected_until.load(Ordering::Relaxed)
    }

    /// Whether one on probation takes a request now.
    pub(super) fn may_probe(&self, now: u64) -> bool {
        self.probe_until.load(Ordering::Relaxed) <= now
    }

    /// Takes the one request that may try it; `false`: another core was first.
    pub(super) fn claim_probe(&self, now: u64) -> bool {
        let until = self.probe_until.load(Ordering::Relaxed);
        let next = now.saturating_add(ms(PROBE_EVERY));
        let order = Ordering::Relaxed;
        until <= now && self.probe_until.compare_exchange(until, next, order, order).is_ok()
    }

    // InService | OnProbation -> LeftOut. Returns for how long, milliseconds.
    pub(super) fn eject(&self, now: u64, period: Duration) -> u64 {
        let times = self.ejections_in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let long = ms(period).saturating_mul(u64::from(times.min(EJECT_PERIODS_MAX))).max(1);
        self.probe_until.store(0, Ordering::Relaxed);
        self.ejected_until.store(now.saturating_add(long), Ordering::Relaxed);
        long
    }

    /// Whether it was left out, and has not been well for long since.
    pub(super) fn has_been_out(&self) -> bool {
        self.ejected_until() != 0 || self.ejections_in_a_row.load(Ordering::Relaxed) != 0
    }

    /// Notes a success; whether it is back by it.
    pub(super) fn succeed(&self, now: u64, config: &EjectConfig) -> bool {
        match self.phase(now) {
            // A request from before. It says nothing of what comes.
            Phase::LeftOut => false,
            Phase::OnProbation => {
                self.come_back(now);
                true
            }
            Phase::InService => {
                let well = now.saturating_sub(self.back_since.load(Ordering::Relaxed));
                if well >= ms(config.period) {
                    self.ejections_in_a_row.store(0, Ordering::Relaxed);
                }
                false
            }
        }
    }

    // LeftOut | OnProbation -> InService; also: it is new, or well again by its checks.
    pub(super) fn come_back(&self, now: u64) {
        self.back_since.store(now, Ordering::Relaxed);
        self.ejected_until.store(0, Ordering::Relaxed);
    }

    /// What it takes of a full share of [`SHARE`], rising while it starts slowly.
    pub(super) fn share(&self, now: u64, slow_start: Duration) -> u64 {
        let whole = ms(slow_start);
        let back = self.back_since.load(Ordering::Relaxed);
        if whole == 0 || back == 0 {
            return SHARE;
        }
        let risen = now.saturating_sub(back).min(whole);
        SHARE_MIN + (SHARE - SHARE_MIN).saturating_mul(risen) / whole
    }

    /// Whether what it takes changes with time alone.
    pub(super) fn is_changing(&self, now: u64, slow_start: Duration) -> bool {
        self.phase(now) != Phase::InService || self.share(now, slow_start) != SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(100);

    #[test]
    fn each_time_in_a_row_takes_longer_up_to_ten_periods() {
        let standing = Standing::default();
        let longs: Vec<u64> = (0..12).map(|_| standing.eject(1, PERIOD)).collect();
        assert_eq!(longs, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_000, 1_000]);
    }

    #[test]
    fn one_request_at_a_time_tries_an_endpoint_on_probation() {
        let standing = Standing::default();
        standing.eject(1, PERIOD);
        assert_eq!(standing.phase(100), Phase::LeftOut);
        assert_eq!(standing.phase(101), Phase::OnProbation);
        assert!(standing.claim_probe(101));
        assert!(!standing.claim_probe(102));
        assert!(!standing.may_probe(102));
        let later = 101 + ms(PROBE_EVERY);
        assert!(standing.claim_probe(later), "a probe without an outcome does not shut it out");
    }

    #[test]
    fn a_success_of_a_request_from_before_does_not_bring_it_back() {
        let (standing, config) = (Standing::default(), EjectConfig::default());
        standing.eject(1, PERIOD);
        assert!(!standing.succeed(50, &config));
        assert_eq!(standing.phase(50), Phase::LeftOut);
        assert!(standing.succeed(101, &config));
        assert_eq!(standing.phase(101), Phase::InService);
    }

    #[test]
    fn being_well_for_a_period_ends_the_row() {
        let (standing, config) =
            (Standing::default(), EjectConfig { period: PERIOD, ..EjectConfig::default() });
        standing.eject(1, PERIOD);
        assert!(standing.succeed(101, &config));
        assert!(!standing.succeed(200, &config));
        assert_eq!(standing.eject(200, PERIOD), 200, "it was well for 99 ms");
        assert!(standing.succeed(400, &config));
        assert!(!standing.succeed(500, &config));
        assert_eq!(standing.eject(500, PERIOD), 100);
    }

    #[test]
    fn the_share_rises_from_a_tenth_to_all() {
        let standing = Standing::default();
        let slow = Duration::from_secs(10);
        assert_eq!(standing.share(5, slow), SHARE, "it was never away");
        standing.come_back(1_000);
        let shares = [1_000, 6_000, 11_000, 99_000].map(|now| standing.share(now, slow));
        assert_eq!(shares, [100, 550, 1_000, 1_000]);
        assert_eq!(standing.share(1_000, Duration::ZERO), SHARE);
    }
}
