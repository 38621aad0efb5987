//! Reports of machines that are made up, as reviewed text, and of this one.

use std::collections::BTreeSet;

use baton_platform::{
    ClockSource, Container, CpuPlace, HostFacts, Limit, Mitigations, Preemption, Reading,
    RingDiagnosis, UsableCpus,
};
use baton_runtime::Driver;

use super::cores::ranges;
use super::readings::{Need, Readings, Ring};
use super::{Check, Level, Report};

/// Every check, in the order of the report.
const NAMES: [&str; 21] = [
    "version",
    "driver",
    "kernel",
    "seccomp",
    "container",
    "cpus",
    "topology",
    "preemption",
    "background",
    "priorities",
    "clock",
    "mitigations",
    "open files",
    "locked memory",
    "memory limit",
    "overcommit",
    "huge pages",
    "listen queue",
    "handshakes",
    "migration",
    "local ports",
];

fn known<T: Clone>(fact: &T) -> Reading<T> {
    Reading::Known(fact.clone())
}

fn limit(soft: u64, hard: u64) -> Reading<Limit> {
    Reading::Known(Limit { soft: Some(soft), hard: Some(hard) })
}

fn places(count: usize, place: impl Fn(usize) -> CpuPlace) -> Vec<CpuPlace> {
    (0..count).map(place).collect()
}

/// A machine as it should be.
fn fine() -> Readings {
    let facts = HostFacts {
        system: "Linux",
        kernel: known(&"6.12.9-amd64".to_owned()),
        preemption: Reading::Known(Preemption::Full),
        background_class: Ok(()),
        nice: limit(0, 0),
        real_time_priority: limit(0, 0),
        clock: Reading::Known(ClockSource {
            current: "tsc".to_owned(),
            available: ["tsc", "hpet", "acpi_pm"].map(str::to_owned).to_vec(),
        }),
        mitigations: Reading::Known(Mitigations { not_affected: 12, mitigated: 6, vulnerable: 0 }),
        seccomp_filter: Reading::Known(false),
        container: None,
        descriptors: limit(1_024, 524_288),
        locked_memory: limit(8 << 20, 8 << 20),
        memory_limit: Reading::Known(None),
        overcommit: Reading::Known(0),
        huge_pages: known(&"madvise".to_owned()),
        listen_queue_max: Reading::Known(4_096),
        handshakes_max: Reading::Known(2_048),
        syn_cookies: Reading::Known(1),
        migrate_requests: Reading::Known(1),
        local_ports: Reading::Known(32_768..=60_999),
    };
    Readings {
        version: "1.2.3",
        facts,
        cpus: UsableCpus { ids: (0..8).collect(), quota: None },
        places: places(8, |cpu| CpuPlace { cpu, smt: cpu / 2, llc: 0, numa: 0 }),
        driver: Ok(Driver::IoUring),
        ring: Ring::Settled,
        need: Need { connections: 8_192, descriptors: 16_448, backlog: 4_096 },
    }
}

/// A container on a machine where nothing is as it should be.
fn poor() -> Readings {
    let mut readings = fine();
    readings.facts = HostFacts {
        kernel: known(&"7.0.1".to_owned()),
        preemption: Reading::Known(Preemption::Lazy),
        background_class: Err("permission denied".to_owned()),
        clock: Reading::Known(ClockSource {
            current: "hpet".to_owned(),
            available: ["tsc", "hpet"].map(str::to_owned).to_vec(),
        }),
        mitigations: Reading::Known(Mitigations { not_affected: 12, mitigated: 4, vulnerable: 2 }),
        seccomp_filter: Reading::Known(true),
        container: Some(Container::Docker),
        descriptors: limit(1_024, 4_096),
        memory_limit: Reading::Known(Some(256 << 20)),
        overcommit: Reading::Known(2),
        huge_pages: known(&"always".to_owned()),
        listen_queue_max: Reading::Known(128),
        handshakes_max: Reading::Known(512),
        syn_cookies: Reading::Known(0),
        migrate_requests: Reading::Known(0),
        local_ports: Reading::Known(61_000..=65_535),
        ..readings.facts
    };
    readings.cpus = UsableCpus { ids: vec![0, 1, 2, 3, 8], quota: Some(2.5) };
    readings.places = places(5, |cpu| CpuPlace { cpu, smt: cpu, llc: cpu / 2, numa: cpu / 4 });
    readings.driver = Ok(Driver::Poll);
    readings.ring = Ring::Refused {
        error: "Operation not permitted (os error 1)".to_owned(),
        diagnosis: refused_ring(),
    };
    readings
}

fn refused_ring() -> RingDiagnosis {
    RingDiagnosis {
        sysctl_disabled: Some(0),
        memlock_soft_bytes: Some(65_536),
        out_of_memory: false,
        seccomp_filter: true,
        kernel: "7.0.1".to_owned(),
    }
}

/// Every fact refused.
fn hidden() -> Readings {
    let facts = HostFacts {
        system: "Linux",
        kernel: denied(),
        preemption: denied(),
        background_class: Ok(()),
        nice: denied(),
        real_time_priority: denied(),
        clock: denied(),
        mitigations: denied(),
        seccomp_filter: denied(),
        container: None,
        descriptors: denied(),
        locked_memory: denied(),
        memory_limit: denied(),
        overcommit: denied(),
        huge_pages: denied(),
        listen_queue_max: denied(),
        handshakes_max: denied(),
        syn_cookies: denied(),
        migrate_requests: denied(),
        local_ports: denied(),
    };
    Readings { facts, ..fine() }
}

fn denied<T>() -> Reading<T> {
    Reading::Unknown("permission denied".to_owned())
}

/// What a Mac tells.
fn mac() -> Readings {
    let facts = HostFacts {
        system: "macOS",
        kernel: known(&"25.1.0".to_owned()),
        preemption: Reading::Absent,
        background_class: Ok(()),
        nice: Reading::Absent,
        real_time_priority: Reading::Absent,
        clock: Reading::Absent,
        mitigations: Reading::Absent,
        seccomp_filter: Reading::Absent,
        container: None,
        descriptors: limit(256, 10_240),
        locked_memory: Reading::Absent,
        memory_limit: Reading::Absent,
        overcommit: Reading::Absent,
        huge_pages: Reading::Absent,
        listen_queue_max: Reading::Known(128),
        handshakes_max: Reading::Absent,
        syn_cookies: Reading::Absent,
        migrate_requests: Reading::Absent,
        local_ports: Reading::Known(49_152..=65_535),
    };
    Readings {
        facts,
        places: places(8, |cpu| CpuPlace { cpu, smt: cpu, llc: 0, numa: 0 }),
        driver: Ok(Driver::Poll),
        ..fine()
    }
}

fn check(readings: &Readings, name: &str) -> Check {
    let report = Report::of(readings);
    report.checks.into_iter().find(|check| check.name == name).expect("it is a check")
}

fn change(readings: &Readings, name: &str) -> String {
    let advice = check(readings, name).advice.expect("it is not as it should be");
    advice.change.expect("there is something that changes it")
}

#[test]
fn a_machine_that_hides_everything_has_a_report_all_the_same() {
    let report = Report::of(&hidden());
    assert_eq!(report.exit_status(), 0);
    assert!(report.to_string().contains("unknown: permission denied"));
    for check in &report.checks {
        assert_eq!(check.level == Level::Note, check.value.contains("unknown"), "{check:?}");
    }
}

#[test]
fn a_poor_machine_is_told_what_each_thing_means_and_what_changes_it() {
    assert_eq!(Report::of(&poor()).to_string(), include_str!("poor.txt"));
    assert_eq!(Report::of(&poor()).exit_status(), 1);
}

#[test]
fn a_fine_machine_has_a_line_for_each_check() {
    assert_eq!(Report::of(&fine()).to_string(), include_str!("fine.txt"));
    assert_eq!(Report::of(&fine()).exit_status(), 0);
}

#[test]
fn a_mac_is_not_asked_for_what_it_has_not() {
    assert_eq!(Report::of(&mac()).to_string(), include_str!("mac.txt"));
}

#[test]
fn a_note_alone_is_no_failure() {
    let mut readings = fine();
    readings.facts.migrate_requests = Reading::Known(0);
    assert_eq!(Report::of(&readings).level(), Level::Note);
    assert_eq!(Report::of(&readings).exit_status(), 0);
}

#[test]
fn every_report_has_every_check_in_one_order_and_advice_where_it_is_needed() {
    let reports = [fine(), poor(), hidden(), mac()].map(|readings| Report::of(&readings));
    for report in reports.iter().chain([&super::report()]) {
        let names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
        assert_eq!(names, NAMES);
        for check in &report.checks {
            assert_eq!(check.advice.is_some(), check.level != Level::Ok, "{check:?}");
            assert!(!check.value.is_empty() && !check.value.contains('\n'), "{check:?}");
        }
    }
}

#[test]
fn this_machine_is_reported_as_a_table_and_as_data() {
    let report = super::report();
    let table = report.to_string();
    let json = report.to_json();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    let checks = json["checks"].as_array().expect("a list of checks");
    assert_eq!(checks.len(), NAMES.len());
    for check in checks {
        let value = check["value"].as_str().expect("a text");
        assert!(table.contains(value), "{value:?} is not in the table");
    }
}

#[test]
fn the_data_say_what_the_table_says() {
    let mut readings = fine();
    readings.facts.listen_queue_max = Reading::Known(128);
    let json = Report::of(&readings).to_json();
    assert_eq!(json["level"], "warn");
    let of = |name: &str| {
        let checks = json["checks"].as_array().expect("a list of checks");
        checks.iter().find(|check| check["name"] == name).expect("it is a check").clone()
    };
    assert_eq!(
        of("clock"),
        serde_json::json!({
            "name": "clock", "level": "ok", "value": "tsc", "meaning": null, "change": null
        })
    );
    assert_eq!(of("listen queue")["level"], "warn");
    assert_eq!(of("listen queue")["change"], "sudo sysctl -w net.core.somaxconn=4096");
}

#[test]
fn a_proxy_without_a_driver_cannot_start() {
    let mut readings = fine();
    readings.driver = Err("cannot start a core: no thread".to_owned());
    let check = check(&readings, "driver");
    assert_eq!(check.level, Level::Warn);
    assert!(check.value.contains("no thread"));
}

#[test]
fn each_cause_of_a_refused_ring_has_its_change() {
    let refused = |diagnosis: RingDiagnosis, container: Option<Container>| {
        let mut readings = fine();
        readings.driver = Ok(Driver::Poll);
        readings.ring = Ring::Refused { error: "refused".to_owned(), diagnosis };
        readings.facts.container = container;
        change(&readings, "driver")
    };
    let sysctl = || RingDiagnosis { sysctl_disabled: Some(2), ..refused_ring() };
    assert_eq!(refused(sysctl(), None), "sudo sysctl -w kernel.io_uring_disabled=0");
    let on_host = refused(sysctl(), Some(Container::Docker));
    assert_eq!(on_host, "on the host, sudo sysctl -w kernel.io_uring_disabled=0");
    let old = RingDiagnosis { kernel: "5.4.0".to_owned(), ..refused_ring() };
    assert_eq!(refused(old, None), "use Linux 6.0 or later");
    let memory = || RingDiagnosis { out_of_memory: true, ..refused_ring() };
    assert_eq!(
        refused(memory(), None),
        "LimitMEMLOCK=8388608 in the systemd unit, or as root ulimit -l 8192"
    );
    let ulimit = refused(memory(), Some(Container::Podman));
    assert_eq!(ulimit, "podman run --ulimit memlock=8388608:8388608 ...");
    assert!(refused(refused_ring(), None).contains("SystemCallFilter="));
    let pod = refused(refused_ring(), Some(Container::Kubernetes));
    assert!(pod.contains("seccompProfile"), "{pod}");
}

#[test]
fn a_ring_without_its_flags_is_said_to_be_no_gain() {
    let mut readings = fine();
    readings.driver = Ok(Driver::Poll);
    readings.ring = Ring::Plain;
    assert_eq!(change(&readings, "driver"), "use Linux 6.0 or later");
}

#[test]
fn an_unknown_mode_of_preemption_matters_only_where_it_may_be_lazy() {
    let level = |release: &str| {
        let mut readings = fine();
        readings.facts.kernel = Reading::Known(release.to_owned());
        readings.facts.preemption = Reading::Known(Preemption::ChosenAtStart);
        check(&readings, "preemption").level
    };
    assert_eq!(level("6.12.9-amd64"), Level::Ok);
    assert_eq!(level("6.13.0"), Level::Note);
    assert_eq!(level("7.0"), Level::Note);
    assert_eq!(level("six"), Level::Note);
}

#[test]
fn less_than_one_cpu_is_worth_a_warning_and_a_quota_of_all_none() {
    let level = |quota| {
        let mut readings = fine();
        readings.cpus.quota = Some(quota);
        check(&readings, "cpus").level
    };
    assert_eq!(level(0.5), Level::Warn);
    assert_eq!(level(1.0), Level::Note);
    assert_eq!(level(8.0), Level::Ok);
}

#[test]
fn few_ports_are_noted_and_too_few_warned_of() {
    let level = |first: u16, last: u16| {
        let mut readings = fine();
        readings.facts.local_ports = Reading::Known(first..=last);
        check(&readings, "local ports").level
    };
    assert_eq!(level(1, 8_191), Level::Warn);
    assert_eq!(level(1, 8_192), Level::Note);
    assert_eq!(level(1, 16_383), Level::Note);
    assert_eq!(level(1, 16_384), Level::Ok);
    assert_eq!(level(1, 65_535), Level::Ok);
}

#[test]
fn a_setting_of_a_container_is_changed_from_outside() {
    let sysctl = |container| {
        let mut readings = poor();
        readings.facts.container = container;
        change(&readings, "local ports")
    };
    assert_eq!(sysctl(None), "sudo sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\"");
    assert_eq!(
        sysctl(Some(Container::Podman)),
        "podman run --sysctl net.ipv4.ip_local_port_range=\"10240 65535\" ..."
    );
    assert!(sysctl(Some(Container::Kubernetes)).contains("securityContext"));
}

#[test]
fn runs_of_cpus_are_written_short() {
    assert_eq!(ranges(&[]), "");
    assert_eq!(ranges(&[5]), "5");
    assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
}

#[test]
fn what_is_advised_is_one_line_of_plain_ascii() {
    for report in [fine(), poor(), hidden(), mac()].map(|readings| Report::of(&readings)) {
        let text = report.to_string();
        assert!(text.is_ascii(), "{text}");
        let names: BTreeSet<&str> = report.checks.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), report.checks.len());
        for line in text.lines() {
            assert_eq!(line, line.trim_end(), "{line:?}");
        }
    }
}
