//! Placing a thread, ranking it, and reading what it has cost.

use std::io;
use std::time::Duration;

use crate::sys;

/// What a thread is for, as the kernel's scheduler is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadClass {
    /// Serves sockets: preempts `Background` on wake-up. Linux `SCHED_OTHER`, macOS
    /// `QOS_CLASS_USER_INITIATED`.
    Reactor,
    /// Runs heavy jobs with the time no reactor wants. Linux `SCHED_IDLE`, macOS
    /// `QOS_CLASS_UTILITY`.
    Background,
}

/// Puts the calling thread in `class`.
///
/// On Linux `Background` is final for an unprivileged thread: leaving `SCHED_IDLE` needs
/// `CAP_SYS_NICE` or an `RLIMIT_NICE` that covers the thread's nice value, and fails with `EPERM`
/// otherwise. Entering it is always allowed.
pub fn set_thread_class(class: ThreadClass) -> io::Result<()> {
    sys::set_thread_class(class)
}

/// Binds the calling thread, and the threads it will start, to one CPU.
///
/// Errors: `InvalidInput` if the CPU does not exist, is offline or lies outside the process's
/// cpuset. On macOS always `Unsupported`: the system has no binding, only [`ThreadClass`].
/// A later change of the cpuset undoes the binding without notice.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    sys::pin_current_thread(cpu)
}

/// CPU time the calling thread has used since it began, user and system together.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for a write of one timespec.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every supported system has the thread CPU clock");
    // A thread's CPU time starts at zero and grows, and `tv_nsec` is below 1e9.
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}
