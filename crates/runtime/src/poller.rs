//! How a core asks the kernel about its sockets: by a ring of its own, or by epoll or kqueue.
//!
//! It lies beside the executor's ring or epoll, which has no watch that lasts: the executor waits
//! for this one's descriptor and its own timers, once per turn for all sockets together.

use std::io;
use std::os::fd::BorrowedFd;

use baton_platform::{self as platform, Readiness};

use crate::driver::Rung;
use crate::limits::HARVEST_EVENTS;

/// One event of one socket.
pub(crate) struct Harvested {
    pub(crate) token: u64,
    pub(crate) readiness: Readiness,
    /// Whether the kernel has stopped watching, so that the socket must be added again.
    pub(crate) watch_is_over: bool,
}

pub(crate) enum Poller {
    #[cfg(target_os = "linux")]
    Ring(Box<ring::Ring>),
    Poll(platform::Poller),
}

impl Poller {
    pub(crate) fn build(rung: Rung) -> io::Result<Poller> {
        match rung {
            #[cfg(target_os = "linux")]
            Rung::Ring { tuned, completions } => {
                ring::Ring::build(tuned, completions).map(Box::new).map(Poller::Ring)
            }
            Rung::Poll => platform::Poller::new(HARVEST_EVENTS).map(Poller::Poll),
        }
    }

    /// Watches `fd`; what it is ready for already is told as well.
    pub(crate) fn add(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Poller::Ring(ring) => ring.add(fd, token),
            Poller::Poll(poller) => poller.add(fd, token),
        }
    }

    /// Ends a watch, before its descriptor is closed.
    pub(crate) fn remove(&mut self, token: u64) {
        match self {
            #[cfg(target_os = "linux")]
            Poller::Ring(ring) => ring.remove(token),
            Poller::Poll(_) => {
                let _closing_the_descriptor_does_it = token;
            }
        }
    }

    /// Hands on at most [`HARVEST_EVENTS`] events and returns how many there were. Never waits.
    pub(crate) fn harvest(&mut self, mut each: impl FnMut(Harvested)) -> io::Result<usize> {
        match self {
            #[cfg(target_os = "linux")]
            Poller::Ring(ring) => ring.harvest(each),
            Poller::Poll(poller) => poller.harvest(|token, readiness| {
                each(Harvested { token, readiness, watch_is_over: false });
            }),
        }
    }

    /// Readable while a harvest would find something.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            #[cfg(target_os = "linux")]
            Poller::Ring(ring) => ring.fd(),
            Poller::Poll(poller) => poller.fd(),
        }
    }
}

#[cfg(target_os = "linux")]
mod ring {
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};

    use baton_platform::{Readiness, WATCHED_EVENTS};
    use io_uring::{IoUring, cqueue, opcode, squeue, types};

    use super::Harvested;
    use crate::driver::ring_builder;
    use crate::limits::{HARVEST_EVENTS, POLLER_SUBMISSIONS};

    /// No socket has it: the index would be the last of all.
    const NO_TOKEN: u64 = u64::MAX;

    /// A ring with one poll request per socket that lasts (multishot: Linux 5.13).
    pub(crate) struct Ring {
        ring: IoUring,
    }

    impl Ring {
        pub(crate) fn build(tuned: bool, completions: u32) -> io::Result<Ring> {
            let mut builder = ring_builder(tuned);
            builder.setup_cqsize(completions);
            builder.build(POLLER_SUBMISSIONS).map(|ring| Ring { ring })
        }

        pub(crate) fn add(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
            let poll = opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), WATCHED_EVENTS);
            self.submit(&poll.multi(true).build().user_data(token))
        }

        pub(crate) fn remove(&mut self, token: u64) {
            // Until it is cancelled, the request keeps the socket open. A poll removal would not do:
            // it fails (EALREADY) while an event of the socket is on its way (io_uring/poll.c).
            let back = opcode::AsyncCancel::new(token).build().user_data(NO_TOKEN);
            if let Err(error) = self.submit(&back.flags(squeue::Flags::SKIP_SUCCESS)) {
                tracing::debug!(%error, "a socket closes late: its watch cannot be taken back");
            }
        }

        /// At once, so that the queue has room for the next and a socket closes when it is closed.
        fn submit(&mut self, entry: &squeue::Entry) -> io::Result<()> {
            // SAFETY: the entry must stay valid until it completes; it refers to no memory.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                // Left over from submissions that failed.
                self.ring.submit()?;
                // SAFETY: as above.
                let pushed = unsafe { self.ring.submission().push(entry) };
                pushed.map_err(|_| io::Error::other("the ring's queue is full"))?;
            }
            self.ring.submit().map(|_| ())
        }

        pub(crate) fn harvest(&mut self, mut each: impl FnMut(Harvested)) -> io::Result<usize> {
            if self.ring.submission().cq_overflow() {
                // Lets the kernel put what it kept back into the queue. It may be short of memory or
                // interrupted; then what is in the queue is taken, and the next harvest tries again.
                let _put_off = self.ring.submit_and_wait(0);
            }
            let mut count = 0;
            for completion in self.ring.completion().take(HARVEST_EVENTS) {
                count += 1;
                let readiness = match u32::try_from(completion.result()) {
                    Ok(mask) => Readiness::of_events(mask),
                    // Whoever waits finds out by its call what is wrong.
                    Err(_) => Readiness { readable: true, writable: true, ended: true },
                };
                each(Harvested {
                    token: completion.user_data(),
                    readiness,
                    watch_is_over: completion.result() >= 0 && !cqueue::more(completion.flags()),
                });
            }
            Ok(count)
        }

        pub(crate) fn fd(&self) -> BorrowedFd<'_> {
            // SAFETY: the descriptor must stay open while it is borrowed; the ring owns it.
            unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
        }
    }
}
