//! Waiting for a descriptor, with a bound.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, nfds_t};

/// How long a test waits for what must come. Milliseconds.
const WAIT_MS_MAX: c_int = 10_000;

/// Waits until one of `fds` is ready for `events`, and fails the test if none ever is.
pub(crate) fn wait_for(fds: &[&dyn AsFd], events: i16) {
    assert!(poll(fds, events, WAIT_MS_MAX), "nothing became ready in {WAIT_MS_MAX} ms");
}

/// Whether `fd` can be read now.
pub(crate) fn is_readable(fd: &dyn AsFd) -> bool {
    poll(&[fd], libc::POLLIN, 0)
}

fn poll(fds: &[&dyn AsFd], events: i16, timeout_ms: c_int) -> bool {
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd { fd: fd.as_fd().as_raw_fd(), events, revents: 0 })
        .collect();
    // SAFETY: the pointer and the count are those of `polled`.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as nfds_t, timeout_ms) };
    assert!(ready >= 0, "poll: {}", io::Error::last_os_error());
    ready > 0
}

/// Whether the descriptor is closed when the process executes another program.
pub(crate) fn is_closed_on_exec(fd: &dyn AsFd) -> bool {
    // SAFETY: has no precondition but an open descriptor, which `fd` borrows.
    let flags = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_GETFD) };
    assert!(flags >= 0, "fcntl: {}", io::Error::last_os_error());
    flags & libc::FD_CLOEXEC != 0
}

/// Whether calls on the descriptor return `WouldBlock` instead of waiting.
pub(crate) fn is_nonblocking(fd: &dyn AsFd) -> bool {
    // SAFETY: has no precondition but an open descriptor, which `fd` borrows.
    let flags = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_GETFL) };
    assert!(flags >= 0, "fcntl: {}", io::Error::last_os_error());
    flags & libc::O_NONBLOCK != 0
}
