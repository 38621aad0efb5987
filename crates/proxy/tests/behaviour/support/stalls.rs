//! Whether this machine ran the test at all: a deadline cannot be judged by a process that waited
//! for a CPU itself.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baton_proxy::config::DriverChoice;
use baton_runtime::{CoreCounters, Counter, LAG_BOUNDS_US};

use super::on_each_driver;

/// How late a thread that only sleeps must be for its lateness to count.
const STALL_MIN: Duration = Duration::from_millis(200);

/// Attempts of a test about time. A machine that stalls in each of them is too busy for it.
const ATTEMPTS_MAX: u32 = 8;

/// As [`on_each_driver`], for a test that is about time: an attempt that fails while the machine
/// stalled proves nothing and is made again. One that fails without a stall fails the test.
pub(crate) fn on_each_driver_in_time(test: impl Fn(DriverChoice) + Sync) {
    on_each_driver(|driver| {
        for attempt in 1.. {
            let before = stalls();
            // What a failed attempt leaves behind is its own and is dropped with it.
            let Err(failure) = catch_unwind(AssertUnwindSafe(|| test(driver))) else { return };
            if stalls() == before || attempt == ATTEMPTS_MAX {
                resume_unwind(failure);
            }
        }
    });
}

static STALLS: AtomicU64 = AtomicU64::new(0);

/// Counts the late heartbeats of a core: it is pinned to a CPU that others may use as well.
pub(super) fn note_late_heartbeats(core: &CoreCounters) {
    let late =
        LAG_BOUNDS_US.iter().position(|bound| *bound == 100_000).expect("a class from there");
    let count: u64 = core.lag[late + 1..].iter().map(Counter::read).sum();
    STALLS.fetch_add(count, Ordering::SeqCst);
}

/// How often a thread that only sleeps was late, so far.
fn stalls() -> u64 {
    static METER: OnceLock<()> = OnceLock::new();
    METER.get_or_init(|| {
        thread::spawn(|| {
            loop {
                let (start, pause) = (Instant::now(), Duration::from_millis(10));
                thread::park_timeout(pause);
                if start.elapsed() > pause + STALL_MIN {
                    STALLS.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    });
    // The stall under way, if there is one, is counted once the meter runs again.
    thread::park_timeout(Duration::from_millis(20));
    STALLS.load(Ordering::SeqCst)
}
