//! Which metrics there are. `docs/operations.md` lists them; a test compares the two.

use super::writer::{Kind, Writer};
use crate::control::snapshot::{
    CoreNumbers, EndpointNumbers, HealthWord, RouteNumbers, Snapshot, UpstreamNumbers,
};
use crate::counters::Counters;

/// A metric with one number per core, route or endpoint.
type Family<T> = (&'static str, Kind, &'static str, fn(&T) -> u64);

const CORES: &[Family<CoreNumbers>] = &[
    ("baton_core_requests", Kind::Counter, "Requests whose head the core accepted", |c| c.requests),
    ("baton_core_accepted", Kind::Counter, "Connections the core accepted or was dealt", |c| {
        c.accepted
    }),
    ("baton_core_connections", Kind::Gauge, "Client connections open on the core", |c| {
        c.connections
    }),
    ("baton_core_tasks", Kind::Gauge, "Tasks alive on the core", |c| c.tasks),
    ("baton_core_panics", Kind::Counter, "Tasks that panicked and were contained", |c| c.panics),
    (
        "baton_core_accept_starved",
        Kind::Counter,
        "Accepts that failed for want of descriptors or memory",
        |c| c.accept_starved,
    ),
    (
        "baton_core_accept_paused",
        Kind::Counter,
        "Times accepting paused at the connection limit",
        |c| c.accept_paused,
    ),
    ("baton_core_messages", Kind::Counter, "Messages from other threads to the core", |c| {
        c.messages
    }),
    ("baton_core_heartbeats", Kind::Counter, "Heartbeats of the core, ten a second", |c| {
        c.heartbeats
    }),
];

const ROUTES: &[Family<RouteNumbers>] = &[
    ("baton_route_in_flight", Kind::Gauge, "Requests of the route under way", |r| r.in_flight),
    (
        "baton_route_rate_limited",
        Kind::Counter,
        "Requests refused by the rate limit of the route",
        |r| r.rate_limited,
    ),
    (
        "baton_route_over_concurrency",
        Kind::Counter,
        "Requests refused by the concurrency limit of the route",
        |r| r.over_concurrency,
    ),
    ("baton_route_denied", Kind::Counter, "Requests refused for the address of the client", |r| {
        r.denied
    }),
];

const ENDPOINTS: &[Family<EndpointNumbers>] = &[
    (
        "baton_endpoint_requests",
        Kind::Counter,
        "Requests sent to the endpoint, each attempt",
        |e| e.requests,
    ),
    (
        "baton_endpoint_failures",
        Kind::Counter,
        "Attempts that failed: no connection, no answer, too late, not HTTP",
        |e| e.failures,
    ),
    (
        "baton_endpoint_retries",
        Kind::Counter,
        "Attempts at the endpoint that followed a failure elsewhere",
        |e| e.retries,
    ),
    ("baton_endpoint_connects", Kind::Counter, "Connections opened to the endpoint", |e| {
        e.connects
    }),
    (
        "baton_endpoint_ejections",
        Kind::Counter,
        "Times the endpoint was left out for its failures",
        |e| e.ejections,
    ),
    ("baton_endpoint_in_flight", Kind::Gauge, "Requests under way at the endpoint", |e| {
        e.in_flight
    }),
    (
        "baton_endpoint_connections",
        Kind::Gauge,
        "Connections open to the endpoint, idle ones included",
        |e| e.connections,
    ),
    ("baton_endpoint_queued", Kind::Gauge, "Requests that wait for a connection", |e| e.queued),
    ("baton_endpoint_checks", Kind::Counter, "Active checks of the endpoint", |e| e.checks),
    (
        "baton_endpoint_checks_failed",
        Kind::Counter,
        "Active checks of the endpoint that failed",
        |e| e.checks_failed,
    ),
    (
        "baton_endpoint_failures_in_a_row",
        Kind::Gauge,
        "Failures of the endpoint since its last success",
        |e| e.failures_in_a_row,
    ),
    ("baton_endpoint_weight", Kind::Gauge, "Share of the endpoint relative to the others", |e| {
        u64::from(e.weight)
    }),
    (
        "baton_endpoint_ejected",
        Kind::Gauge,
        "1 while the endpoint is left out for its failures",
        |e| u64::from(e.ejected),
    ),
    (
        "baton_endpoint_drained",
        Kind::Gauge,
        "1 while an operator has taken the endpoint out",
        |e| u64::from(e.drained),
    ),
];

pub(super) fn process(writer: &mut Writer, snapshot: &Snapshot) {
    let mut one = |name, help, value: Option<u64>| {
        if let Some(value) = value {
            writer.family(name, Kind::Gauge, help);
            writer.sample(&[], value);
        }
    };
    let process = &snapshot.process;
    one("baton_ready", "1 while new requests are welcome, 0 while draining", {
        Some(u64::from(snapshot.ready))
    });
    one("baton_config_generation", "Configuration in force, from 1; rises with each reload", {
        Some(snapshot.generation)
    });
    one("baton_connections", "Client connections open", Some(snapshot.connections));
    one("baton_process_resident_memory_bytes", "Physical memory of the process", {
        process.resident_bytes
    });
    one("baton_process_open_fds", "Descriptors open", process.descriptors);
    one("baton_process_max_fds", "Limit of open descriptors", process.descriptors_max);
    let help = "Reloads by outcome; refused: nothing has changed";
    writer.family("baton_config_reloads", Kind::Counter, help);
    for (outcome, count) in
        [("taken", snapshot.reloads.taken), ("refused", snapshot.reloads.refused)]
    {
        writer.sample(&[("outcome", outcome)], count);
    }
    let help = "When the process started, since 1970";
    writer.family("baton_process_start_time_seconds", Kind::Gauge, help);
    writer.sample(&[], snapshot.started_unix_ms as f64 / 1e3);
    writer.family("baton_build", Kind::Info, "Version, and how the cores wait for I/O");
    writer.sample(&[("version", &snapshot.version), ("driver", &snapshot.driver)], 1);
}

/// What became of lines of the logs.
pub(super) fn logs(writer: &mut Writer, snapshot: &Snapshot) {
    let logs = &snapshot.logs;
    for (name, help, value) in [
        ("access_log_lines", "Access log lines handed over for writing", logs.access_queued),
        (
            "access_log_lines_dropped",
            "Access log lines dropped since writing was too slow",
            logs.access_dropped,
        ),
        ("access_log_lines_lost", "Access log lines lost to errors of writing", logs.access_lost),
        ("access_log_errors", "Errors of writing the access log", logs.access_errors),
        ("log_lines_dropped", "Log lines dropped since writing was too slow", logs.dropped),
    ] {
        writer.family(&format!("baton_{name}"), Kind::Counter, help);
        writer.sample(&[], value);
    }
}

/// Every counter under its own name, but for the answers, whose class is a label.
pub(super) fn counters(writer: &mut Writer, snapshot: &Snapshot) {
    let value = |name: &str| snapshot.counters.get(name).copied().unwrap_or(0);
    writer.family("baton_answers", Kind::Counter, "Final answers to clients by class of status");
    for class in ["1xx", "2xx", "3xx", "4xx", "5xx"] {
        writer.sample(&[("class", class)], value(&format!("answers_{class}")));
    }
    for (name, meaning) in Counters::MEANINGS {
        if !name.starts_with("answers_") {
            let help = meaning.trim().trim_end_matches('.');
            writer.family(&format!("baton_{name}"), Kind::Counter, help);
            writer.sample(&[], value(name));
        }
    }
}

pub(super) fn cores(writer: &mut Writer, snapshot: &Snapshot) {
    let cores: Vec<(String, &CoreNumbers)> =
        snapshot.cores.iter().map(|core| (core.index.to_string(), core)).collect();
    writer.family("baton_core_cpu_seconds", Kind::Counter, "CPU time of the thread of the core");
    for (index, core) in &cores {
        writer.sample(&[("core", index)], core.busy_ns as f64 / 1e9);
    }
    let help = "How late the heartbeats of the core came: what a task waits for its turn";
    writer.family("baton_core_lag_seconds", Kind::Histogram, help);
    for (index, core) in &cores {
        writer.histogram(&[("core", index)], &snapshot.lag_bounds_us, &core.lag);
    }
    writer.family("baton_core_lag_worst_seconds", Kind::Gauge, "The latest heartbeat so far");
    for (index, core) in &cores {
        writer.sample(&[("core", index)], core.lag_worst_us as f64 / 1e6);
    }
    for (name, kind, help, value) in CORES {
        writer.family(name, *kind, help);
        for (index, core) in &cores {
            writer.sample(&[("core", index)], value(core));
        }
    }
}

pub(super) fn routes(writer: &mut Writer, snapshot: &Snapshot) {
    if snapshot.routes.is_empty() {
        return;
    }
    let help = "Requests of the route by class of status; none: ended without an answer";
    writer.family("baton_route_requests", Kind::Counter, help);
    for route in &snapshot.routes {
        for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(route.answers) {
            writer.sample(&[("route", &route.name), ("class", class)], count);
        }
        writer.sample(&[("route", &route.name), ("class", "none")], route.unanswered);
    }
    let help = "From the first byte of the request to the end of the answer";
    writer.family("baton_route_duration_seconds", Kind::Histogram, help);
    for route in &snapshot.routes {
        let labels = &[("route", route.name.as_str())];
        writer.histogram(labels, &snapshot.duration_bounds_us, &route.duration);
    }
    for (name, kind, help, value) in ROUTES {
        writer.family(name, *kind, help);
        for route in &snapshot.routes {
            writer.sample(&[("route", &route.name)], value(route));
        }
    }
}

pub(super) fn upstreams(writer: &mut Writer, snapshot: &Snapshot) {
    if snapshot.upstreams.is_empty() {
        return;
    }
    writer.family("baton_upstream_endpoints", Kind::Gauge, "Endpoints that the upstream has now");
    for upstream in &snapshot.upstreams {
        writer.sample(&[("upstream", &upstream.name)], upstream.endpoints.len());
    }
    let help = "Retries of the upstream under way";
    writer.family("baton_upstream_retries_under_way", Kind::Gauge, help);
    for upstream in &snapshot.upstreams {
        writer.sample(&[("upstream", &upstream.name)], upstream.retries);
    }
    let help = "Requests of the upstream not tried again, as too many retries were under way";
    writer.family("baton_upstream_retry_budget_exhausted", Kind::Counter, help);
    for upstream in &snapshot.upstreams {
        writer.sample(&[("upstream", &upstream.name)], upstream.retry_budget_exhausted);
    }
    let endpoints: Vec<(&UpstreamNumbers, &EndpointNumbers)> = snapshot
        .upstreams
        .iter()
        .flat_map(|upstream| upstream.endpoints.iter().map(move |endpoint| (upstream, endpoint)))
        .collect();
    if endpoints.is_empty() {
        return;
    }
    let help = "1 at what active checks say of the endpoint: up, down, or unknown without checks";
    writer.family("baton_endpoint_health", Kind::Gauge, help);
    for (upstream, endpoint) in &endpoints {
        let states =
            [("up", HealthWord::Up), ("down", HealthWord::Down), ("unknown", HealthWord::Unknown)];
        for (word, health) in states {
            let labels =
                &[("upstream", &*upstream.name), ("endpoint", &*endpoint.address), ("state", word)];
            writer.sample(labels, u64::from(endpoint.health == health));
        }
    }
    let help = "From the request sent to the endpoint to the head of its answer";
    writer.family("baton_endpoint_first_byte_seconds", Kind::Histogram, help);
    for (upstream, endpoint) in &endpoints {
        let labels = &[("upstream", &*upstream.name), ("endpoint", &*endpoint.address)];
        writer.histogram(labels, &snapshot.duration_bounds_us, &endpoint.first_byte);
    }
    for (name, kind, help, value) in ENDPOINTS {
        writer.family(name, *kind, help);
        for (upstream, endpoint) in &endpoints {
            let labels = &[("upstream", &*upstream.name), ("endpoint", &*endpoint.address)];
            writer.sample(labels, value(endpoint));
        }
    }
}
