//! What the runtime does to the whole process: descriptors taken, missing, and given back.
//!
//! Descriptors are counted for the process, so these tests run one at a time.

mod support;

use std::fs::File;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use baton_platform::{descriptor_limit, open_descriptors};
use baton_runtime::{
    AcceptMode, Accepted, Core, Runtime, RuntimeOptions, StartError, is_out_of_descriptors,
};

use support::{
    Handler, PATIENCE, assert_echoed, assert_ended, connect, cpu_over, echo, for_each_driver,
    for_each_driver_and_mode, listening, serve, stop, sum, wait_until,
};

/// One test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Open descriptors, of which this system must know the number.
fn open() -> usize {
    open_descriptors().unwrap()
}

/// Waits until `count` descriptors are open again; the kernel may close the last ones of a ring a
/// moment after its thread has ended.
fn wait_for_descriptors(count: usize) {
    wait_until("all descriptors are closed", || open() <= count);
    assert_eq!(open(), count);
}

#[test]
fn a_thousand_connections_leave_no_descriptor_behind() {
    let _alone = alone();
    for_each_driver_and_mode(|driver, accept| {
        let at_first = open();
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        let address = runtime.addresses()[0];
        assert_echoed(&mut connect(address), b"the first");
        wait_until("it is closed", || runtime.connections() == 0);
        // A ring closes a descriptor when it is next entered, which it surely was after two beats.
        for core in 0..runtime.cores() {
            let seen = runtime.counters(core).heartbeats.read();
            wait_until("its heart beats", || runtime.counters(core).heartbeats.read() >= seen + 2);
        }
        let while_idle = open();
        for turn in 0..100 {
            let mut clients: Vec<TcpStream> = (0..10).map(|_| connect(address)).collect();
            for client in &mut clients {
                assert_echoed(client, b"x");
            }
            if turn % 2 == 0 {
                // Half of them end without a word, the others after ours has ended.
                drop(clients);
            } else {
                for client in &mut clients {
                    client.shutdown(Shutdown::Write).unwrap();
                    assert_ended(client);
                }
            }
        }
        wait_until("all are closed", || runtime.connections() == 0);
        assert_eq!(sum(&runtime, |core| &core.accepted), 1001);
        wait_for_descriptors(while_idle);
        stop(runtime);
        wait_for_descriptors(at_first);
    });
}

#[test]
fn connections_cut_by_an_abort_leave_no_descriptor_behind() {
    let _alone = alone();
    for_each_driver_and_mode(|driver, accept| {
        let at_first = open();
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 2) }, echo);
        let mut clients: Vec<TcpStream> =
            (0..100).map(|_| connect(runtime.addresses()[0])).collect();
        for client in &mut clients {
            assert_echoed(client, b"x");
        }
        runtime.abort();
        for client in &mut clients {
            assert_ended(client);
        }
        drop(clients);
        wait_until("it ends", || runtime.is_finished());
        drop(runtime);
        wait_for_descriptors(at_first);
    });
}

/// Threads of runtimes in this process, by their names; none where the system does not list them.
fn runtime_threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().flat_map(|task| std::fs::read_to_string(task.path().join("comm")));
    names
        .filter(|name| ["core-", "acceptor", "blocking-"].iter().any(|own| name.starts_with(own)))
        .count()
}

#[test]
fn a_runtime_that_is_dropped_or_joined_leaves_no_thread_behind() {
    let _alone = alone();
    for_each_driver_and_mode(|driver, accept| {
        for joined in [false, true] {
            let options = RuntimeOptions { accept, ..listening(driver, 2) };
            let runtime = serve(&options, async |core: Core, connection: Accepted| {
                core.blocking(|| ()).await.unwrap();
                echo(core, connection).await;
            });
            assert_echoed(&mut connect(runtime.addresses()[0]), b"x");
            if joined {
                stop(runtime);
            } else {
                drop(runtime);
            }
            wait_until("all its threads have ended", || runtime_threads() == 0);
        }
    });
}

#[test]
fn a_start_that_fails_leaves_no_descriptor_behind() {
    let _alone = alone();
    for_each_driver_and_mode(|driver, accept| {
        let at_first = open();
        let taken = listener();
        let mut options = RuntimeOptions { accept, ..listening(driver, 2) };
        options.listen.push(taken.local_addr().unwrap());
        let start = || Runtime::start(&options, |core| Handler { core, handler: echo });
        assert!(matches!(start().map(stop), Err(StartError::Listen { .. })));
        drop(taken);
        wait_for_descriptors(at_first);

        let options = RuntimeOptions { accept, ..listening(driver, 2) };
        let failed = Runtime::start(&options, |core| {
            assert_eq!(core.index(), 0, "only core 0 gets a service");
            Handler { core, handler: echo }
        });
        assert!(matches!(failed.map(stop), Err(StartError::System(_))));
        wait_for_descriptors(at_first);
    });
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[test]
fn connections_given_up_while_they_open_leave_no_descriptor_behind() {
    let _alone = alone();
    // Fewer attempts than the queue of the listener takes; nobody accepts them.
    let listener = listener();
    let address = listener.local_addr().unwrap();
    for_each_driver(|driver| {
        let at_first = open();
        let options = RuntimeOptions { cores: Some(1), driver, ..RuntimeOptions::default() };
        let runtime = Runtime::start(&options, move |core| {
            let handle = core.clone();
            core.spawn(async move {
                for _ in 0..50 {
                    let timer = handle.timer();
                    timer.set(PATIENCE);
                    {
                        let mut opening = pin!(handle.connect(address, &timer));
                        poll_fn(|cx| {
                            let _opened = opening.as_mut().poll(cx);
                            Poll::Ready(())
                        })
                        .await;
                    }
                    handle.yield_now().await;
                }
            });
            Handler { core, handler: echo }
        });
        let runtime = runtime.unwrap();
        wait_until("all attempts are over", || runtime.counters(0).tasks.read() == 0);
        stop(runtime);
        wait_for_descriptors(at_first);
    });
}

#[test]
fn a_connection_nobody_waits_for_leaves_no_descriptor_behind() {
    let _alone = alone();
    let listener = listener();
    let address = listener.local_addr().unwrap();
    for_each_driver(|driver| {
        let at_first = open();
        let options = RuntimeOptions { cores: Some(1), driver, ..RuntimeOptions::default() };
        let runtime = Runtime::start(&options, move |core| {
            let handle = core.clone();
            core.spawn(async move {
                let timer = handle.timer();
                for _ in 0..50 {
                    timer.set(PATIENCE);
                    let stream = handle.connect(address, &timer).await.unwrap();
                    handle.yield_now().await;
                    drop(stream);
                }
            });
            Handler { core, handler: echo }
        });
        let runtime = runtime.unwrap();
        wait_until("all are dropped", || runtime.counters(0).tasks.read() == 0);
        assert_eq!(runtime.counters(0).panics.read(), 0);
        stop(runtime);
        wait_for_descriptors(at_first);
    });
}

/// Takes all descriptors that are left. Not where the limit is too high for that.
fn hoard() -> Option<Vec<File>> {
    const HOARD_MAX: u64 = 100_000;
    let limit = descriptor_limit().unwrap();
    if limit > HOARD_MAX {
        writeln!(std::io::stderr().lock(), "SKIPPED: {limit} descriptors are too many to take")
            .unwrap();
        return None;
    }
    let mut hoard = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => hoard.push(file),
            Err(_) => return Some(hoard),
        }
    }
}

#[test]
fn a_connection_waits_without_cost_while_descriptors_are_out_and_is_served_afterwards() {
    let _alone = alone();
    for_each_driver_and_mode(|driver, accept| {
        let runtime = serve(&RuntimeOptions { accept, ..listening(driver, 1) }, echo);
        let address = runtime.addresses()[0];
        let accepting = runtime.counters(usize::from(accept == AcceptMode::Dealt));
        assert_echoed(&mut connect(address), b"the first");
        wait_until("it is closed", || runtime.connections() == 0);
        let Some(mut hoard) = hoard() else { return stop(runtime) };

        // One is left for the client, and none for the server.
        hoard.pop();
        let mut client = connect(address);
        client.write_all(b"x").unwrap();
        wait_until("accepting has failed twice", || accepting.accept_starved.read() >= 2);
        let cpu = cpu_over(accepting, 5);
        assert!(cpu < Duration::from_millis(100), "{cpu:?} of CPU while nothing can be done");

        drop(hoard);
        client.read_exact(&mut [0]).unwrap();
        drop(client);
        stop(runtime);
    });
}

#[test]
fn a_runtime_that_finds_no_descriptors_does_not_start() {
    let _alone = alone();
    for_each_driver(|driver| {
        let at_first = open();
        let Some(mut hoard) = hoard() else { return };
        // With each descriptor given back a further step of the start succeeds, until all do.
        let mut failures = 0;
        loop {
            let started =
                Runtime::start(&listening(driver, 2), |core| Handler { core, handler: echo });
            let error = match started {
                Ok(runtime) => break stop(runtime),
                Err(StartError::Listen { error, .. } | StartError::System(error)) => error,
                Err(StartError::Driver { error, .. }) => error.expect("what the system said"),
            };
            assert!(is_out_of_descriptors(&error), "{error}");
            failures += 1;
            hoard.pop();
        }
        assert!(failures > 3, "the start failed {failures} times only");
        drop(hoard);
        wait_for_descriptors(at_first);
    });
}
