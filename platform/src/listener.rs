//! Listening sockets, and connections taken from them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{BorrowedFd, OwnedFd};

use libc::c_int;
use socket2::{Domain, Protocol, Socket, Type};

use crate::stream::SocketMode;
use crate::sys;

/// Whether several `reuse_port` listeners on one address share its connections.
///
/// True on Linux, which hashes each connection to one of them. False on macOS, where one listener
/// gets them all, and a single acceptor has to deal them out.
pub const REUSEPORT_BALANCES: bool = sys::REUSEPORT_BALANCES;

/// How a listening socket is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenOptions {
    /// Finished handshakes that may wait to be accepted. The kernel cuts it to its own maximum
    /// (Linux `net.core.somaxconn`, macOS `kern.ipc.somaxconn`) without notice. When full, it drops
    /// the client's handshake packets and the client retries.
    pub backlog: u32,
    /// Lets further listeners with the same option, and the same user, bind the same address
    /// (`SO_REUSEPORT`). See [`REUSEPORT_BALANCES`].
    pub reuse_port: bool,
}

/// Opens a TCP listener on `addr`: non-blocking, closed on exec, bound at once even where old
/// connections linger in TIME_WAIT (`SO_REUSEADDR`).
///
/// An IPv6 listener takes IPv6 alone (`IPV6_V6ONLY`), so that `[::]:80` and `0.0.0.0:80` are two
/// listeners on every system. Port 0 picks a free port.
/// Errors: `AddrInUse`, `AddrNotAvailable`, `PermissionDenied` (a port below 1024), and what
/// socket(2) reports.
pub fn listen(addr: SocketAddr, options: ListenOptions) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if options.reuse_port {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(c_int::try_from(options.backlog).unwrap_or(c_int::MAX))?;
    Ok(socket.into())
}

/// Lets no new client begin a handshake with the listener, which then gives no answer to its first
/// packet; handshakes that have begun go on, and what is queued stays there.
///
/// For a listener that is about to be closed, which resets what it has not handed out.
/// Errors: `Unsupported` where the system has no such means (macOS), and what setsockopt(2) reports.
pub fn refuse_new_connections(listener: BorrowedFd<'_>) -> io::Result<()> {
    sys::refuse_new_connections(listener)
}

/// Takes one connection from the listener, with the peer's address.
///
/// The descriptor is closed on exec, has the mode asked for and never raises SIGPIPE. Linux does
/// this in one call; macOS needs several, and a fork between them passes the descriptor on.
/// `listener` must be one for IP. Errors: see [`classify_accept_error`].
#[inline]
pub fn accept(listener: BorrowedFd<'_>, mode: SocketMode) -> io::Result<(OwnedFd, SocketAddr)> {
    sys::accept(listener, mode)
}

/// What an [`accept_batch`] left in the listener's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing: wait until the listener is readable.
    Drained,
    /// Perhaps more: the batch ended at its bound or at an error. Come back without waiting, since
    /// a reactor that reports changes only will not report what was there before.
    MayHoldMore,
}

/// Takes up to `max` connections from a non-blocking listener and appends them to `sink`.
///
/// Errors only if nothing was accepted; an error after the first connection ends the batch, and
/// the next call meets it again if it lasts. An empty queue is `Ok(Backlog::Drained)`, no error.
pub fn accept_batch(
    listener: BorrowedFd<'_>,
    mode: SocketMode,
    max: usize,
    sink: &mut Vec<(OwnedFd, SocketAddr)>,
) -> io::Result<Backlog> {
    for accepted in 0..max {
        match accept(listener, mode) {
            Ok(connection) => sink.push(connection),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Backlog::Drained),
            Err(error) if accepted == 0 => return Err(error),
            Err(_) => return Ok(Backlog::MayHoldMore),
        }
    }
    Ok(Backlog::MayHoldMore)
}

/// What an error of [`accept`] asks of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptFault {
    /// One connection failed before it was taken, or a signal came: accept again.
    Transient,
    /// The process (`EMFILE`) or the system (`ENFILE`) has no descriptor left: the connection stays
    /// queued. Wait, or free a descriptor, before accepting again.
    OutOfDescriptors,
    /// The kernel has no memory for the socket: wait before accepting again.
    OutOfMemory,
    /// No connection is queued: wait until the listener is readable.
    WouldBlock,
    /// The listener is of no further use.
    Fatal,
}

/// Tells what to do after [`accept`] failed.
pub fn classify_accept_error(error: &io::Error) -> AcceptFault {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => AcceptFault::WouldBlock,
        Some(libc::EMFILE | libc::ENFILE) => AcceptFault::OutOfDescriptors,
        Some(libc::ENOBUFS | libc::ENOMEM) => AcceptFault::OutOfMemory,
        Some(errno) if sys::ACCEPT_TRANSIENT_ERRNOS.contains(&errno) => AcceptFault::Transient,
        Some(_) | None => AcceptFault::Fatal,
    }
}
