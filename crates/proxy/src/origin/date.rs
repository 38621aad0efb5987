//! The value of Date, made once per tick instead of once per answer.

use std::cell::Cell;
use std::time::SystemTime;

/// Bytes of an IMF-fixdate (RFC 9110 §5.6.7).
pub(super) const DATE_BYTES: usize = 29;

/// The date at a tick of the core's clock.
pub(super) struct DateCache {
    tick: Cell<u64>,
    text: Cell<[u8; DATE_BYTES]>,
}

impl DateCache {
    pub(super) fn new(tick: u64) -> DateCache {
        DateCache { tick: Cell::new(tick), text: Cell::new(now()) }
    }

    /// The date, at most one tick old. `tick`: the core's clock.
    pub(super) fn at(&self, tick: u64) -> [u8; DATE_BYTES] {
        if self.tick.get() != tick {
            self.tick.set(tick);
            self.text.set(now());
        }
        self.text.get()
    }
}

fn now() -> [u8; DATE_BYTES] {
    let text = httpdate::fmt_http_date(SystemTime::now());
    text.as_bytes().try_into().expect("an IMF-fixdate has a fixed length")
}
