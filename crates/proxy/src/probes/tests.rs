//! Names and checks against servers on this machine, each on a port of its own.

mod endpoint;
mod name_server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hickory_resolver::Hosts;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use self::endpoint::{Endpoint, Manner};
use self::name_server::{NameServer, Zone};
use super::Probes;
use super::resolve::Resolver;
use crate::config::{self, HealthConfig, PoolConfig, UpstreamAddr, parse_upstream};
use crate::upstream::{EndpointState, Health, UpstreamState};

/// Longer than anything here takes; a test that waits for so long has failed.
const BOUND: Duration = Duration::from_secs(20);

/// A thread that runs tasks, as the control plane does.
struct ControlThread {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ControlThread {
    fn start() -> ControlThread {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _told = runtime.block_on(stopped);
        });
        ControlThread { handle, stop: Some(stop), thread: Some(thread) }
    }

    /// Probes that ask `server` alone.
    fn probes(&self, upstreams: &[Arc<UpstreamState>], server: &NameServer) -> Probes {
        let config = server.config();
        Probes::start_with(&self.handle, upstreams, Box::new(move || asks(config.clone())))
    }
}

impl Drop for ControlThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))), "the control thread panicked");
    }
}

/// A resolver that waits for an answer only briefly, and asks twice.
fn asks(config: ResolverConfig) -> Resolver {
    let mut options = ResolverOpts::default();
    options.timeout = Duration::from_millis(100);
    options.attempts = 1;
    Resolver::new(Hosts::default(), config, options)
}

/// An upstream named `api` of these endpoints.
fn upstream(endpoints: &[&str], health: Option<HealthConfig>) -> Arc<UpstreamState> {
    let endpoints = endpoints.iter().map(|text| config::Endpoint {
        address: parse_upstream(text).expect("an address"),
        weight: 1,
        backup: false,
    });
    let mut config =
        config::Upstream::new("api".into(), endpoints.collect(), PoolConfig::default());
    config.health = health;
    Arc::new(UpstreamState::new(config, 1, None))
}

/// Checks as often as can be.
fn health() -> HealthConfig {
    HealthConfig {
        interval: Duration::from_millis(10),
        timeout: Duration::from_secs(5),
        ..HealthConfig::new("/live?x=1".into())
    }
}

fn addresses(upstream: &UpstreamState) -> Vec<String> {
    upstream.endpoints().iter().map(|endpoint| endpoint.address.to_string()).collect()
}

fn first(upstream: &UpstreamState) -> Arc<EndpointState> {
    upstream.endpoints()[0].clone()
}

/// Waits until `condition` holds, which other threads bring about.
#[track_caller]
fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + BOUND;
    while !condition() {
        assert!(Instant::now() < end, "in vain waited for this: {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

#[test]
fn a_name_that_is_unknown_at_first_is_tried_again_until_it_is_there() {
    let control = ControlThread::start();
    let server = NameServer::start(&control.handle, Zone::Unknown);
    let upstream = upstream(&["b.test:80", "192.0.2.9:80"], None);
    let probes = control.probes(std::slice::from_ref(&upstream), &server);
    assert!(probes.first_round(BOUND));
    assert_eq!(addresses(&upstream), ["192.0.2.9:80"], "others are there in the meantime");
    server.set(Zone::addresses(&["192.0.2.2", "192.0.2.1", "192.0.2.2", "2001:db8::1"], 60));
    until("the name is there", || upstream.endpoints().len() > 1);
    let expected = ["192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80", "192.0.2.9:80"];
    assert_eq!(addresses(&upstream), expected);
}

#[test]
fn changed_addresses_are_seen_when_the_answer_is_too_old_and_failures_change_nothing() {
    let control = ControlThread::start();
    let server = NameServer::start(&control.handle, Zone::addresses(&["192.0.2.1"], 1));
    let upstream = upstream(&["b.test:80"], None);
    let probes = control.probes(std::slice::from_ref(&upstream), &server);
    assert!(probes.first_round(BOUND));
    assert_eq!(addresses(&upstream), ["192.0.2.1:80"]);
    let kept = first(&upstream);
    for failing in [Zone::Unknown, Zone::Fails, Zone::Silent] {
        server.set(failing);
        let asked = server.asked();
        until("it is asked again", || server.asked() > asked);
    }
    assert_eq!(addresses(&upstream), ["192.0.2.1:80"]);
    server.set(Zone::addresses(&["192.0.2.2", "192.0.2.1"], 1));
    until("the addresses have changed", || upstream.endpoints().len() == 2);
    assert!(Arc::ptr_eq(&kept, &first(&upstream)), "what is known of an endpoint is kept");
}

#[test]
fn a_silent_name_server_delays_the_first_round_up_to_its_bound_alone() {
    let control = ControlThread::start();
    let server = NameServer::start(&control.handle, Zone::Silent);
    let upstream = upstream(&["b.test:80"], None);
    let mut probes = control.probes(std::slice::from_ref(&upstream), &server);
    assert!(!probes.first_round(Duration::ZERO));
    assert!(probes.first_round(BOUND), "no answer in time counts as tried");
    assert!(upstream.endpoints().is_empty());
    probes.replace(&[]);
    assert!(probes.first_round(Duration::ZERO), "nothing is left");
}

#[test]
fn one_kind_of_addresses_stays_while_nobody_can_say_that_it_is_gone() {
    let control = ControlThread::start();
    let both = Zone::addresses(&["192.0.2.1", "2001:db8::1"], 1);
    let server = NameServer::start(&control.handle, both);
    let upstream = upstream(&["b.test:80"], None);
    let probes = control.probes(std::slice::from_ref(&upstream), &server);
    assert!(probes.first_round(BOUND));
    assert_eq!(upstream.endpoints().len(), 2);
    server.set(Zone::OnlyV4("192.0.2.1".parse().expect("an address")));
    let (refused, version) = (server.refused(), upstream.version());
    until("the other kind fails for good", || server.refused() > refused + 3);
    assert_eq!(upstream.version(), version);
    server.set(Zone::addresses(&["192.0.2.1"], 1));
    until("it is gone", || upstream.endpoints().len() == 1);
}

#[test]
fn search_domains_are_tried() {
    let control = ControlThread::start();
    let server = NameServer::start(&control.handle, Zone::addresses(&["192.0.2.1"], 60));
    let upstream = upstream(&["b:80"], None);
    let mut config = server.config();
    config.add_search("test.".parse().expect("a name"));
    let read = Box::new(move || asks(config.clone()));
    let probes = Probes::start_with(&control.handle, std::slice::from_ref(&upstream), read);
    assert!(probes.first_round(BOUND));
    assert_eq!(addresses(&upstream), ["192.0.2.1:80"]);
}

#[test]
fn a_reload_looks_names_up_again_and_leaves_those_gone_alone() {
    let control = ControlThread::start();
    let server = NameServer::start(&control.handle, Zone::addresses(&["192.0.2.1"], 3_600));
    let (stays, goes) = (upstream(&["b.test:80"], None), upstream(&["b.test:81"], None));
    let mut probes = control.probes(&[stays.clone(), goes.clone()], &server);
    assert!(probes.first_round(BOUND));
    server.set(Zone::addresses(&["192.0.2.2"], 3_600));
    let comes = upstream(&["b.test:82"], None);
    probes.replace(&[comes.clone(), stays.clone()]);
    assert!(probes.first_round(BOUND));
    assert_eq!(addresses(&comes), ["192.0.2.2:82"]);
    until("the answer is new", || addresses(&stays) == ["192.0.2.2:80"]);
    assert_eq!(addresses(&goes), ["192.0.2.1:81"]);
    until("its task has let go of it", || Arc::strong_count(&goes) == 1);
    drop(probes);
    until("all tasks have ended", || Arc::strong_count(&stays) == 1);
}

#[test]
fn the_system_s_own_configuration_resolves_the_name_of_this_machine() {
    let control = ControlThread::start();
    let upstream = upstream(&["localhost:80"], None);
    let probes = Probes::start(&control.handle, std::slice::from_ref(&upstream));
    assert!(probes.first_round(BOUND));
    assert!(upstream.endpoints().iter().all(|endpoint| endpoint.address.ip().is_loopback()));
    assert!(!upstream.endpoints().is_empty());
}

#[test]
fn an_endpoint_that_answers_badly_goes_down_and_comes_back() {
    let control = ControlThread::start();
    let bad = [
        Manner::Closes,
        Manner::Says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        Manner::Says(b"HTTP/1.1 200 OK\nServer: bare line feeds\n\n"),
        Manner::Says(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
        Manner::Says(b"HTTP/1.1 199 Early\r\n\r\nHTTP/1.1 300 Choices\r\n\r\n"),
        Manner::SaysForEver(b"HTTP/1.1 100 Continue\r\n\r\n"),
    ];
    let good = [
        Manner::Says(b"HTTP/1.1 204 No Content\r\n\r\n"),
        Manner::Says(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.0 200 OK\r\n\r\nbody"),
    ];
    let server = Endpoint::start(good[0]);
    let upstream = upstream(&[&server.address.to_string()], Some(health()));
    let _probes = Probes::start(&control.handle, std::slice::from_ref(&upstream));
    let endpoint = first(&upstream);
    until("it is up", || endpoint.health() == Health::Up);
    for (index, manner) in bad.into_iter().enumerate() {
        server.set(manner);
        until(&format!("down by {manner:?}"), || endpoint.health() == Health::Down);
        server.set(good[index % good.len()]);
        until("up again", || endpoint.health() == Health::Up);
    }
    let (checks, failures) = (&endpoint.checks.checks, &endpoint.checks.failures);
    assert!(failures.load(Ordering::Relaxed) >= 3 * bad.len() as u64);
    assert!(checks.load(Ordering::Relaxed) > failures.load(Ordering::Relaxed));
}

#[test]
fn an_endpoint_that_refuses_or_hangs_is_down() {
    let control = ControlThread::start();
    let server = Endpoint::start(Manner::Hangs);
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let refusing = port.local_addr().expect("bound");
    drop(port);
    let config = HealthConfig { timeout: Duration::from_millis(50), ..health() };
    let endpoints = [server.address.to_string(), refusing.to_string()];
    let upstream = upstream(&[&endpoints[0], &endpoints[1]], Some(config));
    let _probes = Probes::start(&control.handle, std::slice::from_ref(&upstream));
    let all_down = || upstream.endpoints().iter().all(|one| one.health() == Health::Down);
    until("both are down", all_down);
}

#[test]
fn a_check_says_who_asks_for_what() {
    let control = ControlThread::start();
    for host in [None, Some("health.test".to_owned())] {
        let server = Endpoint::start(Manner::Says(b"HTTP/1.1 200 OK\r\n\r\n"));
        let address = server.address.to_string();
        let config = HealthConfig { host: host.clone(), ..health() };
        let upstream = upstream(&[&address], Some(config));
        let _probes = Probes::start(&control.handle, std::slice::from_ref(&upstream));
        until("it was checked", || first(&upstream).health() == Health::Up);
        let expected = format!(
            "GET /live?x=1 HTTP/1.1\r\nHost: {}\r\nUser-Agent: baton-health/{}\r\n\
             Connection: close\r\n\r\n",
            host.unwrap_or(address),
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(server.last_request(), expected);
    }
}

#[test]
fn endpoints_of_names_are_checked_from_when_they_are_there_until_they_are_gone() {
    let control = ControlThread::start();
    let names = NameServer::start(&control.handle, Zone::Unknown);
    let server = Endpoint::start(Manner::Says(b"HTTP/1.1 200 OK\r\n\r\n"));
    let name = format!("b.test:{}", server.address.port());
    let upstream = upstream(&[&name], Some(health()));
    let mut probes = control.probes(std::slice::from_ref(&upstream), &names);
    assert!(probes.first_round(BOUND));
    names.set(Zone::addresses(&["127.0.0.1"], 1));
    until("it is checked", || {
        upstream.endpoints().first().is_some_and(|one| one.health() == Health::Up)
    });
    let gone = first(&upstream);
    assert_eq!(gone.address, SocketAddr::from(([127, 0, 0, 1], server.address.port())));
    names.set(Zone::addresses(&["127.0.0.2"], 1));
    until("another has come", || first(&upstream).address != gone.address);
    // One is ours, and what the upstream remembers of it is weak.
    until("nobody checks the first any more", || Arc::strong_count(&gone) == 1);
    probes.replace(&[]);
    let last = first(&upstream);
    until("nobody checks the last any more", || Arc::strong_count(&last) == 2);
    assert!(matches!(upstream.config().endpoints[0].address, UpstreamAddr::Name { .. }));
}
