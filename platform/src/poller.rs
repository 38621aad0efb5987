//! Readiness of many descriptors, told by the kernel once per change.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys;

/// What a descriptor has become, as far as one event tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A read would return at once: with bytes, the end, or an error.
    pub readable: bool,
    /// A write would take bytes, or fail.
    pub writable: bool,
    /// The peer has ended its side, or the connection is broken.
    pub ended: bool,
}

/// Watches descriptors for both directions, edge-triggered: each change is told once, and what was
/// told stays true until a call on the descriptor would block.
///
/// Linux: epoll. macOS: kqueue. Used by one thread.
#[derive(Debug)]
pub struct Poller(sys::Poller);

impl Poller {
    /// Makes one that watches nothing and returns at most `events > 0` events per harvest.
    ///
    /// Errors: no descriptor left, or no kernel memory.
    pub fn new(events: usize) -> io::Result<Poller> {
        assert!(events > 0, "a harvest of no events never ends");
        sys::Poller::new(events).map(Poller)
    }

    /// Watches `fd` until it is closed. What it is ready for already is told at the next harvest.
    ///
    /// Errors: `fd` cannot be watched, or the system's bound on watched descriptors is reached.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.0.add(fd, token)
    }

    /// Hands each event that is there to `each`, and returns how many there were. Never waits.
    /// Fewer than asked for in [`Poller::new`] means that no more are there.
    pub fn harvest(&mut self, each: impl FnMut(u64, Readiness)) -> io::Result<usize> {
        self.0.harvest(each)
    }

    /// What to wait on: readable while a harvest would return events.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        one.set_nonblocking(true).unwrap();
        (one, other)
    }

    fn harvest(poller: &mut Poller) -> Vec<(u64, Readiness)> {
        let mut events = Vec::new();
        let count = poller.harvest(|token, readiness| events.push((token, readiness))).unwrap();
        assert_eq!(count, events.len());
        events
    }

    /// Harvests until `wanted` was told of `token`.
    fn until(poller: &mut Poller, token: u64, wanted: impl Fn(Readiness) -> bool) {
        while !harvest(poller).iter().any(|&(told, readiness)| told == token && wanted(readiness)) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_change_is_told_once_with_its_token() {
        let mut poller = Poller::new(8).unwrap();
        let (socket, mut peer) = pair();
        poller.add(socket.as_fd(), 7).unwrap();
        until(&mut poller, 7, |readiness| readiness.writable && !readiness.ended);
        assert_eq!(harvest(&mut poller), []);
        peer.write_all(b"x").unwrap();
        until(&mut poller, 7, |readiness| readiness.readable && !readiness.ended);
        assert_eq!(harvest(&mut poller), [], "it is still readable and has not changed");
        assert_eq!((&socket).read(&mut [0; 8]).unwrap(), 1);
        peer.write_all(b"y").unwrap();
        until(&mut poller, 7, |readiness| readiness.readable);
    }

    #[test]
    fn a_peer_that_ends_its_side_is_told_as_ended_and_readable() {
        let mut poller = Poller::new(8).unwrap();
        let (socket, peer) = pair();
        poller.add(socket.as_fd(), 1).unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        until(&mut poller, 1, |readiness| readiness.ended && readiness.readable);
    }

    #[test]
    fn a_closed_descriptor_is_no_longer_told_of() {
        let mut poller = Poller::new(8).unwrap();
        let (socket, mut peer) = pair();
        poller.add(socket.as_fd(), 1).unwrap();
        peer.write_all(b"x").unwrap();
        drop(socket);
        assert_eq!(harvest(&mut poller), []);
    }

    #[test]
    fn a_full_harvest_leaves_the_rest_for_the_next() {
        let mut poller = Poller::new(2).unwrap();
        let pairs: Vec<_> = (0..5).map(|_| pair()).collect();
        for (token, (socket, _)) in (0..).zip(&pairs) {
            poller.add(socket.as_fd(), token).unwrap();
        }
        let mut told: Vec<u64> = Vec::new();
        while told.len() < pairs.len() {
            let events = harvest(&mut poller);
            assert!(events.len() <= 2);
            told.extend(events.iter().map(|(token, _)| token));
        }
        told.sort_unstable();
        assert_eq!(told, [0, 1, 2, 3, 4]);
    }
}
