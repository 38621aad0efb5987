//! Upgraded connections: bytes both ways until both sides have ended.

use std::io::Write;
use std::net::Shutdown;
use std::thread;

use crate::support::{End, GET, Proxy, Upstream, Wire, on_each_driver};

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";

fn upgraded(proxy: &Proxy) -> Wire {
    let mut client = proxy.connect();
    assert_eq!(client.ask(UPGRADE).status(), 101);
    client
}

#[test]
fn a_101_that_nobody_asked_for_is_a_502() {
    // Goal: no tunnel without an upgrade. Method: 101 to a plain GET.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(SWITCH);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        assert_eq!(proxy.ask(GET).status(), 502);
        proxy.wait_for_count("upstream_answer_refused", 1);
        assert_eq!(proxy.count("tunnels"), 0);
    });
}

#[test]
fn an_upgrade_that_is_declined_leaves_an_ordinary_connection() {
    // Goal: a final answer instead of 101. Method: 200, then another request.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(crate::support::OK);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        assert_eq!(client.ask(UPGRADE).text(), "ok");
        assert_eq!(client.ask(GET).text(), "ok");
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn bytes_sent_in_one_write_with_a_head_are_not_lost() {
    // Goal: early bytes both ways. Method: each side sends them behind its head in one write.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send(format!("{SWITCH}early down"));
            assert_eq!(link.bytes(8).expect("the early bytes"), b"early up");
            link.send(" and on");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send(format!("{UPGRADE}early up"));
        assert_eq!(client.answer().status(), 101);
        assert_eq!(client.bytes(17).expect("the bytes"), b"early down and on");
        proxy.wait_for_count("tunnels", 1);
    });
}

#[test]
fn an_end_of_the_client_reaches_the_endpoint_which_may_still_send() {
    // Goal: half close upwards. Method: the endpoint answers only when the client has ended.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send(SWITCH);
            let (said, end) = link.rest();
            assert_eq!((said.as_slice(), end), (b"question".as_slice(), End::Orderly));
            link.send("answer");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = upgraded(&proxy);
        client.send("question");
        client.finish_sending();
        assert_eq!(client.rest(), (b"answer".to_vec(), End::Orderly));
        proxy.wait_for_connections(0);
    });
}

#[test]
fn an_end_of_the_endpoint_reaches_the_client_which_may_still_send() {
    // Goal: half close downwards. Method: the client speaks only when the endpoint has ended.
    on_each_driver(|driver| {
        let (heard, said) = std::sync::mpsc::sync_channel(1);
        let upstream = Upstream::start(move |mut link| {
            link.request();
            link.send(SWITCH);
            link.finish_sending();
            heard.send(link.rest()).expect("the test waits");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = upgraded(&proxy);
        client.assert_closed();
        client.send("last words");
        client.finish_sending();
        let said = said.recv_timeout(crate::support::PATIENCE).expect("the endpoint reads");
        assert_eq!(said, (b"last words".to_vec(), End::Orderly));
        proxy.wait_for_connections(0);
    });
}

#[test]
fn much_is_moved_both_ways_at_once_without_loss() {
    // Goal: back-pressure in both directions. Method: both ends send 16 MiB of a pattern while they
    // read, and compare.
    const BYTES: usize = 16 << 20;
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send(SWITCH);
            exchange_patterns(&mut link, 1, 3);
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = upgraded(&proxy);
        exchange_patterns(&mut client, 3, 1);
        drop(client);
        proxy.wait_for_connections(0);
    });

    fn exchange_patterns(wire: &mut Wire, ours: u8, theirs: u8) {
        let mut sending = wire.stream.try_clone().expect("a descriptor is free");
        thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..BYTES >> 16 {
                    let piece = vec![ours.wrapping_mul(n as u8); 1 << 16];
                    sending.write_all(&piece).expect("the tunnel takes it");
                }
                sending.shutdown(Shutdown::Write).expect("it is open");
            });
            for n in 0..BYTES >> 16 {
                let piece = wire.bytes(1 << 16).expect("as much comes as was sent");
                let value = theirs.wrapping_mul(n as u8);
                assert!(piece.iter().all(|byte| *byte == value), "piece {n} differs");
            }
            wire.assert_closed();
        });
    }
}

#[test]
fn an_endpoint_that_breaks_its_side_ends_the_tunnel() {
    // Goal: an upstream that is killed. Method: it resets its connection under the tunnel.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send(SWITCH);
            link.bytes(1).expect("a byte of the client");
            let Ok(stream) = link.stream.try_clone() else { return };
            drop(link);
            Wire::new(stream).reset();
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = upgraded(&proxy);
        client.send("x");
        assert!(client.rest().0.is_empty());
        drop(client);
        proxy.wait_for_connections(0);
    });
}
