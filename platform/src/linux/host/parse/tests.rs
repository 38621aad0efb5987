//! Texts as kernels write them, and as they never do.

use super::{KernelWords, Traces, container, limit, marked, mitigations, ports, seccomp_filter};
use crate::host::{Container, Limit, Mitigations, Preemption, Reading};

#[test]
fn garbage_is_no_limit() {
    for limits in ["", "Max open files", "Max open files  x  1", "Max open files  1"] {
        assert_eq!(limit(limits, "Max open files"), None, "{limits:?}");
    }
}

#[test]
fn a_limit_has_a_soft_and_a_hard_value_or_none() {
    let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                  Max open files            1024                 524288               files     \n\
                  Max locked memory         8388608              unlimited            bytes     \n\
                  Max nice priority         0                    0                    \n";
    let of = |name| limit(limits, name).expect("it is there");
    assert_eq!(of("Max open files"), Limit { soft: Some(1024), hard: Some(524_288) });
    assert_eq!(of("Max locked memory"), Limit { soft: Some(8_388_608), hard: None });
    assert_eq!(of("Max nice priority"), Limit { soft: Some(0), hard: Some(0) });
    assert_eq!(limit(limits, "Max processes"), None);
}

#[test]
fn a_status_without_seccomp_tells_nothing() {
    assert_eq!(seccomp_filter("Name:\tbaton\n"), None);
    assert_eq!(seccomp_filter("Seccomp:\t0\nSeccomp_filters:\t2\n"), Some(false));
    assert_eq!(seccomp_filter("Seccomp:\t2\nSeccomp_filters:\t1\n"), Some(true));
}

#[test]
fn the_marked_word_is_the_choice() {
    for choices in ["", "always madvise never", "always [madvise", "always madvise]"] {
        assert_eq!(marked(choices, ['[', ']']), None, "{choices:?}");
    }
    assert_eq!(marked("always [madvise] never\n", ['[', ']']).as_deref(), Some("madvise"));
    assert_eq!(marked("none voluntary (full) lazy\n", ['(', ')']).as_deref(), Some("full"));
}

#[test]
fn ports_are_two_numbers_in_order() {
    for range in ["", "1", "x y", "2 1", "1 65536", "-1 5"] {
        assert_eq!(ports(range), None, "{range:?}");
    }
    assert_eq!(ports("32768\t60999\n"), Some(32_768..=60_999));
}

#[test]
fn each_fault_counts_once() {
    let states = [
        "Not affected\n",
        "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional\n",
        "KVM: Mitigation: VMX unsupported\n",
        "Vulnerable: Clear CPU buffers attempted, no microcode\n",
        "Unknown: Dependent on hypervisor status\n",
    ];
    let counts = mitigations(states.into_iter().map(str::to_owned));
    assert_eq!(counts, Mitigations { not_affected: 1, mitigated: 2, vulnerable: 2 });
}

/// Debugfs, realtime, command line, build; empty: absent.
fn preemption(texts: [&str; 4]) -> Reading<Preemption> {
    let [debug, real_time, command_line, build] = texts.map(|text| match text {
        "" => Reading::Absent,
        "denied" => Reading::Unknown("permission denied".to_owned()),
        text => Reading::Known(text.to_owned()),
    });
    super::preemption(&KernelWords { debug, real_time, command_line, build })
}

#[test]
fn a_kernel_that_hides_its_build_has_no_known_preemption() {
    assert_eq!(preemption([""; 4]), Reading::Absent);
    let denied = Reading::Unknown("permission denied".to_owned());
    assert_eq!(preemption(["denied", "", "", "denied"]), denied);
}

#[test]
fn the_mode_is_taken_from_the_surest_source() {
    const DYNAMIC: &str = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1 (2025-01-10)";
    let cases = [
        (["none voluntary (full) lazy", "", "preempt=none", DYNAMIC], Preemption::Full),
        (["full (lazy)", "", "", DYNAMIC], Preemption::Lazy),
        (["(none) voluntary full", "1\n", "", DYNAMIC], Preemption::RealTime),
        (["denied", "0\n", "quiet preempt=none ro", DYNAMIC], Preemption::Never),
        (["denied", "", "preempt=full preempt=voluntary\n", DYNAMIC], Preemption::Voluntary),
        (["denied", "", "preempt=sometimes", DYNAMIC], Preemption::ChosenAtStart),
        (["denied", "", "quiet", DYNAMIC], Preemption::ChosenAtStart),
        (["", "", "", "#1 SMP PREEMPT_RT Mon"], Preemption::RealTime),
        (["", "", "preempt=none", "#1 SMP PREEMPT Mon"], Preemption::Full),
        (["", "", "", "#1 SMP PREEMPT_LAZY Mon"], Preemption::Lazy),
        (["", "", "", "#1 SMP Mon"], Preemption::NeverOrVoluntary),
    ];
    for (texts, expected) in cases {
        assert_eq!(preemption(texts), Reading::Known(expected), "{texts:?}");
    }
}

#[test]
fn a_machine_without_traces_is_no_container() {
    assert_eq!(container(&Traces::default()), None);
    let groups = "0::/user.slice/user-1000.slice/session-2.scope\n".to_owned();
    let variable = Some(String::new());
    assert_eq!(container(&Traces { groups, variable, ..Traces::default() }), None);
}

#[test]
fn the_container_is_told_by_what_it_leaves() {
    let groups = |text: &str| Traces { groups: text.to_owned(), ..Traces::default() };
    let variable = |name: &str| Traces { variable: Some(name.to_owned()), ..Traces::default() };
    let pod = Traces { in_a_pod: true, docker_file: true, ..Traces::default() };
    assert_eq!(container(&pod), Some(Container::Kubernetes));
    let pod = groups("0::/kubepods/besteffort/pod1\n");
    assert_eq!(container(&pod), Some(Container::Kubernetes));
    let docker = Traces { docker_file: true, ..Traces::default() };
    assert_eq!(container(&docker), Some(Container::Docker));
    assert_eq!(container(&groups("0::/docker/4f\n")), Some(Container::Docker));
    let podman = Traces { podman_file: true, ..variable("oci") };
    assert_eq!(container(&podman), Some(Container::Podman));
    let other = |name: &str| Some(Container::Other(name.to_owned()));
    assert_eq!(container(&variable("systemd-nspawn")), other("systemd-nspawn"));
    assert_eq!(container(&groups("3:cpu:/lxc/web\n")), other("lxc"));
}
