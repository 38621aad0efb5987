//! Connections reach a service and are served, whatever their neighbours do.

use std::io::{IoSlice, Write, read_to_string};
use std::net::Ipv4Addr;
use std::rc::Rc;

use baton_runtime::{AcceptMode, Accepted, BufferSize, Core, Runtime, RuntimeOptions, Service};

use crate::support::{
    PATIENCE, assert_echoed, assert_ended, connect, echo, for_each_driver,
    for_each_driver_and_mode, listening, serve, stop, sum, wait_until,
};

#[test]
fn a_panicking_connection_is_closed_and_counted_and_its_core_goes_on() {
    for_each_driver_and_mode(|driver, accept| {
        let options = RuntimeOptions { accept, ..listening(driver, 1) };
        let runtime = serve(&options, async |core: Core, connection: Accepted| {
            let timer = core.timer();
            timer.set(PATIENCE);
            let mut first = [0];
            connection.stream.read(&mut first, &timer).await.unwrap();
            assert_ne!(first, *b"!", "the client asked for it");
            connection.stream.write_all(&mut [IoSlice::new(&first)], &timer).await.unwrap();
        });
        let address = runtime.addresses()[0];
        let mut neighbour = connect(address);
        for _ in 0..3 {
            let mut client = connect(address);
            client.write_all(b"!").unwrap();
            assert_ended(&mut client);
        }
        assert_echoed(&mut neighbour, b"a");
        assert_echoed(&mut connect(address), b"b");
        wait_until("all panics are counted", || runtime.counters(0).panics.read() == 3);
        wait_until("all connections are closed", || runtime.connections() == 0);
        stop(runtime);
    });
}

/// A service that panics before it has made a future.
struct PanicsAtOnce;

impl Service for PanicsAtOnce {
    type Notice = std::convert::Infallible;

    fn notice(self: Rc<Self>, notice: Self::Notice) {
        match notice {}
    }

    fn serve(self: Rc<Self>, connection: Accepted) -> impl Future<Output = ()> + 'static {
        assert!(connection.peer.port() == 0, "no port is 0");
        async {}
    }
}

#[test]
fn a_service_that_panics_at_once_does_not_stop_the_acceptor() {
    for_each_driver_and_mode(|driver, accept| {
        let options = RuntimeOptions { accept, ..listening(driver, 1) };
        let runtime = Runtime::start(&options, |_| PanicsAtOnce).unwrap();
        for _ in 0..3 {
            assert_ended(&mut connect(runtime.addresses()[0]));
        }
        wait_until("all connections are closed", || runtime.connections() == 0);
        wait_until("all panics are counted", || runtime.counters(0).panics.read() == 3);
        stop(runtime);
    });
}

#[test]
fn what_a_client_sends_comes_back_in_each_mode() {
    for_each_driver_and_mode(|driver, accept| {
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        let mut client = connect(runtime.addresses()[0]);
        for length in [1, 100, 10_000] {
            assert_echoed(&mut client, &vec![b'x'; length]);
        }
        drop(client);
        wait_until("it is closed", || runtime.connections() == 0);
        assert_eq!(sum(&runtime, |core| &core.accepted), 1);
        assert_eq!(sum(&runtime, |core| &core.connections), 0);
        stop(runtime);
    });
}

#[test]
fn two_hundred_connections_are_spread_over_two_cores_and_all_are_served() {
    for_each_driver_and_mode(|driver, accept| {
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        let address = runtime.addresses()[0];
        let mut clients: Vec<_> = (0..200).map(|_| connect(address)).collect();
        for client in &mut clients {
            assert_echoed(client, b"all of us");
        }
        wait_until("the batches are over", || runtime.connections() == 200);
        for core in 0..2 {
            // The kernel's hash may be lumpy: fewer than 50 of 200 has a chance below 1e-12.
            let least = if accept == AcceptMode::Dealt { 80 } else { 50 };
            let open = runtime.counters(core).connections.read();
            assert!(open >= least, "core {core} serves {open}");
        }
        drop(clients);
        wait_until("all are closed", || runtime.connections() == 0);
        stop(runtime);
    });
}

#[test]
fn a_connection_knows_its_listener_and_its_peer() {
    for_each_driver_and_mode(|driver, accept| {
        let listen = vec![(Ipv4Addr::LOCALHOST, 0).into(); 3];
        let options = RuntimeOptions { accept, listen, ..listening(driver, 2) };
        let runtime = serve(&options, async |core: Core, connection: Accepted| {
            let timer = core.timer();
            timer.set(PATIENCE);
            let text = format!("{} {}", connection.listener, connection.peer);
            let mut parts = [IoSlice::new(text.as_bytes())];
            connection.stream.write_all(&mut parts, &timer).await.unwrap();
        });
        assert_eq!(runtime.addresses().len(), 3);
        for (index, &address) in runtime.addresses().iter().enumerate() {
            let client = connect(address);
            let expected = format!("{index} {}", client.local_addr().unwrap());
            assert_eq!(read_to_string(client).unwrap(), expected);
        }
        stop(runtime);
    });
}

#[test]
fn each_buffer_of_a_core_is_lent_again() {
    for_each_driver(|driver| {
        let runtime = serve(&listening(driver, 1), async |core: Core, connection: Accepted| {
            let mut buffer = core.buffer(BufferSize::Head);
            let address = buffer.spare().as_ptr().addr().to_string();
            let timer = core.timer();
            timer.set(PATIENCE);
            let mut parts = [IoSlice::new(address.as_bytes())];
            connection.stream.write_all(&mut parts, &timer).await.unwrap();
        });
        let ask = || read_to_string(connect(runtime.addresses()[0])).unwrap();
        let first = ask();
        wait_until("it is closed", || runtime.connections() == 0);
        assert_eq!(ask(), first);
        stop(runtime);
    });
}
