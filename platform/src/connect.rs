//! Opening a connection without waiting for it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::stream::suppress_sigpipe;

/// How far a connection has come when [`connect`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connecting {
    /// It is open.
    Done,
    /// Wait until the socket is writable, then ask [`take_socket_error`](crate::take_socket_error)
    /// for the outcome.
    UnderWay,
}

/// Starts a TCP connection to `addr` on a new socket: non-blocking, closed on exec, never raising
/// SIGPIPE.
///
/// Errors: no descriptor or no local port left, and refusals that the system knows at once.
pub fn connect(addr: SocketAddr) -> io::Result<(OwnedFd, Connecting)> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    suppress_sigpipe(socket.as_fd())?;
    let state = match socket.connect(&addr.into()) {
        Ok(()) => Connecting::Done,
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Connecting::UnderWay,
        Err(error) => return Err(error),
    };
    Ok((socket.into(), state))
}
