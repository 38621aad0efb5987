//! The poller as a kqueue with a cleared (edge-triggered) filter for each direction.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, kevent, timespec};

use crate::poller::Readiness;

pub(crate) struct Poller {
    queue: OwnedFd,
    events: Vec<kevent>,
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Poller {
    pub(crate) fn new(events: usize) -> io::Result<Self> {
        // SAFETY: has no precondition.
        let fd = unsafe { libc::kqueue() };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: kqueue has just made `fd`, and nobody else knows it.
        let queue = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: `fd` is open; the command takes one int.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { queue, events: vec![change(0, 0, 0); events] })
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let changes = [libc::EVFILT_READ, libc::EVFILT_WRITE]
            .map(|filter| change(fd.as_raw_fd(), filter, token));
        // SAFETY: `changes` is valid for a read of two events; no event is asked for.
        let outcome = unsafe {
            libc::kevent(
                self.queue.as_raw_fd(),
                changes.as_ptr(),
                2,
                ptr::null_mut(),
                0,
                ptr::null(),
            )
        };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(crate) fn harvest(&mut self, mut each: impl FnMut(u64, Readiness)) -> io::Result<usize> {
        let room = c_int::try_from(self.events.len()).unwrap_or(c_int::MAX);
        let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: no change is passed; `events` is valid for a write of `room` events.
        let count = unsafe {
            libc::kevent(
                self.queue.as_raw_fd(),
                ptr::null(),
                0,
                self.events.as_mut_ptr(),
                room,
                &raw const at_once,
            )
        };
        let Ok(count) = usize::try_from(count) else { return Err(io::Error::last_os_error()) };
        for event in &self.events[..count] {
            let ended = event.flags & (libc::EV_EOF | libc::EV_ERROR) != 0;
            let reading = event.filter == libc::EVFILT_READ;
            // The end of the write side (EV_EOF of its filter) means that the connection is broken.
            let broken = ended && !reading;
            each(
                event.udata as u64,
                Readiness { readable: reading || broken, writable: !reading, ended },
            );
        }
        Ok(count)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

fn change(fd: c_int, filter: i16, token: u64) -> kevent {
    kevent {
        // Not negative: it is open.
        ident: fd as libc::uintptr_t,
        filter,
        flags: libc::EV_ADD | libc::EV_CLEAR,
        fflags: 0,
        data: 0,
        udata: token as *mut libc::c_void,
    }
}
