//! Numbers as words, as the live page writes them.

use crate::config::AdminAddress;
use crate::control::snapshot::Times;

pub(super) fn address(address: &AdminAddress) -> String {
    match address {
        AdminAddress::Tcp(address) => address.to_string(),
        AdminAddress::Unix(path) => path.display().to_string(),
    }
}

/// Digits in groups of three.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A rate: with a decimal where it is small.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        rate if rate > 0.0 && rate < 9.95 => format!("{rate:.1}"),
        rate => number(rate.round() as u64),
    }
}

pub(super) fn percent(share: f64) -> String {
    match share {
        share if share <= 0.0 => "0 %".to_owned(),
        share if share < 0.001 => "< 0.1 %".to_owned(),
        share if share < 0.0995 => format!("{:.1} %", share * 100.0),
        share => format!("{:.0} %", share * 100.0),
    }
}

pub(super) fn bytes(bytes: u64) -> String {
    for (unit, size) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= size {
            let decimals = usize::from(bytes < 10 * size);
            return format!("{:.decimals$} {unit}", bytes as f64 / size as f64);
        }
    }
    format!("{bytes} B")
}

pub(super) fn micros(us: u64) -> String {
    match us {
        ..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", us as f64 / 1e3),
        1_000_000.. => format!("{} s", us as f64 / 1e6),
    }
}

/// A time in its two largest units.
pub(super) fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (1.., ..) => format!("{days} d {} h", hours % 24),
        (0, 1.., _) => format!("{hours} h {} min", minutes % 60),
        (0, 0, 1..) => format!("{minutes} min {} s", seconds % 60),
        (0, 0, 0) => format!("{seconds} s"),
    }
}

/// The class in which the `share` of `times` lies, as its bound.
pub(super) fn quantile(times: &Times, bounds_us: &[u64], share: f64) -> String {
    match (times.quantile_class(share), bounds_us.last()) {
        (Some(class), Some(last)) => match bounds_us.get(class) {
            Some(bound) => format!("≤ {}", micros(*bound)),
            None => format!("> {}", micros(*last)),
        },
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_its_class_or_says_that_there_is_none() {
        let bounds = [250, 2_500];
        let times = |classes: &[u64]| Times { classes: classes.to_vec(), sum_us: 0 };
        assert_eq!(quantile(&Times::default(), &bounds, 0.5), "–");
        assert_eq!(quantile(&times(&[0, 0, 0]), &bounds, 0.5), "–");
        assert_eq!(quantile(&times(&[5, 4, 1]), &bounds, 0.5), "≤ 250 µs");
        assert_eq!(quantile(&times(&[5, 4, 1]), &bounds, 0.9), "≤ 2.5 ms");
        assert_eq!(quantile(&times(&[5, 4, 1]), &bounds, 0.99), "> 2.5 ms");
    }

    #[test]
    fn numbers_are_short_and_exact_enough() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.04, 9.94, 9.96, 12_345.6].map(rate),
            ["0", "0.0", "9.9", "10", "12,346"]
        );
        assert_eq!([0.0, 0.0001, 0.0123, 0.5].map(percent), ["0 %", "< 0.1 %", "1.2 %", "50 %"]);
        assert_eq!([5, 2_048, 48_234_496].map(bytes), ["5 B", "2.0 KiB", "46 MiB"]);
        assert_eq!([9, 2_500, 30_000_000].map(micros), ["9 µs", "2.5 ms", "30 s"]);
        assert_eq!(
            [59, 61, 3_660, 93_784].map(span),
            ["59 s", "1 min 1 s", "1 h 1 min", "1 d 2 h"]
        );
    }
}
