//! The end of the proxy: what is under way ends, nothing new begins.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{
    GET, OK, PATIENCE, Proxy, Upstream, on_each_driver, on_each_driver_in_time, wait_until,
};

/// Answers each request when told to by a byte on the returned channel's other end.
fn held() -> (Upstream, std::sync::mpsc::SyncSender<()>) {
    let (release, released) = std::sync::mpsc::sync_channel(16);
    let released = std::sync::Mutex::new(released);
    let upstream = Upstream::start(move |mut link| {
        while link.request().is_some() {
            let wait = released.lock().expect("nobody panics with it").recv_timeout(PATIENCE);
            if wait.is_err() || link.try_send(OK).is_err() {
                return;
            }
        }
    });
    (upstream, release)
}

#[test]
fn an_exchange_that_never_ends_is_cut_at_the_bound() {
    // Goal: the drain bound. Method: an endpoint that never answers; stop returns false in time,
    // and the client's connection ends.
    on_each_driver_in_time(|driver| {
        let (upstream, _release) = held();
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send(GET);
        wait_until("the request has arrived", || upstream.requests().len() == 1);
        let (start, bound) = (Instant::now(), Duration::from_millis(700));
        assert!(!proxy.stop(bound));
        crate::support::assert_took(start, bound);
        client.rest();
    });
}

#[test]
fn a_request_under_way_is_answered_and_its_connection_closes() {
    // Goal: nothing accepted is lost. Method: the endpoint answers only after the drain began.
    on_each_driver(|driver| {
        let (upstream, release) = held();
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send(GET);
        wait_until("the request has arrived", || upstream.requests().len() == 1);
        let address = proxy.address;
        let stopping = thread::spawn(move || proxy.stop(PATIENCE));
        wait_until("new connections are refused", || TcpStream::connect(address).is_err());
        release.send(()).expect("the endpoint waits");
        let answer = client.answer();
        assert_eq!(answer.text(), "ok");
        assert!(answer.closes(), "{}", answer.head);
        client.assert_closed();
        assert!(stopping.join().expect("no panic"), "it did not end by itself");
    });
}

#[test]
fn a_request_on_an_idle_connection_that_crosses_the_stop_is_answered() {
    // Goal: a client that could not know is served once more. Method: a request on a kept
    // connection right after the drain began.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        assert!(!client.ask(GET).closes());
        proxy.server().runtime().drain();
        wait_until("the drain has begun", || TcpStream::connect(proxy.address).is_err());
        let answer = client.ask(GET);
        assert_eq!(answer.text(), "ok");
        assert!(answer.closes());
        client.assert_closed();
        assert!(proxy.stop(PATIENCE));
    });
}

#[test]
fn idle_connections_do_not_hold_up_the_stop() {
    // Goal: idle clients and kept connections to endpoints are let go soon. Method: one of each,
    // with bounds of an hour.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = "[timeout]\nkeep_alive = \"1h\"\n[pool]\nidle_timeout = \"1h\"";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 200);
        let mut silent = proxy.connect();
        proxy.wait_for_connections(2);
        let start = Instant::now();
        assert!(proxy.stop(PATIENCE));
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        client.assert_closed();
        silent.assert_closed();
    });
}
