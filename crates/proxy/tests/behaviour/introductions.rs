//! The PROXY protocol in front of a connection.

use std::time::{Duration, Instant};

use crate::support::{
    GET, OK, Proxy, Upstream, assert_took, on_each_driver, on_each_driver_in_time, wait_until,
};

const BOUND: Duration = Duration::from_millis(400);

/// A listener that wants a header of its peers, and these settings.
fn wanting(upstream: &Upstream, settings: &str) -> String {
    format!(
        "[[listen]]\naddr = \"$LISTEN\"\nproxy_protocol = \"127.0.0.0/8\"\n[[route]]\nto = \"{}\"\n{settings}",
        upstream.address
    )
}

/// A header of version 2.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("rows are short").to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n".as_slice(), &[command, family], &length, rest].concat()
}

fn v4(rest: usize) -> Vec<u8> {
    let addresses = [[198, 51, 100, 1], [203, 0, 113, 9], [0xc3, 0x50, 0x01, 0xbb]].concat();
    [addresses, vec![0x20; rest]].concat()
}

#[test]
fn what_is_no_header_ends_its_connection_without_an_answer() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &wanting(&upstream, ""));
        let mut bad: Vec<Vec<u8>> = [
            GET,
            "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 70000\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n",
        ]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
        bad.push(format!("PROXY UNKNOWN {}", "x".repeat(107)).into_bytes());
        bad.push(v2(0x22, 0x11, &v4(0)));
        bad.push(v2(0x21, 0x13, &v4(0)));
        bad.push(v2(0x21, 0x11, &v4(0)[..11]));
        bad.push(v2(0x21, 0x31, &v4(0)));
        bad.push(v2(0x21, 0x11, &v4(4_000)));
        for (at, header) in bad.iter().enumerate() {
            let mut client = proxy.connect();
            // The connection may end while the rest is sent.
            let _result = client.try_send(header);
            proxy.wait_for_count("proxy_protocol_refused", at as u64 + 1);
            let (rest, _) = client.rest();
            assert!(rest.is_empty(), "header {at}");
        }
        // One that ends before its header does has said nothing to refuse.
        let mut short = proxy.connect();
        short.send(&v2(0x21, 0x11, &v4(0))[..20]);
        short.finish_sending();
        assert!(short.rest().0.is_empty());
        assert!(upstream.requests().is_empty());
    });
}

#[test]
fn a_header_that_trickles_has_the_bound_of_a_head_from_its_start() {
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = format!("[timeout]\nhead = \"{}ms\"\n", BOUND.as_millis());
        let proxy = Proxy::with(driver, &wanting(&upstream, &settings));
        let start = Instant::now();
        let mut client = proxy.connect();
        let mut bytes = b"PROXY UNKNOWN ".iter().chain(std::iter::repeat(&b'x'));
        while proxy.count("request_head_timeout") == 0 {
            assert!(start.elapsed() < 10 * BOUND, "the header was awaited without end");
            client.send([*bytes.next().expect("endless")]);
            std::thread::park_timeout(Duration::from_millis(20));
        }
        assert_took(start, BOUND);
        wait_until("it is closed", || client.try_send("x").is_err());
    });
}

#[test]
fn each_kind_of_header_names_its_client_and_what_follows_is_served() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &wanting(&upstream, ""));
        let rows: [(Vec<u8>, &str); 7] = [
            (b"PROXY TCP4 198.51.100.1 203.0.113.1 5 6\r\n".to_vec(), "198.51.100.1"),
            (b"PROXY TCP6 2001:db8::1 2001:db8::2 5 6\r\n".to_vec(), "2001:db8::1"),
            (b"PROXY UNKNOWN any thing\r\n".to_vec(), "127.0.0.1"),
            (v2(0x21, 0x11, &v4(0)), "198.51.100.1"),
            (v2(0x21, 0x11, &v4(500)), "198.51.100.1"),
            (v2(0x20, 0x00, &v4(0)), "127.0.0.1"),
            (v2(0x21, 0x31, &[b'/'; 216]), "127.0.0.1"),
        ];
        for (header, client_ip) in &rows {
            // In one piece with two requests, and byte by byte.
            let mut whole = proxy.connect();
            whole.send([header.as_slice(), GET.as_bytes(), GET.as_bytes()].concat());
            assert_eq!((whole.answer().status(), whole.answer().status()), (200, 200));
            let mut pieces = proxy.connect();
            header.iter().for_each(|byte| pieces.send([*byte]));
            assert_eq!(pieces.ask(GET).status(), 200);
            let requests = upstream.requests();
            for request in &requests[requests.len() - 3..] {
                assert_eq!(request.field("x-forwarded-for"), Some(*client_ip));
            }
        }
    });
}

#[test]
fn an_ipv4_client_that_a_balancer_names_as_ipv6_is_an_ipv4_client() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &wanting(&upstream, ""));
        let mut client = proxy.connect();
        client.send("PROXY TCP6 ::ffff:198.51.100.1 ::ffff:203.0.113.1 5 6\r\n");
        assert_eq!(client.ask(GET).status(), 200);
        assert_eq!(upstream.only_request().field("x-forwarded-for"), Some("198.51.100.1"));
    });
}

#[test]
fn a_proxy_protocol_header_tells_the_client_and_must_be_there() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &wanting(&upstream, ""));
        let mut client = proxy.connect();
        client.send("PROXY TCP4 198.51.100.1 203.0.113.1 5 6\r\n");
        assert_eq!(client.ask(GET).status(), 200);
        assert_eq!(client.ask(GET).status(), 200);
        for request in upstream.requests() {
            assert_eq!(request.field("x-forwarded-for"), Some("198.51.100.1"));
        }
        let mut without = proxy.connect();
        without.send(GET);
        without.assert_closed();
        proxy.wait_for_count("proxy_protocol_refused", 1);
    });
}
