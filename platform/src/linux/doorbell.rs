//! The doorbell as an eventfd: a counter that is readable while it is above zero.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Size of every read and write of an eventfd (eventfd(2)). Bytes.
const COUNTER_BYTES: usize = size_of::<u64>();

#[derive(Debug)]
pub(crate) struct Doorbell {
    counter: OwnedFd,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: has no precondition.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: eventfd has just made `fd`, and nobody else knows it.
        Ok(Self { counter: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    pub(crate) fn ring(&self) {
        let one: u64 = 1;
        // SAFETY: `one` is valid for a read of its size.
        unsafe { libc::write(self.counter.as_raw_fd(), (&raw const one).cast(), COUNTER_BYTES) };
        // The one possible error is EAGAIN, of a counter at its maximum: readable already.
    }

    pub(crate) fn clear(&self) {
        let mut count: u64 = 0;
        // SAFETY: `count` is valid for a write of its size.
        unsafe { libc::read(self.counter.as_raw_fd(), (&raw mut count).cast(), COUNTER_BYTES) };
        // A read sets the counter to zero. The one possible error is EAGAIN: it was zero.
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::{COUNTER_BYTES, Doorbell};

    #[test]
    fn ringing_at_the_counters_maximum_does_not_block() {
        let bell = Doorbell::new().unwrap();
        // The largest value an eventfd holds (eventfd(2)).
        let maximum = u64::MAX - 1;
        let fd = bell.counter.as_raw_fd();
        // SAFETY: `maximum` is valid for a read of its size.
        let written = unsafe { libc::write(fd, (&raw const maximum).cast(), COUNTER_BYTES) };
        assert_eq!(written, COUNTER_BYTES.cast_signed());
        bell.ring();

        bell.clear();
        let mut count = 0_u64;
        // SAFETY: `count` is valid for a write of its size.
        let read = unsafe { libc::read(fd, (&raw mut count).cast(), COUNTER_BYTES) };
        assert_eq!(read, -1, "the counter was not zero but {count}");
    }
}
