//! The facts of the machine, from sysctl. Most of what Linux tells does not exist here.

use std::ops::RangeInclusive;

use super::sysctl::{sysctl_int, sysctl_text};
use crate::host::{self, HostFacts, Reading};

/// Longest release of a kernel that is read, bytes; such as `25.1.0`. A longer one is unknown.
const RELEASE_BYTES_MAX: usize = 64;

pub(crate) fn host_facts() -> HostFacts {
    HostFacts {
        system: "macOS",
        kernel: told(sysctl_text::<RELEASE_BYTES_MAX>(c"kern.osrelease")),
        preemption: Reading::Absent,
        background_class: host::background_class(),
        nice: Reading::Absent,
        real_time_priority: Reading::Absent,
        clock: Reading::Absent,
        mitigations: Reading::Absent,
        seccomp_filter: Reading::Absent,
        container: None,
        descriptors: host::descriptors(),
        // No ring counts against it.
        locked_memory: Reading::Absent,
        memory_limit: Reading::Absent,
        overcommit: Reading::Absent,
        huge_pages: Reading::Absent,
        listen_queue_max: told(sysctl_int(c"kern.ipc.somaxconn"))
            .parsed(|count| u64::try_from(count).ok()),
        handshakes_max: Reading::Absent,
        syn_cookies: Reading::Absent,
        migrate_requests: Reading::Absent,
        local_ports: told(local_ports()),
    }
}

fn local_ports() -> Option<RangeInclusive<u16>> {
    let port = |name| sysctl_int(name).and_then(|port| u16::try_from(port).ok());
    let first = port(c"net.inet.ip.portrange.first")?;
    let last = port(c"net.inet.ip.portrange.last")?;
    (first <= last).then_some(first..=last)
}

fn told<T>(fact: Option<T>) -> Reading<T> {
    match fact {
        Some(fact) => Reading::Known(fact),
        None => Reading::Unknown("sysctl does not tell".to_owned()),
    }
}
