//! Draining loses nothing, aborting leaves nothing.

use std::future::pending;
use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baton_runtime::{Accepted, Core, Runtime, RuntimeOptions};

use crate::support::{
    Handler, PATIENCE, assert_echoed, assert_ended, connect, echo, for_each_driver,
    for_each_driver_and_mode, listening, serve, stop, wait_until,
};

#[test]
fn draining_ends_idle_connections_and_finishes_a_request_under_way() {
    for_each_driver_and_mode(|driver, accept| {
        // A request is a byte before and a byte after the drain begins.
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, two_bytes);
        let address = runtime.addresses()[0];
        let mut idle = connect(address);
        let mut busy = connect(address);
        busy.write_all(b"1").unwrap();
        busy.read_exact(&mut [0]).unwrap();
        wait_until("both are served", || runtime.connections() == 2);

        runtime.drain();
        assert_ended(&mut idle);
        assert!(!runtime.is_finished());
        busy.write_all(b"2").unwrap();
        busy.read_exact(&mut [0]).unwrap();
        assert_ended(&mut busy);
        assert!(runtime.join(PATIENCE));
    });
}

/// Answers one request of two bytes, each as it comes.
async fn two_bytes(core: Core, connection: Accepted) {
    let (stream, timer) = (connection.stream, core.timer());
    timer.set_idle(PATIENCE);
    for _ in 0..2 {
        let mut byte = [0];
        match stream.read(&mut byte, &timer).await {
            Ok(1) => {}
            _ => return,
        }
        timer.set(PATIENCE);
        stream.write_all(&mut [IoSlice::new(&byte)], &timer).await.unwrap();
    }
}

#[test]
fn connections_queued_when_draining_begins_are_served() {
    for_each_driver_and_mode(|driver, accept| {
        // Goal: those the kernel has accepted for us are not reset. Method: one core, held up while
        // the clients connect.
        let (held, release) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (is_held, may_go) = (held.clone(), release.clone());
        let options = RuntimeOptions { accept, ..listening(driver, 1) };
        let runtime = serve(&options, async move |core: Core, connection: Accepted| {
            if !is_held.swap(true, Ordering::AcqRel) {
                while !may_go.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
            }
            echo(core, connection).await;
        });
        let address = runtime.addresses()[0];
        let first = connect(address);
        wait_until("the core is held up", || held.load(Ordering::Acquire));
        let mut clients: Vec<TcpStream> = (0..50).map(|_| connect(address)).collect();
        for client in &mut clients {
            client.write_all(b"x").unwrap();
        }
        runtime.drain();
        release.store(true, Ordering::Release);
        for client in &mut clients {
            client.read_exact(&mut [0]).unwrap();
        }
        drop((first, clients));
        assert!(runtime.join(PATIENCE));
    });
}

#[test]
fn connections_on_their_way_to_a_core_when_draining_begins_are_served() {
    for_each_driver_and_mode(|driver, accept| {
        // Goal: no core ends while the acceptor still has connections for it. Method: drain right
        // after the clients have connected, several times, since it is a race.
        for _ in 0..10 {
            let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
            let mut clients: Vec<TcpStream> =
                (0..20).map(|_| connect(runtime.addresses()[0])).collect();
            runtime.drain();
            for client in &mut clients {
                client.write_all(b"x").unwrap();
            }
            for client in &mut clients {
                client.read_exact(&mut [0]).unwrap();
            }
            drop(clients);
            assert!(runtime.join(PATIENCE));
        }
    });
}

#[test]
fn a_silent_connection_taken_while_draining_does_not_hold_up_the_end() {
    for_each_driver_and_mode(|driver, accept| {
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        let silent: Vec<TcpStream> = (0..10).map(|_| connect(runtime.addresses()[0])).collect();
        runtime.drain();
        let begun = Instant::now();
        assert!(runtime.join(PATIENCE));
        assert!(begun.elapsed() < PATIENCE / 2, "it took {:?}", begun.elapsed());
        for mut client in silent {
            assert_ended(&mut client);
        }
    });
}

#[test]
fn aborting_ends_whatever_waits_and_join_says_so() {
    for_each_driver(|driver| {
        // One connection for each kind of wait, chosen by its first byte.
        let release = Arc::new(AtomicBool::new(false));
        let may_go = release.clone();
        let runtime =
            serve(&listening(driver, 1), async move |core: Core, connection: Accepted| {
                let (stream, timer) = (connection.stream, core.timer());
                timer.set(PATIENCE);
                let mut kind = [0];
                stream.read(&mut kind, &timer).await.unwrap();
                stream.write_all(&mut [IoSlice::new(&kind)], &timer).await.unwrap();
                match &kind {
                    b"r" => drop(stream.read(&mut kind, &timer).await),
                    // Takes no notice of the end of its waits.
                    b"l" => loop {
                        drop(stream.read(&mut kind, &timer).await);
                    },
                    b"s" => core.sleep(10 * PATIENCE).await,
                    b"p" => pending().await,
                    b"y" => loop {
                        core.yield_now().await;
                    },
                    b"b" => {
                        let may_go = may_go.clone();
                        let job = move || {
                            while !may_go.load(Ordering::Acquire) {
                                std::thread::yield_now();
                            }
                        };
                        core.blocking(job).await.unwrap();
                    }
                    _ => unreachable!("the test sends no other"),
                }
            });
        let address = runtime.addresses()[0];
        let mut clients: Vec<TcpStream> = b"rlspyb"
            .iter()
            .map(|kind| {
                let mut client = connect(address);
                assert_echoed(&mut client, &[*kind]);
                client
            })
            .collect();
        let begun = Instant::now();
        assert!(!runtime.join(Duration::from_millis(50)), "six connections did not end");
        assert!(begun.elapsed() < PATIENCE / 2, "it took {:?}", begun.elapsed());
        for client in &mut clients {
            assert_ended(client);
        }
        release.store(true, Ordering::Release);
    });
}

#[test]
fn a_read_that_an_abort_ends_says_timed_out() {
    for_each_driver(|driver| {
        let told = Arc::new(AtomicBool::new(false));
        let tell = told.clone();
        let runtime =
            serve(&listening(driver, 1), async move |core: Core, connection: Accepted| {
                let timer = core.timer();
                timer.set(10 * PATIENCE);
                let outcome = connection.stream.read(&mut [0], &timer).await;
                assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
                tell.store(true, Ordering::Release);
            });
        let mut client = connect(runtime.addresses()[0]);
        wait_until("it is served", || runtime.connections() == 1);
        runtime.abort();
        assert_ended(&mut client);
        assert!(runtime.join(PATIENCE));
        assert!(told.load(Ordering::Acquire));
    });
}

#[test]
fn dropping_a_runtime_ends_its_threads() {
    for_each_driver_and_mode(|driver, accept| {
        let alive = Arc::new(());
        let kept = alive.clone();
        let options = RuntimeOptions { accept, ..listening(driver, 2) };
        let runtime = serve(&options, async move |core: Core, connection: Accepted| {
            core.blocking(|| ()).await.unwrap();
            let _kept = kept.clone();
            echo(core, connection).await;
        });
        let mut client = connect(runtime.addresses()[0]);
        assert_echoed(&mut client, b"x");
        drop(runtime);
        assert_ended(&mut client);
        wait_until("all that the threads owned is dropped", || Arc::strong_count(&alive) == 1);
    });
}

#[test]
fn draining_and_aborting_twice_is_as_once() {
    for_each_driver_and_mode(|driver, accept| {
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        runtime.drain();
        runtime.drain();
        runtime.abort();
        runtime.drain();
        wait_until("it ends", || runtime.is_finished());
        runtime.abort();
        assert!(runtime.join(PATIENCE));
    });
}

#[test]
fn the_ports_of_a_runtime_that_has_ended_can_be_listened_on_at_once() {
    for_each_driver_and_mode(|driver, accept| {
        let mut options = RuntimeOptions { accept, ..listening(driver, 2) };
        for _ in 0..10 {
            let runtime = Runtime::start(&options, |core| Handler { core, handler: echo }).unwrap();
            options.listen = runtime.addresses().to_vec();
            assert_echoed(&mut connect(options.listen[0]), b"x");
            stop(runtime);
        }
    });
}
