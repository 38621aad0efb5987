//! Reads: timed out, dropped, ended, and none of them losing a byte.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::mpsc::sync_channel;
use std::task::Poll;
use std::time::Duration;

use baton_platform::set_linger_zero;
use baton_runtime::Core;

use crate::on_core::{accept, connect, listen, poll_once, start, yield_until};
use crate::support::{PATIENCE, cpu_over, for_each_driver};

#[test]
fn a_read_times_out_and_what_arrives_later_is_read_by_the_next() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let (tell, told) = sync_channel(1);
        let reader = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            let mut bytes = [0; 16];
            timer.set(Duration::from_millis(50));
            let error = stream.read(&mut bytes, &timer).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            // An expired timer ends the next wait as well, until it is set anew.
            let error = stream.read(&mut bytes, &timer).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            tell.send(()).unwrap();
            timer.set(PATIENCE);
            let count = stream.read(&mut bytes, &timer).await.unwrap();
            bytes[..count].to_vec()
        });
        let mut peer = accept(&listener);
        told.recv_timeout(PATIENCE).unwrap();
        peer.write_all(b"late").unwrap();
        assert_eq!(reader.finish(), b"late");
    });
}

#[test]
fn an_expired_timer_takes_away_no_bytes_that_are_there() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let reader = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(Duration::ZERO);
            yield_until(&core, "bytes have come", || stream.has_bytes()).await;
            yield_until(&core, "the timer has expired", || timer.is_expired()).await;
            // Whether the timer or the bytes win is the driver's affair.
            if let Err(error) = stream.readable(&timer).await {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
            }
            let mut bytes = [0; 16];
            let count = stream.try_read(&mut bytes).unwrap();
            bytes[..count].to_vec()
        });
        accept(&listener).write_all(b"early").unwrap();
        assert_eq!(reader.finish(), b"early");
    });
}

#[test]
fn a_read_dropped_at_any_point_loses_no_byte() {
    for_each_driver(|driver| {
        const BYTES: usize = 200_000;
        let (listener, address) = listen();
        let reader = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(PATIENCE);
            let mut received = Vec::new();
            for turn in 0.. {
                if received.len() == BYTES {
                    break;
                }
                let mut bytes = [0; 1000];
                let mut polled = Poll::Pending;
                {
                    let mut read = pin!(stream.read(&mut bytes, &timer));
                    // Dropped unpolled, waiting, or with its wait over and that not yet seen.
                    for _ in 0..turn % 4 {
                        if polled.is_pending() {
                            polled = poll_once(read.as_mut()).await;
                            core.yield_now().await;
                        }
                    }
                }
                if let Poll::Ready(count) = polled {
                    received.extend_from_slice(&bytes[..count.unwrap()]);
                }
            }
            received
        });
        let mut peer = accept(&listener);
        let sent: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
        for piece in sent.chunks(777) {
            peer.write_all(piece).unwrap();
        }
        assert!(reader.finish() == sent, "the bytes differ");
    });
}

#[test]
fn the_end_of_the_peer_is_read_as_zero_after_its_last_bytes() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let reader = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(PATIENCE);
            let mut received = Vec::new();
            loop {
                let mut bytes = [0; 16];
                match stream.read(&mut bytes, &timer).await.unwrap() {
                    0 => return received,
                    count => received.extend_from_slice(&bytes[..count]),
                }
            }
        });
        let mut peer = accept(&listener);
        peer.write_all(b"the last").unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(reader.finish(), b"the last");
    });
}

#[test]
fn without_bytes_a_read_that_does_not_wait_would_block() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let reader = start(driver, async move |core: Core| {
            let stream = connect(&core, address).await;
            assert!(!stream.has_bytes());
            assert_eq!(stream.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        });
        let _peer = accept(&listener);
        reader.finish();
    });
}

#[test]
fn a_watched_connection_stirs_when_bytes_come_or_the_peer_ends_or_breaks_it() {
    for_each_driver(|driver| {
        // What the peer does, and what it keeps open.
        let bytes = |mut peer: TcpStream| {
            peer.write_all(b"unasked").unwrap();
            Some(peer)
        };
        let end = |peer: TcpStream| {
            peer.shutdown(Shutdown::Write).unwrap();
            Some(peer)
        };
        let reset = |peer: TcpStream| {
            set_linger_zero(peer.as_fd()).unwrap();
            None
        };
        let acts: [fn(TcpStream) -> Option<TcpStream>; 3] = [bytes, end, reset];
        for act in acts {
            let (listener, address) = listen();
            let (tell, told) = sync_channel(1);
            let watcher = start(driver, async move |core: Core| {
                let stream = connect(&core, address).await;
                for _ in 0..10 {
                    core.yield_now().await;
                    assert!(!stream.has_stirred(), "it is quiet");
                }
                tell.send(()).unwrap();
                yield_until(&core, "it stirs", || stream.has_stirred()).await;
                assert!(stream.has_stirred(), "it goes on saying so");
            });
            let peer = accept(&listener);
            told.recv_timeout(PATIENCE).unwrap();
            let _kept = act(peer);
            watcher.finish();
        }
    });
}

#[test]
fn bytes_are_read_that_came_while_nobody_waited_or_after_a_wait_timed_out() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let (tell, told) = sync_channel(1);
        let reader = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            let mut received = Vec::new();
            let mut bytes = [0; 1];
            for turn in 0..6 {
                // The bytes come while nobody waits, or the read does, or after it timed out.
                if turn % 3 == 2 {
                    timer.set(Duration::ZERO);
                    let error = stream.read(&mut bytes, &timer).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::TimedOut);
                }
                tell.send(()).unwrap();
                if turn % 3 == 0 {
                    yield_until(&core, "the byte is there", || stream.has_bytes()).await;
                }
                timer.set(PATIENCE);
                assert_eq!(stream.read(&mut bytes, &timer).await.unwrap(), 1);
                received.push(bytes[0]);
            }
            received
        });
        let mut peer = accept(&listener);
        for byte in b"stream" {
            told.recv_timeout(PATIENCE).unwrap();
            peer.write_all(&[*byte]).unwrap();
        }
        assert_eq!(reader.finish(), b"stream");
    });
}

#[test]
fn a_broken_connection_is_noticed_without_reading() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let (tell, told) = sync_channel(1);
        let watcher = start(driver, async move |core: Core| {
            let stream = connect(&core, address).await;
            // Sooner, the connecting itself would fail.
            tell.send(()).unwrap();
            stream.broken().await.kind()
        });
        // Closing with a linger of zero seconds sends a reset.
        let reset = accept(&listener);
        told.recv_timeout(PATIENCE).unwrap();
        set_linger_zero(reset.as_fd()).unwrap();
        drop(reset);
        assert_eq!(watcher.finish(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn watching_a_connection_that_ended_in_order_or_holds_bytes_costs_no_cpu() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let (tell, told) = sync_channel::<()>(1);
        let told = std::sync::Mutex::new(told);
        let watcher = start(driver, async move |core: Core| {
            let ended = connect(&core, address).await;
            let full = connect(&core, address).await;
            let mut ended = pin!(ended.broken());
            let mut full = pin!(full.broken());
            loop {
                assert!(poll_once(ended.as_mut()).await.is_pending());
                assert!(poll_once(full.as_mut()).await.is_pending());
                if told.lock().unwrap().try_recv().is_ok() {
                    return;
                }
                core.sleep(Duration::from_millis(20)).await;
            }
        });
        let (ended, mut full) = (accept(&listener), accept(&listener));
        ended.shutdown(Shutdown::Write).unwrap();
        full.write_all(b"unread").unwrap();
        let cpu = cpu_over(watcher.counters(), 5);
        tell.send(()).unwrap();
        watcher.finish();
        assert!(cpu < Duration::from_millis(100), "{cpu:?} of CPU");
    });
}
