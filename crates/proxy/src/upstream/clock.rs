//! Milliseconds since the process began to look at this clock: what fits into an atomic.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Never 0, so that 0 can stand for "never".
pub(crate) fn now_ms() -> u64 {
    ms(START.elapsed()).saturating_add(1)
}

/// A duration as milliseconds.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
