//! How the acceptor deals connections to the cores.

use std::net::TcpStream;

use baton_runtime::{AcceptMode, Runtime, RuntimeOptions};

use crate::support::{
    assert_echoed, connect, echo, for_each_driver, listening, serve, stop, sum, wait_until,
};

/// Connects clients one after another, each once its predecessor is counted, so that the acceptor
/// decides with exact loads.
fn connect_in_turn(runtime: &Runtime, clients: u64) -> Vec<TcpStream> {
    let before = sum(runtime, |core| &core.accepted);
    (1..=clients)
        .map(|number| {
            let client = connect(runtime.addresses()[0]);
            wait_until("it is dealt", || sum(runtime, |core| &core.accepted) == before + number);
            client
        })
        .collect()
}

#[test]
fn no_core_is_dealt_more_than_half_of_few_connections() {
    for_each_driver(|driver| {
        let options = RuntimeOptions { accept: AcceptMode::Dealt, ..listening(driver, 4) };
        let runtime = serve(&options, echo);
        let clients = connect_in_turn(&runtime, 8);
        for core in 0..4 {
            // With the less busy of two, a core gets its fifth only if another has four: half of
            // eight is the most, whichever pairs come up.
            let open = runtime.counters(core).connections.read();
            assert!(open <= 4, "core {core} serves {open} of 8");
        }
        drop(clients);
        stop(runtime);
    });
}

#[test]
fn the_acceptor_counts_as_none_of_the_cores() {
    for_each_driver(|driver| {
        let options = RuntimeOptions { accept: AcceptMode::Dealt, ..listening(driver, 1) };
        let runtime = serve(&options, echo);
        assert_eq!(runtime.cores(), 1);
        assert_echoed(&mut connect(runtime.addresses()[0]), b"x");
        assert_eq!(runtime.counters(0).accepted.read(), 1);
        assert_eq!(runtime.counters(1).accepted.read(), 0);
        wait_until("the acceptor is alive", || runtime.counters(1).heartbeats.read() > 0);
        stop(runtime);
    });
}

#[test]
fn a_core_that_serves_is_not_dealt_what_an_idle_one_can_take() {
    for_each_driver(|driver| {
        let options = RuntimeOptions { accept: AcceptMode::Dealt, ..listening(driver, 2) };
        let runtime = serve(&options, echo);
        let kept = connect_in_turn(&runtime, 1);
        let busy = (0..2).find(|&core| runtime.counters(core).accepted.read() == 1).unwrap();
        for _ in 0..20 {
            drop(connect_in_turn(&runtime, 1));
            wait_until("the idle core is idle again", || runtime.connections() == 1);
        }
        assert_eq!(runtime.counters(busy).accepted.read(), 1);
        assert_eq!(runtime.counters(1 - busy).accepted.read(), 20);
        drop(kept);
        stop(runtime);
    });
}
