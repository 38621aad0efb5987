//! Starting, draining, aborting.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use baton_runtime::{DriverChoice, StartError};

use super::{Client, PATIENCE, on_each_driver, start_on};
use crate::origin::{OriginOptions, Temper, start};

const DRIVERS: [DriverChoice; 2] = [DriverChoice::Poll, DriverChoice::IoUring];

#[test]
fn an_address_that_is_taken_is_an_error_that_names_it() {
    on_each_driver(|origin| {
        let address = origin.addresses()[0];
        let options = OriginOptions {
            listen: vec![address],
            cores: Some(1),
            driver: DriverChoice::Poll,
            temper: Temper::Even,
        };
        match start(&options) {
            Err(StartError::Listen { address: taken, .. }) => assert_eq!(taken, address),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("two origins listen on {address}"),
        }
    });
}

#[test]
fn several_addresses_and_cores_serve() {
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let options = OriginOptions {
        listen: vec![any, any],
        cores: Some(2),
        driver: DriverChoice::Auto,
        temper: Temper::Even,
    };
    let origin = start(&options).expect("it starts");
    for &address in origin.addresses() {
        let requests = (0..20).map(|_| std::net::TcpStream::connect(address).expect("it listens"));
        for stream in requests.collect::<Vec<_>>() {
            stream.set_read_timeout(Some(PATIENCE)).expect("a bound on reads");
            let mut client = Client { stream, unread: Vec::new() };
            assert_eq!(client.ask("GET", "/bytes/1").body, b"a");
        }
    }
}

#[test]
fn a_head_or_body_that_stays_incomplete_gets_408() {
    let begun = "GET /bytes/1 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned();
    for rest in ["GET /by", "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc"] {
        for origin in DRIVERS.into_iter().filter_map(start_on) {
            let mut client = Client::connect(&origin);
            client.send(begun.clone() + rest);
            assert_eq!(client.answer("GET").status, 200);
            // Aborting expires every deadline, as time would.
            origin.abort();
            let answer = client.answer("POST");
            assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
            assert_eq!(client.rest(), b"");
        }
    }
}

#[test]
fn a_client_that_does_not_take_its_answer_is_reset() {
    for origin in DRIVERS.into_iter().filter_map(start_on) {
        let mut client = Client::connect(&origin);
        client.request("GET", "/bytes/10737418240");
        assert_eq!(client.head().status, 200);
        origin.drain();
        assert!(!origin.join(Duration::from_millis(1)), "the answer cannot be over");
        let mut piece = [0; 64 * 1024];
        let end = loop {
            match std::io::Read::read(&mut client.stream, &mut piece) {
                Ok(0) => panic!("an answer cut short looks complete"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn draining_ends_idle_connections_and_answers_what_is_under_way() {
    for origin in DRIVERS.into_iter().filter_map(start_on) {
        let mut idle = Client::connect(&origin);
        assert_eq!(idle.ask("GET", "/bytes/1").status, 200);
        let mut fresh = Client::connect(&origin);
        let mut busy = Client::connect(&origin);
        busy.request("GET", "/bytes/1");
        busy.request("GET", "/delay/700");
        assert_eq!(busy.answer("GET").status, 200);
        origin.drain();
        // Nobody will read it; it must not cost the answer before it.
        busy.request("GET", "/bytes/2");
        assert_eq!(fresh.rest(), b"");
        assert_eq!(idle.rest(), b"");
        let answer = busy.answer("GET");
        assert_eq!((answer.status, answer.field("connection")), (200, Some("close")));
        assert_eq!(busy.rest(), b"");
        drop((idle, fresh, busy));
        assert!(origin.join(PATIENCE), "something was left behind");
    }
}

#[test]
fn draining_closes_websockets_as_going_away() {
    for origin in DRIVERS.into_iter().filter_map(start_on) {
        let mut client = super::websocket::open(&origin);
        origin.drain();
        assert_eq!(client.take(4), [0x88, 2, 0x03, 0xe9]);
        assert_eq!(client.rest(), b"");
        drop(client);
        assert!(origin.join(PATIENCE), "something was left behind");
    }
}

#[test]
fn draining_closes_a_websocket_that_is_never_silent() {
    for origin in DRIVERS.into_iter().filter_map(start_on) {
        let mut client = super::websocket::open(&origin);
        origin.drain();
        let start = Instant::now();
        while super::websocket::echoes(&mut client, "again") {
            assert!(start.elapsed() < PATIENCE, "the origin does not end it");
        }
        assert!(origin.join(PATIENCE), "something was left behind");
    }
}

#[test]
fn aborting_ends_a_delay_at_once() {
    for origin in DRIVERS.into_iter().filter_map(start_on) {
        let mut client = Client::connect(&origin);
        client.request("GET", "/bytes/1");
        client.request("GET", "/delay/600000");
        assert_eq!(client.answer("GET").status, 200);
        let start = Instant::now();
        origin.drain();
        assert!(!origin.join(Duration::from_millis(1)), "a delay does not end by itself");
        assert!(start.elapsed() < PATIENCE);
    }
}

#[test]
fn a_fitful_origin_answers_for_a_stretch_and_then_ends_connections_for_as_long() {
    for driver in [DriverChoice::Poll, DriverChoice::IoUring] {
        let Some(origin) = super::start_with(driver, Temper::Fitful(3)) else { continue };
        let answered: Vec<bool> = (0..9)
            .map(|_| {
                let mut client = TcpStream::connect(origin.addresses()[0]).unwrap();
                client.write_all(b"GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                // The end of a connection may come as a reset.
                matches!(client.read(&mut [0; 16]), Ok(count) if count > 0)
            })
            .collect();
        assert_eq!(answered, [true, true, true, false, false, false, true, true, true]);
    }
}
