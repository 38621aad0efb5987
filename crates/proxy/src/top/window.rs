//! The last answers, and what changed between them.

use std::collections::{BTreeMap, VecDeque};

use crate::control::snapshot::{EndpointNumbers, Snapshot};

/// Answers kept: quantiles and shares are of what happened within them.
const MOMENTS_MAX: usize = 10;

/// Rates kept of each endpoint. When full: the oldest goes.
pub(super) const TRAIL_MAX: usize = 60;

/// Upstream and address.
type Place = (String, String);

/// The last answers, the newest last.
#[derive(Default)]
pub(super) struct Window {
    moments: VecDeque<Snapshot>,
    /// Requests per second of each endpoint there is, the newest last.
    trails: BTreeMap<Place, VecDeque<f64>>,
}

impl Window {
    pub(super) fn add(&mut self, snapshot: Snapshot) {
        let is_same_process = self.now().is_some_and(|now| {
            now.started_unix_ms == snapshot.started_unix_ms && now.uptime_ms <= snapshot.uptime_ms
        });
        if !is_same_process {
            *self = Window::default();
        }
        if self.moments.len() == MOMENTS_MAX {
            self.moments.pop_front();
        }
        self.moments.push_back(snapshot);
        self.follow();
    }

    fn follow(&mut self) {
        let Some(now) = self.moments.back() else { return };
        let mut known = std::mem::take(&mut self.trails);
        let mut trails = BTreeMap::new();
        for upstream in &now.upstreams {
            for endpoint in &upstream.endpoints {
                let place = (upstream.name.clone(), endpoint.address.clone());
                let before = self.before().and_then(|b| find(b, &place.0, &place.1));
                let rate = before.map(|before| self.per_second(endpoint.requests, before.requests));
                let mut trail = known.remove(&place).unwrap_or_default();
                if let Some(rate) = rate {
                    if trail.len() == TRAIL_MAX {
                        trail.pop_front();
                    }
                    trail.push_back(rate);
                }
                trails.insert(place, trail);
            }
        }
        self.trails = trails;
    }

    pub(super) fn now(&self) -> Option<&Snapshot> {
        self.moments.back()
    }

    /// The one before the newest.
    pub(super) fn before(&self) -> Option<&Snapshot> {
        self.moments.len().checked_sub(2).and_then(|index| self.moments.get(index))
    }

    /// The oldest, if it is not the newest.
    pub(super) fn oldest(&self) -> Option<&Snapshot> {
        self.moments.front().filter(|_| self.moments.len() > 1)
    }

    /// What rose from `before` to `now`, per second between the last two answers. A number that
    /// fell began anew.
    pub(super) fn per_second(&self, now: u64, before: u64) -> f64 {
        let (Some(last), Some(first)) = (self.now(), self.before()) else { return 0.0 };
        let milliseconds = last.uptime_ms.saturating_sub(first.uptime_ms).max(1);
        now.checked_sub(before).unwrap_or(now) as f64 * 1e3 / milliseconds as f64
    }

    /// As [`Window::per_second`], of one number of each moment.
    pub(super) fn rate(&self, number: impl Fn(&Snapshot) -> u64) -> f64 {
        let (Some(last), Some(first)) = (self.now(), self.before()) else { return 0.0 };
        self.per_second(number(last), number(first))
    }

    pub(super) fn trail(&self, upstream: &str, address: &str) -> Vec<f64> {
        let trail = self.trails.get(&(upstream.to_owned(), address.to_owned()));
        trail.map(|trail| trail.iter().copied().collect()).unwrap_or_default()
    }
}

/// The endpoint of this upstream at this address.
pub(super) fn find<'a>(
    snapshot: &'a Snapshot,
    upstream: &str,
    address: &str,
) -> Option<&'a EndpointNumbers> {
    let upstream = snapshot.upstreams.iter().find(|known| known.name == upstream)?;
    upstream.endpoints.iter().find(|endpoint| endpoint.address == address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::made_up;

    #[test]
    fn another_process_begins_anew() {
        let mut window = Window::default();
        window.add(made_up::snapshot(5));
        window.add(made_up::snapshot(6));
        assert!(window.before().is_some());
        let mut other = made_up::snapshot(1);
        other.started_unix_ms += 1;
        window.add(other);
        assert!(window.before().is_none() && window.oldest().is_none());
        assert_eq!(window.rate(|snapshot| snapshot.connections), 0.0);
    }

    #[test]
    fn the_window_and_the_trails_are_bounded_and_rates_are_of_the_last_second() {
        let mut window = Window::default();
        (0..200).for_each(|second| window.add(made_up::snapshot(second)));
        assert_eq!(window.oldest().expect("kept").uptime_ms, made_up::snapshot(190).uptime_ms);
        assert_eq!(window.trail("web", "10.0.7.2:80").len(), TRAIL_MAX);
        assert!(window.trail("web", "nowhere").is_empty());
        let requests = |second| made_up::snapshot(second).counters["requests"];
        let rate = window.rate(|snapshot| snapshot.counters["requests"]);
        assert_eq!(rate, (requests(199) - requests(198)) as f64);
        // What began anew counts from 0.
        assert_eq!(window.per_second(5, 100), 5.0);
    }
}
