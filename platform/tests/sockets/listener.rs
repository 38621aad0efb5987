use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use baton_platform::{
    AcceptFault, Backlog, ListenOptions, REUSEPORT_BALANCES, SocketMode, accept, accept_batch,
    classify_accept_error, listen,
};

use crate::support::{is_closed_on_exec, is_nonblocking, wait_for};

const ALONE: ListenOptions = ListenOptions { backlog: 64, reuse_port: false };
const SHARED: ListenOptions = ListenOptions { backlog: 64, reuse_port: true };

/// Loopback address with a port for the system to pick.
fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A listener on `::1`, or `None` on a machine without IPv6.
fn listen_v6() -> Option<TcpListener> {
    match listen((Ipv6Addr::LOCALHOST, 0).into(), ALONE) {
        Ok(listener) => Some(listener),
        Err(error) => {
            let absent = [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL];
            assert!(error.raw_os_error().is_some_and(|errno| absent.contains(&errno)), "{error}");
            None
        }
    }
}

/// Accepts one connection that is sure to come.
fn accept_next(listener: &TcpListener, mode: SocketMode) -> (OwnedFd, SocketAddr) {
    wait_for(&[listener], libc::POLLIN);
    accept(listener.as_fd(), mode).unwrap()
}

#[test]
fn an_address_in_use_is_refused() {
    let first = listen(any_port(), ALONE).unwrap();
    let second = listen(first.local_addr().unwrap(), ALONE);
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn an_empty_queue_is_would_block_and_not_a_wait() {
    let listener = listen(any_port(), ALONE).unwrap();
    let error = accept(listener.as_fd(), SocketMode::Blocking).unwrap_err();
    assert_eq!(classify_accept_error(&error), AcceptFault::WouldBlock);

    let mut sink = Vec::new();
    let backlog = accept_batch(listener.as_fd(), SocketMode::Blocking, 8, &mut sink).unwrap();
    assert_eq!(backlog, Backlog::Drained);
    assert!(sink.is_empty());
}

#[test]
fn a_socket_that_does_not_listen_is_a_fatal_fault() {
    let listener = listen(any_port(), ALONE).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();

    let error = accept(client.as_fd(), SocketMode::Blocking).unwrap_err();
    assert_eq!(classify_accept_error(&error), AcceptFault::Fatal);

    let mut sink = Vec::new();
    let error = accept_batch(client.as_fd(), SocketMode::Blocking, 8, &mut sink).unwrap_err();
    assert_eq!(classify_accept_error(&error), AcceptFault::Fatal);
}

#[test]
fn each_errno_of_accept_has_its_class() {
    let classes = [
        (libc::EAGAIN, AcceptFault::WouldBlock),
        (libc::EWOULDBLOCK, AcceptFault::WouldBlock),
        (libc::EMFILE, AcceptFault::OutOfDescriptors),
        (libc::ENFILE, AcceptFault::OutOfDescriptors),
        (libc::ENOBUFS, AcceptFault::OutOfMemory),
        (libc::ENOMEM, AcceptFault::OutOfMemory),
        (libc::ECONNABORTED, AcceptFault::Transient),
        (libc::EINTR, AcceptFault::Transient),
        (libc::EPROTO, AcceptFault::Transient),
        (libc::ENETUNREACH, AcceptFault::Transient),
        (libc::EHOSTUNREACH, AcceptFault::Transient),
        (libc::EBADF, AcceptFault::Fatal),
        (libc::EINVAL, AcceptFault::Fatal),
        (libc::ENOTSOCK, AcceptFault::Fatal),
        (libc::EPERM, AcceptFault::Fatal),
    ];
    for (errno, class) in classes {
        let error = io::Error::from_raw_os_error(errno);
        assert_eq!(classify_accept_error(&error), class, "{error}");
    }
    // An error that no system call reported.
    let error = io::Error::from(io::ErrorKind::InvalidInput);
    assert_eq!(classify_accept_error(&error), AcceptFault::Fatal);
}

#[test]
fn a_connection_comes_with_its_peer_and_the_mode_asked_for() {
    let listener = listen(any_port(), ALONE).unwrap();
    assert!(is_nonblocking(&listener));
    assert!(is_closed_on_exec(&listener));

    for (mode, nonblocking) in [(SocketMode::Blocking, false), (SocketMode::NonBlocking, true)] {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (connection, peer) = accept_next(&listener, mode);
        assert_eq!(peer, client.local_addr().unwrap());
        assert_eq!(is_nonblocking(&connection), nonblocking);
        assert!(is_closed_on_exec(&connection));
    }
}

#[test]
fn a_batch_ends_at_its_bound() {
    // With a bound of 1, each batch takes one of three connections, whenever the others arrive.
    let listener = listen(any_port(), ALONE).unwrap();
    let addr = listener.local_addr().unwrap();
    let clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(addr).unwrap()).collect();

    let mut sink = Vec::new();
    for taken in 1..=clients.len() {
        wait_for(&[&listener], libc::POLLIN);
        let backlog = accept_batch(listener.as_fd(), SocketMode::Blocking, 1, &mut sink).unwrap();
        assert_eq!(backlog, Backlog::MayHoldMore);
        assert_eq!(sink.len(), taken);
    }
    let peers: Vec<SocketAddr> = sink.iter().map(|&(_, peer)| peer).collect();
    let expected: Vec<SocketAddr> = clients.iter().map(|c| c.local_addr().unwrap()).collect();
    assert_eq!(peers, expected);
}

#[test]
fn a_batch_below_its_bound_drains_the_queue() {
    let listener = listen(any_port(), ALONE).unwrap();
    let addr = listener.local_addr().unwrap();
    let clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(addr).unwrap()).collect();

    let mut sink = Vec::new();
    while sink.len() < clients.len() {
        wait_for(&[&listener], libc::POLLIN);
        let backlog = accept_batch(listener.as_fd(), SocketMode::Blocking, 16, &mut sink).unwrap();
        assert_eq!(backlog, Backlog::Drained);
    }
    assert_eq!(sink.len(), clients.len());
}

#[test]
fn listeners_that_share_a_port_share_its_connections_where_the_system_balances() {
    // 64 connections all land on the same one of two listeners once in 2^63.
    let first = listen(any_port(), SHARED).unwrap();
    let addr = first.local_addr().unwrap();
    let second = listen(addr, SHARED).unwrap();
    let clients: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(addr).unwrap()).collect();

    let (mut of_first, mut of_second) = (Vec::new(), Vec::new());
    while of_first.len() + of_second.len() < clients.len() {
        wait_for(&[&first, &second], libc::POLLIN);
        accept_batch(first.as_fd(), SocketMode::Blocking, 64, &mut of_first).unwrap();
        accept_batch(second.as_fd(), SocketMode::Blocking, 64, &mut of_second).unwrap();
    }
    assert_eq!(!of_first.is_empty() && !of_second.is_empty(), REUSEPORT_BALANCES);
}

#[test]
fn a_listener_starts_again_while_old_connections_linger() {
    // The side that closes first keeps the port in FIN_WAIT or TIME_WAIT; here the listener's.
    let listener = listen(any_port(), ALONE).unwrap();
    let addr = listener.local_addr().unwrap();
    let _client = TcpStream::connect(addr).unwrap();
    let (connection, _) = accept_next(&listener, SocketMode::Blocking);
    drop(connection);
    drop(listener);
    listen(addr, ALONE).unwrap();
}

#[test]
fn an_ipv6_listener_reports_ipv6_peers() {
    let Some(listener) = listen_v6() else { return };
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (_connection, peer) = accept_next(&listener, SocketMode::Blocking);
    assert_eq!(peer, client.local_addr().unwrap());
    assert!(peer.is_ipv6());
}

#[test]
fn an_ipv6_listener_leaves_the_ipv4_port_free() {
    if listen_v6().is_none() {
        return;
    }
    // Another socket of this machine may hold one of the IPv4 ports, but hardly all of them.
    let is_left_free = || {
        let v6 = listen((Ipv6Addr::UNSPECIFIED, 0).into(), ALONE).unwrap();
        let port = v6.local_addr().unwrap().port();
        listen((Ipv4Addr::UNSPECIFIED, port).into(), ALONE).is_ok()
    };
    assert!((0..8).any(|_| is_left_free()));
}
