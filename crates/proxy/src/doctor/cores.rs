//! What the cores run on: driver, kernel, CPUs and scheduling.

use std::collections::BTreeSet;

use baton_platform::{Container, CpuPlace, Preemption, RingCause};
use baton_runtime::Driver;

use super::Check;
use super::readings::{Readings, Ring};
use super::remedy::{self, Resource};
use super::room::in_words;

/// First kernel with all flags of the rings the cores use (`IORING_SETUP_SINGLE_ISSUER`).
const KERNEL_WITH_FLAGS: &str = "6.0";

/// First kernel with `PREEMPT_LAZY`.
const KERNEL_WITH_LAZY: (u32, u32) = (6, 13);

/// Memory that the rings of one core may lock, bytes: 4,096 completions of 16, 256 requests of 64,
/// and what goes with them, rounded up.
const RINGS_OF_CORE_BYTES: u64 = 256 * 1024;

/// The kernel's own default since 5.16 (`MLOCK_LIMIT`), bytes: less is never advised.
const LOCKED_MEMORY_BYTES_MIN: u64 = 8 * 1024 * 1024;

/// Sources that are read without a call into the kernel.
const CLOCKS_FAST: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

pub(super) fn checks(readings: &Readings) -> Vec<Check> {
    vec![
        driver(readings),
        kernel(readings),
        seccomp(readings),
        container(readings),
        cpus(readings),
        topology(readings),
        preemption(readings),
        background(readings),
        priorities(readings),
        clock(readings),
        mitigations(readings),
    ]
}

fn driver(readings: &Readings) -> Check {
    const NAME: &str = "driver";
    const COST: &str = "the proxy runs, with more system calls for each request";
    match (&readings.driver, &readings.ring) {
        (Err(error), _) => Check::warn(NAME, format!("none: {error}"), "the proxy cannot start"),
        (Ok(Driver::IoUring), _) => Check::ok(NAME, "io_uring"),
        (Ok(Driver::Poll), Ring::Plain) => Check::note(
            NAME,
            "epoll; io_uring lacks single-issuer rings",
            format!("{COST}; without them io_uring costs more still"),
        )
        .change(format!("use Linux {KERNEL_WITH_FLAGS} or later")),
        (Ok(Driver::Poll), Ring::Refused { error, diagnosis }) => {
            let value = format!("epoll; io_uring is refused: {error}");
            let check = Check::note(NAME, value, format!("{COST}; {diagnosis}"));
            match ring_change(readings, diagnosis.cause()) {
                Some(change) => check.change(change),
                None => check,
            }
        }
        (Ok(Driver::Poll), Ring::Settled) if readings.is_linux() => Check::ok(NAME, "epoll"),
        (Ok(Driver::Poll), Ring::Settled) => Check::ok(NAME, "kqueue"),
    }
}

fn ring_change(readings: &Readings, cause: RingCause) -> Option<String> {
    match cause {
        RingCause::UnprivilegedDisabled | RingCause::Disabled(_) => {
            Some(remedy::machine_sysctl(readings, "kernel.io_uring_disabled", "0"))
        }
        RingCause::KernelTooOld => Some(format!("use Linux {KERNEL_WITH_FLAGS} or later")),
        RingCause::LockedMemory(_) => {
            let bytes = readings.cpus.count() as u64 * RINGS_OF_CORE_BYTES;
            let bytes = bytes.max(LOCKED_MEMORY_BYTES_MIN);
            Some(remedy::limit(readings, Resource::LockedMemory, bytes))
        }
        RingCause::Seccomp => Some(match readings.facts.container {
            Some(Container::Docker) => "docker run --security-opt seccomp=PROFILE.json ...".into(),
            Some(Container::Podman) => "podman run --security-opt seccomp=PROFILE.json ...".into(),
            Some(Container::Kubernetes) => "in the pod, securityContext: { seccompProfile: \
                { type: Localhost, localhostProfile: PROFILE.json } }"
                .into(),
            Some(Container::Other(_)) | None => "add io_uring_setup io_uring_enter \
                io_uring_register to the SystemCallFilter= that the systemd unit has; one without \
                it gets its filter from elsewhere"
                .into(),
        }),
        RingCause::Unknown => None,
    }
}

fn kernel(readings: &Readings) -> Check {
    let name = if readings.is_linux() { "Linux" } else { "Darwin" };
    readings.check("kernel", &readings.facts.kernel, |release| {
        Check::ok("kernel", format!("{name} {release}"))
    })
}

/// Whether it refuses what the proxy needs shows in the driver.
fn seccomp(readings: &Readings) -> Check {
    readings.check("seccomp", &readings.facts.seccomp_filter, |&filter| {
        Check::ok("seccomp", if filter { "a filter is active" } else { "no filter" })
    })
}

fn container(readings: &Readings) -> Check {
    let name = readings.facts.container.as_ref().map(Container::to_string);
    Check::ok("container", name.as_deref().unwrap_or("none seen"))
}

fn cpus(readings: &Readings) -> Check {
    const NAME: &str = "cpus";
    let cpus = &readings.cpus;
    let (count, cores) = (cpus.ids.len(), cpus.count());
    if !readings.is_linux() {
        let cpus = counted(count, "fast CPU");
        let cores = counted(cores, "core");
        return Check::ok(NAME, format!("{cpus}; {cores}, placed by the system"));
    }
    let pinned = if cpus.pinning_advised() { "pinned" } else { "not pinned" };
    let quota = cpus.quota.map_or("no quota".to_owned(), |quota| format!("a quota of {quota:.2}"));
    let value = format!(
        "{} ({}), {quota}; {}, {pinned}",
        counted(count, "CPU"),
        ranges(&cpus.ids),
        counted(cores, "core")
    );
    let Some(quota) = cpus.quota.filter(|_| !cpus.pinning_advised()) else {
        return Check::ok(NAME, value);
    };
    let change = whole_cpus(readings, &ranges(&cpus.ids[..cores]));
    let meaning = "once the quota of a period is used up, all cores stand still until the next";
    if quota < 1.0 {
        return Check::warn(NAME, value, meaning).change(change);
    }
    Check::note(NAME, value, meaning).change(change)
}

/// A set of CPUs in place of a quota.
fn whole_cpus(readings: &Readings, set: &str) -> String {
    match readings.facts.container {
        Some(Container::Docker) => {
            format!("docker run --cpuset-cpus {set} ..., in place of --cpus")
        }
        Some(Container::Podman) => {
            format!("podman run --cpuset-cpus {set} ..., in place of --cpus")
        }
        Some(Container::Kubernetes) => "whole CPUs in the pod, as many requested as allowed, on a \
            node with cpuManagerPolicy: static"
            .to_owned(),
        Some(Container::Other(_)) | None => {
            format!("AllowedCPUs={set} in the systemd unit, in place of CPUQuota=")
        }
    }
}

fn topology(readings: &Readings) -> Check {
    let places = readings.places.as_slice();
    if !readings.is_linux() {
        return Check::ok("topology", format!("{} does not tell", readings.facts.system));
    }
    let distinct =
        |part: fn(&CpuPlace) -> usize| places.iter().map(part).collect::<BTreeSet<_>>().len();
    let physical = distinct(|place| place.smt);
    let threads = if physical < places.len() { ", shared by hyper-threads" } else { "" };
    Check::ok(
        "topology",
        format!(
            "{}{threads}; {}, {}",
            counted(physical, "physical core"),
            counted(distinct(|place| place.llc), "last-level cache"),
            counted(distinct(|place| place.numa), "memory node"),
        ),
    )
}

/// Under lazy preemption a thread that is woken by another CPU waits for the tick where background
/// work runs. Linux 7.0 makes it the default.
fn preemption(readings: &Readings) -> Check {
    const NAME: &str = "preemption";
    const FULL: &str = "preempt=full on the kernel's command line";
    let on_the_machine = |command: &str| remedy::on_the_machine(readings, command.to_owned());
    readings.check(NAME, &readings.facts.preemption, |mode| {
        let value = mode.to_string();
        match mode {
            Preemption::Lazy => Check::note(
                NAME,
                value,
                "a core that wakes up beside background work may wait for the tick, up to 4 ms at \
                 250 Hz",
            )
            .change(on_the_machine(&format!(
                "echo full | sudo tee /sys/kernel/debug/sched/preempt, and {FULL} to keep it"
            ))),
            Preemption::RealTime => Check::note(
                NAME,
                value,
                "a real-time kernel serves fewer requests with the same CPU",
            )
            .change(on_the_machine("boot a kernel without PREEMPT_RT")),
            Preemption::ChosenAtStart if !may_be_lazy(readings) => {
                Check::ok(NAME, format!("{value}: none, voluntary or full"))
            }
            Preemption::ChosenAtStart => Check::note(
                NAME,
                value,
                "only root may read which; lazy would delay cores beside background work",
            )
            .change(on_the_machine("sudo cat /sys/kernel/debug/sched/preempt shows it")),
            Preemption::Never
            | Preemption::Voluntary
            | Preemption::NeverOrVoluntary
            | Preemption::Full => Check::ok(NAME, value),
        }
    })
}

/// Whether the kernel knows lazy preemption, as far as its release tells.
fn may_be_lazy(readings: &Readings) -> bool {
    let release = readings.facts.kernel.known().map_or("", String::as_str);
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) >= KERNEL_WITH_LAZY,
        _ => true,
    }
}

fn background(readings: &Readings) -> Check {
    const NAME: &str = "background";
    let class = if readings.is_linux() { "SCHED_IDLE" } else { "QoS utility" };
    match &readings.facts.background_class {
        Ok(()) => Check::ok(NAME, format!("threads may use {class}")),
        Err(reason) => Check::note(
            NAME,
            format!("{class} is refused: {reason}"),
            "heavy work competes with the cores; a seccomp filter may refuse sched_setscheduler",
        ),
    }
}

/// For the operator who gives the proxy a priority; it needs none.
fn priorities(readings: &Readings) -> Check {
    const NAME: &str = "priorities";
    let facts = &readings.facts;
    readings.check(NAME, &facts.nice, |nice| {
        let plain = |limit| in_words(limit, |value| value.to_string());
        let real_time = facts.real_time_priority.known().map_or("unknown".to_owned(), plain);
        Check::ok(NAME, format!("nice: {}; real-time: {real_time}; none is needed", plain(nice)))
    })
}

fn clock(readings: &Readings) -> Check {
    const NAME: &str = "clock";
    readings.check(NAME, &readings.facts.clock, |clock| {
        let current = clock.current.as_str();
        if CLOCKS_FAST.contains(&current) {
            return Check::ok(NAME, current);
        }
        let meaning = "each look at the time is a call into the kernel";
        let check = Check::warn(NAME, current, meaning);
        match clock.available.iter().find(|name| CLOCKS_FAST.contains(&name.as_str())) {
            Some(better) => check.change(remedy::on_the_machine(
                readings,
                format!(
                    "echo {better} | sudo tee \
                     /sys/devices/system/clocksource/clocksource0/current_clocksource"
                ),
            )),
            None => check,
        }
    })
}

/// What they cost is for the operator to know, and what they are worth for nobody here to judge.
fn mitigations(readings: &Readings) -> Check {
    const NAME: &str = "mitigations";
    readings.check(NAME, &readings.facts.mitigations, |counts| {
        Check::ok(
            NAME,
            format!(
                "of {} known processor faults {} are mitigated, {} open, {} not present",
                counts.mitigated + counts.vulnerable + counts.not_affected,
                counts.mitigated,
                counts.vulnerable,
                counts.not_affected
            ),
        )
    })
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Ascending numbers as the kernel writes them: `0-3,8`.
pub(super) fn ranges(ids: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &id in ids {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let word = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(word).collect::<Vec<_>>().join(",")
}
