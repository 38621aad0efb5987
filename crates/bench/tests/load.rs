//! Loads against the origin over loopback, on each driver this machine has.

use std::net::{Ipv4Addr, TcpListener};

use baton_bench::load::{self, Args, Failure, Report};
use baton_proxy::origin::{self, OriginOptions, Temper};
use baton_runtime::{DriverChoice, Runtime};
use clap::Parser;

fn start_origin() -> Runtime {
    let listen = vec![(Ipv4Addr::LOCALHOST, 0).into()];
    let options =
        OriginOptions { listen, cores: Some(1), driver: DriverChoice::Poll, temper: Temper::Even };
    origin::start(&options).expect("the origin starts")
}

/// Runs a load of 0.3 s with further `arguments`.
fn load(origin: &Runtime, path: &str, arguments: &[&str]) -> Report {
    let url = format!("http://{}{path}", origin.addresses()[0]);
    let common = ["baton-load", "--url", &url, "--seconds", "0.3", "--connections", "8"];
    let args = Args::parse_from(common.iter().chain(arguments));
    load::run(&args.plan().expect("it is a plan")).expect("the load runs")
}

#[test]
fn a_server_that_is_not_there_fails_every_request_without_a_busy_loop() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let url = format!("http://{}/", free.local_addr().expect("it is bound"));
    drop(free);
    let args = ["baton-load", "--url", &url, "--seconds", "0.3", "--connections", "2"];
    let report = load::run(&Args::parse_from(args).plan().expect("a plan")).expect("it runs");
    assert_eq!(report.succeeded(), 0);
    assert_eq!(report.failures().keys().collect::<Vec<_>>(), [&Failure::Connect]);
    assert!(report.failed() <= 2 * (300 / 10 + 2), "{report}");
}

#[test]
fn a_status_that_is_no_success_is_a_failure_of_its_own_kind() {
    let report = load(&start_origin(), "/status/503", &[]);
    assert_eq!(report.succeeded(), 0);
    assert_eq!(report.failures().keys().collect::<Vec<_>>(), [&Failure::Status(503)]);
}

#[test]
fn a_closed_loop_succeeds_on_each_driver_and_framing() {
    let origin = start_origin();
    for driver in ["poll", "auto"] {
        for path in ["/bytes/100", "/bytes/300000", "/chunked/100000", "/status/204", "/hints"] {
            let report = load(&origin, path, &["--driver", driver, "--cores", "2"]);
            assert_eq!(report.failed(), 0, "{path} on {driver}: {report}");
            assert!(report.succeeded() > 0, "{path} on {driver}: {report}");
            assert!(report.latency(0.5) <= report.latency(1.0));
        }
    }
}

#[test]
fn bodies_and_methods_reach_the_server() {
    let origin = start_origin();
    let post = ["--method", "POST", "--body-bytes", "200000"];
    assert_eq!(load(&origin, "/upload", &post).failed(), 0);
    assert_eq!(load(&origin, "/bytes/100", &["--method", "HEAD"]).failed(), 0);
}

#[test]
fn new_connections_are_as_many_as_requests() {
    let origin = start_origin();
    let report = load(&origin, "/bytes/100", &["--new-connections"]);
    assert_eq!(report.failed(), 0, "{report}");
    assert_eq!(origin.counters(0).accepted.read(), report.succeeded());
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let report = load(&start_origin(), "/bytes/100", &["--rate", "1000"]);
    assert_eq!(report.failed(), 0, "{report}");
    assert_eq!(report.succeeded() + report.unsent(), 300, "{report}");
}

#[test]
fn an_open_loop_counts_the_wait_for_a_server_that_is_too_slow() {
    // 8 connections of 50 ms each make 160 answers/s; 1000 are due.
    let report = load(&start_origin(), "/delay/50", &["--rate", "1000"]);
    assert_eq!(report.failed(), 0, "{report}");
    assert!(report.unsent() > 200, "{report}");
    assert!(report.latency(1.0).as_millis() > 200, "{report}");
}
