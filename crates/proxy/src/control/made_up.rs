//! A proxy that does not exist, for tests of what shows one.

use std::collections::BTreeMap;

use super::metrics::Format;
use super::snapshot::{
    CoreNumbers, EndpointNumbers, HealthWord, LogNumbers, ProcessNumbers, ReloadNumbers,
    RouteNumbers, Snapshot, Times, UpstreamNumbers,
};
use crate::counters::Counters;

/// What it does `second` seconds after its start; the same for the same second. Four cores, three
/// upstreams with one endpoint in each state, three routes.
pub(crate) fn snapshot(second: u64) -> Snapshot {
    let cores: Vec<CoreNumbers> = (0..4).map(|index| core(index, second)).collect();
    let mut counters: BTreeMap<String, u64> =
        Counters::MEANINGS.iter().map(|(name, _)| ((*name).to_owned(), 0)).collect();
    let requests = cores.iter().map(|core| core.requests).sum();
    counters.insert("requests".to_owned(), requests);
    counters.insert("answers_2xx".to_owned(), requests - requests / 50);
    counters.insert("answers_4xx".to_owned(), requests / 100);
    counters.insert("answers_5xx".to_owned(), cores.iter().map(|core| core.answers_5xx).sum());
    Snapshot {
        version: "0.1.0".to_owned(),
        driver: "io_uring".to_owned(),
        generation: 7,
        reloads: ReloadNumbers { taken: 6, refused: 2 },
        ready: true,
        started_unix_ms: 1_790_000_000_000,
        uptime_ms: 93_784_000 + second * 1_000,
        connections: cores.iter().map(|core| core.connections).sum(),
        process: ProcessNumbers {
            resident_bytes: Some(48_234_496 + second * 4_096),
            descriptors: Some(2_311),
            descriptors_max: Some(65_536),
        },
        lag_bounds_us: vec![3_000, 5_000, 20_000, 100_000, 500_000],
        duration_bounds_us: crate::histogram::BOUNDS_US.to_vec(),
        cores,
        counters,
        logs: LogNumbers::default(),
        routes: vec![
            route("www.example.com /", 5_200, second),
            route("www.example.com /api/v1", 1_830, second),
            route("static.example.com /assets/images/thumbnails", 12, second),
        ],
        upstreams: upstreams(second),
    }
}

/// Sum of a rate that goes up and down around `rate`, over `second` seconds.
fn total(rate: u64, seed: u64, second: u64) -> u64 {
    let wave = [0, 3, 5, 6, 5, 3, 0, 2, 8, 4, 1, 0];
    (0..second).map(|s| rate + rate * wave[((s + seed * 5) % 12) as usize] / 24).sum()
}

fn core(index: usize, second: u64) -> CoreNumbers {
    let seed = index as u64;
    let busy = [61, 38, 93, 4][index % 4];
    let mut classes = vec![second * 10, 0, 0, 0, 0, 0];
    if index == 2 {
        classes[0] -= second;
        classes[2] = second;
    }
    CoreNumbers {
        index,
        busy_ns: total(busy * 8_000_000, seed, second),
        connections: 511 + seed * 37,
        tasks: 530 + seed * 37,
        accepted: total(40, seed, second),
        messages: second / 7,
        heartbeats: second * 10,
        lag: Times { classes, sum_us: second * 12_000 },
        lag_worst_us: 17_400,
        requests: total(busy * 40, seed, second),
        answers_5xx: if index == 2 { total(9, seed, second) } else { 0 },
        ..CoreNumbers::default()
    }
}

fn times(count: u64, middle: usize) -> Times {
    let mut classes = vec![0; crate::histogram::BOUNDS_US.len() + 1];
    classes[middle] = count - count / 20;
    classes[middle + 2] = count / 20;
    Times { classes, sum_us: count * 2_100 }
}

fn route(name: &str, rate: u64, second: u64) -> RouteNumbers {
    let all = total(rate, name.len() as u64, second);
    let failed = if rate > 5_000 { all / 600 } else { 0 };
    RouteNumbers {
        name: name.to_owned(),
        in_flight: rate / 300,
        answers: [0, all - all / 40 - failed, all / 60, all / 40 - all / 60, failed],
        rate_limited: if rate == 1_830 { second * 3 } else { 0 },
        duration: times(all, 3),
        ..RouteNumbers::default()
    }
}

fn endpoint(address: &str, rate: u64, second: u64) -> EndpointNumbers {
    let requests = total(rate, address.len() as u64, second);
    EndpointNumbers {
        address: address.to_owned(),
        configured: address.to_owned(),
        weight: 1,
        in_flight: rate / 400,
        connections: rate / 60,
        requests,
        connects: requests / 300,
        first_byte: times(requests, 2),
        ..EndpointNumbers::default()
    }
}

fn upstreams(second: u64) -> Vec<UpstreamNumbers> {
    let up =
        EndpointNumbers { health: HealthWord::Up, ..endpoint("10.0.4.11:8080", 1_310, second) };
    let slow = EndpointNumbers {
        health: HealthWord::Up,
        ejected: true,
        ejections: 4,
        failures: total(21, 1, second),
        failures_in_a_row: 6,
        ..endpoint("10.0.4.12:8080", 410, second)
    };
    let down = EndpointNumbers {
        health: HealthWord::Down,
        failures: 912,
        ..endpoint("10.0.4.13:8080", 0, second)
    };
    let drained = EndpointNumbers {
        health: HealthWord::Up,
        drained: true,
        ..endpoint("10.0.4.14:8080", 0, second)
    };
    let spare = EndpointNumbers { backup: true, ..endpoint("[2001:db8:4::5a:13]:8080", 0, second) };
    let web = |address| endpoint(address, 2_600, second);
    vec![
        UpstreamNumbers {
            name: "api".to_owned(),
            endpoints: vec![up, slow, down, drained, spare],
            ..UpstreamNumbers::default()
        },
        UpstreamNumbers {
            name: "web".to_owned(),
            endpoints: vec![web("10.0.7.2:80"), web("10.0.7.31:80")],
            ..UpstreamNumbers::default()
        },
        UpstreamNumbers { name: "thumbnails".to_owned(), ..UpstreamNumbers::default() },
    ]
}

/// Goal: somebody who works on the page, on `baton top` or on the metrics sees them as they will be.
/// Method: two minutes of `/status`, one a line, and the metrics in both formats, as files in the
/// folder that `BATON_MADE_UP` names.
#[test]
#[ignore = "writes files to look at; it checks nothing"]
fn write_to_look_at() {
    let folder = std::path::PathBuf::from(std::env::var("BATON_MADE_UP").expect("a folder"));
    let lines = (60..180).map(|second| {
        serde_json::to_string(&snapshot(second)).expect("numbers and texts are JSON") + "\n"
    });
    let write = |name, text: String| std::fs::write(folder.join(name), text).expect("writable");
    write("status.jsonl", lines.collect());
    for (name, format) in [("metrics.txt", Format::Text), ("metrics.open", Format::OpenMetrics)] {
        write(name, super::metrics::write(&snapshot(60), format));
    }
}
