//! What happens at a bound: connections of the process, completions of a ring.

use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_runtime::{AcceptMode, Accepted, Core, CoreCounters, RuntimeOptions};

use crate::support::{
    PATIENCE, assert_echoed, assert_ended, connect, cpu_over, echo, for_each_driver,
    for_each_driver_and_mode, listening, serve, stop, wait_until,
};

#[test]
fn at_the_connection_limit_accepting_pauses_and_the_next_is_served_when_one_ends() {
    for_each_driver_and_mode(|driver, accept| {
        let options = RuntimeOptions { accept, connections_max: 3, ..listening(driver, 2) };
        let runtime = serve(&options, echo);
        let address = runtime.addresses()[0];
        let mut served: Vec<TcpStream> = (0..3).map(|_| connect(address)).collect();
        for client in &mut served {
            assert_echoed(client, b"in");
        }
        let mut waiting = connect(address);
        waiting.write_all(b"x").unwrap();
        let accepting = if accept == AcceptMode::Dealt { 2..3 } else { 0..2 };
        let paused = || -> u64 {
            accepting.clone().map(|core| runtime.counters(core).accept_paused.read()).sum()
        };
        let before = paused();
        wait_until("accepting has paused twice", || paused() >= before + 2);
        assert_eq!(runtime.connections(), 3);

        served.pop();
        waiting.read_exact(&mut [0]).unwrap();
        assert_eq!(runtime.connections(), 3);
        drop((served, waiting));
        wait_until("all are closed", || runtime.connections() == 0);
        stop(runtime);
    });
}

#[test]
fn a_connection_that_waits_at_the_limit_costs_next_to_no_cpu() {
    for_each_driver_and_mode(|driver, accept| {
        let options = RuntimeOptions { accept, connections_max: 1, ..listening(driver, 1) };
        let runtime = serve(&options, echo);
        let address = runtime.addresses()[0];
        let mut served = connect(address);
        assert_echoed(&mut served, b"in");
        let waiting = connect(address);
        let accepting: &CoreCounters = runtime.counters(usize::from(accept == AcceptMode::Dealt));
        let before = accepting.accept_paused.read();
        wait_until("accepting pauses", || accepting.accept_paused.read() > before);
        let cpu = cpu_over(accepting, 5);
        assert!(cpu < Duration::from_millis(100), "{cpu:?} of CPU while nothing can be done");
        drop((served, waiting));
        stop(runtime);
    });
}

#[test]
fn a_connection_that_waits_at_the_limit_when_draining_begins_is_served_all_the_same() {
    for_each_driver_and_mode(|driver, accept| {
        let options = RuntimeOptions { accept, connections_max: 1, ..listening(driver, 2) };
        let runtime = serve(&options, echo);
        let address = runtime.addresses()[0];
        let mut idle = connect(address);
        assert_echoed(&mut idle, b"in");
        let mut waiting = connect(address);
        waiting.write_all(b"x").unwrap();
        let paused = || -> u64 {
            let threads = runtime.cores() + usize::from(accept == AcceptMode::Dealt);
            (0..threads).map(|core| runtime.counters(core).accept_paused.read()).sum()
        };
        wait_until("accepting pauses", || paused() > 0);
        runtime.drain();
        // The idle one ends as the core drains, and makes room.
        assert_ended(&mut idle);
        waiting.read_exact(&mut [0]).unwrap();
        assert!(runtime.join(PATIENCE));
    });
}

#[test]
fn more_connections_than_a_ring_has_completions_are_all_seen_to_become_readable() {
    for_each_driver(|driver| {
        // A ring of 1024 entries has room for 2048 completions.
        const CLIENTS: usize = 2500;
        let stalled = Arc::new(AtomicBool::new(false));
        let go_on = Arc::new(AtomicBool::new(false));
        let (is_stalled, may_go_on) = (stalled.clone(), go_on.clone());
        let runtime =
            serve(&listening(driver, 1), async move |core: Core, connection: Accepted| {
                let timer = core.timer();
                timer.set(PATIENCE);
                let mut first = [0];
                if connection.stream.read(&mut first, &timer).await.unwrap() == 0 {
                    return;
                }
                if first == *b"!" {
                    is_stalled.store(true, Ordering::Release);
                    while !may_go_on.load(Ordering::Acquire) {
                        std::hint::spin_loop();
                    }
                }
                connection.stream.write_all(&mut [IoSlice::new(&first)], &timer).await.unwrap();
            });
        let address = runtime.addresses()[0];
        let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(address)).collect();
        wait_until("all are accepted", || runtime.connections() == CLIENTS);
        clients[0].write_all(b"!").unwrap();
        wait_until("the core stands still", || stalled.load(Ordering::Acquire));
        for client in &mut clients[1..] {
            client.write_all(b"x").unwrap();
        }
        go_on.store(true, Ordering::Release);
        for client in &mut clients {
            client.read_exact(&mut [0]).unwrap();
        }
        drop(clients);
        stop(runtime);
    });
}
