//! The poller as an edge-triggered epoll.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP, c_int, epoll_event};

use crate::poller::Readiness;

/// What a watch of a socket asks for, as io_uring's poll requests spell it (poll(2)).
pub const WATCHED_EVENTS: u32 = (EPOLLIN | EPOLLOUT | EPOLLRDHUP).cast_unsigned();

impl Readiness {
    /// Reads the events that epoll or a poll request of io_uring has told.
    pub fn of_events(events: u32) -> Readiness {
        let told = events.cast_signed();
        let broken = told & (EPOLLERR | EPOLLHUP) != 0;
        Readiness {
            readable: broken || told & EPOLLIN != 0,
            writable: broken || told & EPOLLOUT != 0,
            ended: broken || told & EPOLLRDHUP != 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll_event>,
}

impl Poller {
    pub(crate) fn new(events: usize) -> io::Result<Self> {
        // SAFETY: has no precondition.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: epoll_create1 has just made `fd`, and nobody else knows it.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { epoll, events: vec![epoll_event { events: 0, u64: 0 }; events] })
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let interest = WATCHED_EVENTS | EPOLLET.cast_unsigned();
        let mut event = epoll_event { events: interest, u64: token };
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: `event` is valid for a read; both descriptors are open while they are borrowed.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(crate) fn harvest(&mut self, mut each: impl FnMut(u64, Readiness)) -> io::Result<usize> {
        let room = c_int::try_from(self.events.len()).unwrap_or(c_int::MAX);
        // SAFETY: `events` is valid for a write of `room` events.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), room, 0) };
        let Ok(count) = usize::try_from(count) else { return Err(io::Error::last_os_error()) };
        for event in &self.events[..count] {
            each(event.u64, Readiness::of_events(event.events));
        }
        Ok(count)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
