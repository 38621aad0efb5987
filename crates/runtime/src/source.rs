//! A descriptor known to this thread's reactor: the one place where readiness is awaited.
//!
//! The kernel never owns a buffer of ours: a wait asks for readiness alone, and the bytes move in a
//! plain non-blocking call afterwards (docs/decisions/0001). So a wait can be dropped at any time
//! without losing bytes, and an idle connection owns no buffer.

use std::future::Future;
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use monoio::net::TcpStream;

use crate::timer::Timer;
use crate::turn;

/// Owns the descriptor; it is closed by the reactor when dropped.
pub(crate) struct Source {
    io: TcpStream,
}

impl Source {
    /// Registers `descriptor`, which need not be a TCP socket, with the reactor of this thread.
    pub(crate) fn new(descriptor: OwnedFd) -> io::Result<Source> {
        Ok(Source { io: TcpStream::from_std(StdTcpStream::from(descriptor))? })
    }

    /// Waits until the descriptor is readable, at its end, or broken.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        // Not relaxed: with edge-triggered polling a remembered readiness may be stale.
        self.io.readable(false).await
    }

    /// As [`Source::readable`]; `TimedOut` once `timer` expires.
    pub(crate) async fn readable_before(&self, timer: &Timer) -> io::Result<()> {
        Before { wait: pin!(self.io.readable(false)), timer }.await
    }

    /// Waits until the descriptor takes bytes, or is broken; `TimedOut` once `timer` expires.
    pub(crate) async fn writable_before(&self, timer: &Timer) -> io::Result<()> {
        Before { wait: pin!(self.io.writable(false)), timer }.await
    }
}

/// Waits `pause`, to the millisecond; `TimedOut` once `timer` expires.
pub(crate) async fn pause_before(pause: Duration, timer: &Timer) -> io::Result<()> {
    let slept = async {
        monoio::time::sleep(pause).await;
        Ok(())
    };
    Before { wait: pin!(slept), timer }.await
}

/// The boxed wait's own outcome, or `TimedOut` once `timer` expires.
pub(crate) async fn before<F: Future<Output = io::Result<()>> + ?Sized>(
    mut wait: Pin<Box<F>>,
    timer: &Timer,
) -> io::Result<()> {
    Before { wait: wait.as_mut(), timer }.await
}

/// The wait's own outcome, or `TimedOut` once `timer` expires.
///
/// It borrows the wait: a future that is an argument of an `async fn` is held twice by it.
struct Before<'a, F: ?Sized> {
    wait: Pin<&'a mut F>,
    timer: &'a Timer,
}

impl<F: Future<Output = io::Result<()>> + ?Sized> Future for Before<'_, F> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if turn::poll_step(cx).is_pending() {
            return Poll::Pending;
        }
        if let Poll::Ready(outcome) = self.wait.as_mut().poll(cx) {
            return Poll::Ready(outcome);
        }
        self.timer.poll_expired(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor must stay open while it is borrowed; `io` owns it and lives as
        // long as the borrow of `self`.
        unsafe { BorrowedFd::borrow_raw(self.io.as_raw_fd()) }
    }
}
