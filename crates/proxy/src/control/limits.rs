//! Bounds of the control plane, and what happens when they are reached.

use std::time::Duration;

/// Connections of the admin server at once. When full: further ones wait in the backlog until one
/// ends, each after `CONNECTION_BOUND` at the latest.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// From the accept to the end of the answer, for one connection; it carries one exchange. A reload
/// that resolves names is the longest. When over it: closed.
pub(crate) const CONNECTION_BOUND: Duration = Duration::from_secs(30);

/// For the whole head of a request. When over it: closed.
pub(crate) const HEAD_BOUND: Duration = Duration::from_secs(5);

/// Request head. When over it: 431.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Fields of a request. When over it: 431.
pub(crate) const FIELDS_MAX: usize = 64;

/// Request body; none of the requests needs one. When over it: 413.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024;

/// How long accepting pauses after it failed, for want of descriptors for example.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Threads for what blocks: a reload, and what the resolver needs. When all are busy: it waits.
pub(crate) const BLOCKING_THREADS: usize = 4;

/// What blocks is waited for this long at stop. When over it: it is left behind.
pub(crate) const STOP_BOUND: Duration = Duration::from_secs(1);

/// How often the cores' heartbeats are looked at.
pub(crate) const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// A core without a heartbeat for this long is taken for stopped: `/healthz` says so. Heartbeats
/// come every 100 ms.
pub(crate) const CORE_SILENCE_MAX: Duration = Duration::from_secs(10);

/// Connecting to an admin address, each read from it, and each write.
pub(crate) const CLIENT_STEP_BOUND: Duration = Duration::from_secs(2);

/// A whole exchange with an admin address. Longer than `CONNECTION_BOUND`, so that the server's
/// word is heard.
pub(crate) const CLIENT_BOUND: Duration = Duration::from_secs(35);
const _: () = assert!(CLIENT_BOUND.as_secs() > CONNECTION_BOUND.as_secs());

/// An answer read from an admin address: thousands of endpoints fit. When over it: an error.
pub(crate) const CLIENT_ANSWER_BYTES_MAX: u64 = 32 * 1024 * 1024;
