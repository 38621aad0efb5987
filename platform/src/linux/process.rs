//! Facts of the process, from procfs.

use std::fs;

pub(crate) const DESCRIPTOR_DIRECTORY: &str = "/proc/self/fd";

/// Linux accepts every soft limit up to the hard one.
pub(crate) fn descriptor_ceiling(hard: u64) -> u64 {
    hard
}

/// glibc returns what lies at the end of a heap by itself, and what lies below only when asked.
#[cfg(target_env = "gnu")]
pub(crate) fn release_free_memory() {
    // SAFETY: has no precondition. The result says whether anything was returned, which nobody
    // needs to know.
    unsafe { libc::malloc_trim(0) };
}

/// musl returns free pages by itself.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn release_free_memory() {}

pub(crate) fn resident_bytes() -> Option<u64> {
    // proc_pid_statm(5): "size resident shared ...", in pages.
    let pages: u64 =
        fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    // SAFETY: has no precondition.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page_bytes).ok()?)
}
