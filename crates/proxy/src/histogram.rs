//! How long things took, in classes. Written by one core, read from anywhere.

use std::time::Duration;

use baton_runtime::Counter;

/// Upper bounds of the classes, microseconds; the last class is open.
pub(crate) const BOUNDS_US: [u64; 16] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Durations by class, and their sum.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    classes: [Counter; BOUNDS_US.len() + 1],
    sum_us: Counter,
}

/// What histograms of several cores hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Durations {
    /// By class, not cumulative.
    pub(crate) classes: [u64; BOUNDS_US.len() + 1],
    pub(crate) sum_us: u64,
}

impl Histogram {
    pub(crate) fn add(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS_US.partition_point(|bound| *bound < us);
        self.classes[class].add(1);
        self.sum_us.add(us);
    }

    /// Adds what it holds to `sum`.
    pub(crate) fn sum_into(&self, sum: &mut Durations) {
        for (sum, class) in sum.classes.iter_mut().zip(&self.classes) {
            *sum += class.read();
        }
        sum.sum_us = sum.sum_us.wrapping_add(self.sum_us.read());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_class_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for us in [0, 250, 251, 30_000_000, 30_000_001] {
            histogram.add(Duration::from_micros(us));
        }
        let mut sum = Durations::default();
        histogram.sum_into(&mut sum);
        assert_eq!((sum.classes[0], sum.classes[1]), (2, 1));
        assert_eq!((sum.classes[15], sum.classes[16]), (1, 1));
        assert_eq!(sum.sum_us, 250 + 251 + 30_000_000 + 30_000_001);
    }
}
