use std::io::{self, IoSlice, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_platform::{
    SocketMode, is_dead, peek, recv, send, send_vectored, set_linger_zero, set_nodelay,
    set_socket_mode, shutdown, suppress_sigpipe, take_socket_error,
};
use libc::c_int;
use socket2::{Domain, Socket, Type};

use crate::support::{is_nonblocking, wait_for};

/// A pair on which sending is allowed on every system, the first end being the one that sends.
fn pair() -> (UnixStream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    suppress_sigpipe(near.as_fd()).unwrap();
    set_socket_mode(near.as_fd(), SocketMode::NonBlocking).unwrap();
    (near, far)
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn receiving_nothing_from_a_blocking_socket_does_not_wait() {
    let (near, _far) = UnixStream::pair().unwrap();
    assert!(!is_nonblocking(&near));
    let error = recv(near.as_fd(), &mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_full_socket_does_not_wait() {
    // Goal: the kernel's buffer bounds what is taken. 64 MiB is beyond any default.
    let (near, _far) = pair();
    let bytes = [0; 64 * 1024];
    let stopped = (0..1024).find_map(|_| send(near.as_fd(), &bytes).err());
    assert_eq!(stopped.unwrap().kind(), io::ErrorKind::WouldBlock);

    let error = send_vectored(near.as_fd(), &[IoSlice::new(&bytes)]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

static SIGPIPE_RAISED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_sigpipe(_signal: c_int) {
    SIGPIPE_RAISED.store(true, Ordering::SeqCst);
}

#[test]
fn a_closed_peer_is_an_error_and_not_a_signal() {
    let handler: extern "C" fn(c_int) = on_sigpipe;
    // SAFETY: the handler only stores to an atomic, which a signal handler may.
    unsafe { libc::signal(libc::SIGPIPE, handler as libc::sighandler_t) };

    // That the handler works at all: a pipe without a reader raises the signal.
    let (reader, mut writer) = io::pipe().unwrap();
    drop(reader);
    assert_eq!(writer.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert!(SIGPIPE_RAISED.swap(false, Ordering::SeqCst));

    let (near, far) = pair();
    drop(far);
    let error = send(near.as_fd(), b"x").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    let error = send_vectored(near.as_fd(), &[IoSlice::new(b"x")]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert!(!SIGPIPE_RAISED.load(Ordering::SeqCst));
}

#[test]
fn the_end_of_the_stream_is_zero_bytes() {
    let (near, far) = pair();
    drop(far);
    assert_eq!(recv(near.as_fd(), &mut [0; 16]).unwrap(), 0);
}

#[test]
fn what_is_sent_is_received_in_pieces_of_the_buffer() {
    let (near, far) = pair();
    assert_eq!(send(near.as_fd(), b"baton").unwrap(), 5);
    let mut buf = [0; 3];
    assert_eq!(recv(far.as_fd(), &mut buf).unwrap(), 3);
    assert_eq!(&buf, b"bat");
    assert_eq!(recv(far.as_fd(), &mut buf).unwrap(), 2);
    assert_eq!(&buf[..2], b"on");
}

#[test]
fn peeking_leaves_the_bytes_to_be_received() {
    let (near, far) = pair();
    let mut buf = [0; 5];
    assert_eq!(peek(far.as_fd(), &mut buf).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    send(near.as_fd(), b"baton").unwrap();
    assert_eq!(peek(far.as_fd(), &mut buf).unwrap(), 5);
    assert_eq!(&buf, b"baton");
    assert_eq!(recv(far.as_fd(), &mut [0; 8]).unwrap(), 5);
}

#[test]
fn parts_are_sent_in_order() {
    let (near, far) = pair();
    let parts = [IoSlice::new(b"ba"), IoSlice::new(b""), IoSlice::new(b"ton")];
    assert_eq!(send_vectored(near.as_fd(), &parts).unwrap(), 5);
    let mut buf = [0; 8];
    assert_eq!(recv(far.as_fd(), &mut buf).unwrap(), 5);
    assert_eq!(&buf[..5], b"baton");
}

#[test]
fn more_parts_than_the_kernel_takes_are_a_short_write() {
    let (near, _far) = pair();
    let parts = vec![IoSlice::new(b"x"); 1025];
    assert_eq!(send_vectored(near.as_fd(), &parts).unwrap(), 1024);
}

#[test]
fn a_quiet_connection_is_alive() {
    let (near, _far) = UnixStream::pair().unwrap();
    assert!(!is_dead(near.as_fd()));
}

#[test]
fn unexpected_bytes_make_a_connection_dead_and_stay_unread() {
    let (near, far) = pair();
    send(near.as_fd(), b"x").unwrap();
    assert!(is_dead(far.as_fd()));
    assert_eq!(recv(far.as_fd(), &mut [0; 2]).unwrap(), 1);
}

#[test]
fn a_closed_connection_is_dead() {
    let (near, far) = pair();
    drop(far);
    assert!(is_dead(near.as_fd()));
}

#[test]
fn zero_linger_resets_the_connection_on_close() {
    let (near, mut far) = tcp_pair();
    set_linger_zero(near.as_fd()).unwrap();
    drop(near);
    let error = far.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn a_reset_connection_is_dead() {
    let (near, far) = tcp_pair();
    set_linger_zero(near.as_fd()).unwrap();
    drop(near);
    wait_for(&[&far], libc::POLLIN);
    assert!(is_dead(far.as_fd()));
}

#[test]
fn shutting_down_one_direction_leaves_the_other_open() {
    let (near, far) = pair();
    shutdown(near.as_fd(), Shutdown::Write).unwrap();
    assert_eq!(recv(far.as_fd(), &mut [0; 1]).unwrap(), 0);
    assert_eq!(send(far.as_fd(), b"x").unwrap(), 1);
    assert_eq!(recv(near.as_fd(), &mut [0; 1]).unwrap(), 1);
}

#[test]
fn a_refused_connect_is_stored_on_the_socket_and_taken_once() {
    // A port that is bound but does not listen refuses, and nobody else can take it meanwhile.
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    bound.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    set_socket_mode(client.as_fd(), SocketMode::NonBlocking).unwrap();
    let started = client.connect(&bound.local_addr().unwrap()).unwrap_err();
    assert_eq!(started.raw_os_error(), Some(libc::EINPROGRESS));

    wait_for(&[&client], libc::POLLOUT);
    let error = take_socket_error(client.as_fd()).unwrap().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(take_socket_error(client.as_fd()).unwrap().is_none());
}

#[test]
fn the_mode_can_be_set_both_ways() {
    let (near, _far) = UnixStream::pair().unwrap();
    set_socket_mode(near.as_fd(), SocketMode::NonBlocking).unwrap();
    assert!(is_nonblocking(&near));
    set_socket_mode(near.as_fd(), SocketMode::Blocking).unwrap();
    assert!(!is_nonblocking(&near));
}

#[test]
fn nodelay_is_set_on_the_socket() {
    let (near, _far) = tcp_pair();
    assert!(!near.nodelay().unwrap());
    set_nodelay(near.as_fd()).unwrap();
    assert!(near.nodelay().unwrap());
}
