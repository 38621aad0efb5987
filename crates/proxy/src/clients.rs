//! How many connections each client address holds, counted for the whole process.
//!
//! Taken when a connection opens and closes, never per request. Split over several locks, each held
//! for one map operation by cores alone; helpers of lower priority never take one.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Locks the addresses are spread over.
const SHARDS: usize = 64;

/// The counts; at most `most` connections per address. `usize::MAX`: no bound, and nothing is
/// counted.
pub(crate) struct Clients {
    most: AtomicUsize,
    hasher: RandomState,
    shards: Vec<Mutex<HashMap<IpAddr, usize>>>,
}

/// One connection of an address; ends its count when dropped.
pub(crate) struct Admission(
    /// Dropped with it.
    #[expect(dead_code, reason = "held for its drop")]
    Option<Counted>,
);

struct Counted {
    clients: Arc<Clients>,
    address: IpAddr,
}

impl Clients {
    pub(crate) fn new(most: Option<usize>) -> Clients {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Clients {
            most: AtomicUsize::new(most.unwrap_or(usize::MAX)),
            hasher: RandomState::new(),
            shards,
        }
    }

    /// Sets another bound, for connections that open from now on.
    pub(crate) fn set_most(&self, most: Option<usize>) {
        self.most.store(most.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Counts a connection in; `None` if its address holds its limit already.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admission> {
        let most = self.most.load(Ordering::Relaxed);
        if most == usize::MAX {
            return Some(Admission(None));
        }
        let mut shard = self.shard(address);
        let held = shard.entry(address).or_insert(0);
        if *held >= most {
            return None;
        }
        *held += 1;
        Some(Admission(Some(Counted { clients: self.clone(), address })))
    }

    fn shard(&self, address: IpAddr) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        let index = self.hasher.hash_one(address) as usize % SHARDS;
        self.shards[index].lock().expect("no holder of this lock panics")
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut shard = self.clients.shard(self.address);
        if let Entry::Occupied(mut held) = shard.entry(self.address) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_over_its_limit_is_refused_and_others_are_not() {
        let clients = Arc::new(Clients::new(Some(2)));
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let held: Vec<_> = (0..2).map(|_| clients.admit(one).expect("under the limit")).collect();
        assert!(clients.admit(one).is_none());
        assert!(clients.admit(other).is_some());
        drop(held);
        assert!(clients.admit(one).is_some());
    }

    #[test]
    fn a_bound_can_change_and_go() {
        let clients = Arc::new(Clients::new(Some(1)));
        let one = IpAddr::from([10, 0, 0, 1]);
        let held = clients.admit(one);
        assert!(clients.admit(one).is_none());
        clients.set_most(Some(2));
        assert!(clients.admit(one).is_some());
        clients.set_most(None);
        let more: Vec<_> = (0..9).map(|_| clients.admit(one)).collect();
        assert!(more.iter().all(Option::is_some));
        drop(held);
    }

    #[test]
    fn an_address_without_connections_leaves_nothing_behind() {
        let clients = Arc::new(Clients::new(Some(1)));
        for n in 0..=255 {
            drop(clients.admit(IpAddr::from([10, 0, 0, n])));
        }
        assert!(clients.shards.iter().all(|shard| shard.lock().expect("unpoisoned").is_empty()));
    }
}
