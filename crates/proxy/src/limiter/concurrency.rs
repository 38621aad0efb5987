//! How many requests of a route are under way at once, in the process.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::plan::RouteState;

/// One request under way; ends its count when dropped. `R` is an `Arc`, or a reference where the
/// route outlives the request.
pub(crate) struct InFlight<R: Deref<Target = RouteState>>(R);

/// Counts a request in. `None`: `max` of the route's requests are under way already, whatever core
/// has them; the answer is 503.
pub(crate) fn try_enter<R>(route: R, max: Option<usize>) -> Option<InFlight<R>>
where
    R: Deref<Target = RouteState>,
{
    // Relaxed: the number guards no other memory.
    let in_flight: &AtomicUsize = &route.in_flight;
    match max {
        None => {
            in_flight.fetch_add(1, Ordering::Relaxed);
        }
        Some(max) => {
            let room = |under_way| (under_way < max).then_some(under_way + 1);
            in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        }
    }
    Some(InFlight(route))
}

impl<R: Deref<Target = RouteState>> Drop for InFlight<R> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    #[test]
    fn a_request_over_the_limit_is_refused_until_another_ends() {
        let route = Arc::new(RouteState::new("a".to_owned(), 1));
        let held: Vec<_> = (0..2).map(|_| try_enter(route.clone(), Some(2))).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(try_enter(&*route, Some(2)).is_none());
        assert!(try_enter(&*route, Some(0)).is_none());
        drop(held);
        assert_eq!(route.in_flight(), 0);
        assert!(try_enter(&*route, Some(1)).is_some());
    }

    #[test]
    fn a_route_without_a_limit_counts_its_requests() {
        let route = RouteState::new("a".to_owned(), 1);
        let held: Vec<_> = (0..9).map(|_| try_enter(&route, None)).collect();
        assert_eq!(route.in_flight(), 9);
        // A reload may bring a limit while more are under way.
        assert!(try_enter(&route, Some(9)).is_none());
        drop(held);
        assert_eq!(route.in_flight(), 0);
    }

    #[test]
    fn many_threads_never_hold_more_than_the_limit() {
        const MAX: usize = 3;
        let route = RouteState::new("a".to_owned(), 1);
        let (inside, barrier) = (AtomicUsize::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..5_000 {
                        let Some(guard) = try_enter(&route, Some(MAX)) else { continue };
                        let before = inside.fetch_add(1, Ordering::SeqCst);
                        assert!(before < MAX, "{before} were inside");
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(guard);
                    }
                });
            }
        });
        assert_eq!(route.in_flight(), 0);
    }
}
