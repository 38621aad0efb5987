//! The wake-up of a reactor from another thread.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys;

/// A descriptor that becomes readable when any thread rings it.
///
/// The waiting side calls [`clear`](Self::clear) first and looks for work second: a ring after
/// `clear` makes the descriptor readable again, so no work is missed.
/// Rings add up to one readable state; they are not counted.
/// Linux: an eventfd. macOS: a pipe.
#[derive(Debug)]
pub struct Doorbell(sys::Doorbell);

impl Doorbell {
    /// Makes a doorbell that is not rung. Errors: no descriptor left, or no kernel memory.
    pub fn new() -> io::Result<Self> {
        sys::Doorbell::new().map(Self)
    }

    /// Makes the descriptor readable. Never blocks; costs one write(2).
    ///
    /// May be called in a signal handler, where, as write(2) does, it may change `errno`.
    pub fn ring(&self) {
        self.0.ring();
    }

    /// Takes back all rings so far. Never blocks; does nothing if there were none.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// What to wait on for reading. It is non-blocking and closed on exec; read it through
    /// [`clear`](Self::clear) alone.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}
