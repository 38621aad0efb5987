//! When a request is sent once more, and when it must not be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::upstream::nobody;
use crate::support::{GET, OK, Proxy, Upstream, on_each_driver, one_connection};

const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
const PUT: &str = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";

/// Its first connection answers once, then reads one more request and closes without a byte,
/// or after `said`. All others answer.
fn closing_on_reuse(said: &'static str) -> Upstream {
    Upstream::start(move |mut link| {
        if link.number == 0 {
            link.request();
            link.send(OK);
            link.request();
            link.send(said);
            return;
        }
        while link.request().is_some() {
            link.send(OK);
        }
    })
}

#[test]
fn a_post_on_a_reused_connection_that_closes_is_not_sent_again() {
    // Goal: what is not idempotent is sent once. Method: GET, then POST on the same connection.
    on_each_driver(|driver| {
        let upstream = closing_on_reuse("");
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 200);
        assert_eq!(client.ask(POST).status(), 502);
        let posts = upstream.requests().iter().filter(|one| one.head.starts_with("POST")).count();
        assert_eq!(posts, 1);
        assert_eq!(proxy.count("upstream_retries"), 0);
        proxy.wait_for_count("upstream_no_answer", 1);
        assert_eq!(client.ask(GET).status(), 200, "the client's connection goes on");
    });
}

#[test]
fn a_request_of_which_a_byte_was_answered_is_not_sent_again() {
    // Goal: no retry after one byte of an answer. Method: the reused connection says `H` and ends.
    on_each_driver(|driver| {
        let upstream = closing_on_reuse("H");
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 200);
        assert_eq!(client.ask(GET).status(), 502);
        assert_eq!(upstream.requests().len(), 2);
        assert_eq!(proxy.count("upstream_retries"), 0);
    });
}

#[test]
fn a_request_whose_body_came_later_is_not_sent_again() {
    // Goal: no retry once body bytes are gone. Method: an idempotent PUT whose body follows its
    // head once that is at the upstream, on a reused connection that closes.
    on_each_driver(|driver| {
        let (seen, head_seen) = std::sync::mpsc::sync_channel(1);
        let upstream = Upstream::start(move |mut link| {
            link.request();
            link.send(OK);
            let head = link.head().expect("a second request");
            seen.send(()).expect("the test waits");
            link.body(head).expect("its body");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 200);
        client.send(&PUT[..PUT.len() - 2]);
        head_seen.recv_timeout(crate::support::PATIENCE).expect("the head arrives");
        client.send("hi");
        assert_eq!(client.answer().status(), 502);
        assert_eq!(upstream.connections(), 1);
        assert_eq!(proxy.count("upstream_retries"), 0);
    });
}

#[test]
fn a_get_on_a_fresh_connection_that_closes_is_a_502() {
    // Goal: a fresh connection proves that the endpoint means it. Method: it always closes.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 502);
        assert_eq!(upstream.connections(), 1);
        assert_eq!(proxy.count("upstream_retries"), 0);
        proxy.wait_for_count("upstream_no_answer", 1);
    });
}

#[test]
fn an_idempotent_request_on_a_reused_connection_that_closes_is_sent_again() {
    // Goal: the safe retry. Method: GET, and PUT whose whole body came with its head.
    on_each_driver(|driver| {
        for request in [GET, PUT] {
            let upstream = closing_on_reuse("");
            let proxy = Proxy::start(driver, &[upstream.address], "");
            let mut client = proxy.connect();
            assert_eq!(client.ask(GET).status(), 200);
            assert_eq!(client.ask(request).status(), 200);
            assert_eq!(upstream.connections(), 2);
            proxy.wait_for_count("upstream_retries", 1);
            let requests = upstream.requests();
            assert_eq!(requests[1].head, requests[2].head);
            assert_eq!(requests[1].body, requests[2].body);
            assert_eq!(client.ask(GET).status(), 200, "the client's connection goes on");
        }
    });
}

#[test]
fn a_request_goes_to_another_endpoint_where_one_refuses_connections() {
    // Goal: a failed connect is tried elsewhere. Method: one of two endpoints does not listen;
    // each request, on connections of their own, is answered.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[nobody(), upstream.address], "[pool]\nidle = 0");
        for _ in 0..64 {
            assert_eq!(proxy.ask(POST).status(), 200);
        }
        // After five failures in a row it is left out for longer than this takes.
        assert!((3..=5).contains(&proxy.count("upstream_connect_failed")));
        assert_eq!(proxy.count("upstream_connect_failed"), proxy.count("upstream_retries"));
    });
}

#[test]
fn a_request_is_a_502_where_all_endpoints_refuse_connections() {
    // Goal: the bound of tries. Method: three endpoints, none of which listens.
    on_each_driver(|driver| {
        let proxy = Proxy::start(driver, &[nobody(), nobody(), nobody()], "");
        let answer = proxy.ask(GET);
        assert_eq!(answer.status(), 502);
        assert_eq!(answer.text(), "502 Bad Gateway\nthe upstream refused the connection\n");
        proxy.wait_for_count("upstream_connect_failed", 2);
        assert_eq!(proxy.count("upstream_retries"), 1);
    });
}

#[test]
fn requests_are_spread_over_the_endpoints_and_connections_are_kept_to_each() {
    // Goal: both endpoints are used, with keep-alive. Method: sixty-four requests, one at a time; by
    // chance one of two equal endpoints is left out once in 2^63 runs.
    on_each_driver(|driver| {
        let (one, other) = (Upstream::answering(OK), Upstream::answering(OK));
        let proxy = Proxy::start(driver, &[one.address, other.address], "");
        let mut client = proxy.connect();
        for _ in 0..64 {
            assert_eq!(client.ask(GET).status(), 200);
        }
        assert_eq!(one.requests().len() + other.requests().len(), 64);
        assert_eq!((one.connections(), other.connections()), (1, 1));
        assert_eq!(proxy.count("upstream_reuses"), 62);
    });
}

#[test]
fn a_kept_connection_on_which_something_unasked_came_is_not_used() {
    // Goal: an answer that nobody asked for reaches nobody. Method: the endpoint sends one behind
    // its answer, at once and when the connection is idle.
    on_each_driver(|driver| {
        let turn = Arc::new(AtomicUsize::new(0));
        let upstream = Upstream::start({
            let turn = turn.clone();
            move |mut link| {
                link.request();
                link.send(OK);
                if link.number == 1 {
                    link.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
                }
                turn.fetch_add(1, Ordering::SeqCst);
                while link.request().is_some() {
                    link.send(OK);
                }
            }
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut clients = [proxy.connect(), proxy.connect()];
        for round in 0..4 {
            for client in &mut clients {
                assert_eq!(client.ask(GET).text(), "ok", "in round {round}");
            }
        }
        assert!(turn.load(Ordering::SeqCst) >= 1);
    });
}

#[test]
fn a_retry_does_not_wait_for_the_connection_that_failed() {
    // Goal: with one connection allowed, the retry has the place of the first attempt. Method: the
    // reused connection closes without a byte; the queue is longer than the test's patience.
    on_each_driver(|driver| {
        let upstream = closing_on_reuse("");
        let proxy = Proxy::with(driver, &one_connection(&upstream));
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 200);
        assert_eq!(client.ask(GET).status(), 200);
        assert_eq!(proxy.count("upstream_retries"), 1);
    });
}
