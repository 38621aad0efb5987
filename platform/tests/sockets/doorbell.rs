use std::thread;

use baton_platform::Doorbell;

use crate::support::{is_closed_on_exec, is_nonblocking, is_readable, wait_for};

#[test]
fn clearing_a_silent_doorbell_does_not_block() {
    let bell = Doorbell::new().unwrap();
    assert!(!is_readable(&bell.fd()));
    bell.clear();
    assert!(!is_readable(&bell.fd()));
}

#[test]
fn rings_coalesce_and_one_clear_takes_them_all() {
    let bell = Doorbell::new().unwrap();
    for _ in 0..1000 {
        bell.ring();
    }
    assert!(is_readable(&bell.fd()));
    bell.clear();
    assert!(!is_readable(&bell.fd()));
}

#[test]
fn a_ring_after_a_clear_is_seen() {
    let bell = Doorbell::new().unwrap();
    bell.ring();
    bell.clear();
    bell.ring();
    assert!(is_readable(&bell.fd()));
}

#[test]
fn another_thread_wakes_the_waiting_one() {
    let bell = Doorbell::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| bell.ring());
        wait_for(&[&bell.fd()], libc::POLLIN);
    });
}

#[test]
fn the_descriptor_is_nonblocking_and_closed_on_exec() {
    let bell = Doorbell::new().unwrap();
    assert!(is_nonblocking(&bell.fd()));
    assert!(is_closed_on_exec(&bell.fd()));
}
