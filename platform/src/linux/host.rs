//! The facts of the machine, from procfs and sysfs.

use std::env;
use std::fs;
use std::path::Path;

use super::cgroup;
use crate::host::{self, ClockSource, Container, HostFacts, Reading};

mod parse;

use parse::{KernelWords, Traces};

/// Faults of processors that are looked at. Linux 6.18 knows 19; further ones are not counted.
const FAULTS_MAX: usize = 64;

pub(crate) fn host_facts() -> HostFacts {
    let limits = text("/proc/self/limits");
    let limit = |name| limits.clone().parsed(|limits| parse::limit(&limits, name));
    HostFacts {
        system: "Linux",
        kernel: text("/proc/sys/kernel/osrelease").parsed(|release| Some(release.trim().into())),
        preemption: parse::preemption(&KernelWords {
            debug: text("/sys/kernel/debug/sched/preempt"),
            real_time: text("/sys/kernel/realtime"),
            command_line: text("/proc/cmdline"),
            build: text("/proc/sys/kernel/version"),
        }),
        background_class: host::background_class(),
        nice: limit("Max nice priority"),
        real_time_priority: limit("Max realtime priority"),
        clock: clock(),
        mitigations: mitigations(),
        seccomp_filter: text("/proc/self/status").parsed(|status| parse::seccomp_filter(&status)),
        container: container(),
        descriptors: host::descriptors(),
        locked_memory: limit("Max locked memory"),
        memory_limit: cgroup::memory_limit(),
        overcommit: number("/proc/sys/vm/overcommit_memory"),
        huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled")
            .parsed(|choices| parse::marked(&choices, ['[', ']'])),
        listen_queue_max: number("/proc/sys/net/core/somaxconn"),
        handshakes_max: number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
        syn_cookies: number("/proc/sys/net/ipv4/tcp_syncookies"),
        migrate_requests: number("/proc/sys/net/ipv4/tcp_migrate_req"),
        local_ports: text("/proc/sys/net/ipv4/ip_local_port_range")
            .parsed(|range| parse::ports(&range)),
    }
}

fn text(path: &str) -> Reading<String> {
    fs::read_to_string(path).into()
}

fn number(path: &str) -> Reading<u64> {
    text(path).parsed(|text| text.trim().parse().ok())
}

fn clock() -> Reading<ClockSource> {
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let available = text(&format!("{directory}/available_clocksource"));
    let available = available.known().map_or("", String::as_str);
    text(&format!("{directory}/current_clocksource")).parsed(|current| {
        Some(ClockSource {
            current: current.trim().to_owned(),
            available: available.split_whitespace().map(str::to_owned).collect(),
        })
    })
}

fn mitigations() -> Reading<host::Mitigations> {
    let listed: Reading<fs::ReadDir> =
        fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into();
    listed.parsed(|entries| {
        let entries = entries.take(FAULTS_MAX).flatten();
        let states = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        Some(parse::mitigations(states))
    })
}

fn container() -> Option<Container> {
    parse::container(&Traces {
        in_a_pod: env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        docker_file: Path::new("/.dockerenv").exists(),
        podman_file: Path::new("/run/.containerenv").exists(),
        variable: env::var("container").ok(),
        groups: fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
    })
}
