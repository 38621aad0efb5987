//! What the machine around the process is like, for a report to its operator.
//!
//! Each fact is read on its own and fails on its own: a container may hide any of them.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::thread;

use crate::process::read_descriptor_limits;
use crate::sys;
use crate::thread::{ThreadClass, set_thread_class};

/// What came of looking for a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// The fact.
    Known(T),
    /// This system, or this version of its kernel, has no such thing.
    Absent,
    /// It could not be read or understood, and why.
    Unknown(String),
}

impl<T> Reading<T> {
    /// The fact, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Reading::Known(fact) => Some(fact),
            Reading::Absent | Reading::Unknown(_) => None,
        }
    }

    /// What `parse` makes of the fact; unknown where it makes nothing of it.
    pub(crate) fn parsed<U>(self, parse: impl FnOnce(T) -> Option<U>) -> Reading<U> {
        match self {
            Reading::Known(fact) => match parse(fact) {
                Some(parsed) => Reading::Known(parsed),
                None => Reading::Unknown("not understood".to_owned()),
            },
            Reading::Absent => Reading::Absent,
            Reading::Unknown(reason) => Reading::Unknown(reason),
        }
    }
}

impl<T> From<io::Result<T>> for Reading<T> {
    fn from(result: io::Result<T>) -> Reading<T> {
        match result {
            Ok(fact) => Reading::Known(fact),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Reading::Absent,
            Err(error) => Reading::Unknown(error.kind().to_string()),
        }
    }
}

/// A limit of the process, in its own unit; `None`: unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What holds now.
    pub soft: Option<u64>,
    /// What the process may raise it to.
    pub hard: Option<u64>,
}

/// When a thread that runs in the kernel gives way to one that woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preemption {
    /// When it leaves the kernel.
    Never,
    /// When it leaves the kernel or comes to a point that was made for it.
    Voluntary,
    /// `Never` or `Voluntary`: the kernel was built without preemption and does not tell more.
    NeverOrVoluntary,
    /// At once.
    Full,
    /// At the next tick, unless the woken thread is a real-time one.
    Lazy,
    /// At once, holders of most locks included (`PREEMPT_RT`).
    RealTime,
    /// One of the others, chosen when the kernel started; only root may read which.
    ChosenAtStart,
}

impl fmt::Display for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Preemption::Never => "none",
            Preemption::Voluntary => "voluntary",
            Preemption::NeverOrVoluntary => "none or voluntary",
            Preemption::Full => "full",
            Preemption::Lazy => "lazy",
            Preemption::RealTime => "real-time",
            Preemption::ChosenAtStart => "chosen at boot",
        })
    }
}

/// What keeps the process apart from the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    /// A pod of Kubernetes.
    Kubernetes,
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// Another, by the name it goes by.
    Other(String),
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Container::Kubernetes => "Kubernetes",
            Container::Docker => "Docker",
            Container::Podman => "Podman",
            Container::Other(name) => name,
        })
    }
}

/// What the kernel reads the time from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockSource {
    /// What it uses.
    pub current: String,
    /// What it could use.
    pub available: Vec<String>,
}

/// How the kernel meets the known faults of processors; each count is of faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mitigations {
    /// Faults this processor does not have.
    pub not_affected: usize,
    /// Faults that are worked around.
    pub mitigated: usize,
    /// Faults that are open.
    pub vulnerable: usize,
}

/// The facts. Numbers without a unit are those of the sysctl or limit of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Name of the system: `Linux` or `macOS`.
    pub system: &'static str,
    /// Release of the kernel, such as `6.12.4-arch1`.
    pub kernel: Reading<String>,
    /// How the kernel preempts itself.
    pub preemption: Reading<Preemption>,
    /// Whether a thread may run at [`ThreadClass::Background`]; the error says why not.
    pub background_class: Result<(), String>,
    /// `RLIMIT_NICE`.
    pub nice: Reading<Limit>,
    /// `RLIMIT_RTPRIO`.
    pub real_time_priority: Reading<Limit>,
    /// The source of time.
    pub clock: Reading<ClockSource>,
    /// Known faults of the processor.
    pub mitigations: Reading<Mitigations>,
    /// Whether a seccomp filter checks the system calls of this process.
    pub seccomp_filter: Reading<bool>,
    /// The container this process seems to run in.
    pub container: Option<Container>,
    /// `RLIMIT_NOFILE`; the hard one cut to what the system accepts as a soft one.
    pub descriptors: Reading<Limit>,
    /// `RLIMIT_MEMLOCK`, bytes.
    pub locked_memory: Reading<Limit>,
    /// The smallest memory limit of the control groups of this process, bytes; `None`: unlimited.
    pub memory_limit: Reading<Option<u64>>,
    /// `vm.overcommit_memory`.
    pub overcommit: Reading<u64>,
    /// When memory is had in huge pages unasked: `always`, `madvise` or `never`.
    pub huge_pages: Reading<String>,
    /// `net.core.somaxconn`, on macOS `kern.ipc.somaxconn`.
    pub listen_queue_max: Reading<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub handshakes_max: Reading<u64>,
    /// `net.ipv4.tcp_syncookies`.
    pub syn_cookies: Reading<u64>,
    /// `net.ipv4.tcp_migrate_req`.
    pub migrate_requests: Reading<u64>,
    /// `net.ipv4.ip_local_port_range`, on macOS `net.inet.ip.portrange.first` and `.last`.
    pub local_ports: Reading<RangeInclusive<u16>>,
}

/// Reads the facts: small files and, for the class of background work, a thread that ends at once.
///
/// Changes nothing of the process. What cannot be read is unknown or absent; never fails.
pub fn host_facts() -> HostFacts {
    sys::host_facts()
}

/// Tries the class on a thread of its own, since a thread may not be able to leave it.
pub(crate) fn background_class() -> Result<(), String> {
    let tried = thread::Builder::new()
        .name("scratch".to_owned())
        .spawn(|| set_thread_class(ThreadClass::Background));
    let outcome = tried.map(|thread| thread.join().expect("setting a class does not panic"));
    outcome.flatten().map_err(|error| error.kind().to_string())
}

pub(crate) fn descriptors() -> Reading<Limit> {
    let finite = |limit| (limit != libc::RLIM_INFINITY).then_some(limit);
    let read = read_descriptor_limits().map(|limits| Limit {
        soft: finite(limits.rlim_cur),
        hard: finite(sys::descriptor_ceiling(limits.rlim_max)),
    });
    read.into()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Reading, background_class, descriptors, host_facts};

    #[test]
    fn a_missing_file_is_absent_and_a_refused_one_unknown() {
        let failed = |kind: io::ErrorKind| Reading::<u64>::from(Err(io::Error::from(kind)));
        assert_eq!(failed(io::ErrorKind::NotFound), Reading::Absent);
        let refused = Reading::Unknown("permission denied".to_owned());
        assert_eq!(failed(io::ErrorKind::PermissionDenied), refused);
    }

    #[test]
    fn what_cannot_be_parsed_is_unknown() {
        let not_understood = Reading::Unknown("not understood".to_owned());
        assert_eq!(Reading::Known("x").parsed(|text| text.parse::<u64>().ok()), not_understood);
        assert_eq!(Reading::Known("7").parsed(|text| text.parse::<u64>().ok()), Reading::Known(7));
        assert_eq!(Reading::<u64>::Absent.parsed(Some), Reading::Absent);
    }

    #[test]
    fn the_facts_of_this_machine_are_read() {
        let facts = host_facts();
        assert!(facts.kernel.known().is_some_and(|release| !release.is_empty()));
        let descriptors = descriptors();
        assert_eq!(facts.descriptors, descriptors);
        let limit = descriptors.known().expect("every process may ask for its limits");
        assert!(limit.hard.is_none_or(|hard| limit.soft.is_some_and(|soft| soft <= hard)));
    }

    #[test]
    fn entering_the_background_class_is_allowed_to_everybody() {
        assert_eq!(background_class(), Ok(()));
    }
}
