//! A socket known to its core's reactor: the one place where readiness is awaited.
//!
//! The kernel never owns a buffer of ours: a wait asks for readiness alone, and the bytes move in a
//! plain non-blocking call afterwards (docs/decisions/0001). So a wait can be dropped at any time
//! without losing bytes, and an idle connection owns no buffer.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::reactor::{Direction, Index, Reactor};
use crate::timer::Timer;
use crate::turn;

/// Owns the descriptor.
pub(crate) struct Source {
    reactor: Rc<Reactor>,
    index: Index,
    descriptor: OwnedFd,
}

impl Source {
    /// Makes a socket known that is taken to have room for bytes.
    pub(crate) fn new(reactor: &Rc<Reactor>, descriptor: OwnedFd) -> io::Result<Source> {
        let index = reactor.add(descriptor.as_fd(), true)?;
        Ok(Source { reactor: reactor.clone(), index, descriptor })
    }

    /// Makes a socket known whose connection is under way: it is ready for nothing yet.
    pub(crate) fn connecting(reactor: &Rc<Reactor>, descriptor: OwnedFd) -> io::Result<Source> {
        let index = reactor.add(descriptor.as_fd(), false)?;
        Ok(Source { reactor: reactor.clone(), index, descriptor })
    }

    /// Waits until a read would not block, as far as is known.
    pub(crate) async fn readable(&self) {
        poll_fn(|cx| self.reactor.poll_ready(self.index, Direction::Read, cx)).await;
    }

    /// Waits until a call in `direction` would not block, as far as is known; `TimedOut` once
    /// `timer` expires.
    pub(crate) fn before<'a>(&'a self, direction: Direction, timer: &'a Timer) -> Before<'a> {
        Before { source: self, direction, timer }
    }

    /// What is known without a system call.
    pub(crate) fn is_ready(&self, direction: Direction) -> bool {
        self.reactor.is_ready(self.index, direction)
    }

    /// A call in `direction` would have blocked, or has filled the socket.
    pub(crate) fn clear(&self, direction: Direction) {
        self.reactor.clear(self.index, direction);
    }

    /// A read got less than it asked for.
    pub(crate) fn drained(&self) {
        self.reactor.drained(self.index);
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Before the descriptor is closed, which the fields' own drops do.
        self.reactor.remove(self.index);
    }
}

/// A wait with a deadline, see [`Source::before`].
pub(crate) struct Before<'a> {
    source: &'a Source,
    direction: Direction,
    timer: &'a Timer,
}

impl Future for Before<'_> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if turn::poll_step(cx).is_pending() {
            return Poll::Pending;
        }
        if self.source.reactor.poll_ready(self.source.index, self.direction, cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        self.timer.poll_expired(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
