//! A TCP connection of one core.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use baton_platform::{self as platform, Connecting};

use crate::core::Core;
use crate::reactor::Direction;
use crate::source::Source;
use crate::timer::Timer;

/// A TCP connection that belongs to the core it was opened on, for life.
///
/// Reads and writes take borrowed bytes and never block. Waits end with `TimedOut` when their timer
/// expires, and may be dropped at any time without losing bytes. One task at a time waits for each
/// direction.
pub struct Stream {
    source: Source,
}

impl Stream {
    /// Takes over a connected socket that no reactor has seen yet.
    pub(crate) fn adopt(core: &Core, socket: OwnedFd) -> io::Result<Stream> {
        platform::set_nodelay(socket.as_fd())?;
        Ok(Stream { source: Source::new(core.reactor(), socket)? })
    }

    /// Connects to `address`; `TimedOut` once `timer` expires.
    pub(crate) async fn connect(
        core: &Core,
        address: SocketAddr,
        timer: &Timer,
    ) -> io::Result<Stream> {
        let (socket, state) = platform::connect(address)?;
        if state == Connecting::Done {
            return Stream::adopt(core, socket);
        }
        platform::set_nodelay(socket.as_fd())?;
        let source = Source::connecting(core.reactor(), socket)?;
        source.before(Direction::Write, timer).await?;
        match platform::take_socket_error(source.as_fd())? {
            Some(error) => Err(error),
            None => Ok(Stream { source }),
        }
    }

    /// Waits until a read would return at once: with bytes, the end, or an error. May end early:
    /// then the read would block, and the next wait does not.
    pub async fn readable(&self, timer: &Timer) -> io::Result<()> {
        self.source.before(Direction::Read, timer).await
    }

    /// Whether bytes, the end or an error have come that no read has taken, as far as the reactor
    /// has been told by its last turn. No system call unless something has.
    pub fn has_stirred(&self) -> bool {
        if !self.source.is_ready(Direction::Read) {
            return false;
        }
        match platform::peek(self.source.as_fd(), &mut [0]) {
            // What the reactor was told of has been read since.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.source.clear(Direction::Read);
                false
            }
            _ => true,
        }
    }

    /// Reads what is there; `WouldBlock` if nothing is. 0 is the end of the stream.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        debug_assert!(!into.is_empty(), "a read into no room looks like the end of the stream");
        let outcome = platform::recv(self.source.as_fd(), into);
        match &outcome {
            Ok(count) if *count < into.len() => self.source.drained(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.source.clear(Direction::Read);
            }
            _ => {}
        }
        outcome
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
        let outcome = self.note_full(platform::send(self.source.as_fd(), bytes));
        if matches!(&outcome, Ok(count) if *count < bytes.len()) {
            self.source.clear(Direction::Write);
        }
        outcome
    }

    /// Writes all of `parts`, waiting where the socket is full.
    ///
    /// The timer is moved by nobody here: it bounds the whole call.
    pub async fn write_all(&self, parts: &mut [IoSlice<'_>], timer: &Timer) -> io::Result<()> {
        let mut left = parts;
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            self.writable(timer).await?;
            match self.try_write_parts(left) {
                Ok(count) => IoSlice::advance_slices(&mut left, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn try_write_parts(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match parts {
            [one] => self.try_write(one),
            // A part of them taken does not mean a full socket: one call looks at so many parts only.
            _ => self.note_full(platform::send_vectored(self.source.as_fd(), parts)),
        }
    }

    fn note_full(&self, outcome: io::Result<usize>) -> io::Result<usize> {
        if matches!(&outcome, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            self.source.clear(Direction::Write);
        }
        outcome
    }

    /// Waits until a write would take bytes, or fail. May end early, as [`Stream::readable`].
    pub async fn writable(&self, timer: &Timer) -> io::Result<()> {
        self.source.before(Direction::Write, timer).await
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
            self.source.readable().await;
            match platform::peek(self.source.as_fd(), &mut [0]) {
                Ok(_) => std::future::pending().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.source.clear(Direction::Read);
                }
                Err(error) => return error,
            }
        }
    }
}

/// Whether a call failed since the process or the system has no descriptor left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    platform::classify_accept_error(error) == platform::AcceptFault::OutOfDescriptors
}
