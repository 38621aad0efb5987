//! Facts of the process, from sysctl and libproc.

use std::mem;

use libc::c_int;

use super::sysctl::sysctl_int;

pub(crate) const DESCRIPTOR_DIRECTORY: &str = "/dev/fd";

/// `OPEN_MAX` of <sys/syslimits.h>: accepted by every version as a soft limit.
const DESCRIPTORS_SURE: u64 = 10_240;

/// The hard limit is usually infinite, but a soft limit above `kern.maxfilesperproc` is refused.
pub(crate) fn descriptor_ceiling(hard: u64) -> u64 {
    let per_process =
        sysctl_int(c"kern.maxfilesperproc").and_then(|count| u64::try_from(count).ok());
    hard.min(per_process.unwrap_or(DESCRIPTORS_SURE))
}

/// The allocator marks free pages as reusable by itself.
pub(crate) fn release_free_memory() {}

pub(crate) fn resident_bytes() -> Option<u64> {
    // SAFETY: `proc_taskinfo` is made of integers, for which zero is a value.
    let mut info: libc::proc_taskinfo = unsafe { mem::zeroed() };
    let bytes = c_int::try_from(size_of_val(&info)).ok()?;
    // SAFETY: has no precondition.
    let pid = unsafe { libc::getpid() };
    // SAFETY: `info` is valid for a write of `bytes` bytes.
    let written = unsafe {
        libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, (&raw mut info).cast(), bytes)
    };
    // proc_pidinfo returns the bytes it wrote; fewer means an error.
    (written == bytes).then_some(info.pti_resident_size)
}
