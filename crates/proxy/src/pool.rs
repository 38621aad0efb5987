//! Idle connections of one core to one endpoint, last in first out.
//!
//! Generic over the connection, so that it can be tested with plain values. Owned by its core; no
//! other thread sees it. What leaves it is returned, never dropped within: the end of a connection
//! may let the next request begin, which looks into this pool.

/// A connection that waits for its next request.
pub(crate) struct Parked<C> {
    pub(crate) stream: C,
    /// Since when, milliseconds of the process.
    pub(crate) since: u64,
    /// From when on it is no longer used, milliseconds of the process.
    pub(crate) retires: u64,
}

/// The idle connections. Bound: `most`.
pub(crate) struct Pool<C> {
    idle: Vec<Parked<C>>,
    most: usize,
    idle_ms_max: u64,
}

/// Room for this many is kept however few there are.
const KEPT_ROOM: usize = 16;

impl<C> Pool<C> {
    /// `idle_ms_max`: milliseconds after which a connection is no longer used.
    pub(crate) fn new(most: usize, idle_ms_max: u64) -> Pool<C> {
        Pool { idle: Vec::new(), most, idle_ms_max }
    }

    pub(crate) fn len(&self) -> usize {
        self.idle.len()
    }

    /// The connection that was used last.
    pub(crate) fn take_newest(&mut self) -> Option<Parked<C>> {
        self.idle.pop()
    }

    /// The connection that has waited longest.
    pub(crate) fn take_oldest(&mut self) -> Option<Parked<C>> {
        (!self.idle.is_empty()).then(|| self.idle.remove(0))
    }

    /// Whether a connection has waited too long, or is too old.
    pub(crate) fn is_stale(&self, parked: &Parked<C>, now: u64) -> bool {
        now.saturating_sub(parked.since) > self.idle_ms_max || now >= parked.retires
    }

    /// Keeps a connection for the next request. A full pool returns it.
    pub(crate) fn give_back(&mut self, parked: Parked<C>) -> Option<Parked<C>> {
        if self.idle.len() >= self.most {
            return Some(parked);
        }
        self.idle.push(parked);
        None
    }

    /// Takes out what is stale or `is_dead`.
    pub(crate) fn sweep(
        &mut self,
        now: u64,
        mut is_dead: impl FnMut(&C) -> bool,
    ) -> Vec<Parked<C>> {
        let mut idle = std::mem::take(&mut self.idle);
        let out = |one: &mut Parked<C>| self.is_stale(one, now) || is_dead(&one.stream);
        let ended = idle.extract_if(.., out).collect();
        if idle.is_empty() {
            idle.shrink_to(self.most.min(KEPT_ROOM));
        }
        self.idle = idle;
        ended
    }

    /// Takes out all.
    pub(crate) fn take_all(&mut self) -> Vec<Parked<C>> {
        std::mem::take(&mut self.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(stream: char, since: u64, retires: u64) -> Parked<char> {
        Parked { stream, since, retires }
    }

    #[test]
    fn a_connection_is_stale_when_it_waited_too_long_or_is_too_old() {
        let pool = Pool::new(4, 10);
        assert!(!pool.is_stale(&parked('a', 5, 100), 15));
        assert!(pool.is_stale(&parked('a', 5, 100), 16));
        assert!(pool.is_stale(&parked('a', 95, 100), 100));
    }

    #[test]
    fn a_full_pool_returns_what_comes_back() {
        let mut pool = Pool::new(1, 10);
        assert!(pool.give_back(parked('a', 0, 100)).is_none());
        assert_eq!(pool.give_back(parked('b', 0, 100)).map(|one| one.stream), Some('b'));
        assert_eq!(pool.len(), 1);
    }

    #[test]
    fn a_pool_of_none_keeps_none() {
        let mut pool = Pool::new(0, 10);
        assert!(pool.give_back(parked('a', 0, 100)).is_some());
        assert!(pool.take_newest().is_none());
        assert!(pool.take_oldest().is_none());
    }

    #[test]
    fn the_last_one_back_is_the_first_one_leased_and_the_first_one_back_is_given_up_first() {
        let mut pool = Pool::new(4, 10);
        for stream in ['a', 'b', 'c'] {
            assert!(pool.give_back(parked(stream, 0, 100)).is_none());
        }
        assert_eq!(pool.take_newest().map(|one| one.stream), Some('c'));
        assert_eq!(pool.take_oldest().map(|one| one.stream), Some('a'));
    }

    #[test]
    fn a_sweep_takes_out_the_stale_and_the_dead() {
        let mut pool = Pool::new(4, 10);
        for (stream, since, retires) in
            [('o', 0, 100), ('r', 15, 20), ('d', 15, 100), ('k', 15, 100)]
        {
            assert!(pool.give_back(parked(stream, since, retires)).is_none());
        }
        let ended = pool.sweep(20, |stream| *stream == 'd');
        assert_eq!(ended.iter().map(|one| one.stream).collect::<String>(), "ord");
        assert_eq!(pool.take_all().len(), 1);
    }
}
