//! Every bound of the runtime: name, unit, reason, and what happens when it is reached.

use std::time::Duration;

/// Length of one tick of the coarse clock, which timers, idle checks and the heartbeat share.
/// A deadline is met within one tick after it is due. Ten wake-ups per second and core.
pub const TICK: Duration = Duration::from_millis(100);

/// Slots of the timer wheel. Timers further away than `WHEEL_SLOTS` ticks (51 s) wait in the last
/// slot and are looked at again when it comes round.
pub(crate) const WHEEL_SLOTS: usize = 512;
const _: () = assert!(WHEEL_SLOTS.is_power_of_two());

/// Events taken from the kernel in one turn. When reached: the tasks they wake run first, so that
/// answers go on while new requests wait, and the rest is taken in the next turn.
pub(crate) const HARVEST_EVENTS: usize = 128;

/// Looks at the sockets one after the other without a wait of the executor, which alone notices
/// due timers. When reached: the core goes through such a wait, which ends at once. A full core
/// serves 24 to 32 requests per look, so by reckoning timers are late by some 10 ms there.
pub(crate) const LOOKS_WITHOUT_WAIT: u32 = 32;

/// Events that the ring of a core holds. When full: the kernel keeps the rest, and ends the watch of
/// the sockets concerned, which are then added again.
#[cfg(target_os = "linux")]
pub(crate) const POLLER_COMPLETIONS: u32 = 4096;

/// As [`POLLER_COMPLETIONS`] where locked memory is short.
#[cfg(target_os = "linux")]
pub(crate) const POLLER_COMPLETIONS_SMALL: u32 = 256;

/// Requests that the ring of a core takes together. Each is submitted at once, so few do.
#[cfg(target_os = "linux")]
pub(crate) const POLLER_SUBMISSIONS: u32 = 8;

/// Entries of the executor's own ring, which waits for a handful of descriptors (monoio takes no
/// fewer).
#[cfg(target_os = "linux")]
pub(crate) const EXECUTOR_ENTRIES: u32 = 256;

/// Entries of the ring that only tries what rings can do here.
#[cfg(target_os = "linux")]
pub(crate) const PROBE_ENTRIES: u32 = 8;

/// Waits and writes of one task in one turn that may end at once, so that a peer that always has
/// bytes, or room, does not hold up the rest of the core (measured on epoll without it: a neighbour
/// waits 76 ms for one fast sender). When reached: the task is put off until the reactor has looked
/// round.
pub(crate) const TURN_STEPS: u32 = 32;

/// Connections taken from a listener in one turn, so that one burst does not hold up the
/// connections this core already serves. When full: the rest waits in the backlog for the next turn.
pub(crate) const ACCEPT_BATCH: usize = 16;

/// Ticks for which a listener that is given up still takes in who is connected already. As long as
/// the last step of a handshake may take; then the address is closed.
pub(crate) const LISTENER_LAST_TICKS: u64 = 10;

/// Messages a core's mailbox holds. When full: a dealt connection goes to another core, and stays
/// in the backlog if all are full; a blocking job's result waits on its own thread.
pub(crate) const MAILBOX_MESSAGES: usize = 1024;

/// Bytes of a buffer for a message head: the default head limit.
pub const HEAD_BUFFER_BYTES: usize = 16 * 1024;

/// Bytes of a buffer for a piece of a body.
pub const BODY_BUFFER_BYTES: usize = 64 * 1024;
const _: () = assert!(HEAD_BUFFER_BYTES <= BODY_BUFFER_BYTES);

/// Free head buffers a core keeps (4 MiB). When full: a returned buffer is freed, so that the
/// memory of a burst goes back to the system.
pub(crate) const HEAD_BUFFERS_FREE_MAX: usize = 256;

/// Free body buffers a core keeps (4 MiB). When full: as for head buffers.
pub(crate) const BODY_BUFFERS_FREE_MAX: usize = 64;

/// Threads for calls that block (names, files), for the whole process.
pub(crate) const BLOCKING_THREADS: usize = 4;

/// Jobs that wait for such a thread. When full: the caller gets `QueueFull`.
pub(crate) const BLOCKING_QUEUE_JOBS: usize = 256;

/// How often a core looks whether it holds memory it no longer needs.
pub(crate) const MEMORY_LOOK_TICKS: u64 = 20;

/// Bytes of buffers and tasks a core must have freed before the allocator is asked to give
/// memory back to the system. It takes its locks for that.
pub(crate) const MEMORY_RETURN_BYTES: usize = 4 * 1024 * 1024;

/// What a task is taken to hold besides its buffers, bytes: an idle connection of the proxy.
pub(crate) const TASK_BYTES: usize = 1024;
