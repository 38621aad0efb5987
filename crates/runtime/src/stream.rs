//! A TCP connection of one core.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use baton_platform::{self as platform, Connecting};

use crate::limits::{TICK, WRITE_PAUSE_MIN};
use crate::source::{Source, before, pause_before};
use crate::timer::Timer;
use crate::turn;

/// A TCP connection that belongs to the core it was opened on, for life.
///
/// Reads and writes take borrowed bytes and never block. Waits end with `TimedOut` when their timer
/// expires, and may be dropped at any time without losing bytes.
pub struct Stream {
    /// Apart: a connection is moved many times and opened once, and a watch shares it.
    source: Rc<Source>,
    /// Waits for room that ended since the socket last took bytes.
    grants: Cell<u32>,
    /// A wait for bytes that is under way while nobody waits, see [`Stream::watch`].
    watch: Cell<Option<Watch>>,
}

type Watch = Pin<Box<dyn Future<Output = io::Result<()>>>>;

impl Stream {
    /// Takes over a connected socket that no reactor has seen yet.
    pub(crate) fn adopt(socket: OwnedFd) -> io::Result<Stream> {
        platform::set_nodelay(socket.as_fd())?;
        let source = Rc::new(Source::new(socket)?);
        Ok(Stream { source, grants: Cell::new(0), watch: Cell::new(None) })
    }

    /// Connects to `address`; `TimedOut` once `timer` expires.
    pub async fn connect(address: SocketAddr, timer: &Timer) -> io::Result<Stream> {
        let (socket, state) = platform::connect(address)?;
        let stream = Stream::adopt(socket)?;
        if state == Connecting::UnderWay {
            stream.source.writable_before(timer).await?;
            if let Some(error) = platform::take_socket_error(stream.source.as_fd())? {
                return Err(error);
            }
        }
        Ok(stream)
    }

    /// Waits until a read would return at once: with bytes, the end, or an error.
    pub async fn readable(&self, timer: &Timer) -> io::Result<()> {
        match self.watch.take() {
            Some(watch) => before(watch, timer).await,
            None => self.source.readable_before(timer).await,
        }
    }

    /// Begins to wait for bytes, although none are expected: the next [`Stream::readable`] goes on
    /// with this wait, and [`Stream::has_stirred`] tells in the meantime whether it is over.
    ///
    /// So an idle connection is looked at for nothing: the reactor would be asked to watch it for
    /// the next answer anyway.
    pub fn watch(&self) {
        let source = self.source.clone();
        let mut watch: Watch = Box::pin(async move { source.readable().await });
        let pending = watch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        self.watch.set(pending.then_some(watch));
    }

    /// Whether a watched connection has got bytes, ended, or failed, as far as the reactor knows.
    /// One that is not watched counts as stirred.
    pub fn has_stirred(&self) -> bool {
        let Some(mut watch) = self.watch.take() else { return true };
        let stirred = watch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        self.watch.set((!stirred).then_some(watch));
        stirred
    }

    /// Reads what is there; `WouldBlock` if nothing is. 0 is the end of the stream.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        debug_assert!(!into.is_empty(), "a read into no room looks like the end of the stream");
        platform::recv(self.source.as_fd(), into)
    }

    /// Waits for bytes and reads them. 0 is the end of the stream.
    pub async fn read(&self, into: &mut [u8], timer: &Timer) -> io::Result<usize> {
        loop {
            self.readable(timer).await?;
            match self.try_read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
        }
    }

    /// Writes what fits of `bytes`; `WouldBlock` if nothing does.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let count = platform::send(self.source.as_fd(), bytes)?;
        self.grants.set(0);
        Ok(count)
    }

    /// Writes all of `parts`, waiting where the socket is full.
    ///
    /// The timer is moved by nobody here: it bounds the whole call.
    pub async fn write_all(&self, parts: &mut [IoSlice<'_>], timer: &Timer) -> io::Result<()> {
        let mut left = parts;
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            poll_fn(|cx| turn::poll_step(cx)).await;
            match self.try_write_parts(left) {
                Ok(count) => IoSlice::advance_slices(&mut left, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable(timer).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn try_write_parts(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match parts {
            [one] => self.try_write(one),
            _ => {
                let count = platform::send_vectored(self.source.as_fd(), parts)?;
                self.grants.set(0);
                Ok(count)
            }
        }
    }

    /// Waits until a write would take bytes, or fail.
    ///
    /// io_uring ends each wait at once when the peer has ended its side, room or not: the kernel
    /// adds EPOLLRDHUP to the events of every poll (`IO_POLL_UNMASK`, io_uring/poll.c). So a wait
    /// that follows one after which no byte was taken begins with a pause, each time twice as long.
    pub async fn writable(&self, timer: &Timer) -> io::Result<()> {
        let grants = self.grants.get();
        if grants > 0 {
            let pause = WRITE_PAUSE_MIN.saturating_mul(1 << (grants - 1).min(16)).min(TICK);
            // Boxed: rare, and a timer of the reactor is larger than the rest of the wait.
            Box::pin(pause_before(pause, timer)).await?;
        }
        self.source.writable_before(timer).await?;
        self.grants.set(grants.saturating_add(1));
        Ok(())
    }

    /// Sends the end of our side; the other side may go on.
    pub fn shutdown_write(&self) -> io::Result<()> {
        platform::shutdown(self.source.as_fd(), Shutdown::Write)
    }

    /// Lets the coming close send a reset, so that the peer sees a message cut short as cut short.
    pub fn reset_on_close(&self) -> io::Result<()> {
        platform::set_linger_zero(self.source.as_fd())
    }

    /// Whether bytes are there to be read.
    pub fn has_bytes(&self) -> bool {
        matches!(platform::peek(self.source.as_fd(), &mut [0]), Ok(1..))
    }

    /// Waits until the peer breaks the connection, and says how.
    ///
    /// Once the peer has ended its side in order, or sent bytes that nobody reads, what comes after
    /// cannot be seen: then it waits for ever.
    pub async fn broken(&self) -> io::Error {
        loop {
            if let Err(error) = self.source.readable().await {
                return error;
            }
            match platform::peek(self.source.as_fd(), &mut [0]) {
                Ok(_) => std::future::pending().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return error,
            }
        }
    }
}

/// Whether a call failed since the process or the system has no descriptor left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    platform::classify_accept_error(error) == platform::AcceptFault::OutOfDescriptors
}
