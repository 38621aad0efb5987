//! Listeners that come and go while the cores run.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use baton_runtime::{Runtime, RuntimeOptions, StartError};

use crate::support::{
    PATIENCE, assert_echoed, connect, echo, for_each_driver_and_mode, listening, serve, stop,
    wait_until,
};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn listen(runtime: &Runtime, address: SocketAddr) -> (usize, SocketAddr) {
    let listener = runtime.open_listener(address).unwrap();
    let known = (listener.number(), listener.address());
    runtime.accept_from(listener);
    known
}

#[test]
fn an_address_that_is_taken_is_refused_and_nothing_changes() {
    for_each_driver_and_mode(|driver, accept| {
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        let address = runtime.addresses()[0];
        let refused = runtime.open_listener(address);
        assert!(matches!(refused, Err(StartError::Listen { .. })), "{refused:?}");
        assert_echoed(&mut connect(address), b"still here");
        stop(runtime);
    });
}

#[test]
fn connections_of_an_added_listener_come_with_its_number() {
    for_each_driver_and_mode(|driver, accept| {
        let options = RuntimeOptions { accept, ..listening(driver, 2) };
        let runtime = serve(&options, async |core, connection: baton_runtime::Accepted| {
            let timer = core.timer();
            timer.set(PATIENCE);
            let number = [u8::try_from(connection.listener).unwrap()];
            let mut parts = [std::io::IoSlice::new(&number)];
            connection.stream.write_all(&mut parts, &timer).await.unwrap();
        });
        let added = [(); 2].map(|()| listen(&runtime, ANY));
        let all = [(0, runtime.addresses()[0]), added[0], added[1]];
        for (listener, address) in all.into_iter().cycle().take(12) {
            let mut byte = [0];
            connect(address).read_exact(&mut byte).unwrap();
            assert_eq!(usize::from(byte[0]), listener);
        }
        stop(runtime);
    });
}

#[test]
fn every_client_that_could_connect_to_a_listener_that_is_given_up_is_served() {
    for_each_driver_and_mode(|driver, accept| {
        // Goal: giving an address up resets nobody. Method: clients connect as fast as they can
        // until they are refused; whoever was connected has to get an answer.
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        let (listener, address) = listen(&runtime, ANY);
        let served = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Ok(mut client) = TcpStream::connect(address) {
                        client.set_read_timeout(Some(PATIENCE)).unwrap();
                        client.write_all(b"x").unwrap();
                        client.read_exact(&mut [0]).unwrap();
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            wait_until("clients are served", || served.load(Ordering::Relaxed) > 200);
            runtime.unlisten(listener);
        });
        assert_echoed(&mut connect(runtime.addresses()[0]), b"the other one is untouched");
        // The address is free again, for us as well.
        let (again, _) = listen(&runtime, address);
        assert_ne!(again, listener);
        assert_echoed(&mut connect(address), b"back");
        stop(runtime);
    });
}

#[test]
fn a_connection_outlives_its_listener() {
    for_each_driver_and_mode(|driver, accept| {
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 1) }, echo);
        let (listener, address) = listen(&runtime, ANY);
        let mut client = connect(address);
        assert_echoed(&mut client, b"before");
        runtime.unlisten(listener);
        wait_until("the address is closed", || TcpStream::connect(address).is_err());
        assert_echoed(&mut client, b"after");
        drop(client);
        stop(runtime);
    });
}
