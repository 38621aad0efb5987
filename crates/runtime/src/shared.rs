//! What the threads of a runtime share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::blocking::BlockingPool;
use crate::counters::CoreCounters;
use crate::mailbox::{Mailbox, Phase};

/// Lock-free but for the blocking pool.
///
/// Invariant: `mailboxes.len() == counters.len()`, which is `cores`, or `cores + 1` where an
/// acceptor, the last, deals the connections.
pub(crate) struct Shared {
    mailboxes: Vec<Mailbox>,
    counters: Vec<CoreCounters>,
    cores: usize,
    connections: AtomicUsize,
    connections_max: AtomicUsize,
    blocking: Arc<BlockingPool>,
}

impl Shared {
    /// For `threads` threads, of which the first `cores` serve connections.
    pub(crate) fn new(
        cores: usize,
        threads: usize,
        connections_max: usize,
    ) -> std::io::Result<Shared> {
        debug_assert!(threads == cores || threads == cores + 1);
        let mailboxes: std::io::Result<Vec<Mailbox>> =
            (0..threads).map(|_| Mailbox::new()).collect();
        Ok(Shared {
            mailboxes: mailboxes?,
            counters: (0..threads).map(|_| CoreCounters::default()).collect(),
            cores,
            connections: AtomicUsize::new(0),
            connections_max: AtomicUsize::new(connections_max),
            blocking: Arc::new(BlockingPool::new()),
        })
    }

    /// Cores that serve connections.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    pub(crate) fn mailbox(&self, core: usize) -> &Mailbox {
        &self.mailboxes[core]
    }

    pub(crate) fn counters(&self, core: usize) -> &CoreCounters {
        &self.counters[core]
    }

    pub(crate) fn blocking(&self) -> &Arc<BlockingPool> {
        &self.blocking
    }

    /// Connections open now; for a moment more, while a batch is accepted.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Sets another bound of connections. Those over it stay open; none is added until there is room.
    pub(crate) fn set_connections_max(&self, connections_max: usize) {
        self.connections_max.store(connections_max, Ordering::Relaxed);
    }

    /// Lets all threads drain. Cores end after the acceptor, see [`Shared::deals_no_more`].
    pub(crate) fn drain(&self) {
        self.order_all(Phase::Draining);
    }

    pub(crate) fn abort(&self) {
        self.order_all(Phase::Aborting);
    }

    /// Whether no connection can be dealt to core `index` any more. Those dealt before are in its
    /// mailbox by then.
    pub(crate) fn deals_no_more(&self, index: usize) -> bool {
        match self.mailboxes.get(self.cores) {
            // The acceptor itself waits for nobody.
            Some(acceptor) => index == self.cores || acceptor.ordered() == Phase::Ended,
            None => true,
        }
    }

    /// Thread `index` has ended, whatever the reason.
    pub(crate) fn ended(&self, index: usize) {
        self.mailboxes[index].close();
        if index == self.cores {
            // Without an acceptor there is no more to come. Those that drain already wait for this.
            self.drain();
        }
    }

    fn order_all(&self, phase: Phase) {
        for mailbox in &self.mailboxes {
            mailbox.order(phase);
        }
    }

    /// Leave to open up to `most` connections; fewer, down to none, at the process's limit.
    pub(crate) fn acquire_permits(self: &Arc<Self>, most: usize) -> Permits {
        let mut granted = 0;
        // Relaxed: the count orders nothing but itself.
        let _changed =
            self.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                granted =
                    most.min(self.connections_max.load(Ordering::Relaxed).saturating_sub(open));
                (granted > 0).then_some(open + granted)
            });
        Permits { shared: self.clone(), count: granted }
    }
}

/// Leave for a number of connections to be open; given back when dropped.
pub(crate) struct Permits {
    shared: Arc<Shared>,
    count: usize,
}

impl Permits {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn split_one(&mut self) -> Permits {
        assert!(self.count > 0, "no more sockets are accepted than there were permits");
        self.count -= 1;
        Permits { shared: self.shared.clone(), count: 1 }
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        if self.count > 0 {
            self.shared.connections.fetch_sub(self.count, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(connections_max: usize) -> Arc<Shared> {
        Arc::new(Shared::new(2, 3, connections_max).expect("three doorbells"))
    }

    #[test]
    fn no_more_permits_are_granted_than_the_limit_leaves() {
        let shared = shared(20);
        let first = shared.acquire_permits(16);
        let second = shared.acquire_permits(16);
        let third = shared.acquire_permits(16);
        assert_eq!([first.count(), second.count(), third.count()], [16, 4, 0]);
        drop(first);
        assert_eq!(shared.acquire_permits(17).count(), 16);
    }

    #[test]
    fn a_permit_split_off_outlives_the_rest() {
        let shared = shared(20);
        let mut batch = shared.acquire_permits(16);
        let one = batch.split_one();
        drop(batch);
        assert_eq!(shared.connections(), 1);
        drop(one);
        assert_eq!(shared.connections(), 0);
    }

    #[test]
    #[should_panic(expected = "than there were permits")]
    fn a_permit_cannot_be_split_from_none() {
        shared(0).acquire_permits(16).split_one();
    }

    #[test]
    fn a_core_is_dealt_to_until_the_acceptor_has_ended() {
        let shared = shared(1);
        shared.drain();
        assert!(!shared.deals_no_more(0));
        assert!(shared.deals_no_more(2), "the acceptor waits for nobody");
        shared.ended(2);
        assert!(shared.deals_no_more(0));
    }

    #[test]
    fn the_cores_drain_when_the_acceptor_ends_unasked() {
        let shared = shared(1);
        shared.ended(2);
        for core in 0..2 {
            assert_eq!(shared.mailbox(core).ordered(), Phase::Draining);
        }
    }

    #[test]
    fn a_core_that_has_ended_is_not_ordered_back() {
        let shared = shared(1);
        shared.ended(0);
        shared.drain();
        shared.abort();
        assert_eq!(shared.mailbox(0).ordered(), Phase::Ended);
        assert_eq!(shared.mailbox(1).ordered(), Phase::Aborting);
    }
}
