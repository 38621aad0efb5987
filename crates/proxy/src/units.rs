//! Durations and sizes as people write them: one whole number, one unit, nothing between.
//!
//! Called by the configuration file and by the command line. A bare number is refused, because
//! nothing tells whether `10` means seconds or milliseconds. Fractions are refused, because each
//! has a whole spelling in a smaller unit (`1500ms`), so that a value has one meaning to the bit.

use std::fmt;
use std::time::Duration;

/// One spelling of a unit and how many base units (nanoseconds or bytes) it stands for.
struct Unit {
    name: &'static str,
    scale: u64,
}

/// Largest first: `format` takes the first unit that divides the value.
const DURATION_UNITS: &[Unit] = &[
    Unit { name: "h", scale: 3_600_000_000_000 },
    Unit { name: "m", scale: 60_000_000_000 },
    Unit { name: "s", scale: 1_000_000_000 },
    Unit { name: "ms", scale: 1_000_000 },
    Unit { name: "us", scale: 1_000 },
    Unit { name: "ns", scale: 1 },
];

/// Powers of 1024 (IEC 80000-13) before powers of 1000 (SI), largest first within each. `KB` is no
/// SI spelling, but it cannot mean anything else; it stands after `kB`, so `format` never writes it.
const SIZE_UNITS: &[Unit] = &[
    Unit { name: "TiB", scale: 1 << 40 },
    Unit { name: "GiB", scale: 1 << 30 },
    Unit { name: "MiB", scale: 1 << 20 },
    Unit { name: "KiB", scale: 1 << 10 },
    Unit { name: "TB", scale: 1_000_000_000_000 },
    Unit { name: "GB", scale: 1_000_000_000 },
    Unit { name: "MB", scale: 1_000_000 },
    Unit { name: "kB", scale: 1_000 },
    Unit { name: "KB", scale: 1_000 },
    Unit { name: "B", scale: 1 },
];

/// Why a text is not a duration or a size. The value is not repeated in the message: the caller
/// shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// The text does not start with a digit.
    NoNumber,
    /// The text starts with a minus sign.
    Negative,
    /// A decimal point or comma follows the number.
    Fraction,
    /// White space before, within or after the value.
    Space,
    /// Digits alone.
    NoUnit,
    /// A unit this quantity does not have.
    UnknownUnit {
        /// What stands where the unit belongs.
        unit: String,
    },
    /// A known unit in the wrong case, such as `10S`.
    UnitCase {
        /// What stands where the unit belongs.
        unit: String,
        /// The right spelling.
        expected: &'static str,
    },
    /// More base units (nanoseconds or bytes) than fit in 64 bits.
    TooLarge,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => f.write_str("it does not start with a number"),
            Self::Negative => f.write_str("it is negative"),
            Self::Fraction => f.write_str("fractions are not accepted; use a smaller unit"),
            Self::Space => f.write_str("it contains white space"),
            Self::NoUnit => f.write_str("the unit is missing"),
            Self::UnknownUnit { unit } => write!(f, "unknown unit `{unit}`"),
            Self::UnitCase { unit, expected } => {
                write!(f, "unknown unit `{unit}`; did you mean `{expected}`?")
            }
            Self::TooLarge => f.write_str("the number is too large"),
        }
    }
}

impl std::error::Error for UnitError {}

/// Parses a duration such as `10s`: whole number, then `h`, `m`, `s`, `ms`, `us` or `ns`.
///
/// The longest is 2^64 − 1 nanoseconds (584 years); beyond it `UnitError::TooLarge`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    parse(text, DURATION_UNITS).map(Duration::from_nanos)
}

/// Writes a duration in the largest unit that holds it exactly, so that `parse_duration` reads the
/// same value back. Durations over 2^64 − 1 nanoseconds are written as that.
pub fn format_duration(duration: Duration) -> String {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if nanoseconds == 0 { "0s".to_owned() } else { format(nanoseconds, DURATION_UNITS) }
}

/// Parses a size such as `16KiB` to bytes: whole number, then `B`, `KiB` … `TiB` (powers of 1024)
/// or `kB` … `TB` (powers of 1000).
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse(text, SIZE_UNITS)
}

/// Writes a number of bytes in the largest unit that holds it exactly, powers of 1024 first, so
/// that `parse_size` reads the same value back.
pub fn format_size(bytes: u64) -> String {
    if bytes == 0 { "0B".to_owned() } else { format(bytes, SIZE_UNITS) }
}

fn parse(text: &str, units: &[Unit]) -> Result<u64, UnitError> {
    if text.contains(char::is_whitespace) {
        return Err(UnitError::Space);
    }
    if text.starts_with('-') {
        return Err(UnitError::Negative);
    }
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    if digits.is_empty() {
        return Err(UnitError::NoNumber);
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit);
    }
    if unit.starts_with(['.', ',']) {
        return Err(UnitError::Fraction);
    }
    let Some(known) = units.iter().find(|known| known.name == unit) else {
        let unit = unit.to_owned();
        return Err(match units.iter().find(|known| known.name.eq_ignore_ascii_case(&unit)) {
            Some(known) => UnitError::UnitCase { unit, expected: known.name },
            None => UnitError::UnknownUnit { unit },
        });
    };
    // Digits alone fail to parse only by overflow.
    let number: u64 = digits.parse().map_err(|_| UnitError::TooLarge)?;
    number.checked_mul(known.scale).ok_or(UnitError::TooLarge)
}

/// `value > 0`. The last unit of each table has scale 1, so that one always divides.
fn format(value: u64, units: &[Unit]) -> String {
    debug_assert!(value > 0);
    let unit = units.iter().find(|unit| value.is_multiple_of(unit.scale));
    let unit = unit.expect("the smallest unit divides every value");
    format!("{}{}", value / unit.scale, unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(unit: &str) -> UnitError {
        UnitError::UnknownUnit { unit: unit.to_owned() }
    }

    fn case(unit: &str, expected: &'static str) -> UnitError {
        UnitError::UnitCase { unit: unit.to_owned(), expected }
    }

    #[test]
    fn malformed_durations_are_refused_with_their_cause() {
        let rows = [
            ("", UnitError::NoNumber),
            ("s", UnitError::NoNumber),
            ("+10s", UnitError::NoNumber),
            ("ten seconds", UnitError::Space),
            ("-1s", UnitError::Negative),
            ("-", UnitError::Negative),
            ("10", UnitError::NoUnit),
            ("0", UnitError::NoUnit),
            ("1.5s", UnitError::Fraction),
            ("1,5s", UnitError::Fraction),
            ("10 s", UnitError::Space),
            (" 10s", UnitError::Space),
            ("10s\n", UnitError::Space),
            ("10S", case("S", "s")),
            ("10Ms", case("Ms", "ms")),
            ("10sec", unknown("sec")),
            ("1m30s", unknown("m30s")),
            ("1d", unknown("d")),
            ("1_000ms", unknown("_000ms")),
            ("10KiB", unknown("KiB")),
            ("１０s", UnitError::NoNumber),
            ("10µs", unknown("µs")),
            // 2^64 nanoseconds, then a number that itself is over 64 bits.
            ("18446744073709551616ns", UnitError::TooLarge),
            ("5124096h", UnitError::TooLarge),
            ("99999999999999999999h", UnitError::TooLarge),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_duration(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn malformed_sizes_are_refused_with_their_cause() {
        let rows = [
            ("", UnitError::NoNumber),
            ("KiB", UnitError::NoNumber),
            ("-1B", UnitError::Negative),
            ("16384", UnitError::NoUnit),
            ("1.5MiB", UnitError::Fraction),
            ("16 KiB", UnitError::Space),
            ("16kib", case("kib", "KiB")),
            ("16b", case("b", "B")),
            ("16mb", case("mb", "MB")),
            ("16K", unknown("K")),
            ("10s", unknown("s")),
            ("18446744073709551616B", UnitError::TooLarge),
            ("16777216TiB", UnitError::TooLarge),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_size(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn each_unit_has_its_scale() {
        let durations = [
            ("1h", 3_600_000_000_000),
            ("1m", 60_000_000_000),
            ("1s", 1_000_000_000),
            ("1ms", 1_000_000),
            ("1us", 1_000),
            ("1ns", 1),
            ("0ms", 0),
            ("007s", 7_000_000_000),
            ("18446744073709551615ns", u64::MAX),
        ];
        for (text, nanoseconds) in durations {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text:?}");
        }
        let sizes = [
            ("1B", 1),
            ("1kB", 1_000),
            ("1KB", 1_000),
            ("1KiB", 1_024),
            ("1MB", 1_000_000),
            ("64MiB", 67_108_864),
            ("1GB", 1_000_000_000),
            ("1GiB", 1_073_741_824),
            ("1TB", 1_000_000_000_000),
            ("1TiB", 1_099_511_627_776),
            ("0KiB", 0),
            ("18446744073709551615B", u64::MAX),
        ];
        for (text, bytes) in sizes {
            assert_eq!(parse_size(text), Ok(bytes), "{text:?}");
        }
    }

    #[test]
    fn a_value_is_written_in_the_largest_unit_that_holds_it_exactly() {
        let durations = [
            (Duration::ZERO, "0s"),
            (Duration::from_secs(3_600), "1h"),
            (Duration::from_secs(90), "90s"),
            (Duration::from_secs(120), "2m"),
            (Duration::from_millis(1_500), "1500ms"),
            (Duration::from_nanos(1_001), "1001ns"),
        ];
        for (duration, text) in durations {
            assert_eq!(format_duration(duration), text);
            assert_eq!(parse_duration(text), Ok(duration));
        }
        let sizes = [
            (0, "0B"),
            (1, "1B"),
            (1_000, "1kB"),
            (1_024, "1KiB"),
            (10_000_000, "10MB"),
            (1 << 40, "1TiB"),
            (1_048_577, "1048577B"),
            (u64::MAX, "18446744073709551615B"),
        ];
        for (bytes, text) in sizes {
            assert_eq!(format_size(bytes), text);
            assert_eq!(parse_size(text), Ok(bytes));
        }
    }

    #[test]
    fn a_duration_beyond_64_bits_of_nanoseconds_is_written_as_the_longest() {
        assert_eq!(format_duration(Duration::MAX), "18446744073709551615ns");
    }
}
