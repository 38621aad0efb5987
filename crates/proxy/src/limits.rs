//! Bounds of the proxy that are not settings, and what happens when they are reached.

use std::time::Duration;

/// Body bytes one direction of an exchange moves before it lets the rest of its core run.
/// When reached: the task yields once.
pub(crate) const RELAY_TURN_BYTES: usize = 1024 * 1024;

/// How long an exchange waits for its answer before it also watches whether the client is gone.
/// Most answers come sooner and never pay for the second wait.
pub(crate) const WATCH_CLIENT_AFTER: Duration = Duration::from_millis(100);

/// How often each core looks through its idle connections to endpoints.
pub(crate) const POOL_SWEEP: Duration = Duration::from_secs(1);

/// How long the rest of an answer is waited for after its endpoint stopped taking the request.
pub(crate) const ANSWER_AFTER_REFUSED_BODY: Duration = Duration::from_secs(1);

/// Log lines about peers' faults per core and second. When full: they are only counted, and the
/// next line that fits says how many were left out.
pub(crate) const FAULT_LINES_PER_SECOND: u32 = 20;

/// Descriptors kept back from the connection limit: listeners, rings, bells, logs.
pub(crate) const DESCRIPTORS_RESERVED: u64 = 64;

/// Sockets one client connection may need: its own and one to an endpoint.
pub(crate) const DESCRIPTORS_PER_CONNECTION: u64 = 2;

/// How long a reload waits for each core to take the next configuration. Over it: the reload says
/// so; the core takes it when it comes to.
pub(crate) const ADOPT_BOUND: Duration = Duration::from_secs(10);

/// How long a reload waits before it tries a full mailbox again.
pub(crate) const FULL_MAILBOX_PAUSE: Duration = Duration::from_millis(1);

/// How often a request may try an endpoint that was left out for its failures, until one succeeds.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Most periods that an endpoint is left out for its failures at a time.
pub(crate) const EJECT_PERIODS_MAX: u32 = 10;

/// How much longer than the first request of its own core one of another core may have waited for a
/// connection to an endpoint before it gets the next that is free. A connection cannot change its
/// core: it would be closed, and another opened there.
pub(crate) const OTHER_CORES_WAIT: Duration = Duration::from_millis(10);

/// Looks at the endpoints for one choice. After the last, the choice stands, although another core
/// tries that endpoint already.
pub(crate) const PICK_LOOKS: usize = 3;

/// How long what the access log still holds may take to be written when it ends.
pub(crate) const ACCESS_LOG_STOP: Duration = Duration::from_secs(5);

/// How long a start, or a reload, waits for names to be looked up for the first time. Over it: their
/// routes answer 503 until they are.
pub(crate) const NAMES_BOUND: Duration = Duration::from_secs(2);

/// Addresses of an upstream whose drained state and health are kept when its settings change.
/// When full: those of names that were not looked up since are forgotten first.
pub(crate) const REMEMBERED_MAX: usize = 4_096;
