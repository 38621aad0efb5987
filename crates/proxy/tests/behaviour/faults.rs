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

#[test]
fn checks_take_an_endpoint_out_before_a_client_meets_it_and_back_in() {
    // Goal: active health checks. Method: an endpoint answers checks with 503, then with 200; its
    // answers to clients would be wrong all the time.
    on_each_driver(|driver| {
        let ill = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let well = Upstream::answering(OK);
        let is_ill = ill.clone();
        let checked = Upstream::start(move |mut link| {
            while let Some(request) = link.request() {
                let ill = is_ill.load(std::sync::atomic::Ordering::SeqCst);
                let check = request.head.starts_with("GET /health ");
                link.send(if check && ill {
                    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
                } else {
                    OK
                });
            }
        });
        let (well_at, checked_at) = (well.address, checked.address);
        let text = format!(
            "[[listen]]\naddr = \"$LISTEN\"\n[upstream.a]\nendpoints = [\"{well_at}\", \"{checked_at}\"]\n\
             health = {{ path = \"/health\", interval = \"100ms\", timeout = \"100ms\", fall = 1, rise = 1 }}\n\
             [[route]]\nto = \"a\"\n"
        );
        let proxy = Proxy::with(driver, &text);
        // The one that is well gets checks too, and answers each with 200.
        let served = |upstream: &Upstream| {
            let requests = upstream.requests();
            requests.iter().filter(|request| !request.head.starts_with("GET /health ")).count()
        };
        let mut client = proxy.connect();
        wait_until("a check has failed and the endpoint is left out", || {
            let before = served(&checked);
            (0..40).for_each(|_| assert_eq!(client.ask(GET).status(), 200));
            !checked.requests().is_empty() && served(&checked) == before
        });
        ill.store(false, std::sync::atomic::Ordering::SeqCst);
        let before = served(&checked);
        wait_until("it is asked again", || {
            assert_eq!(client.ask(GET).status(), 200);
            served(&checked) > before
        });
    });
}
