//! Rate limits: how many requests a route admits in a time, counted for the whole process.
//!
//! The generic cell rate algorithm: of each key one number is kept, the moment at which it owes
//! nothing any more. An admitted request moves that moment on by the time one request is worth; a
//! key may owe at most its burst. Nothing has to run in between, and cores share a number by
//! compare and exchange, so a limit holds exactly whatever core answers.
//!
//! Not the crate `governor`: its keyed states are a map that grows with every new key until
//! somebody walks it, and its store interface hides the time, so a store of a fixed size cannot
//! tell a state that may be given up from one that may not. What would be left of it is
//! [`Rate::admit`].
//!
//! A check costs 9 ns for a whole route, 17 ns for one client and 45 ns for many, as measured by
//! `cost_of_a_check`.
//!
//! Never: reads the clock, waits, or allocates after it was made.

mod concurrency;
mod table;

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::{self, RateKey};

pub(crate) use concurrency::{InFlight, try_enter};
use table::Table;

/// Longest time that one request can be worth. Longer ones are taken for this.
const INTERVAL_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Most that a key can owe. A larger burst is taken for this.
const OWED_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// Largest number in a structured field (RFC 9651 §3.3.1). Larger ones are taken for this.
const FIELD_INTEGER_MAX: u64 = 999_999_999_999_999;

/// The limit of one route. Shared by all cores.
pub(crate) struct RateLimiter {
    config: config::RateLimit,
    rate: Rate,
    /// Moments are nanoseconds since then.
    epoch: Instant,
    hasher: RandomState,
    states: States,
    /// `RateLimit-Policy` and the beginning of `RateLimit`, up to the number.
    fields: Box<[u8]>,
    /// Most that `r` says: the quota of the policy.
    quota: u64,
}

enum States {
    /// All requests are counted together.
    One(AtomicU64),
    Keyed(Table),
}

/// Whose request is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key<'a> {
    /// Where the client is. Of IPv6 the first 64 bits count, which is what one customer gets.
    Client(IpAddr),
    /// The value of the field the limit looks at; `None` without it.
    Field(Option<&'a [u8]>),
    /// Everybody's.
    Route,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Admitted {
        /// Requests that would be admitted now, after this one.
        remaining: u64,
        /// Time until it is one more.
        reset: Duration,
    },
    /// The answer is 429.
    Refused {
        /// Time until a request is admitted, if nobody else takes its place.
        retry_after: Duration,
    },
}

impl Decision {
    /// The value of Retry-After, whole seconds, at least 1; `None` for an admitted request.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Admitted { .. } => None,
            Self::Refused { retry_after } => Some(whole_seconds(*retry_after).max(1)),
        }
    }
}

/// The arithmetic of a limit. Moments and times are nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// What one request is worth. 1 to `INTERVAL_MAX`.
    interval: u64,
    /// Most that may be owed before a request is admitted: a burst less one request.
    slack: u64,
}

impl Rate {
    /// A rate over 40 million requests a second is off by more than 1 %, as the interval is whole
    /// nanoseconds.
    fn new(config: &config::RateLimit) -> Rate {
        let requests = u128::from(config.requests.max(1));
        let interval = (config.per.as_nanos() + requests / 2) / requests;
        let interval = interval.clamp(1, INTERVAL_MAX.as_nanos()) as u64;
        let slack = interval.saturating_mul(u64::from(config.burst.max(1) - 1));
        Rate { interval, slack: slack.min(OWED_MAX.as_nanos() as u64) }
    }

    /// Whether a key that owes nothing from `clear_at` on is admitted at `now`: the next such
    /// moment, later than both; or how long it has to wait.
    fn admit(&self, clear_at: u64, now: u64) -> Result<u64, u64> {
        let from = clear_at.max(now);
        let owed = from - now;
        if owed > self.slack { Err(owed - self.slack) } else { Ok(from + self.interval) }
    }

    /// What is said of a request that moved its key's moment to `clear_at`.
    fn admitted(&self, clear_at: u64, now: u64) -> Decision {
        let owed = clear_at - now;
        let room = (self.slack + self.interval).saturating_sub(owed);
        let reset = self.interval - room % self.interval;
        Decision::Admitted { remaining: room / self.interval, reset: Duration::from_nanos(reset) }
    }

    /// Checks against one number. Each turn of the loop follows an admission by another core.
    fn check(&self, moment: &AtomicU64, now: u64) -> Decision {
        let mut clear_at = moment.load(Ordering::Relaxed);
        loop {
            let next = match self.admit(clear_at, now) {
                Ok(next) => next,
                Err(wait) => return refused(wait),
            };
            // The number stands for itself: nothing else is read or written by its order.
            match moment.compare_exchange(clear_at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return self.admitted(next, now),
                Err(seen) => clear_at = seen,
            }
        }
    }
}

fn refused(wait: u64) -> Decision {
    Decision::Refused { retry_after: Duration::from_nanos(wait) }
}

impl RateLimiter {
    /// A limit that nobody has used yet. Takes 2 MiB where it tells keys apart.
    pub(crate) fn new(config: &config::RateLimit) -> RateLimiter {
        Self::starting_at(config, Instant::now())
    }

    fn starting_at(config: &config::RateLimit, epoch: Instant) -> RateLimiter {
        let states = match config.key {
            RateKey::Route => States::One(AtomicU64::new(0)),
            RateKey::ClientIp | RateKey::Field(_) => States::Keyed(Table::new()),
        };
        let (quota, window) = policy(config);
        let fields = format!(
            "RateLimit-Policy: \"default\";q={quota};w={window}\r\nRateLimit: \"default\";r="
        );
        RateLimiter {
            config: config.clone(),
            rate: Rate::new(config),
            epoch,
            hasher: RandomState::new(),
            states,
            fields: fields.into_bytes().into(),
            quota,
        }
    }

    /// What it was made of: one that is configured as before is kept over a reload.
    pub(crate) fn config(&self) -> &config::RateLimit {
        &self.config
    }

    /// Whether a request of `key` that is there at `now` is admitted, which then counts.
    ///
    /// `key` is of the kind the limit is configured for; a limit of the whole route looks at none.
    pub(crate) fn check(&self, key: Key<'_>, now: Instant) -> Decision {
        let now = now.saturating_duration_since(self.epoch);
        let now = now.as_secs() * 1_000_000_000 + u64::from(now.subsec_nanos());
        match &self.states {
            States::One(moment) => self.rate.check(moment, now),
            States::Keyed(table) => table.check(self.fingerprint(key), &self.rate, now),
        }
    }

    /// Keys that were forgotten while they still owed something, for want of room; and requests that
    /// were counted against a reserve, as another core that had their place was put aside. Since the
    /// limit was made.
    #[cfg(test)]
    pub(crate) fn forgotten(&self) -> (u64, u64) {
        match &self.states {
            States::One(_) => (0, 0),
            States::Keyed(table) => table.forgotten(),
        }
    }

    /// Appends the lines `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10)
    /// and, for a refused request, `Retry-After` (RFC 9110 §10.2.3).
    pub(crate) fn append_fields(&self, decision: &Decision, out: &mut Vec<u8>) {
        let (remaining, reset) = match *decision {
            Decision::Admitted { remaining, reset } => (remaining.min(self.quota), reset),
            Decision::Refused { retry_after } => (0, retry_after),
        };
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(&self.fields);
        out.extend_from_slice(digits.format(remaining).as_bytes());
        out.extend_from_slice(b";t=");
        out.extend_from_slice(digits.format(whole_seconds(reset)).as_bytes());
        out.extend_from_slice(b"\r\n");
        if let Some(seconds) = decision.retry_after_seconds() {
            out.extend_from_slice(b"Retry-After: ");
            out.extend_from_slice(digits.format(seconds).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }

    /// 64 bits that stand for the key. The hash has a secret of this limit, so nobody outside can
    /// look for two keys that are counted together.
    fn fingerprint(&self, key: Key<'_>) -> u64 {
        match key {
            Key::Client(address) => match address.to_canonical() {
                IpAddr::V4(address) => self.hasher.hash_one(address.to_bits()),
                IpAddr::V6(address) => self.hasher.hash_one((address.to_bits() >> 64) as u64),
            },
            Key::Field(value) => self.hasher.hash_one(value),
            Key::Route => self.hasher.hash_one(()),
        }
    }
}

/// The quota and the window in seconds that say the same as the limit: for a time that is no whole
/// number of seconds, as many requests as the next whole number admits.
fn policy(config: &config::RateLimit) -> (u64, u64) {
    let window = whole_seconds(config.per).clamp(1, FIELD_INTEGER_MAX);
    let quota = u128::from(config.requests) * Duration::from_secs(window).as_nanos();
    let quota = quota / config.per.as_nanos().max(1);
    (quota.clamp(1, u128::from(FIELD_INTEGER_MAX)) as u64, window)
}

/// Rounded up: who waits that long has waited long enough.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests;
