//! Every timeout: it ends what it bounds, not before its time and not a second after.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::support::{
    End, GET, OK, Proxy, Upstream, Wire, assert_took, on_each_driver_in_time, wait_until,
};

const BOUND: Duration = Duration::from_millis(400);

fn bound(name: &str) -> String {
    format!("[timeout]\n{name} = \"{}ms\"\n", BOUND.as_millis())
}

#[test]
fn a_head_that_comes_byte_by_byte_is_a_408_measured_from_its_first_byte() {
    // Goal: the head bound. Method: the connection is idle for longer than the bound first; then
    // a byte per 20 ms, which must not extend it.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], &bound("head"));
        let mut client = proxy.connect();
        proxy.wait_for_connections(1);
        let opened = Instant::now();
        wait_until("the idle time is over the bound", || opened.elapsed() > BOUND);
        let start = Instant::now();
        let drip = Duration::from_millis(20);
        client.stream.set_read_timeout(Some(drip)).expect("above 0");
        let mut line = GET[..GET.len() - 4].bytes().chain(std::iter::repeat(b'x'));
        while proxy.count("request_head_timeout") == 0 {
            assert!(start.elapsed() < 10 * BOUND, "the head was awaited without end");
            client.send([line.next().expect("endless")]);
            std::thread::park_timeout(drip);
        }
        assert_took(start, BOUND);
        client.stream.set_read_timeout(Some(crate::support::PATIENCE)).expect("above 0");
        let answer = client.answer();
        assert_eq!(answer.status(), 408);
        assert!(answer.closes());
        client.assert_closed();
        proxy.wait_for_count("request_head_timeout", 1);
    });
}

#[test]
fn a_body_that_stops_is_a_408() {
    // Goal: the bound between two pieces of a request body. Method: half of it, then silence.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], &bound("body_idle"));
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
        let start = Instant::now();
        let answer = client.answer();
        assert_took(start, BOUND);
        assert_eq!(answer.status(), 408);
        assert!(answer.closes());
        client.assert_closed();
        proxy.wait_for_count("request_body_timeout", 1);
    });
}

/// Sends a body of 100 bytes, one per 20 ms, until it is whole or refused; the answer's status.
fn drip_body(proxy: &Proxy) -> u16 {
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
    for _ in 0..100 {
        if client.try_send("x").is_err() || proxy.count("request_body_timeout") > 0 {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    client.answer().status()
}

#[test]
fn a_body_that_comes_byte_by_byte_is_a_408() {
    // Goal: body_progress_bytes. Method: a byte per 20 ms where 1,000 per 400 ms are asked for.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = format!("{}[limit]\nbody_progress_bytes = \"1000B\"", bound("body_idle"));
        let proxy = Proxy::start(driver, &[upstream.address], &settings);
        let start = Instant::now();
        assert_eq!(drip_body(&proxy), 408);
        assert_took(start, BOUND);
    });
}

#[test]
fn a_body_that_makes_progress_may_take_longer_than_the_bound() {
    // Goal: the bound begins anew with progress. Method: the same two seconds of a body where two
    // bytes per second are asked for.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = "[timeout]\nbody_idle = \"1s\"\n[limit]\nbody_progress_bytes = \"2B\"";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        assert_eq!(drip_body(&proxy), 200);
    });
}

#[test]
fn a_pause_of_the_client_within_its_body_is_not_held_against_the_upstream() {
    // Goal: the first-byte bound runs from the end of the request. Method: the client pauses
    // for longer than that bound within its body.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], &bound("first_byte"));
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
        let start = Instant::now();
        wait_until("the pause is over the bound", || start.elapsed() > 2 * BOUND);
        client.send("56789");
        assert_eq!(client.answer().status(), 200);
    });
}

#[test]
fn an_endpoint_that_does_not_take_a_connection_is_a_504() {
    // Goal: the connect bound. Method: a listener whose backlog is full drops what comes.
    on_each_driver_in_time(|driver| {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        listener.bind(&any.into()).expect("a port is free");
        listener.listen(0).expect("it is bound");
        let address = listener.local_addr().expect("it is bound").as_socket().expect("IPv4");
        // Held, so that the backlog stays full.
        let _queued: Vec<Socket> = (0..8)
            .map(|_| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
                socket.set_nonblocking(true).expect("a socket");
                let _in_progress = socket.connect(&address.into());
                socket
            })
            .collect();
        let proxy = Proxy::start(driver, &[address], &bound("connect"));
        let start = Instant::now();
        let answer = proxy.ask(GET);
        assert!(start.elapsed() < 2 * BOUND + Duration::from_secs(1));
        assert!(start.elapsed() > BOUND - Duration::from_millis(100));
        assert_eq!(answer.status(), 504);
        assert!(proxy.count("upstream_connect_timeout") >= 1);
    });
}

#[test]
fn an_endpoint_that_does_not_answer_is_a_504_with_and_without_a_body() {
    // Goal: the first-byte bound. Method: requests that are read and never answered; the client's
    // connection serves the next request, the endpoint's is not used again.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::start(|mut link| while link.request().is_some() {});
        let proxy = Proxy::start(driver, &[upstream.address], &bound("first_byte"));
        let mut client = proxy.connect();
        let start = Instant::now();
        assert_eq!(client.ask(GET).status(), 504);
        assert_took(start, BOUND);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
        wait_until("half of it is sent", || proxy.count("request_body_bytes") == 5);
        client.send("56789");
        let start = Instant::now();
        assert_eq!(client.answer().status(), 504);
        assert_took(start, BOUND);
        proxy.wait_for_count("upstream_answer_timeout", 2);
        assert_eq!(upstream.connections(), 2);
    });
}

#[test]
fn the_head_of_an_answer_that_comes_byte_by_byte_is_a_504() {
    // Goal: a slow head does not extend the first-byte bound. Method: a byte per 20 ms.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            let mut head = b"HTTP/1.1 200 OK\r\nX: ".iter().chain(std::iter::repeat(&b'y'));
            while link.try_send([*head.next().expect("endless")]).is_ok() {
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        let proxy = Proxy::start(driver, &[upstream.address], &bound("first_byte"));
        let start = Instant::now();
        assert_eq!(proxy.ask(GET).status(), 504);
        assert_took(start, BOUND);
    });
}

#[test]
fn an_answer_that_stops_is_cut_where_the_client_sees_it() {
    // Goal: the upstream idle bound. Method: half a body, framed in each way; also for an HTTP/1.0
    // client, to which only a reset shows that its body is not whole.
    on_each_driver_in_time(|driver| {
        let heads =
            ["Content-Length: 10\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n"];
        for head in heads {
            let upstream = Upstream::start(move |mut link| {
                link.request();
                link.send(format!("HTTP/1.1 200 OK\r\n{head}"));
                link.rest();
            });
            let proxy = Proxy::start(driver, &[upstream.address], &bound("upstream_idle"));
            let start = Instant::now();
            let mut client = proxy.connect();
            client.send(GET);
            assert!(client.try_answer().is_err(), "the answer looks whole");
            assert_took(start, BOUND);
            proxy.wait_for_count("upstream_answer_stalled", 1);
            let mut old = proxy.connect();
            old.send("GET / HTTP/1.0\r\n\r\n");
            let head = old.head().expect("a head");
            assert_eq!(old.bytes(5).expect("half a body"), b"01234");
            let (rest, end) = old.rest();
            assert!(rest.is_empty());
            assert!(end == End::Reset || head.contains("Content-Length"), "{head}");
        }
    });
}

#[test]
fn a_client_that_does_not_read_is_left() {
    // Goal: the bound of a write to a slow client. Method: an endless answer, of which the client
    // reads nothing but the head.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send("HTTP/1.1 200 OK\r\n\r\n");
            while link.try_send([b'x'; 64 * 1024]).is_ok() {}
        });
        let proxy = Proxy::start(driver, &[upstream.address], &bound("body_idle"));
        let mut client = proxy.connect();
        client.send(GET);
        client.head().expect("a head");
        let mut moved = 0;
        wait_until("nothing more is moved", || {
            std::thread::park_timeout(BOUND / 4);
            std::mem::replace(&mut moved, proxy.count("answer_body_bytes")) == moved
        });
        let start = Instant::now();
        proxy.wait_for_count("client_stalled", 1);
        assert!(start.elapsed() < BOUND + Duration::from_secs(1));
        proxy.wait_for_connections(0);
    });
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    // Goal: the keep-alive bound, before the first request and after one. Method: silence.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], &bound("keep_alive"));
        let start = Instant::now();
        proxy.connect().assert_closed();
        assert_took(start, BOUND);
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 200);
        let start = Instant::now();
        client.assert_closed();
        assert_took(start, BOUND);
    });
}

#[test]
fn an_idle_connection_to_an_endpoint_is_closed_in_time() {
    // Goal: the pool idle bound. Method: the endpoint waits for the end of its connection, which a
    // sweep once a second brings.
    on_each_driver_in_time(|driver| {
        let (ended, end) = std::sync::mpsc::sync_channel(1);
        let upstream = Upstream::start(move |mut link| {
            link.request();
            link.send(OK);
            let start = Instant::now();
            let end = link.rest().1;
            ended.send((start.elapsed(), end)).expect("the test waits");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "[pool]\nidle_timeout = \"300ms\"\n");
        assert_eq!(proxy.ask(GET).status(), 200);
        let (took, end) = end.recv_timeout(crate::support::PATIENCE).expect("the connection ends");
        assert_eq!(end, End::Orderly);
        assert!(took > BOUND - Duration::from_millis(100), "{took:?}");
        assert!(took < BOUND + Duration::from_millis(2200), "{took:?}");
    });
}

#[test]
fn reading_away_after_a_refusal_ends_in_time() {
    // Goal: the linger bound. Method: a refused client neither sends nor closes.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = format!("{}[limit]\nbody_bytes = \"1B\"", bound("linger"));
        let proxy = Proxy::start(driver, &[upstream.address], &settings);
        let mut client = proxy.connect();
        let answer = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
        assert_eq!(answer.status(), 413);
        let start = Instant::now();
        client.assert_closed();
        proxy.wait_for_connections(0);
        assert_took(start, BOUND);
    });
}

#[test]
fn a_silent_tunnel_ends_in_time_and_a_byte_either_way_keeps_it() {
    // Goal: the tunnel idle bound. Method: bytes of the upstream alone for twice the bound, of the
    // client alone for as long, then silence.
    on_each_driver_in_time(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            );
            for _ in 0..8 {
                std::thread::park_timeout(BOUND / 4);
                link.send("d");
            }
            link.bytes(8).expect("what the client sends");
            link.send("!");
            link.rest();
        });
        let proxy = Proxy::start(driver, &[upstream.address], &bound("tunnel_idle"));
        let mut client = upgraded(&proxy);
        assert_eq!(client.bytes(8).expect("what the upstream sends"), b"dddddddd");
        for _ in 0..8 {
            std::thread::park_timeout(BOUND / 4);
            client.send("u");
        }
        assert_eq!(client.bytes(1).expect("the last byte"), b"!");
        let start = Instant::now();
        client.assert_closed();
        assert_took(start, BOUND);
    });
}

fn upgraded(proxy: &Proxy) -> Wire {
    let mut client = proxy.connect();
    let answer =
        client.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    assert_eq!(answer.status(), 101);
    client
}
