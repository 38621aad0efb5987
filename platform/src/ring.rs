//! Why io_uring may be missing, for the one warning that says so.

use std::fmt;
use std::io;

use crate::sys;

/// First kernel whose io_uring has every socket operation a reactor uses: accept and connect came
/// with 5.5, send and recv with 5.6.
const KERNEL_WITH_SOCKETS: (u32, u32) = (5, 6);

/// What the system says about io_uring. `Display` names the first cause that applies and its
/// remedy, as one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingDiagnosis {
    /// `kernel.io_uring_disabled`: 0 all may use it, 1 only privileged processes and one group,
    /// 2 nobody. `None` before Linux 6.6.
    pub sysctl_disabled: Option<u32>,
    /// Soft `RLIMIT_MEMLOCK` in bytes; `None` if unlimited or unreadable. Rings of ordinary users
    /// count against it (seen on 6.18: none with 0, 256 entries and not 1024 with 64 KiB).
    pub memlock_soft_bytes: Option<u64>,
    /// Whether setting a ring up failed for want of memory.
    pub out_of_memory: bool,
    /// Whether a seccomp filter checks the system calls of this process.
    pub seccomp_filter: bool,
    /// Kernel release, such as `6.12.4-arch1`; empty if unreadable.
    pub kernel: String,
}

/// Reads the facts that decide whether io_uring can be set up; `None` where it does not exist.
///
/// Does not try to set one up: ask after that has failed, with the `error` that it failed with.
pub fn ring_diagnosis(error: &io::Error) -> Option<RingDiagnosis> {
    let diagnosis = sys::ring_diagnosis()?;
    let out_of_memory = error.kind() == io::ErrorKind::OutOfMemory;
    Some(RingDiagnosis { out_of_memory, ..diagnosis })
}

/// The first cause that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingCause {
    /// The sysctl keeps unprivileged processes out.
    UnprivilegedDisabled,
    /// The sysctl has this value above 1, which keeps everybody out.
    Disabled(u32),
    /// The kernel's io_uring lacks socket operations.
    KernelTooOld,
    /// More memory would be locked than these bytes.
    LockedMemory(u64),
    /// A seccomp filter may refuse it.
    Seccomp,
    /// None that is known.
    Unknown,
}

impl RingDiagnosis {
    /// The first cause that applies.
    pub fn cause(&self) -> RingCause {
        match (self.sysctl_disabled, self.memlock_soft_bytes) {
            (Some(1), _) => RingCause::UnprivilegedDisabled,
            (Some(value @ 2..), _) => RingCause::Disabled(value),
            _ if self.kernel_before(KERNEL_WITH_SOCKETS) => RingCause::KernelTooOld,
            (_, Some(bytes)) if self.out_of_memory => RingCause::LockedMemory(bytes),
            _ if self.seccomp_filter => RingCause::Seccomp,
            _ => RingCause::Unknown,
        }
    }

    /// Whether the kernel is known to be older than `version`.
    fn kernel_before(&self, version: (u32, u32)) -> bool {
        let mut numbers = self.kernel.split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse::<u32>().ok();
        matches!((number(), number()), (Some(major), Some(minor)) if (major, minor) < version)
    }
}

impl fmt::Display for RingDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = if self.kernel.is_empty() { "unknown" } else { &self.kernel };
        match self.cause() {
            RingCause::UnprivilegedDisabled => write!(
                f,
                "kernel.io_uring_disabled = 1 keeps io_uring from unprivileged processes: set it \
                 to 0, or put this user in the group of kernel.io_uring_group"
            ),
            RingCause::Disabled(value) => {
                write!(f, "kernel.io_uring_disabled = {value} switches io_uring off: set it to 0")
            }
            RingCause::KernelTooOld => write!(
                f,
                "the io_uring of kernel {kernel} lacks socket operations: use kernel 5.6 or later"
            ),
            RingCause::LockedMemory(bytes) => write!(
                f,
                "a ring counts as locked memory, of which {bytes} bytes are allowed: raise the \
                 limit (ulimit -l, LimitMEMLOCK=)"
            ),
            RingCause::Seccomp => write!(
                f,
                "a seccomp filter is active and may refuse io_uring, as the default profiles of \
                 containers do: allow io_uring_setup, io_uring_enter and io_uring_register"
            ),
            RingCause::Unknown => write!(
                f,
                "kernel {kernel} gives no reason: io_uring is not disabled by sysctl, and no \
                 seccomp filter is active"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RingDiagnosis;

    const FINE: RingDiagnosis = RingDiagnosis {
        sysctl_disabled: Some(0),
        memlock_soft_bytes: Some(65_536),
        out_of_memory: false,
        seccomp_filter: false,
        kernel: String::new(),
    };

    #[test]
    fn the_sentence_names_the_cause() {
        let kernel = |release: &str| RingDiagnosis { kernel: release.to_owned(), ..FINE };
        let cases = [
            (RingDiagnosis { sysctl_disabled: Some(2), ..FINE }, "io_uring_disabled = 2"),
            (RingDiagnosis { sysctl_disabled: Some(1), ..FINE }, "kernel.io_uring_group"),
            (kernel("5.4.0-150-generic"), "lacks socket operations"),
            (kernel("4.19"), "lacks socket operations"),
            (RingDiagnosis { out_of_memory: true, ..kernel("6.18.4") }, "of which 65536 bytes"),
            (kernel("6.18.4"), "gives no reason"),
            (RingDiagnosis { seccomp_filter: true, ..kernel("6.1.0") }, "seccomp filter is active"),
            (kernel("6.1.0"), "gives no reason"),
            (kernel("5.12"), "gives no reason"),
        ];
        for (diagnosis, expected) in cases {
            let sentence = diagnosis.to_string();
            assert!(sentence.contains(expected), "{sentence:?} lacks {expected:?}");
        }
    }

    #[test]
    fn without_a_memlock_limit_locked_memory_is_no_cause() {
        let diagnosis = RingDiagnosis { memlock_soft_bytes: None, out_of_memory: true, ..FINE };
        assert!(diagnosis.to_string().contains("gives no reason"));
    }

    #[test]
    fn an_unreadable_kernel_release_is_called_unknown() {
        for kernel in ["", "six.1", "6"] {
            let diagnosis = RingDiagnosis { kernel: kernel.to_owned(), ..FINE };
            assert!(diagnosis.to_string().contains("gives no reason"), "{kernel:?}");
        }
        assert!(FINE.to_string().starts_with("kernel unknown"));
    }

    #[test]
    fn the_diagnosis_exists_where_io_uring_does() {
        let has_io_uring = std::env::consts::OS == "linux";
        let error = std::io::ErrorKind::OutOfMemory.into();
        assert_eq!(super::ring_diagnosis(&error).is_some(), has_io_uring);
    }
}
