//! The sockets of one core, and what the kernel has said about them.
//!
//! The kernel is told of each socket once, for both directions and until it is closed, and tells
//! each change once (edge-triggered). What it said is remembered here until a call shows that it no
//! longer holds: one that would block, or a read that got less than it asked for. So a wait makes no
//! system call, and a socket nobody waits for is watched all the same (docs/decisions/0004).
//!
//! Owned by: the core's thread. Called by: [`crate::source::Source`] (all but `harvest`), the core's
//! look round (`harvest`). Never: reads or writes a socket; calls a task.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, Waker};

use baton_platform::Readiness;

use crate::driver::Rung;
use crate::poller::{Harvested, Poller};

/// One of the two ways through a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Direction {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The peer has ended its side or the connection is broken: a short read is not the last one.
const ENDED: u8 = 1 << 2;

/// The number of a socket in its reactor, from `add` to `remove`.
pub(crate) type Index = u32;

pub(crate) struct Reactor {
    poller: RefCell<Poller>,
    sockets: RefCell<Sockets>,
}

/// Invariant: an entry is in use or its index is in `free`, never both.
#[derive(Default)]
struct Sockets {
    entries: Vec<Entry>,
    free: Vec<Index>,
}

/// Kept within a cache line: at thousands of connections it is cold each time.
struct Entry {
    fd: RawFd,
    /// Counts the owners of the entry, so that an event for an earlier one is told apart.
    owner: u32,
    /// What holds: a bit per direction, and `ENDED`.
    ready: u8,
    /// For which directions somebody waits.
    waiting: u8,
    /// Whom to wake. Kept between waits: it is nearly always the same task.
    wakers: [Option<Waker>; 2],
}
const _: () = assert!(size_of::<Entry>() <= 64);

impl Reactor {
    pub(crate) fn build(rung: Rung) -> io::Result<Reactor> {
        Ok(Reactor { poller: RefCell::new(Poller::build(rung)?), sockets: RefCell::default() })
    }

    /// Watches `fd`, which is to be removed before it is closed. `ready`: whether writes are taken
    /// to succeed until one does not.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, ready: bool) -> io::Result<Index> {
        let (index, token) = self.sockets.borrow_mut().insert(fd, ready);
        let added = self.poller.borrow_mut().add(fd, token);
        match added {
            Ok(()) => Ok(index),
            Err(error) => {
                self.sockets.borrow_mut().release(index);
                Err(error)
            }
        }
    }

    /// Ends the watch of a socket that is about to be closed.
    pub(crate) fn remove(&self, index: Index) {
        let token = self.sockets.borrow().token(index);
        self.poller.borrow_mut().remove(token);
        let wakers = self.sockets.borrow_mut().release(index);
        // They may own a task, and the task sockets: nothing may be borrowed by now.
        drop(wakers);
    }

    /// Ready while the socket is taken to be ready for `direction`; else the task is woken once the
    /// kernel says so.
    pub(crate) fn poll_ready(
        &self,
        index: Index,
        direction: Direction,
        cx: &Context<'_>,
    ) -> Poll<()> {
        let mut sockets = self.sockets.borrow_mut();
        let entry = &mut sockets.entries[index as usize];
        if entry.ready & direction.bit() != 0 {
            entry.waiting &= !direction.bit();
            return Poll::Ready(());
        }
        entry.waiting |= direction.bit();
        let waker = &mut entry.wakers[direction as usize];
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            let last = waker.replace(cx.waker().clone());
            drop(sockets);
            drop(last);
        }
        Poll::Pending
    }

    /// Whether the socket is taken to be ready for `direction`.
    pub(crate) fn is_ready(&self, index: Index, direction: Direction) -> bool {
        self.sockets.borrow().entries[index as usize].ready & direction.bit() != 0
    }

    /// A call in `direction` would have blocked, or a write took a part: not ready until the
    /// kernel says so again.
    pub(crate) fn clear(&self, index: Index, direction: Direction) {
        self.sockets.borrow_mut().entries[index as usize].ready &= !direction.bit();
    }

    /// A read got less than it asked for: the rest is not there yet, unless the peer has ended its
    /// side, which was then told together with the last bytes and is not told again.
    pub(crate) fn drained(&self, index: Index) {
        let mut sockets = self.sockets.borrow_mut();
        let entry = &mut sockets.entries[index as usize];
        if entry.ready & ENDED == 0 {
            entry.ready &= !Direction::Read.bit();
        }
    }

    /// Takes note of what the kernel has to say, at most [`crate::limits::HARVEST_EVENTS`] times,
    /// and wakes whom it concerns; returns how many events there were.
    pub(crate) fn harvest(&self) -> io::Result<usize> {
        let mut poller = self.poller.borrow_mut();
        // Sockets whose watch the kernel has given up: hardly ever any, so nothing is allocated.
        let mut lost = Vec::new();
        let count = {
            let mut sockets = self.sockets.borrow_mut();
            poller.harvest(|event| {
                if let Some(index) = sockets.note(&event)
                    && event.watch_is_over
                {
                    lost.push(index);
                }
            })?
        };
        for index in lost {
            let (token, fd) = {
                let sockets = self.sockets.borrow();
                (sockets.token(index), sockets.entries[index as usize].fd)
            };
            // SAFETY: the descriptor must be open: its owner removes the entry before it closes it.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            if let Err(error) = poller.add(fd, token) {
                tracing::warn!(%error, "a socket is no longer watched; its deadline ends it");
            }
        }
        Ok(count)
    }

    /// A descriptor that is readable while a harvest would find something.
    pub(crate) fn fd(&self) -> io::Result<OwnedFd> {
        self.poller.borrow().fd().try_clone_to_owned()
    }
}

impl Sockets {
    fn insert(&mut self, fd: BorrowedFd<'_>, writable: bool) -> (Index, u64) {
        let fd = fd.as_raw_fd();
        let ready = if writable { Direction::Write.bit() } else { 0 };
        let index = match self.free.pop() {
            Some(index) => {
                let entry = &mut self.entries[index as usize];
                (entry.fd, entry.ready, entry.waiting) = (fd, ready, 0);
                index
            }
            None => {
                let index = Index::try_from(self.entries.len()).expect("fewer sockets than 2^32");
                self.entries.push(Entry { fd, owner: 0, ready, waiting: 0, wakers: [None, None] });
                index
            }
        };
        (index, self.token(index))
    }

    fn release(&mut self, index: Index) -> [Option<Waker>; 2] {
        self.free.push(index);
        let entry = &mut self.entries[index as usize];
        entry.owner = entry.owner.wrapping_add(1);
        std::mem::take(&mut entry.wakers)
    }

    /// What the kernel calls the socket: its index and its owner.
    fn token(&self, index: Index) -> u64 {
        u64::from(self.entries[index as usize].owner) << 32 | u64::from(index)
    }

    /// Notes an event and wakes whom it concerns. `None` if its socket is gone.
    fn note(&mut self, event: &Harvested) -> Option<Index> {
        let index = event.token as Index;
        let entry = self.entries.get_mut(index as usize)?;
        if u64::from(entry.owner) != event.token >> 32 {
            return None;
        }
        let Readiness { readable, writable, ended } = event.readiness;
        entry.ready |= u8::from(readable) | u8::from(writable) << 1 | if ended { ENDED } else { 0 };
        for direction in [Direction::Read, Direction::Write] {
            if entry.waiting & entry.ready & direction.bit() != 0 {
                entry.waiting &= !direction.bit();
                if let Some(waker) = &entry.wakers[direction as usize] {
                    // Waking only queues the task, so it is fine under the borrow of the sockets.
                    waker.wake_by_ref();
                }
            }
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    const READABLE: Readiness = Readiness { readable: true, writable: false, ended: false };
    const ENDED_TOO: Readiness = Readiness { ended: true, ..READABLE };

    /// A reactor with one socket, which is never asked of the kernel, and its token.
    fn one_socket() -> (Reactor, Index, u64) {
        let reactor = Reactor::build(Rung::Poll).expect("epoll or kqueue");
        let (index, token) = reactor.sockets.borrow_mut().insert(std::io::stdin().as_fd(), true);
        (reactor, index, token)
    }

    fn tell(reactor: &Reactor, token: u64, readiness: Readiness) -> Option<Index> {
        let event = Harvested { token, readiness, watch_is_over: false };
        reactor.sockets.borrow_mut().note(&event)
    }

    #[test]
    fn an_event_for_an_earlier_owner_of_an_entry_is_ignored() {
        let (reactor, index, token) = one_socket();
        drop(reactor.sockets.borrow_mut().release(index));
        let (again, other) = reactor.sockets.borrow_mut().insert(std::io::stdin().as_fd(), true);
        assert_eq!(again, index);
        assert_ne!(other, token);
        assert_eq!(tell(&reactor, token, READABLE), None);
        assert!(!reactor.is_ready(index, Direction::Read));
        assert_eq!(tell(&reactor, u64::MAX, READABLE), None, "no socket has this token");
    }

    #[test]
    fn a_task_is_woken_once_by_what_it_waits_for_alone() {
        let (reactor, index, token) = one_socket();
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let cx = Context::from_waker(&waker);
        reactor.clear(index, Direction::Write);
        assert!(reactor.poll_ready(index, Direction::Write, &cx).is_pending());
        tell(&reactor, token, READABLE);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0, "nobody waits to read");
        for _ in 0..2 {
            tell(&reactor, token, Readiness { writable: true, ..READABLE });
        }
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(reactor.poll_ready(index, Direction::Write, &cx).is_ready());
        assert!(reactor.poll_ready(index, Direction::Read, &cx).is_ready());
    }

    #[test]
    fn a_short_read_ends_readiness_unless_the_peer_has_ended_its_side() {
        let (reactor, index, token) = one_socket();
        tell(&reactor, token, READABLE);
        reactor.drained(index);
        assert!(!reactor.is_ready(index, Direction::Read));
        tell(&reactor, token, ENDED_TOO);
        reactor.drained(index);
        assert!(reactor.is_ready(index, Direction::Read), "its end is still to be read");
        reactor.clear(index, Direction::Read);
        assert!(!reactor.is_ready(index, Direction::Read));
    }
}
