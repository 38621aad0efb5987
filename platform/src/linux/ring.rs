//! The facts behind a refused io_uring, from procfs.

use std::fs;

use crate::ring::RingDiagnosis;

pub(crate) fn ring_diagnosis() -> Option<RingDiagnosis> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    Some(RingDiagnosis {
        sysctl_disabled: read("/proc/sys/kernel/io_uring_disabled").trim().parse().ok(),
        memlock_soft_bytes: memlock_soft_bytes(&read("/proc/self/limits")),
        out_of_memory: false,
        seccomp_filter: has_seccomp_filter(&read("/proc/self/status")),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
    })
}

/// Reads `/proc/self/limits`, where a row is name, soft limit, hard limit and unit. `None` if
/// unlimited, which is no number, or absent.
fn memlock_soft_bytes(limits: &str) -> Option<u64> {
    let row = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    row.split_whitespace().next()?.parse().ok()
}

/// Reads `/proc/self/status`, where `Seccomp` is 0 without, 1 strict, 2 with a filter.
fn has_seccomp_filter(status: &str) -> bool {
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

#[cfg(test)]
mod tests {
    use super::{has_seccomp_filter, memlock_soft_bytes};

    #[test]
    fn an_unlimited_or_absent_memlock_is_none() {
        assert_eq!(memlock_soft_bytes(""), None);
        let unlimited =
            "Max locked memory         unlimited            unlimited            bytes\n";
        assert_eq!(memlock_soft_bytes(unlimited), None);
    }

    #[test]
    fn the_soft_memlock_limit_is_the_first_number() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 524288               files\n\
                      Max locked memory         8388608              9000000              bytes\n";
        assert_eq!(memlock_soft_bytes(limits), Some(8_388_608));
    }

    #[test]
    fn only_seccomp_mode_2_is_a_filter() {
        assert!(!has_seccomp_filter(""));
        assert!(!has_seccomp_filter("Seccomp:\t1\n"));
        assert!(!has_seccomp_filter("Seccomp:\t0\nSeccomp_filters:\t2\n"));
        assert!(has_seccomp_filter("Name:\tbaton\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
    }
}
