//! The network: queues before a listener, and ports towards endpoints.

use super::Check;
use super::readings::Readings;
use super::remedy;

/// More than the ports that are registered for services below it; the widest range that is common.
const PORTS_WIDE: &str = "10240 65535";

pub(super) fn checks(readings: &Readings) -> Vec<Check> {
    vec![listen_queue(readings), handshakes(readings), migration(readings), local_ports(readings)]
}

fn listen_queue(readings: &Readings) -> Check {
    const NAME: &str = "listen queue";
    let backlog = readings.need.backlog;
    readings.check(NAME, &readings.facts.listen_queue_max, |&most| {
        let value = format!("{most} per listener and core, {backlog} are asked for");
        if most >= backlog {
            return Check::ok(NAME, value);
        }
        let name = if readings.is_linux() { "net.core.somaxconn" } else { "kern.ipc.somaxconn" };
        Check::warn(NAME, value, "clients of a burst beyond it connect a second or more late")
            .change(remedy::network_sysctl(readings, name, &backlog.to_string()))
    })
}

/// The bound holds only without SYN cookies (`tcp_conn_request`, net/ipv4/tcp_input.c): then
/// clients that are not known are dropped once three quarters are taken.
fn handshakes(readings: &Readings) -> Check {
    const NAME: &str = "handshakes";
    readings.check(NAME, &readings.facts.handshakes_max, |&most| {
        match readings.facts.syn_cookies.known() {
            Some(1..) => Check::ok(NAME, format!("{most}, no bound while SYN cookies are on")),
            _ if most >= readings.need.backlog => Check::ok(NAME, most.to_string()),
            cookies => {
                let cookies = if cookies.is_some() { "off" } else { "unknown" };
                Check::note(
                    NAME,
                    format!("{most}, SYN cookies {cookies}"),
                    "a flood of handshakes that never end keeps clients out",
                )
                .change(remedy::network_sysctl(
                    readings,
                    "net.ipv4.tcp_syncookies",
                    "1",
                ))
            }
        }
    })
}

fn migration(readings: &Readings) -> Check {
    const NAME: &str = "migration";
    readings.check(NAME, &readings.facts.migrate_requests, |&enabled| {
        if enabled != 0 {
            return Check::ok(NAME, "connections move to another core's queue as one closes");
        }
        Check::note(
            NAME,
            "off",
            "connections that wait in the queue of a core are reset if it ends alone",
        )
        .change(remedy::network_sysctl(readings, "net.ipv4.tcp_migrate_req", "1"))
    })
}

/// A connection to an endpoint takes one port for its life and a minute after, if closed from here.
/// Ports are counted for each address of an endpoint.
fn local_ports(readings: &Readings) -> Check {
    const NAME: &str = "local ports";
    let connections = readings.need.connections;
    readings.check(NAME, &readings.facts.local_ports, |ports| {
        let count = u64::from(ports.end() - ports.start()) + 1;
        let value = format!("{}-{}, {count} to each endpoint", ports.start(), ports.end());
        let change = |check: Check| {
            check.change(if readings.is_linux() {
                remedy::network_sysctl(readings, "net.ipv4.ip_local_port_range", PORTS_WIDE)
            } else {
                "sudo sysctl -w net.inet.ip.portrange.first=10240".to_owned()
            })
        };
        if count < connections {
            let meaning = format!("fewer than the {connections} connections that one may need");
            return change(Check::warn(NAME, value, meaning));
        }
        if count < 2 * connections {
            let meaning = "a closed connection keeps its port for a minute, so new ones may find \
                           none at many a second";
            return change(Check::note(NAME, value, meaning));
        }
        Check::ok(NAME, value)
    })
}
