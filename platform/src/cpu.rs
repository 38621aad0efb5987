//! Which CPUs this process may use, and how near to one another they are.

use crate::sys;

/// The CPUs the process may use, and how much of them.
///
/// Invariant of [`usable_cpus`]: `ids` is not empty, ascending and without repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct UsableCpus {
    /// The CPUs in the caller's affinity mask. On macOS, which has no such mask: `0..n`, where `n`
    /// is the number of performance CPUs.
    pub ids: Vec<usize>,
    /// CPU time per wall-clock time granted by the cgroup (v1 or v2), in CPUs; `None` if unlimited.
    pub quota: Option<f64>,
}

impl UsableCpus {
    /// How many threads can run at full speed: the smaller of the mask and the quota rounded down,
    /// at least 1.
    pub fn count(&self) -> usize {
        // The cast saturates, so a quota of any size is in range.
        let granted = self.quota.map_or(usize::MAX, |cpus| cpus.floor() as usize);
        self.ids.len().min(granted).max(1)
    }

    /// Whether pinning one thread to each CPU helps: the quota covers the whole mask.
    ///
    /// Under a smaller quota the kernel stops the whole group until the next period once the time
    /// is spent, and a pinned thread cannot be moved to where time is left in a per-CPU slice.
    pub fn pinning_advised(&self) -> bool {
        self.quota.is_none_or(|cpus| cpus >= self.ids.len() as f64)
    }
}

/// Reads the affinity mask of the calling thread and the CPU quota of its cgroup.
///
/// Call it before pinning: a pinned thread sees one CPU. Costs several file reads; the answer is
/// not cached. What cannot be read counts as unlimited.
pub fn usable_cpus() -> UsableCpus {
    let cpus = sys::usable_cpus();
    assert!(!cpus.ids.is_empty(), "a running thread has a CPU");
    cpus
}

/// Where one CPU sits. Two CPUs with the same `smt`, `llc` or `numa` share that part; the numbers
/// mean nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPlace {
    /// The CPU's number, as in [`UsableCpus::ids`].
    pub cpu: usize,
    /// Physical core. CPUs that share one are hyper-threads of each other.
    pub smt: usize,
    /// Last-level cache.
    pub llc: usize,
    /// Memory node.
    pub numa: usize,
}

/// The place of each CPU in `ids`, in the same order.
///
/// Where the system does not say, a CPU is taken to be a physical core of its own, and all CPUs to
/// share one cache and one memory node.
pub fn topology(ids: &[usize]) -> Vec<CpuPlace> {
    sys::topology(ids)
}

#[cfg(test)]
mod tests {
    use super::UsableCpus;

    fn cpus(count: usize, quota: Option<f64>) -> UsableCpus {
        UsableCpus { ids: (0..count).collect(), quota }
    }

    #[test]
    fn a_quota_below_one_cpu_still_counts_as_one() {
        assert_eq!(cpus(4, Some(0.25)).count(), 1);
        assert_eq!(cpus(4, Some(0.0)).count(), 1);
    }

    #[test]
    fn the_count_is_the_smaller_of_mask_and_rounded_down_quota() {
        assert_eq!(cpus(4, Some(2.9)).count(), 2);
        assert_eq!(cpus(4, Some(64.0)).count(), 4);
        assert_eq!(cpus(4, None).count(), 4);
    }

    #[test]
    fn a_quota_smaller_than_the_mask_advises_against_pinning() {
        assert!(!cpus(4, Some(3.5)).pinning_advised());
        assert!(cpus(4, Some(4.0)).pinning_advised());
        assert!(cpus(4, None).pinning_advised());
    }
}
