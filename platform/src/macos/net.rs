//! Accepting and sending.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use libc::c_int;
use socket2::{SockRef, Socket};

use crate::stream::SocketMode;

/// The kernel looks a connection up without regard to `SO_REUSEPORT` and finds the same listener
/// each time.
pub(crate) const REUSEPORT_BALANCES: bool = false;

/// Nothing here filters the packets of a socket.
pub(crate) fn refuse_new_connections(_listener: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The kernel's `sosendcheck` looks at the socket's mode and ignores `MSG_DONTWAIT`, so a socket
/// that is written to has to be non-blocking. SIGPIPE is the socket's affair too: `SO_NOSIGPIPE`.
pub(crate) const SEND_FLAGS: c_int = 0;

/// recv(2).
#[inline]
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the pointer and length are those of `buf`, borrowed mutably for the call.
    let count = unsafe { libc::recv(fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), flags) };
    // Negative means an error, and is all that the conversion refuses.
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// send(2).
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    SockRef::from(&fd).send_with_flags(bytes, SEND_FLAGS)
}

/// What befalls one connection. `EINVAL` is not among them: it means that the listener does not
/// listen.
pub(crate) const ACCEPT_TRANSIENT_ERRNOS: &[c_int] = &[
    libc::ECONNABORTED,
    libc::EINTR,
    libc::ECONNRESET,
    libc::ETIMEDOUT,
    libc::ENETDOWN,
    libc::EPROTO,
    libc::EHOSTDOWN,
    libc::EHOSTUNREACH,
    libc::ENETUNREACH,
];

pub(crate) fn accept(
    listener: BorrowedFd<'_>,
    mode: SocketMode,
) -> io::Result<(OwnedFd, SocketAddr)> {
    let (socket, peer) = SockRef::from(&listener).accept_raw()?;
    // A peer that is already gone leaves a socket without an address, whose options cannot be set
    // (EINVAL). Neither says anything about the listener.
    let gone = || io::Error::from_raw_os_error(libc::ECONNABORTED);
    prepare(&socket, mode).map_err(|_| gone())?;
    let peer = peer.as_socket().ok_or_else(gone)?;
    Ok((socket.into(), peer))
}

/// The mode is set either way, since an accepted socket inherits the listener's.
fn prepare(socket: &Socket, mode: SocketMode) -> io::Result<()> {
    socket.set_cloexec(true)?;
    socket.set_nosigpipe(true)?;
    socket.set_nonblocking(mode == SocketMode::NonBlocking)
}

pub(crate) fn suppress_sigpipe(fd: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&fd).set_nosigpipe(true)
}
