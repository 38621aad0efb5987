//! The wall clock of a core, and moments of it as text.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the wall clock stood at a moment. Moments nearby follow from it: the way of a request reads
/// no second clock.
#[derive(Clone, Copy)]
pub(super) struct WallClock {
    instant: Instant,
    /// Since 1970, UTC.
    unix: Duration,
}

impl WallClock {
    pub(super) fn read() -> WallClock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallClock { instant: Instant::now(), unix }
    }

    #[cfg(test)]
    pub(super) fn new(instant: Instant, unix: Duration) -> WallClock {
        WallClock { instant, unix }
    }

    /// The time since 1970 at `instant`.
    pub(super) fn at(&self, instant: Instant) -> Duration {
        match instant.checked_duration_since(self.instant) {
            Some(later) => self.unix.saturating_add(later),
            None => self.unix.saturating_sub(self.instant.duration_since(instant)),
        }
    }
}

/// A moment as both formats write it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    /// `10/Oct/2000:13:55:36 +0000`
    pub(super) combined: &'a [u8],
    /// `2000-10-10T13:55:36`
    pub(super) iso: &'a [u8],
    /// Microseconds of its second.
    pub(super) micros: u32,
}

/// The text of one second, which many requests have in common.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    second: u64,
    combined: [u8; 26],
    iso: [u8; 19],
}

/// The last second of the year 9999. A later one is taken for it.
const SECOND_MAX: u64 = 253_402_300_799;

impl Default for Stamp {
    fn default() -> Stamp {
        Stamp::of(0)
    }
}

impl Stamp {
    pub(super) fn at(&mut self, unix: Duration) -> Moment<'_> {
        let second = unix.as_secs().min(SECOND_MAX);
        if self.second != second {
            *self = Stamp::of(second);
        }
        Moment { combined: &self.combined, iso: &self.iso, micros: unix.subsec_micros() }
    }

    fn of(second: u64) -> Stamp {
        // `Sun, 06 Nov 1994 08:49:37 GMT`: the calendar is the crate's, the order is ours.
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
        let date = date.as_bytes();
        let (day, name, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        const NAMES: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
        let month = NAMES.chunks_exact(3).position(|known| known == name);
        let month = month.expect("a month has one of twelve names") as u8 + 1;
        let month = [b'0' + month / 10, b'0' + month % 10];
        let mut stamp = Stamp { second, combined: [0; 26], iso: [0; 19] };
        join(&mut stamp.combined, &[day, b"/", name, b"/", year, b":", time, b" +0000"]);
        join(&mut stamp.iso, &[year, b"-", &month, b"-", day, b"T", time]);
        stamp
    }
}

/// Fills `out` with `parts`, which have its length together.
fn join(out: &mut [u8], parts: &[&[u8]]) {
    let mut rest = out;
    for part in parts {
        let (head, tail) = rest.split_at_mut(part.len());
        head.copy_from_slice(part);
        rest = tail;
    }
    debug_assert!(rest.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_written_as_both_formats_want_it() {
        let rows = [
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00"),
            (971_186_136, "10/Oct/2000:13:55:36 +0000", "2000-10-10T13:55:36"),
            (1_709_251_199, "29/Feb/2024:23:59:59 +0000", "2024-02-29T23:59:59"),
            (u64::MAX, "31/Dec/9999:23:59:59 +0000", "9999-12-31T23:59:59"),
        ];
        let mut stamp = Stamp::default();
        for (second, combined, iso) in rows {
            let moment = stamp.at(Duration::new(second, 123_456_999));
            assert_eq!(moment.combined, combined.as_bytes());
            assert_eq!(moment.iso, iso.as_bytes());
            assert_eq!(moment.micros, 123_456);
        }
    }

    #[test]
    fn moments_before_and_after_the_clock_was_read_follow_from_it() {
        let now = Instant::now() + Duration::from_secs(10);
        let clock = WallClock::new(now, Duration::from_secs(1_000));
        assert_eq!(clock.at(now + Duration::from_secs(2)), Duration::from_secs(1_002));
        assert_eq!(clock.at(now - Duration::from_secs(2)), Duration::from_secs(998));
        let early = WallClock::new(now, Duration::from_secs(1));
        assert_eq!(early.at(now - Duration::from_secs(2)), Duration::ZERO);
    }
}
