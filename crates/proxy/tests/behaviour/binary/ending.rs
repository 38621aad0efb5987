//! Signals and exit statuses.

use std::net::TcpListener;

use super::process::{Process, run};
use crate::support::{GET, OK, Upstream, wait_until};

#[test]
fn a_port_that_is_taken_is_named_and_ends_with_1() {
    // Goal: a failed start. Method: this test listens there.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound").to_string();
    for cores in ["1", "2"] {
        let ended = run(&["--listen", &address, "--upstream", "127.0.0.1:9", "--cores", cores]);
        assert_eq!(ended.exit, 1);
        assert!(ended.stderr.contains(&address), "{}", ended.stderr);
    }
    let ended = run(&["origin", "--listen", &address]);
    assert_eq!(ended.exit, 1);
    assert!(ended.stderr.contains(&address), "{}", ended.stderr);
}

#[test]
fn a_signal_to_stop_ends_it_with_0_once_what_is_under_way_is_answered() {
    // Goal: SIGTERM. Method: a request that the endpoint answers only after the signal was heard.
    let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
    let released = std::sync::Mutex::new(released);
    let upstream = Upstream::start(move |mut link| {
        link.request();
        let wait = released.lock().expect("nobody panics with it");
        wait.recv_timeout(crate::support::PATIENCE).expect("the test goes on");
        link.send(OK);
    });
    let endpoint = upstream.address.to_string();
    let mut baton = Process::start(&["--listen", "127.0.0.1:0", "--upstream", &endpoint]);
    let mut client = baton.connect();
    client.send(GET);
    wait_until("the request has arrived", || upstream.requests().len() == 1);
    baton.signal("TERM");
    baton.wait_for_log("stopping");
    release.send(()).expect("the endpoint waits");
    assert_eq!(client.answer().text(), "ok");
    assert_eq!(baton.wait().code(), Some(0));
    assert!(baton.log().contains("stopped"), "{}", baton.log());
    assert_eq!(baton.stdout(), "");
}

#[test]
fn a_second_signal_to_stop_ends_it_at_once() {
    // Goal: an operator in a hurry. Method: a request that is never answered holds the first stop.
    let upstream = Upstream::start(|mut link| {
        link.request();
        link.rest();
    });
    let endpoint = upstream.address.to_string();
    let mut baton = Process::start(&[
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &endpoint,
        "--timeout-drain",
        "1h",
    ]);
    let mut client = baton.connect();
    client.send(GET);
    wait_until("the request has arrived", || upstream.requests().len() == 1);
    baton.signal("TERM");
    baton.wait_for_log("stopping");
    baton.signal("TERM");
    assert_eq!(baton.wait().code(), Some(1));
}

#[test]
fn usr1_logs_the_counters_and_it_goes_on() {
    // Goal: counters without an admin port. Method: one request, then the signal, twice.
    let upstream = Upstream::answering(OK);
    let endpoint = upstream.address.to_string();
    let mut baton = Process::start(&["--listen", "127.0.0.1:0", "--upstream", &endpoint]);
    let mut client = baton.connect();
    assert_eq!(client.ask(GET).status(), 200);
    baton.signal("USR1");
    baton.wait_for_log("requests=1 ");
    assert_eq!(client.ask(GET).status(), 200);
    baton.signal("USR1");
    baton.wait_for_log("requests=2 ");
    // An answer is counted once it is sent, so the second one may be counted later than it is read.
    assert!(baton.log().contains("answers_2xx="), "{}", baton.log());
    baton.signal("TERM");
    assert_eq!(baton.wait().code(), Some(0));
}
