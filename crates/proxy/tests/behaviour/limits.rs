//! Every limit: the status it leads to, its counter, and what becomes of the connection.

use crate::support::{End, GET, OK, Proxy, Upstream, on_each_driver, one_connection, wait_until};

#[test]
fn a_head_a_target_or_fields_over_their_limit_are_refused_and_the_connection_ends() {
    // Goal: 431 and 414 with a counter each. Method: one request just over each limit.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = "[limit]\nhead_bytes = \"1024B\"\ntarget_bytes = \"256B\"\nfields = 4";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        let long_head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(1024));
        let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(256));
        let many_fields = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(4));
        for (request, status, counter, count) in [
            (long_head, 431, "request_head_over_limit", 1),
            (many_fields, 431, "request_head_over_limit", 2),
            (long_target, 414, "request_target_over_limit", 1),
        ] {
            let mut client = proxy.connect();
            let answer = client.ask(&request);
            assert_eq!(answer.status(), status, "{}", answer.head);
            assert!(answer.closes());
            client.assert_closed();
            proxy.wait_for_count(counter, count);
        }
        assert_eq!(upstream.connections(), 0);
        assert_eq!(proxy.count("answers_4xx"), 3);
    });
}

#[test]
fn what_is_just_within_the_limits_of_a_head_passes() {
    // Goal: the limits are not off by one. Method: a head of exactly the limit, fields and target
    // as many as allowed.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = "[limit]\nhead_bytes = \"1024B\"\ntarget_bytes = \"256B\"\nfields = 4";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        let target = format!("/{}", "x".repeat(255));
        let mut head = format!("GET {target} HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\nX: ");
        head.push_str(&"x".repeat(1024 - 4 - head.len()));
        head.push_str("\r\n\r\n");
        assert_eq!(head.len(), 1024);
        assert_eq!(proxy.ask(&head).status(), 200);
    });
}

#[test]
fn a_declared_body_over_the_limit_is_refused_before_it_is_sent_on() {
    // Goal: 413 by Content-Length. Method: the head alone; the body never comes.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "[limit]\nbody_bytes = \"10B\"");
        let mut client = proxy.connect();
        let answer = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
        assert_eq!(answer.status(), 413);
        assert!(answer.closes());
        client.assert_closed();
        proxy.wait_for_count("request_body_over_limit", 1);
        assert_eq!(upstream.connections(), 0);
        let ten = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
        assert_eq!(proxy.ask(ten).status(), 200);
    });
}

#[test]
fn a_chunked_body_over_the_limit_is_refused_wherever_it_is_cut() {
    // Goal: 413 also where no length is declared. Method: with the head in one write, and in pieces
    // of which each is within the limit; the upstream never sees the end of the body.
    const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "[limit]\nbody_bytes = \"10B\"");
        let whole = format!("{HEAD}b\r\n0123456789a\r\n0\r\n\r\n");
        let mut client = proxy.connect();
        let answer = client.ask(&whole);
        assert_eq!(answer.status(), 413);
        assert!(answer.closes());
        client.assert_closed();
        let mut client = proxy.connect();
        client.send(format!("{HEAD}6\r\n012345\r\n"));
        wait_until("the first piece is on its way", || proxy.count("request_body_bytes") == 6);
        client.send("5\r\n6789a\r\n0\r\n\r\n");
        assert_eq!(client.answer().status(), 413);
        client.assert_closed();
        proxy.wait_for_count("request_body_over_limit", 2);
        assert_eq!(upstream.requests().len(), 0);
        let ten = format!("{HEAD}a\r\n0123456789\r\n0\r\n\r\n");
        assert_eq!(proxy.ask(&ten).status(), 200);
    });
}

#[test]
fn the_last_request_that_a_connection_may_make_says_that_it_closes() {
    // Goal: requests per connection. Method: two of two, pipelined with a third.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = "[limit]\nrequests_per_connection = 2";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        let mut client = proxy.connect();
        client.send(GET.repeat(3));
        assert!(!client.answer().closes());
        assert!(client.answer().closes());
        client.assert_closed();
        assert_eq!(upstream.requests().len(), 2);
    });
}

#[test]
fn accepting_pauses_at_the_limit_of_connections_and_goes_on_when_one_ends() {
    // Goal: connections in total. Method: two are held, a third waits in the backlog until one of
    // the two leaves.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "[limit]\nconnections = 2");
        let (mut one, mut other) = (proxy.connect(), proxy.connect());
        assert_eq!(one.ask(GET).status(), 200);
        assert_eq!(other.ask(GET).status(), 200);
        let mut third = proxy.connect();
        third.send(GET);
        let core = proxy.server().runtime().counters(0);
        wait_until("accepting pauses", || core.accept_paused.read() > 0);
        assert_eq!(core.accepted.read(), 2);
        drop(one);
        assert_eq!(third.answer().status(), 200);
        assert_eq!(other.ask(GET).status(), 200);
    });
}

#[test]
fn an_address_over_its_limit_of_connections_is_closed_at_once_and_may_come_back() {
    // Goal: connections per client address. Method: a second one beside the first, and after it.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "[limit]\nconnections_per_ip = 1");
        let mut one = proxy.connect();
        assert_eq!(one.ask(GET).status(), 200);
        proxy.connect().assert_closed();
        proxy.wait_for_count("clients_over_ip_limit", 1);
        assert_eq!(one.ask(GET).status(), 200);
        drop(one);
        proxy.wait_for_connections(0);
        assert_eq!(proxy.ask(GET).status(), 200);
    });
}

#[test]
fn an_answer_whose_head_is_over_its_limits_is_a_502() {
    // Goal: bounds of an answer's head. Method: one field too long, then too many fields, both
    // endless; the client's connection goes on.
    on_each_driver(|driver| {
        for line in ["X: y\r\n", "xxxxxxxx"] {
            let upstream = Upstream::start(move |mut link| {
                link.request();
                let mut outcome = link.try_send("HTTP/1.1 200 OK\r\nA: b");
                while outcome.is_ok() {
                    outcome = link.try_send(line);
                }
            });
            let proxy = Proxy::start(
                driver,
                &[upstream.address],
                "[limit]\nupstream_head_bytes = \"4096B\"",
            );
            let mut client = proxy.connect();
            assert_eq!(client.ask(GET).status(), 502);
            proxy.wait_for_count("upstream_answer_refused", 1);
            assert_eq!(client.ask(GET).status(), 502);
        }
    });
}

#[test]
fn interim_responses_over_their_limit_are_a_502_and_none_beyond_it_is_relayed() {
    // Goal: 1xx of one exchange. Method: an upstream that sends nothing else.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            while link.try_send("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n").is_ok() {}
        });
        let settings = "[limit]\ninterim_responses = 3";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        let mut client = proxy.connect();
        client.send(GET);
        for _ in 0..3 {
            let head = client.head().expect("an interim response");
            assert!(head.starts_with("HTTP/1.1 103 Early Hints\r\n"), "{head}");
        }
        let head = client.head().expect("the next head");
        let answer = client.body(head).expect("the final answer");
        assert_eq!(answer.status(), 502);
        assert!(answer.closes());
        client.assert_closed();
        proxy.wait_for_count("upstream_answer_refused", 1);
    });
}

#[test]
fn no_more_than_the_drain_limit_is_read_away_after_a_refusal() {
    // Goal: the bound of what is read for nothing. Method: a client that sends without end after
    // its request is refused; the proxy gives up long before the linger bound.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let settings =
            "[limit]\nbody_bytes = \"1B\"\ndrain_bytes = \"4KiB\"\n[timeout]\nlinger = \"1h\"";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
        assert_eq!(client.answer().status(), 413);
        let piece = [b'x'; 1024];
        let end = (0..100_000).find(|_| client.try_send(piece).is_err());
        assert!(end.is_some(), "100 MB were read away");
        proxy.wait_for_connections(0);
    });
}

#[test]
fn a_client_that_sends_little_within_the_drain_limit_reads_its_answer_to_the_end() {
    // Goal: closing does not reset under the answer. Method: the client sends the body it announced
    // only after the refusal, then reads.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "[limit]\nbody_bytes = \"1B\"");
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n");
        proxy.wait_for_count("request_body_over_limit", 1);
        client.send([b'x'; 30_000]);
        assert_eq!(client.answer().status(), 413);
        client.finish_sending();
        let (rest, end) = client.rest();
        assert_eq!((rest.len(), end), (0, End::Orderly));
    });
}

#[test]
fn no_more_is_read_ahead_of_an_exchange_than_its_buffer_holds() {
    // Goal: pipelined bytes are bounded. Method: while the upstream holds its first answer back the
    // client sends without end, until nothing more is taken.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.rest();
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send(GET);
        wait_until("the request has arrived", || upstream.requests().len() == 1);
        client.stream.set_nonblocking(true).expect("a socket");
        let piece = GET.repeat(100);
        let mut sent = 0;
        let full = (0..1_000_000).any(|_| {
            match std::io::Write::write(&mut client.stream, piece.as_bytes()) {
                Ok(count) => {
                    sent += count;
                    false
                }
                Err(_) => true,
            }
        });
        // What the kernel's buffers of loopback take is far below what was offered.
        assert!(full && sent < 64 << 20, "{sent} bytes were taken");
        assert_eq!(upstream.requests().len(), 1);
    });
}

#[test]
fn who_breaks_off_waits_no_more_for_a_connection() {
    // Goal: a place in the queue is for a client that is there. Method: the one connection is in
    // use; another client asks and resets; the first is answered.
    on_each_driver(|driver| {
        let (go, told) = std::sync::mpsc::sync_channel::<()>(0);
        let told = std::sync::Mutex::new(told);
        let upstream = Upstream::start(move |mut link| {
            link.request();
            told.lock().expect("unpoisoned").recv().expect("the test goes on");
            link.send(OK);
        });
        let proxy = Proxy::with(driver, &one_connection(&upstream));
        let mut first = proxy.connect();
        first.send(GET);
        wait_until("it is with the endpoint", || upstream.requests().len() == 1);
        let mut other = proxy.connect();
        other.send(GET);
        proxy.wait_for_count("requests", 2);
        other.reset();
        proxy.wait_for_count("client_gone", 1);
        go.send(()).expect("the endpoint waits");
        assert_eq!(first.answer().status(), 200);
        assert_eq!(upstream.requests().len(), 1);
    });
}
