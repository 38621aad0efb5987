//! What a process holds: memory under back-pressure, descriptors, CPU while it can do nothing.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::process::Process;
use crate::garbage::Random;
use crate::support::{GET, OK, PATIENCE, Upstream, Wire, wait_until};

const DRIVERS: [&str; 2] = ["poll", "auto"];

fn baton(driver: &str, upstream: &Upstream) -> Process {
    let endpoint = upstream.address.to_string();
    Process::start(&[
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &endpoint,
        "--cores",
        "1",
        "--driver",
        driver,
        "--timeout-head",
        "300ms",
        "--timeout-linger",
        "100ms",
        "--pool-idle",
        "0",
    ])
}

#[test]
fn an_echo_of_a_large_upload_does_not_grow_the_process() {
    // Goal: both directions stream with back-pressure. Method: 50 MB are echoed while they are
    // sent; half way the client stops reading until nothing moves, then reads the rest.
    const BYTES: usize = 50_000_000;
    for driver in DRIVERS {
        let upstream = Upstream::start(|mut link| {
            link.head().expect("a request");
            link.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n"));
            for _ in 0..BYTES / 50_000 {
                let piece = link.bytes(50_000).expect("the body");
                link.send(piece);
            }
        });
        let baton = baton(driver, &upstream);
        // The first exchange brings in code and buffers that every later one uses.
        let address = baton.address();
        echo(address, BYTES, &baton);
        let before = baton.resident();
        let most = echo(address, BYTES, &baton);
        assert!(most < before + (4 << 20), "{before} bytes became {most}");
    }
}

/// Sends `bytes` and reads the echo; the most resident memory seen on the way.
fn echo(address: std::net::SocketAddr, bytes: usize, baton: &Process) -> usize {
    let mut client = Wire::connect(address);
    let mut sending = client.stream.try_clone().expect("a descriptor is free");
    let mut most = 0;
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n");
            sending.write_all(head.as_bytes()).expect("the proxy takes it");
            for _ in 0..bytes / 50_000 {
                sending.write_all(&[b'x'; 50_000]).expect("the proxy takes it");
            }
        });
        client.head().expect("the answer's head");
        let mut left = bytes;
        while left > 0 {
            let count = left.min(1_000_000);
            client.bytes(count).expect("the echo");
            left -= count;
            most = most.max(baton.resident());
            if left == bytes / 2 {
                let mut cpu = Duration::MAX;
                wait_until("nothing moves", || {
                    thread::park_timeout(Duration::from_millis(100));
                    std::mem::replace(&mut cpu, baton.cpu_time()) == cpu
                });
                most = most.max(baton.resident());
            }
        }
        sender.join().expect("all was sent");
    });
    most
}

#[test]
fn garbage_on_both_sides_leaves_no_descriptor_behind() {
    // Goal: no leak. Method: 200 clients of random bytes and 50 answers of random bytes; then as
    // many descriptors are open as before.
    for driver in DRIVERS {
        let upstream = Upstream::start(|mut link| {
            link.request();
            let garbage = Random::new(1 + link.number as u64).bytes(500);
            // The proxy may close before it has taken all.
            let _refused = link.try_send(garbage);
        });
        let baton = baton(driver, &upstream);
        let address = baton.address();
        assert_eq!(Wire::connect(address).ask(GET).status(), 502);
        let mut before = 0;
        wait_until("the number of descriptors is steady", || {
            thread::park_timeout(Duration::from_millis(50));
            std::mem::replace(&mut before, baton.descriptors()) == before
        });
        for seed in 1..=200 {
            let mut client = Wire::connect(address);
            let _refused = client.try_send(Random::new(seed).bytes(300));
            let _ended = client.stream.shutdown(std::net::Shutdown::Write);
            client.rest();
        }
        for _ in 0..50 {
            assert_eq!(Wire::connect(address).ask(GET).status(), 502);
        }
        wait_until("the descriptors are closed", || baton.descriptors() <= before);
        assert!(!baton.log().contains("panicked"), "{}", baton.log());
    }
}

#[test]
fn under_a_low_limit_of_descriptors_the_rest_of_a_crowd_waits() {
    // Goal: the connection limit follows the descriptor limit. Method: 100 clients come under a
    // limit of 90 descriptors; one served before is served still, one behind them waits without
    // costing CPU, and is served when they have left.
    for driver in DRIVERS {
        let upstream = Upstream::answering(OK);
        let endpoint = upstream.address.to_string();
        let options = ["--listen", "127.0.0.1:0", "--upstream", &endpoint, "--driver", driver];
        let baton = Process::start_with_descriptors(90, &options);
        let mut first = baton.connect();
        assert_eq!(first.ask(GET).status(), 200);
        let address = baton.address();
        let crowd: Vec<TcpStream> =
            (0..100).map(|_| TcpStream::connect(address).expect("the backlog has room")).collect();
        let mut last = Wire::connect(address);
        last.send(GET);
        last.stream.set_read_timeout(Some(Duration::from_millis(300))).expect("above 0");
        assert!(last.stream.peek(&mut [0]).is_err(), "more were served than can be");
        assert_eq!(first.ask(GET).status(), 200);
        assert_rests(&baton);
        drop(crowd);
        last.stream.set_read_timeout(Some(PATIENCE)).expect("above 0");
        assert_eq!(last.answer().status(), 200);
        assert_eq!(first.ask(GET).status(), 200);
    }
}

#[test]
fn out_of_descriptors_it_serves_what_it_has_and_recovers() {
    // Goal: want of descriptors is survived. Method: idle connections to most of 100 endpoints,
    // chosen at random, use up 90 descriptors: a request then is answered or a 503, clients that come wait without costing CPU,
    // and are served when the idle connections have been closed.
    for driver in DRIVERS {
        let serve = |mut link: crate::support::Link| {
            while link.request().is_some() {
                link.send(OK);
            }
        };
        let upstream = Upstream::start_at(([0, 0, 0, 0], 0).into(), serve);
        let endpoints: Vec<String> =
            (1..=100).map(|n| format!("127.0.0.{n}:{}", upstream.address.port())).collect();
        let mut options = vec!["--listen", "127.0.0.1:0", "--cores", "1", "--driver", driver];
        options.extend(["--pool-idle", "100", "--pool-idle-timeout", "3s"]);
        options.extend(endpoints.iter().flat_map(|endpoint| ["--upstream", endpoint]));
        let baton = Process::start_with_descriptors(90, &options);
        let mut client = baton.connect();
        let fails = (0..400).any(|_| match client.ask(GET).status() {
            200 => false,
            503 => true,
            status => panic!("status {status}"),
        });
        assert!(fails, "100 idle connections fit into 90 descriptors");
        let mut waiting: Vec<Wire> = (0..10).map(|_| baton.connect()).collect();
        baton.wait_for_log("accepting pauses");
        assert_rests(&baton);
        for client in &mut waiting {
            client.send(GET);
        }
        for client in &mut waiting {
            assert!([200, 503].contains(&client.answer().status()));
        }
        wait_until("requests are answered again", || {
            (0..20).all(|_| baton.connect().ask(GET).status() == 200)
        });
    }
}

/// Checks that the process uses next to no CPU time for a second.
fn assert_rests(baton: &Process) {
    let (start, cpu) = (Instant::now(), baton.cpu_time());
    wait_until("a second has passed", || start.elapsed() > Duration::from_secs(1));
    let used = baton.cpu_time() - cpu;
    assert!(used < Duration::from_millis(200), "{used:?} of CPU in a second of rest");
}
