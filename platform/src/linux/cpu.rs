//! The CPUs this process may use.

use std::thread;

use super::cgroup;
use crate::cpu::UsableCpus;

pub(crate) fn usable_cpus() -> UsableCpus {
    let ids: Vec<usize> =
        core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id).collect();
    // The mask is read into 1024 bits, and a kernel with more CPUs refuses that. Their number is
    // still known; their names are then a guess, and pinning to a wrong one fails softly.
    let ids = if ids.is_empty() {
        (0..thread::available_parallelism().map_or(1, usize::from)).collect()
    } else {
        ids
    };
    UsableCpus { ids, quota: cgroup::cpu_quota() }
}
