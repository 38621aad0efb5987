//! An endpoint that fails beside one that is well.

use std::net::SocketAddr;

use crate::support::upstream::nobody;
use crate::support::{GET, Link, OK, Proxy, Upstream, on_each_driver, wait_until};

/// Requests after which every way of failing has been met.
const ROUNDS: usize = 60;

fn beside(well: SocketAddr, bad: SocketAddr) -> String {
    format!(
        "[[listen]]\naddr = \"$LISTEN\"\n[timeout]\nfirst_byte = \"300ms\"\nconnect = \"300ms\"\n\
         [upstream.a]\nendpoints = [\"{well}\", \"{bad}\"]\n\
         eject = {{ failures = 3, period = \"1s\" }}\n[[route]]\nto = \"a\"\n"
    )
}

fn clients_see_no_failure(bad: impl Fn(Link) + Send + Sync + Copy + 'static, counter: &str) {
    on_each_driver(|driver| {
        let well = Upstream::answering(OK);
        let bad = Upstream::start(bad);
        let proxy = Proxy::with(driver, &beside(well.address, bad.address));
        let mut client = proxy.connect();
        for round in 0..ROUNDS {
            assert_eq!(client.ask(GET).status(), 200, "{round}");
        }
        assert!(proxy.count(counter) >= 3, "{counter} {}", proxy.count(counter));
        assert!(well.requests().len() == ROUNDS);
    });
}

#[test]
fn an_endpoint_that_closes_without_an_answer_is_no_failure_for_clients() {
    clients_see_no_failure(|mut link| drop(link.request()), "upstream_no_answer");
}

#[test]
fn an_endpoint_that_answers_garbage_is_no_failure_for_clients() {
    clients_see_no_failure(
        |mut link| {
            link.request();
            link.send("no HTTP at all\r\n\r\n");
        },
        "upstream_answer_refused",
    );
}

#[test]
fn an_endpoint_that_hangs_is_no_failure_for_clients() {
    clients_see_no_failure(
        |mut link| {
            link.request();
            link.rest();
        },
        "upstream_answer_timeout",
    );
}

#[test]
fn an_endpoint_that_refuses_is_no_failure_for_clients_and_comes_back_by_itself() {
    on_each_driver(|driver| {
        let well = Upstream::answering(OK);
        let gone = nobody();
        let proxy = Proxy::with(driver, &beside(well.address, gone));
        let mut client = proxy.connect();
        for round in 0..ROUNDS {
            assert_eq!(client.ask(GET).status(), 200, "{round}");
        }
        let back = Upstream::start_at(gone, |mut link| {
            while link.request().is_some() {
                link.send(OK);
            }
        });
        wait_until("it is asked again", || {
            assert_eq!(client.ask(GET).status(), 200);
            back.requests().len() > 5
        });
    });
}
