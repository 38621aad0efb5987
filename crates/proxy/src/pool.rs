//! Idle connections of one core to the endpoints, last in first out.
//!
//! Generic over the connection, so that it can be tested with plain values. Owned by its core; no
//! other thread sees it.

/// A connection that waits, and since which tick.
struct Idle<C> {
    connection: C,
    since: u64,
}

/// The idle connections to every endpoint of one upstream. Bound: `per_endpoint_max` each.
pub(crate) struct Pool<C> {
    endpoints: Vec<Vec<Idle<C>>>,
    per_endpoint_max: usize,
    idle_ticks_max: u64,
}

impl<C> Pool<C> {
    /// `idle_ticks_max`: ticks of the core's clock after which a connection is no longer used.
    pub(crate) fn new(endpoints: usize, per_endpoint_max: usize, idle_ticks_max: u64) -> Pool<C> {
        let endpoints = (0..endpoints).map(|_| Vec::new()).collect();
        Pool { endpoints, per_endpoint_max, idle_ticks_max }
    }

    /// The connection to `endpoint` that was used last, unless it has waited too long.
    pub(crate) fn lease(&mut self, endpoint: usize, now: u64) -> Option<C> {
        let idle = self.endpoints[endpoint].pop()?;
        if now - idle.since > self.idle_ticks_max {
            // What lies below has waited longer still; the next sweep closes it.
            return None;
        }
        Some(idle.connection)
    }

    /// Keeps a connection for the next request. A full pool closes it.
    pub(crate) fn give_back(&mut self, endpoint: usize, connection: C, now: u64) {
        let idle = &mut self.endpoints[endpoint];
        if idle.len() < self.per_endpoint_max {
            idle.push(Idle { connection, since: now });
        }
    }

    /// Closes every connection that has waited too long or that `is_dead`.
    pub(crate) fn sweep(&mut self, now: u64, mut is_dead: impl FnMut(&C) -> bool) {
        for idle in &mut self.endpoints {
            idle.retain(|one| now - one.since <= self.idle_ticks_max && !is_dead(&one.connection));
            if idle.is_empty() {
                idle.shrink_to(self.per_endpoint_max.min(16));
            }
        }
    }

    /// Closes all.
    pub(crate) fn clear(&mut self) {
        self.endpoints.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_waited_too_long_is_not_leased() {
        let mut pool = Pool::new(1, 4, 10);
        pool.give_back(0, 'a', 0);
        assert!(pool.lease(0, 11).is_none());
    }

    #[test]
    fn a_full_pool_closes_what_comes_back() {
        let mut pool = Pool::new(1, 1, 10);
        pool.give_back(0, 'a', 0);
        pool.give_back(0, 'b', 0);
        assert_eq!(pool.lease(0, 0), Some('a'));
        assert!(pool.lease(0, 0).is_none());
    }

    #[test]
    fn a_pool_of_none_keeps_none() {
        let mut pool = Pool::new(1, 0, 10);
        pool.give_back(0, 'a', 0);
        assert!(pool.lease(0, 0).is_none());
    }

    #[test]
    fn the_last_one_back_is_the_first_one_leased() {
        let mut pool = Pool::new(1, 4, 10);
        pool.give_back(0, 'a', 0);
        pool.give_back(0, 'b', 0);
        assert_eq!(pool.lease(0, 0), Some('b'));
    }

    #[test]
    fn a_sweep_closes_the_old_and_the_dead_of_every_endpoint() {
        let mut pool = Pool::new(2, 4, 10);
        pool.give_back(0, 'o', 0);
        pool.give_back(0, 'd', 15);
        pool.give_back(1, 'k', 15);
        pool.sweep(20, |connection| *connection == 'd');
        assert!(pool.lease(0, 20).is_none());
        assert_eq!(pool.lease(1, 20), Some('k'));
    }
}
