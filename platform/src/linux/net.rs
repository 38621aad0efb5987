//! Accepting and sending, with the flags that make one call do.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, socklen_t};
use socket2::{SockAddr, SockAddrStorage, SockFilter, SockRef};

use crate::stream::SocketMode;

/// The kernel picks one of the listeners by a hash of the connection's addresses (since 3.9).
pub(crate) const REUSEPORT_BALANCES: bool = true;

/// A filter on the packets of the listener drops those that begin a connection.
pub(crate) fn refuse_new_connections(listener: BorrowedFd<'_>) -> io::Result<()> {
    /// Where the flags are in the TCP header, with which a packet begins for such a filter.
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    let step = |code: u32, k, jump_true, jump_false| {
        SockFilter::new(code as u16, jump_true, jump_false, k)
    };
    let program = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, FLAGS_AT, 0, 0),
        step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, SYN | ACK, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, SYN, 0, 1),
        // No byte of the packet is kept; else all of it.
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, u32::MAX, 0, 0),
    ];
    SockRef::from(&listener).attach_filter(&program)
}

/// A closed peer is an error of the call, not a signal.
pub(crate) const SEND_FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// recv(2), without what glibc puts around it in a program of several threads: it takes note of
/// where a thread may be cancelled, which no thread here ever is. Two such calls and two of
/// [`send`] are made for each proxied request.
#[inline]
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8], flags: c_int) -> io::Result<usize> {
    let nowhere = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the pointer and length are those of `buf`, borrowed mutably for the call; the kernel
    // is told that no address is wanted. The argument list is that of recvfrom(2).
    let count = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd.as_raw_fd(),
            buf.as_mut_ptr(),
            buf.len(),
            flags,
            nowhere,
            nowhere,
        )
    };
    counted(count)
}

/// send(2); see [`recv`].
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let nowhere = std::ptr::null::<libc::c_void>();
    // SAFETY: the pointer and length are those of `bytes`, borrowed for the call; no address is
    // given, its length is 0. The argument list is that of sendto(2).
    let count = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd.as_raw_fd(),
            bytes.as_ptr(),
            bytes.len(),
            SEND_FLAGS,
            nowhere,
            0 as socklen_t,
        )
    };
    counted(count)
}

fn counted(count: libc::c_long) -> io::Result<usize> {
    // Negative means an error, and is all that the conversion refuses.
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// accept(2) reports pending errors of the new connection as its own; the manual says to treat
/// those from `ENETDOWN` on like `EAGAIN`. `EPERM` is not among them: a policy that refuses the
/// call does so before a connection is taken, so that a repetition is refused as well.
pub(crate) const ACCEPT_TRANSIENT_ERRNOS: &[c_int] = &[
    libc::ECONNABORTED,
    libc::EINTR,
    libc::ECONNRESET,
    libc::ETIMEDOUT,
    libc::ENETDOWN,
    libc::EPROTO,
    libc::ENOPROTOOPT,
    libc::EHOSTDOWN,
    libc::ENONET,
    libc::EHOSTUNREACH,
    libc::EOPNOTSUPP,
    libc::ENETUNREACH,
];

#[inline]
pub(crate) fn accept(
    listener: BorrowedFd<'_>,
    mode: SocketMode,
) -> io::Result<(OwnedFd, SocketAddr)> {
    let flags = match mode {
        SocketMode::Blocking => libc::SOCK_CLOEXEC,
        SocketMode::NonBlocking => libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
    };
    let accept4 = |storage: *mut SockAddrStorage, length: *mut socklen_t| {
        // SAFETY: `storage` is valid for a write of `*length` bytes, and `length` for a write;
        // `SockAddr::try_init` guarantees both.
        let fd = unsafe { libc::accept4(listener.as_raw_fd(), storage.cast(), length, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: accept4 has just made `fd`, and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    // SAFETY: on success accept4 has written an address and its length.
    let (connection, peer) = unsafe { SockAddr::try_init(accept4) }?;
    let peer = peer.as_socket().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((connection, peer))
}

/// `SEND_FLAGS` does it per call.
pub(crate) fn suppress_sigpipe(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(())
}
