//! Limits and facts of the process, in a process that is disturbed for the purpose.

use std::fs::File;
use std::hint::black_box;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_platform::{
    AcceptFault, Backlog, ListenOptions, SocketMode, accept, accept_batch, classify_accept_error,
    descriptor_limit, listen, open_descriptors, raise_descriptor_limit, resident_bytes,
    set_socket_mode,
};
use libc::c_int;

/// These tests count what all threads share, so one runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lowers or raises the soft limit on descriptors.
fn set_descriptor_limit(soft: u64) {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limits` is valid for a write of one rlimit.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) }, 0);
    limits.rlim_cur = soft;
    // SAFETY: `limits` is valid for a read of one rlimit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) }, 0);
}

/// A listener that waits in accept: a handshake may end for the client before its connection is
/// queued. Running out of descriptors is found before the wait.
fn waiting_listener() -> TcpListener {
    let options = ListenOptions { backlog: 8, reuse_port: false };
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into(), options).unwrap();
    set_socket_mode(listener.as_fd(), SocketMode::Blocking).unwrap();
    listener
}

/// Opens descriptors until none is left under a limit of 64.
fn take_all_descriptors(listener: &TcpListener) -> Vec<OwnedFd> {
    set_descriptor_limit(64);
    let hoard: Vec<OwnedFd> =
        (0..64).map_while(|_| listener.as_fd().try_clone_to_owned().ok()).collect();
    assert!(listener.as_fd().try_clone_to_owned().is_err());
    hoard
}

#[test]
fn a_connection_waits_in_the_queue_while_descriptors_are_out() {
    let _alone = alone();
    let before = descriptor_limit().unwrap();
    let listener = waiting_listener();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();

    let mut hoard = take_all_descriptors(&listener);
    let error = accept(listener.as_fd(), SocketMode::Blocking).unwrap_err();
    assert_eq!(classify_accept_error(&error), AcceptFault::OutOfDescriptors);

    hoard.pop();
    let (_connection, peer) = accept(listener.as_fd(), SocketMode::Blocking).unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
    set_descriptor_limit(before);
}

#[test]
fn a_batch_keeps_what_it_accepted_before_an_error() {
    let _alone = alone();
    let before = descriptor_limit().unwrap();
    let listener = waiting_listener();
    let addr = listener.local_addr().unwrap();
    let _clients: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(addr).unwrap()).collect();

    let mut hoard = take_all_descriptors(&listener);
    hoard.pop();
    let mut sink = Vec::new();
    let mut batch = || {
        let backlog = accept_batch(listener.as_fd(), SocketMode::Blocking, 2, &mut sink);
        (backlog, sink.len())
    };
    let (backlog, accepted) = batch();
    assert_eq!(backlog.unwrap(), Backlog::MayHoldMore);
    assert_eq!(accepted, 1);

    let (backlog, accepted) = batch();
    let fault = classify_accept_error(&backlog.unwrap_err());
    assert_eq!(fault, AcceptFault::OutOfDescriptors);
    assert_eq!(accepted, 1);
    set_descriptor_limit(before);
}

#[test]
fn the_limit_is_raised_and_never_lowered() {
    let _alone = alone();
    let before = descriptor_limit().unwrap();
    set_descriptor_limit(64);
    assert_eq!(descriptor_limit().unwrap(), 64);

    let raised = raise_descriptor_limit().unwrap();
    assert!(raised >= before);
    assert_eq!(descriptor_limit().unwrap(), raised);
    assert_eq!(raise_descriptor_limit().unwrap(), raised);
    set_descriptor_limit(before);
}

#[test]
fn open_descriptors_are_counted() {
    let _alone = alone();
    let _files: Vec<File> = (0..3).map(|_| File::open("/dev/null").unwrap()).collect();
    // New descriptors take the lowest free number, so this far up there is none.
    let is_open = |&fd: &c_int| {
        // SAFETY: F_GETFD only looks the number up.
        unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
    };
    assert_eq!(open_descriptors().unwrap(), (0..4096).filter(is_open).count());
}

#[test]
fn resident_memory_grows_with_what_is_written_to_and_not_with_what_is_reserved() {
    const BYTES: usize = 64 << 20;
    let _alone = alone();
    let grown = |before: u64| resident_bytes().unwrap().saturating_sub(before);
    let before = resident_bytes().unwrap();
    let mut reserved: Vec<u8> = black_box(Vec::with_capacity(BYTES));
    assert!(grown(before) < BYTES as u64 / 2);
    reserved.resize(BYTES, 1);
    assert!(grown(before) > BYTES as u64 / 2);
    drop(black_box(reserved));
}
