//! The numbers of many keys in a table of fixed size that cores share.
//!
//! A key has its place in one bucket, by its fingerprint. A request of a known key reads the bucket
//! and exchanges one number. Only a key that is not there claims the bucket, for a few stores, so
//! that it is there once; it takes the place of the key that is the first to owe nothing, mostly one
//! that owes nothing already and is therefore as good as unknown. So nobody has to sweep.
//!
//! No core waits for another one: should the kernel put one aside that has a claim, the others count
//! the requests of that key, and of others that are new to the bucket, against the bucket's reserve
//! number for as long. It is a number like those of keys, so each time a key may have its burst twice.
//!
//! With more keys in debt than a bucket has places the one that owes least is forgotten: keys that
//! are over their limit owe most and stay.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Decision, Rate, refused};

/// Keys of one bucket: with what is beside them, two cache lines.
const PLACES: usize = 7;

/// Buckets of a table, a power of two. 114,688 keys in 2 MiB. When a bucket is full: see above.
const BUCKETS: usize = 16 * 1024;

/// Times a key is looked for while another core brings it, or has the claim, each some tens of
/// nanoseconds. Then that core is taken for one that the kernel has put aside: see above.
const LOOKS_MAX: usize = 64;

/// The moment of a place whose key changes just now. No real moment is that late.
const CHANGING: u64 = u64::MAX;

const _: () = assert!(BUCKETS.is_power_of_two());
const _: () = assert!(size_of::<Bucket>() == 128);

pub(super) struct Table {
    buckets: Box<[Bucket]>,
    evicted: AtomicU64,
    reserved: AtomicU64,
}

/// Invariant: no fingerprint but 0 is there twice. The moments of a place rise, but where a key
/// that still owes is forgotten.
#[derive(Default)]
#[repr(align(128))]
struct Bucket {
    /// 0: no key.
    keys: [AtomicU64; PLACES],
    claimed: AtomicBool,
    /// From when on the key of the same place owes nothing.
    moments: [AtomicU64; PLACES],
    /// The same for all keys that cannot get in.
    reserve: AtomicU64,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            buckets: (0..BUCKETS).map(|_| Bucket::default()).collect(),
            evicted: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
        }
    }

    #[cfg(test)]
    pub(super) fn forgotten(&self) -> (u64, u64) {
        (self.evicted.load(Ordering::Relaxed), self.reserved.load(Ordering::Relaxed))
    }

    pub(super) fn check(&self, fingerprint: u64, rate: &Rate, now: u64) -> Decision {
        let bucket = &self.buckets[fingerprint as usize % BUCKETS];
        // The top bit takes no part in the choice of the bucket; set, it tells a key from none.
        let key = fingerprint | 1 << 63;
        for _ in 0..LOOKS_MAX {
            let decision = match bucket.find(key) {
                Some(place) => bucket.check(place, key, rate, now),
                None => self.insert(bucket, key, rate, now),
            };
            if let Some(decision) = decision {
                return decision;
            }
            spin_loop();
        }
        self.reserved.fetch_add(1, Ordering::Relaxed);
        rate.check(&bucket.reserve, now)
    }

    /// Counts the first request of a key that was not found; `None`: it has to be looked for again.
    fn insert(&self, bucket: &Bucket, key: u64, rate: &Rate, now: u64) -> Option<Decision> {
        let claim = Claim::take(bucket)?;
        // Another core may have brought the same key before the claim.
        if bucket.find(key).is_some() {
            return None;
        }
        let (place, clear_at) = bucket.first_to_owe_nothing();
        let moment = &bucket.moments[place];
        // Fails where the key that is there was charged just now; it may not be the first any more.
        // From here on no core can charge it: each exchanges the moment it has seen.
        moment.compare_exchange(clear_at, CHANGING, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let next = now + rate.interval;
        // Release, as a pair with the loads of `find` and `check`: who sees the key sees that its
        // moment was changing or is set, and who sees the moment sees the key.
        bucket.keys[place].store(key, Ordering::Release);
        moment.store(next, Ordering::Release);
        drop(claim);
        if clear_at > now {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        Some(rate.admitted(next, now))
    }
}

impl Bucket {
    fn find(&self, key: u64) -> Option<usize> {
        self.keys.iter().position(|known| known.load(Ordering::Acquire) == key)
    }

    /// Checks and charges the key at `place`; `None` if the place is another key's by now.
    ///
    /// Sound since a moment that was read before the place changed hands never comes back: the next
    /// key's is later than that of a key that owes nothing. (Only where a key in debt is forgotten
    /// it may come back, and then one request is counted for the wrong key.)
    fn check(&self, place: usize, key: u64, rate: &Rate, now: u64) -> Option<Decision> {
        let moment = &self.moments[place];
        let mut clear_at = moment.load(Ordering::Acquire);
        // Each turn follows an admission by another core, or a change that ends the loop.
        loop {
            if clear_at == CHANGING || self.keys[place].load(Ordering::Acquire) != key {
                return None;
            }
            let next = match rate.admit(clear_at, now) {
                Ok(next) => next,
                Err(wait) => return Some(refused(wait)),
            };
            match moment.compare_exchange(clear_at, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(rate.admitted(next, now)),
                Err(seen) => clear_at = seen,
            }
        }
    }

    /// A place without a key, or else that of the key which is the first to owe nothing; with its
    /// moment.
    fn first_to_owe_nothing(&self) -> (usize, u64) {
        let moments = self.moments.iter().map(|moment| moment.load(Ordering::Relaxed));
        let first = moments.enumerate().min_by_key(|(_, moment)| *moment);
        first.expect("a bucket has places")
    }
}

/// The right to bring a key into a bucket; given back when dropped.
struct Claim<'a>(&'a Bucket);

impl<'a> Claim<'a> {
    /// `None` if another core holds it.
    fn take(bucket: &'a Bucket) -> Option<Claim<'a>> {
        // Acquire, as a pair with the Release below: what the last holder brought is seen.
        let held = bucket.claimed.swap(true, Ordering::Acquire);
        (!held).then(|| Claim(bucket))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.claimed.store(false, Ordering::Release);
    }
}

#[cfg(test)]
impl Table {
    /// Keys there is room for.
    pub(super) const KEYS: usize = PLACES * BUCKETS;

    /// Claims or frees the bucket of `fingerprint`, as a core would that is put aside then.
    pub(super) fn set_claimed(&self, fingerprint: u64, claimed: bool) {
        self.buckets[fingerprint as usize % BUCKETS].claimed.store(claimed, Ordering::Release);
    }
}
