//! The texts of the kernel, as facts.

use std::ops::RangeInclusive;

use crate::host::{Container, Limit, Mitigations, Preemption, Reading};

/// Reads the row `name` of `/proc/self/limits`: soft limit, hard limit and perhaps a unit.
pub(super) fn limit(limits: &str, name: &str) -> Option<Limit> {
    let row = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut values = row.split_whitespace().map(|value| match value {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    });
    Some(Limit { soft: values.next()??, hard: values.next()?? })
}

/// Reads `/proc/self/status`, where `Seccomp` is 0 without, 1 strict, 2 with a filter.
pub(super) fn seccomp_filter(status: &str) -> Option<bool> {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?;
    Some(mode.trim() == "2")
}

/// The one of several words that stands between `marks`, as in `always [madvise] never`.
pub(super) fn marked(choices: &str, marks: [char; 2]) -> Option<String> {
    let (_, rest) = choices.split_once(marks[0])?;
    let (word, _) = rest.split_once(marks[1])?;
    Some(word.to_owned())
}

/// Reads two port numbers, first and last.
pub(super) fn ports(range: &str) -> Option<RangeInclusive<u16>> {
    let mut numbers = range.split_whitespace().map(|number| number.parse().ok());
    let (first, last) = (numbers.next()??, numbers.next()??);
    (first <= last).then_some(first..=last)
}

/// Counts the faults by their states: a line each, such as `Mitigation: PTI`.
pub(super) fn mitigations(states: impl Iterator<Item = String>) -> Mitigations {
    let mut counts = Mitigations::default();
    for state in states {
        // `KVM: Mitigation: ...` is about guests alone, which is as good as any mitigation.
        if state.starts_with("Not affected") {
            counts.not_affected += 1;
        } else if state.contains("Mitigation") {
            counts.mitigated += 1;
        } else {
            counts.vulnerable += 1;
        }
    }
    counts
}

/// Where the kernel tells how it preempts itself.
pub(super) struct KernelWords {
    /// `/sys/kernel/debug/sched/preempt`, for root: `none voluntary (full) lazy`.
    pub(super) debug: Reading<String>,
    /// `/sys/kernel/realtime`: `1` on a `PREEMPT_RT` kernel.
    pub(super) real_time: Reading<String>,
    /// `/proc/cmdline`, perhaps with `preempt=`.
    pub(super) command_line: Reading<String>,
    /// What uname(2) calls version: `#1 SMP PREEMPT_DYNAMIC Sat ...`.
    pub(super) build: Reading<String>,
}

/// The surest source goes first. A kernel with `PREEMPT_DYNAMIC` chooses when it starts, and its
/// build does not tell what.
pub(super) fn preemption(words: &KernelWords) -> Reading<Preemption> {
    let is_real_time = words.real_time.known().is_some_and(|flag| flag.trim() == "1");
    let build: Vec<&str> =
        words.build.known().map(|build| build.split_whitespace().collect()).unwrap_or_default();
    if is_real_time || build.contains(&"PREEMPT_RT") {
        return Reading::Known(Preemption::RealTime);
    }
    let debug = words.debug.known().and_then(|choices| marked(choices, ['(', ')']));
    if let Some(mode) = debug.as_deref().and_then(mode) {
        return Reading::Known(mode);
    }
    if build.contains(&"PREEMPT_DYNAMIC") {
        // The last of repeated parameters holds.
        let asked = words.command_line.known().and_then(|line| {
            line.split_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back()
        });
        let chosen = asked.and_then(mode);
        return Reading::Known(chosen.unwrap_or(Preemption::ChosenAtStart));
    }
    match &words.build {
        Reading::Known(_) if build.contains(&"PREEMPT_LAZY") => Reading::Known(Preemption::Lazy),
        Reading::Known(_) if build.contains(&"PREEMPT") => Reading::Known(Preemption::Full),
        Reading::Known(_) => Reading::Known(Preemption::NeverOrVoluntary),
        Reading::Absent => Reading::Absent,
        Reading::Unknown(reason) => Reading::Unknown(reason.clone()),
    }
}

fn mode(word: &str) -> Option<Preemption> {
    match word {
        "none" => Some(Preemption::Never),
        "voluntary" => Some(Preemption::Voluntary),
        "full" => Some(Preemption::Full),
        "lazy" => Some(Preemption::Lazy),
        _ => None,
    }
}

/// What containers leave behind.
#[derive(Default)]
pub(super) struct Traces {
    /// `KUBERNETES_SERVICE_HOST` is set.
    pub(super) in_a_pod: bool,
    /// `/.dockerenv` exists.
    pub(super) docker_file: bool,
    /// `/run/.containerenv` exists.
    pub(super) podman_file: bool,
    /// The environment variable `container` (systemd's convention).
    pub(super) variable: Option<String>,
    /// `/proc/self/cgroup`.
    pub(super) groups: String,
}

/// The pod goes before the engine that runs it, since it is the pod that is configured.
pub(super) fn container(traces: &Traces) -> Option<Container> {
    let variable = traces.variable.as_deref().filter(|name| !name.is_empty());
    let in_groups = |name| traces.groups.contains(name);
    if traces.in_a_pod || in_groups("/kubepods") {
        return Some(Container::Kubernetes);
    }
    if traces.podman_file || variable == Some("podman") || in_groups("/libpod-") {
        return Some(Container::Podman);
    }
    if traces.docker_file || variable == Some("docker") || in_groups("/docker") {
        return Some(Container::Docker);
    }
    if let Some(name) = variable {
        return Some(Container::Other(name.to_owned()));
    }
    in_groups("/lxc").then(|| Container::Other("lxc".to_owned()))
}

#[cfg(test)]
mod tests;
