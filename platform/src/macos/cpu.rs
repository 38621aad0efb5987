//! How many CPUs there are. Which one a thread runs on is the system's choice.

use std::thread;

use super::sysctl::sysctl_int;
use crate::cpu::{CpuPlace, UsableCpus};

/// Counts the performance CPUs alone: a reactor on an efficiency CPU would fall behind its peers,
/// and those CPUs are where the background threads end up. `hw.perflevel0` is the fastest kind; a
/// machine or system without kinds has no such name.
pub(crate) fn usable_cpus() -> UsableCpus {
    let performance = sysctl_int(c"hw.perflevel0.logicalcpu")
        .and_then(|count| usize::try_from(count).ok())
        .filter(|&count| count > 0);
    let count =
        performance.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    UsableCpus { ids: (0..count).collect(), quota: None }
}

/// A number here names no particular CPU, so none is nearer than another.
pub(crate) fn topology(ids: &[usize]) -> Vec<CpuPlace> {
    ids.iter().map(|&cpu| CpuPlace { cpu, smt: cpu, llc: 0, numa: 0 }).collect()
}
