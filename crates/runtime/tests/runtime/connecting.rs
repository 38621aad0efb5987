//! Opening connections: refused, unanswered, given up.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::time::Duration;

use baton_platform::ListenOptions;
use baton_runtime::Core;

use crate::on_core::{listen, poll_once, run, start};
use crate::support::{PATIENCE, for_each_driver};

#[test]
fn a_connection_that_nobody_listens_for_is_refused() {
    for_each_driver(|driver| {
        // The local port of a client is taken, and nobody listens on it.
        let (listener, address) = listen();
        let holder = TcpStream::connect(address).unwrap();
        let nobody = holder.local_addr().unwrap();
        let error = run(driver, async move |core: Core| {
            let timer = core.timer();
            timer.set(PATIENCE);
            core.connect(nobody, &timer).await.err().map(|error| error.kind())
        });
        assert_eq!(error, Some(ErrorKind::ConnectionRefused));
        drop(listener);
    });
}

/// A listener whose queue is full, so that the kernel does not answer. With what fills it.
fn full_listener() -> (TcpListener, SocketAddr, Vec<TcpStream>) {
    let options = ListenOptions { backlog: 1, reuse_port: false };
    let listener = baton_platform::listen((Ipv4Addr::LOCALHOST, 0).into(), options).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    // The system may queue a few more than asked for.
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
        queued.push(stream);
        assert!(queued.len() < 20, "the queue has no end");
    }
    (listener, address, queued)
}

#[test]
fn a_connection_that_is_not_answered_times_out() {
    let (_listener, address, _queued) = full_listener();
    for_each_driver(|driver| {
        let error = run(driver, async move |core: Core| {
            let timer = core.timer();
            timer.set(Duration::from_millis(200));
            core.connect(address, &timer).await.err().map(|error| error.kind())
        });
        assert_eq!(error, Some(ErrorKind::TimedOut));
    });
}

#[test]
fn a_connection_given_up_while_it_opens_leaves_its_core_at_work() {
    let (_listener, unanswered, _queued) = full_listener();
    for_each_driver(|driver| {
        let (listener, answered) = listen();
        let connector = start(driver, async move |core: Core| {
            let timer = core.timer();
            timer.set(PATIENCE);
            for _ in 0..10 {
                assert!(poll_once(pin!(core.connect(unanswered, &timer))).await.is_pending());
                core.yield_now().await;
            }
            drop(core.connect(answered, &timer).await.unwrap());
        });
        connector.finish();
        assert_eq!(listener.accept().unwrap().0.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_connection_over_ipv6_opens_where_the_machine_has_it() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        use std::io::Write;
        writeln!(std::io::stderr().lock(), "SKIPPED: this machine has no IPv6").unwrap();
        return;
    };
    let address = listener.local_addr().unwrap();
    for_each_driver(|driver| {
        run(driver, async move |core: Core| {
            let timer = core.timer();
            timer.set(PATIENCE);
            drop(core.connect(address, &timer).await.unwrap());
        });
        assert!(listener.accept().unwrap().1.is_ipv6());
    });
}
