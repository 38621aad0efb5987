//! The doorbell as a pipe: readable while it holds a byte.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_int;

/// Bytes taken per read of a clear.
const CLEAR_BYTES: usize = 4096;

/// Reads per clear. A pipe holds at most 64 KiB, so these empty a full one. When more was rung
/// meanwhile, the pipe stays readable and the waiting side is woken once too often.
const CLEAR_READS_MAX: usize = 64 * 1024 / CLEAR_BYTES;

#[derive(Debug)]
pub(crate) struct Doorbell {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        let mut fds: [c_int; 2] = [-1; 2];
        // SAFETY: `fds` is valid for a write of two descriptors.
        if unsafe { libc::pipe(fds.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: pipe has just made it, and nobody else knows it.
        let reader = unsafe { OwnedFd::from_raw_fd(fds[0]) };
        // SAFETY: as above.
        let writer = unsafe { OwnedFd::from_raw_fd(fds[1]) };
        for end in [&reader, &writer] {
            set(end, libc::F_SETFD, libc::FD_CLOEXEC)?;
            // A new pipe has no other status flag to keep.
            set(end, libc::F_SETFL, libc::O_NONBLOCK)?;
        }
        Ok(Self { reader, writer })
    }

    pub(crate) fn ring(&self) {
        let byte = 1_u8;
        // SAFETY: `byte` is valid for a read of one byte.
        unsafe { libc::write(self.writer.as_raw_fd(), (&raw const byte).cast(), 1) };
        // The one possible error is EAGAIN, of a full pipe: readable already. The reader lives as
        // long as the writer, so there is no SIGPIPE.
    }

    pub(crate) fn clear(&self) {
        let mut bytes = [0_u8; CLEAR_BYTES];
        for _ in 0..CLEAR_READS_MAX {
            // SAFETY: `bytes` is valid for a write of its length.
            let count = unsafe {
                libc::read(self.reader.as_raw_fd(), bytes.as_mut_ptr().cast(), CLEAR_BYTES)
            };
            // Less than asked for, an error included, means that the pipe is empty.
            if count < CLEAR_BYTES.cast_signed() {
                return;
            }
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

fn set(fd: &OwnedFd, command: c_int, flag: c_int) -> io::Result<()> {
    // SAFETY: `fd` is open; both commands take one int.
    if unsafe { libc::fcntl(fd.as_raw_fd(), command, flag) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
