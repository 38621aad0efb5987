//! Limits and facts of the whole process.

use std::{fs, io};

use crate::sys;

/// The soft limit on open descriptors.
pub fn descriptor_limit() -> io::Result<u64> {
    Ok(read_descriptor_limits()?.rlim_cur)
}

/// Raises the soft limit on open descriptors to the highest value allowed without privilege, and
/// returns it. Never lowers it.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limits = read_descriptor_limits()?;
    let ceiling = sys::descriptor_ceiling(limits.rlim_max);
    if limits.rlim_cur >= ceiling {
        return Ok(limits.rlim_cur);
    }
    limits.rlim_cur = ceiling;
    // SAFETY: `limits` is valid for a read of one rlimit.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(ceiling)
}

pub(crate) fn read_descriptor_limits() -> io::Result<libc::rlimit> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limits` is valid for a write of one rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limits)
}

/// How many descriptors the process has open; `None` if the system does not say.
///
/// Costs one directory listing, so the time grows with the answer.
pub fn open_descriptors() -> Option<usize> {
    let listed = fs::read_dir(sys::DESCRIPTOR_DIRECTORY).ok()?.count();
    // The listing itself holds one descriptor, which it counts.
    listed.checked_sub(1)
}

/// Physical memory the process occupies, in bytes; `None` if the system does not say.
pub fn resident_bytes() -> Option<u64> {
    sys::resident_bytes()
}

/// Gives memory that was freed back to the system, where the allocator keeps it otherwise.
///
/// Takes the allocator's locks for a while each: not for a thread that must not wait.
pub fn release_free_memory() {
    sys::release_free_memory();
}
