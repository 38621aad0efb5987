//! Bytes in and out of a connected socket, and what ends it.
//!
//! Invariants: no function here blocks, and none raises SIGPIPE. On Linux that holds for every
//! socket; on macOS sending needs a socket that is [`NonBlocking`](SocketMode::NonBlocking) and
//! came from [`accept`](crate::accept) or went through [`suppress_sigpipe`].

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use libc::c_int;
use socket2::SockRef;

use crate::sys;

/// Most parts handed to the kernel in one [`send_vectored`].
/// POSIX calls it `IOV_MAX`; Linux (`UIO_MAXIOV`) and macOS both refuse more than 1024.
/// When full: the rest stays unsent, as after any short write.
const SEND_PARTS_MAX: usize = 1024;

/// Whether calls that do not say otherwise wait on this socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketMode {
    /// `O_NONBLOCK` is clear. What an io_uring reactor wants: the ring waits in its own way.
    Blocking,
    /// `O_NONBLOCK` is set. What a readiness reactor (epoll, kqueue) wants.
    NonBlocking,
}

/// Sets the mode of the open socket, for all descriptors that share it.
pub fn set_socket_mode(fd: BorrowedFd<'_>, mode: SocketMode) -> io::Result<()> {
    SockRef::from(&fd).set_nonblocking(mode == SocketMode::NonBlocking)
}

/// Sends small segments at once (`TCP_NODELAY`).
pub fn set_nodelay(fd: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&fd).set_tcp_nodelay(true)
}

/// Keeps writes to a closed peer from raising SIGPIPE on this socket.
///
/// Call it once on each socket that [`accept`](crate::accept) did not make. Linux needs no such
/// setting, [`send`] asks per call; there it does nothing.
pub fn suppress_sigpipe(fd: BorrowedFd<'_>) -> io::Result<()> {
    sys::suppress_sigpipe(fd)
}

/// Takes what has arrived, up to `buf.len()` bytes, and returns how many.
///
/// `buf` must not be empty, since 0 means that the peer has finished sending.
/// Errors: `WouldBlock` if nothing has arrived; any other ends the connection.
#[inline]
pub fn recv(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
    debug_assert!(!buf.is_empty(), "an empty read looks like the end of the stream");
    recv_with_flags(fd, buf, libc::MSG_DONTWAIT)
}

/// Like [`recv`], and leaves the bytes where they are.
#[inline]
pub fn peek(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
    recv_with_flags(fd, buf, libc::MSG_PEEK | libc::MSG_DONTWAIT)
}

/// Hands over as many of `bytes` as the kernel takes now, and returns how many.
///
/// Errors: `WouldBlock` if the kernel takes none; `BrokenPipe` or `ConnectionReset` if the peer is
/// gone; any but `WouldBlock` ends the connection.
#[inline]
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    uninterrupted(|| sys::send(fd, bytes))
}

/// Like [`send`], gathering from `parts` in order. Looks at the first 1024 parts.
/// Does not allocate.
#[inline]
pub fn send_vectored(fd: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let socket = SockRef::from(&fd);
    let parts = &parts[..parts.len().min(SEND_PARTS_MAX)];
    uninterrupted(|| socket.send_vectored_with_flags(parts, sys::SEND_FLAGS))
}

/// Takes the error stored on the socket (`SO_ERROR`), such as the outcome of a non-blocking
/// connect.
pub fn take_socket_error(fd: BorrowedFd<'_>) -> io::Result<Option<io::Error>> {
    SockRef::from(&fd).take_error()
}

/// Ends one direction of the connection, or both.
pub fn shutdown(fd: BorrowedFd<'_>, how: Shutdown) -> io::Result<()> {
    SockRef::from(&fd).shutdown(how)
}

/// Makes closing the socket drop unsent bytes and reset the connection (RST) instead of ending it
/// in order (FIN).
pub fn set_linger_zero(fd: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&fd).set_linger(Some(Duration::ZERO))
}

/// Whether an idle connection can no longer carry a request.
///
/// True if the peer closed it, if it has an error, or if bytes wait that nobody asked for: they
/// would be taken for the answer to the next request. Consumes none of them.
pub fn is_dead(fd: BorrowedFd<'_>) -> bool {
    match peek(fd, &mut [0]) {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

#[inline]
fn recv_with_flags(fd: BorrowedFd<'_>, buf: &mut [u8], flags: c_int) -> io::Result<usize> {
    uninterrupted(|| sys::recv(fd, buf, flags))
}

/// Repeats a non-blocking call that a signal interrupted. Ends after as many turns as signals
/// arrive during the call itself, since none of them waits.
#[inline]
fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
