//! Peers that do not speak HTTP.

use crate::support::{GET, OK, Proxy, Upstream, on_each_driver, wait_until};

/// Numbers that look random and are the same in every run (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        assert!(seed != 0, "it would stay 0");
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

#[test]
fn two_hundred_clients_of_random_bytes_are_refused_and_leave_nothing() {
    // Goal: no byte of a client breaks the proxy. Method: random bytes, and requests with random
    // bytes flipped, from fixed seeds; afterwards an ordinary request is answered.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let settings = "[timeout]\nhead = \"300ms\"\nbody_idle = \"300ms\"\nlinger = \"100ms\"";
        let proxy = Proxy::start(driver, &[upstream.address], settings);
        for seed in 1..=200 {
            let mut random = Random::new(seed);
            let mut bytes = if seed % 2 == 0 {
                let count = 1 + random.next() as usize % 2000;
                random.bytes(count)
            } else {
                b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
                    .to_vec()
            };
            for _ in 0..3 {
                let at = random.next() as usize % bytes.len();
                bytes[at] = random.next() as u8;
            }
            let mut client = proxy.connect();
            // The proxy may refuse the first bytes and close before the last are sent.
            let _refused = client.try_send(bytes);
            let _ended = client.stream.shutdown(std::net::Shutdown::Write);
            client.rest();
        }
        proxy.wait_for_connections(0);
        assert_eq!(proxy.ask(GET).status(), 200);
    });
}

#[test]
fn an_endpoint_of_garbage_is_a_502_and_leaves_nothing() {
    // Goal: no byte of an endpoint breaks the proxy. Method: random bytes, a TLS alert, a head cut
    // short, silence and the end; each on a connection of its own.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            let garbage: Vec<u8> = match link.number % 4 {
                0 => b"\x15\x03\x03\x00\x02\x02\x16".to_vec(),
                1 => b"HTTP/1.1 200 OK\r\nContent-".to_vec(),
                2 => Vec::new(),
                _ => Random::new(link.number as u64).bytes(3000),
            };
            // The proxy may refuse the first bytes and close before the last are sent.
            let _refused = link.try_send(garbage);
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        for n in 0..40 {
            let answer = client.ask(GET);
            assert_eq!(answer.status(), 502, "answer {n}");
            if answer.closes() {
                client = proxy.connect();
            }
        }
        assert_eq!(proxy.count("answers_5xx"), 40);
        assert_eq!(upstream.connections(), 40);
        drop(client);
        wait_until("nothing is left", || proxy.server().runtime().connections() == 0);
    });
}
