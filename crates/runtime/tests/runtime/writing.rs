//! Writes: whole, bounded in time, and cheap while they wait.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use baton_runtime::{Core, Stream, Timer};

use crate::on_core::{accept, connect, listen, start, yield_until};
use crate::support::{PATIENCE, cpu_over, for_each_driver};

/// More than the buffers of both sockets take.
const MORE_THAN_FITS: usize = 32 << 20;

async fn write(stream: &Stream, bytes: &[u8], timer: &Timer) -> std::io::Result<()> {
    stream.write_all(&mut [IoSlice::new(bytes)], timer).await
}

#[test]
fn a_write_to_a_peer_that_does_not_read_times_out() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let writer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(Duration::from_millis(200));
            write(&stream, &vec![0; MORE_THAN_FITS], &timer).await.unwrap_err().kind()
        });
        let _peer = accept(&listener);
        assert_eq!(writer.finish(), ErrorKind::TimedOut);
    });
}

#[test]
fn a_write_to_a_peer_that_is_gone_fails_and_raises_no_signal() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let (tell, told) = sync_channel(1);
        let writer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            // Sooner, the connecting itself would fail.
            tell.send(()).unwrap();
            timer.set(PATIENCE);
            loop {
                if let Err(error) = write(&stream, b"to nobody", &timer).await {
                    return error.kind();
                }
                core.yield_now().await;
            }
        });
        let peer = accept(&listener);
        told.recv_timeout(PATIENCE).unwrap();
        baton_platform::set_linger_zero(peer.as_fd()).unwrap();
        drop(peer);
        let error = writer.finish();
        assert!(matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");
    });
}

#[test]
fn several_mebibytes_in_many_parts_arrive_whole() {
    for_each_driver(|driver| {
        // More parts than one call takes, empty ones among them, first and last.
        let parts: Vec<Vec<u8>> =
            (0..5000).map(|n| vec![(n % 251) as u8; n % 7 * (n % 601)]).collect();
        let whole = parts.concat();
        assert!(whole.len() > 4 << 20);
        let (listener, address) = listen();
        let writer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(PATIENCE);
            let mut slices: Vec<IoSlice<'_>> =
                parts.iter().map(|part| IoSlice::new(part)).collect();
            stream.write_all(&mut slices, &timer).await.unwrap();
        });
        let mut received = Vec::new();
        accept(&listener).read_to_end(&mut received).unwrap();
        assert!(received == whole, "the bytes differ");
        writer.finish();
    });
}

#[test]
fn nothing_to_write_is_written_at_once() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let writer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            stream.write_all(&mut [], &timer).await.unwrap();
            write(&stream, b"", &timer).await.unwrap();
        });
        assert_eq!(accept(&listener).read(&mut [0]).unwrap(), 0);
        writer.finish();
    });
}

#[test]
fn waiting_to_write_to_a_peer_that_has_ended_its_side_costs_next_to_no_cpu() {
    for_each_driver(|driver| {
        // A wait on a ring ends at once when the peer has ended its side, room or not.
        let (listener, address) = listen();
        let writer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(PATIENCE);
            assert_eq!(stream.read(&mut [0], &timer).await.unwrap(), 0);
            write(&stream, &vec![7; MORE_THAN_FITS], &timer).await.unwrap();
        });
        let mut peer = accept(&listener);
        peer.shutdown(Shutdown::Write).unwrap();
        // Until the buffers are full there is work to do.
        cpu_over(writer.counters(), 2);
        let cpu = cpu_over(writer.counters(), 5);
        assert!(cpu < Duration::from_millis(100), "{cpu:?} of CPU while the peer does not read");

        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), MORE_THAN_FITS);
        writer.finish();
    });
}

#[test]
fn a_full_socket_becomes_writable_when_its_peer_reads() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let writer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            let block = vec![1; 1 << 20];
            let mut written = 0;
            while let Ok(count) = stream.try_write(&block) {
                written += count;
            }
            timer.set(PATIENCE);
            stream.writable(&timer).await.unwrap();
            written += stream.try_write(&block).unwrap();
            stream.shutdown_write().unwrap();
            // The other side may go on after the end of ours.
            assert_eq!(stream.read(&mut [0; 16], &timer).await.unwrap(), 3);
            written
        });
        let mut peer = accept(&listener);
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        peer.write_all(b"ack").unwrap();
        assert_eq!(writer.finish(), received.len());
    });
}

#[test]
fn a_connection_marked_to_be_reset_is_reset_when_dropped() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let closer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(PATIENCE);
            assert_eq!(stream.read(&mut [0; 16], &timer).await.unwrap(), 2);
            stream.reset_on_close().unwrap();
            drop(stream);
            // The core may go on: the close must not wait for its end.
            let mut turns = 0;
            yield_until(&core, "some turns pass", || {
                turns += 1;
                turns > 10
            })
            .await;
        });
        let mut peer = accept(&listener);
        peer.write_all(b"go").unwrap();
        let error = peer.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        closer.finish();
    });
}
