//! Kinds of exchanges: interim responses, old clients, framings, pipelining.

use crate::support::{GET, OK, Proxy, Upstream, on_each_driver, wait_until};

const EXPECTING: &str =
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";

#[test]
fn a_final_answer_instead_of_100_reaches_the_client_and_no_body_is_sent() {
    // Goal: a refused expectation. Method: the endpoint answers 417 at the head.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.head().expect("a request");
            link.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
            assert!(link.rest().0.is_empty(), "a body was sent");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        let answer = client.ask(EXPECTING);
        assert_eq!(answer.status(), 417);
        assert!(answer.closes());
        client.assert_closed();
    });
}

#[test]
fn a_100_reaches_the_client_before_its_body_and_the_final_answer_after_it() {
    // Goal: 100-continue through the proxy. Method: neither side goes on before the other has.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            while let Ok(head) = link.head() {
                assert!(head.contains("Expect: 100-continue\r\n"), "{head}");
                link.send("HTTP/1.1 100 Continue\r\n\r\n");
                let request = link.body(head).expect("the body");
                assert_eq!(request.text(), "hello");
                link.send(OK);
            }
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        for _ in 0..2 {
            client.send(EXPECTING);
            assert_eq!(
                client.head().expect("an interim response"),
                "HTTP/1.1 100 Continue\r\n\r\n"
            );
            client.send("hello");
            let answer = client.answer();
            assert_eq!(answer.status(), 200);
            assert!(!answer.closes());
        }
    });
}

#[test]
fn early_hints_reach_a_client_that_knows_them_and_no_other() {
    // Goal: 103, relayed to HTTP/1.1 and dropped for HTTP/1.0. Method: read the next head.
    on_each_driver(|driver| {
        let answer = format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{OK}");
        let upstream = Upstream::answering(&answer);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send(GET);
        let head = client.head().expect("an interim response");
        assert_eq!(head, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        assert_eq!(client.answer().text(), "ok");
        let mut old = proxy.connect();
        old.send("GET / HTTP/1.0\r\n\r\n");
        assert!(old.head().expect("a head").starts_with("HTTP/1.1 200 OK\r\n"));
    });
}

#[test]
fn an_old_client_gets_a_chunked_answer_without_chunks_until_the_end_of_the_connection() {
    // Goal: HTTP/1.0 has no chunks. Method: compare the bytes behind the head.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
        );
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let head = client.head().expect("a head");
        assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{head}");
        let answer = client.body(head).expect("a body");
        assert_eq!(answer.text(), "abcde");
    });
}

#[test]
fn an_answer_that_ends_with_its_connection_is_chunked_and_the_client_goes_on() {
    // Goal: close-delimited answers. Method: two requests on one client connection.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send("HTTP/1.0 200 OK\r\n\r\nhello");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        for _ in 0..2 {
            let answer = client.ask(GET);
            assert_eq!(answer.field("Transfer-Encoding"), Some("chunked"));
            assert_eq!(answer.text(), "hello");
        }
        assert_eq!(upstream.connections(), 2);
    });
}

#[test]
fn trailers_reach_the_client_that_asked_for_them() {
    // Goal: trailers of answers and requests. Method: with and without TE: trailers.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nSum: 1\r\n\r\n",
        );
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).trailers, "\r\n");
        let asking = "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\
             Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nOurs: 2\r\n\r\n";
        assert_eq!(client.ask(asking).trailers, "Sum: 1\r\n\r\n");
        assert_eq!(upstream.requests()[1].trailers, "Ours: 2\r\n\r\n");
    });
}

#[test]
fn an_answer_to_head_has_no_body_and_the_next_answer_follows_it() {
    // Goal: HEAD. Method: HEAD and GET in one write, an answer with Content-Length to each.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            while let Some(request) = link.request() {
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
                let body = if request.head.starts_with("HEAD") { "" } else { "ok" };
                link.send(format!("{head}{body}"));
            }
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send(format!("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n{GET}"));
        let head = client.head().expect("the answer to HEAD");
        assert!(head.contains("Content-Length: 2\r\n"), "{head}");
        assert_eq!(client.answer().text(), "ok");
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn fifty_requests_in_one_write_are_answered_in_order() {
    // Goal: pipelining, bodies included. Method: the endpoint answers with what it was asked for.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            while let Some(request) = link.request() {
                let asked = request.head.split(' ').nth(1).expect("a target").to_owned();
                let body = format!("{asked} {}", request.text());
                link.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                ));
            }
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        let requests: String = (0..50)
            .map(|n| match n % 3 {
                0 => format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n"),
                1 => format!("PUT /{n} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{n:02}"),
                _ => format!(
                    "PUT /{n} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                     2\r\n{n:02}\r\n0\r\n\r\n"
                ),
            })
            .collect();
        client.send(requests);
        for n in 0..50 {
            let body = if n % 3 == 0 { String::new() } else { format!("{n:02}") };
            assert_eq!(client.answer().text(), format!("/{n} {body}"));
        }
        assert_eq!(upstream.connections(), 1);
        assert_eq!(proxy.count("requests"), 50);
    });
}

#[test]
fn a_client_that_resets_while_it_waits_lets_the_endpoint_go() {
    // Goal: nobody works for a client that is gone. Method: the endpoint holds its answer back
    // until its connection ends, after a request without a body and one whose body came later.
    on_each_driver(|driver| {
        for body_later in [false, true] {
            let upstream = Upstream::start(|mut link| {
                link.request();
                link.rest();
            });
            let proxy = Proxy::start(driver, &[upstream.address], "");
            let mut client = proxy.connect();
            if body_later {
                client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
                wait_until("half is sent", || proxy.count("request_body_bytes") == 5);
                client.send("56789");
            } else {
                client.send(GET);
            }
            wait_until("the request has arrived", || upstream.requests().len() == 1);
            client.reset();
            proxy.wait_for_count("client_gone", 1);
            proxy.wait_for_connections(0);
        }
    });
}

#[test]
fn an_answer_cut_short_by_its_endpoint_is_cut_short_for_the_client() {
    // Goal: no answer is completed that was not whole. Method: half a body in each framing, then
    // the end of the connection.
    on_each_driver(|driver| {
        let halves = ["Content-Length: 4\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n4\r\nab"];
        for half in halves {
            let upstream = Upstream::start(move |mut link| {
                link.request();
                link.send(format!("HTTP/1.1 200 OK\r\n{half}"));
            });
            let proxy = Proxy::start(driver, &[upstream.address], "");
            let mut client = proxy.connect();
            client.send(GET);
            assert!(client.try_answer().is_err(), "the answer looks whole");
            let mut old = proxy.connect();
            old.send("GET / HTTP/1.0\r\n\r\n");
            let whole = old.try_answer();
            assert!(whole.is_err(), "the answer looks whole: {whole:?}");
        }
    });
}
