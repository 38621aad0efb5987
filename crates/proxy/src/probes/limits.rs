//! Bounds of names and health checks, and what happens when they are reached.

use std::time::Duration;

/// Addresses that one name stands for. When there are more: the first of them, in order, are taken.
pub(super) const ADDRESSES_MAX: usize = 64;

/// Names looked up at once. When full: further ones wait for their turn.
pub(super) const LOOKUPS_MAX: usize = 64;

/// One look-up, with all search domains, name servers and attempts. When over it: it failed.
pub(super) const LOOKUP_BOUND: Duration = Duration::from_secs(30);

/// Shortest time an answer is taken for good, whatever its TTL.
pub(super) const TTL_MIN: Duration = Duration::from_secs(1);

/// Longest time an answer is taken for good, whatever its TTL.
pub(super) const TTL_MAX: Duration = Duration::from_secs(60 * 60);
const _: () = assert!(TTL_MIN.as_secs() < TTL_MAX.as_secs());

/// Pause after a look-up that failed; it doubles with each further one.
pub(super) const RETRY_MIN: Duration = Duration::from_secs(1);

/// Longest pause after a look-up that failed.
pub(super) const RETRY_MAX: Duration = Duration::from_secs(30);

/// Health checks under way at once, of all upstreams. When full: further ones wait for their turn;
/// their timeout begins with it.
pub(super) const CHECKS_MAX: usize = 256;

/// The first check of an endpoint begins within this time, or its interval if that is shorter.
pub(super) const FIRST_CHECK_WITHIN: Duration = Duration::from_secs(1);

/// How much an interval is lengthened or shortened by chance, at most. Percent.
pub(super) const JITTER_PERCENT: u64 = 10;

/// Heads of the answer to a check, interim ones included. Bytes. When over it: the check failed.
pub(super) const CHECK_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Body of that answer that is read away, so that the endpoint does not see its connection reset.
/// Bytes. When over it: the connection is reset.
pub(super) const CHECK_REST_BYTES_MAX: usize = 64 * 1024;

/// How long that body is waited for. When over it: the connection is reset.
pub(super) const CHECK_REST_BOUND: Duration = Duration::from_millis(100);

/// How often an upstream is looked at for endpoints that others than its names have changed.
pub(super) const LIST_LOOK: Duration = Duration::from_secs(1);
