//! Starting: all of it, or an error that names its cause and leaves nothing behind.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use baton_platform::ListenOptions;
use baton_runtime::{
    AcceptMode, Core, Driver, DriverChoice, Runtime, RuntimeOptions, StartError, probe_driver,
};

use crate::support::{
    Handler, assert_echoed, connect, echo, for_each_driver, for_each_driver_and_mode, listening,
    serve, stop, wait_until,
};

fn start(options: &RuntimeOptions) -> Result<Runtime, StartError> {
    Runtime::start(options, |core| Handler { core, handler: echo })
}

#[test]
fn a_port_that_is_taken_is_an_error_with_its_address() {
    for_each_driver_and_mode(|driver, accept| {
        for reuse_port in [false, true] {
            let others = ListenOptions { backlog: 8, reuse_port };
            let other = baton_platform::listen((Ipv4Addr::LOCALHOST, 0).into(), others).unwrap();
            let taken = other.local_addr().unwrap();
            let free: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
            let options =
                RuntimeOptions { accept, listen: vec![free, taken], ..listening(driver, 2) };
            match start(&options).map(stop) {
                Err(StartError::Listen { address, error }) => {
                    assert_eq!(address, taken);
                    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
                }
                other => panic!("reuse_port {reuse_port}: {other:?}"),
            }
        }
    });
}

#[test]
fn an_address_that_is_not_ours_is_an_error() {
    // TEST-NET-1 (RFC 5737) is nobody's.
    let foreign: SocketAddr = "192.0.2.1:0".parse().unwrap();
    let options = RuntimeOptions { listen: vec![foreign], ..listening(DriverChoice::Poll, 1) };
    let error = start(&options).map(stop).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 192.0.2.1:0: "), "{error}");
}

#[test]
fn a_service_that_cannot_be_made_fails_the_start_and_leaves_the_port_free() {
    for_each_driver_and_mode(|driver, accept| {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = vec![held.local_addr().unwrap()];
        drop(held);
        let options = RuntimeOptions { accept, listen, ..listening(driver, 2) };
        let failed = Runtime::start(&options, |core: Core| {
            assert_eq!(core.index(), 0, "only core 0 gets a service");
            Handler { core, handler: echo }
        });
        match failed.map(stop) {
            Err(StartError::System(error)) => assert!(error.to_string().contains("panicked")),
            other => panic!("{other:?}"),
        }
        stop(start(&options).unwrap());
    });
}

#[test]
fn a_driver_asked_for_by_name_is_what_the_cores_run_on() {
    for_each_driver(|choice| {
        let runtime = Runtime::start(&listening(choice, 2), move |core: Core| {
            assert_eq!(core.driver() == Driver::IoUring, choice == DriverChoice::IoUring);
            Handler { core, handler: echo }
        });
        let runtime = runtime.unwrap();
        assert_eq!(runtime.driver() == Driver::IoUring, choice == DriverChoice::IoUring);
        stop(runtime);
    });
}

#[test]
fn the_choice_left_to_the_runtime_is_io_uring_where_that_can_be_had() {
    let by_name = start(&listening(DriverChoice::IoUring, 2));
    let automatic = start(&listening(DriverChoice::Auto, 2)).unwrap();
    match by_name {
        Ok(runtime) => {
            assert_eq!(automatic.driver(), Driver::IoUring);
            stop(runtime);
        }
        Err(error) => {
            assert_eq!(automatic.driver(), Driver::Poll);
            assert!(matches!(error, StartError::Driver { .. }), "{error}");
        }
    }
    stop(automatic);
}

#[test]
fn more_cores_than_cpus_are_all_at_work() {
    for_each_driver_and_mode(|driver, accept| {
        let cpus = baton_platform::usable_cpus().ids.len();
        let options = RuntimeOptions { accept, ..listening(driver, cpus + 3) };
        let runtime = start(&options).unwrap();
        assert_eq!(runtime.cores(), cpus + 3);
        for core in 0..runtime.cores() {
            wait_until("its heart beats", || runtime.counters(core).heartbeats.read() > 0);
        }
        assert_echoed(&mut connect(runtime.addresses()[0]), b"x");
        stop(runtime);
    });
}

#[test]
fn without_a_number_there_is_a_core_for_each_usable_cpu() {
    for_each_driver(|driver| {
        let options = RuntimeOptions { cores: None, ..listening(driver, 1) };
        let runtime = start(&options).unwrap();
        assert_eq!(runtime.cores(), baton_platform::usable_cpus().count());
        stop(runtime);
    });
}

#[test]
fn no_cores_are_taken_as_one() {
    let runtime = start(&listening(DriverChoice::Poll, 0)).unwrap();
    assert_eq!(runtime.cores(), 1);
    stop(runtime);
}

#[test]
fn a_runtime_without_listeners_needs_no_acceptor() {
    for_each_driver_and_mode(|driver, accept| {
        let options = RuntimeOptions { accept, listen: Vec::new(), ..listening(driver, 2) };
        let runtime = serve(&options, echo);
        assert_eq!(runtime.addresses(), []);
        stop(runtime);
    });
}

#[test]
fn both_modes_serve_all_of_several_listeners() {
    for_each_driver_and_mode(|driver, accept| {
        let listen = vec![(Ipv4Addr::LOCALHOST, 0).into(); 2];
        let runtime = start(&RuntimeOptions { accept, listen, ..listening(driver, 2) }).unwrap();
        for &address in runtime.addresses() {
            assert_ne!(address.port(), 0);
            for _ in 0..10 {
                assert_echoed(&mut connect(address), b"x");
            }
        }
        let acceptor = usize::from(accept == AcceptMode::Dealt);
        wait_until("all threads live", || {
            (0..2 + acceptor).all(|core| runtime.counters(core).heartbeats.read() > 0)
        });
        stop(runtime);
    });
}

#[test]
fn a_trial_of_the_driver_ends_where_a_start_does() {
    for choice in [DriverChoice::Auto, DriverChoice::IoUring, DriverChoice::Poll] {
        let tried = probe_driver(choice, 3).ok();
        let started = start(&listening(choice, 3)).map(|runtime| {
            let driver = runtime.driver();
            stop(runtime);
            driver
        });
        assert_eq!(tried, started.ok(), "{choice:?}");
    }
}

#[test]
fn a_trial_of_no_cores_is_one_of_one() {
    assert_eq!(probe_driver(DriverChoice::Poll, 0).ok(), Some(Driver::Poll));
}
