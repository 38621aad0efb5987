//! Two connections whose bytes no longer concern HTTP (101 Switching Protocols).

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use baton_runtime::{Buffer, BufferSize, Core, Stream, Timer};

use crate::account::add;
use crate::downstream::Client;
use crate::limits::RELAY_TURN_BYTES;
use crate::proxy::Proxy;

/// Moves bytes both ways until both sides have ended, one breaks, or neither sends for the bound.
/// `rest`: what the endpoint sent behind its 101; the client's buffer holds what it sent early.
pub(crate) async fn run(
    proxy: &Proxy,
    client: &mut Client,
    upstream: &Stream,
    rest: Buffer,
    idle: Duration,
) {
    let early = std::mem::replace(&mut client.buffer, proxy.core.buffer(BufferSize::Head));
    let core = &proxy.core;
    let (up, down) = (&client.account.tunnel.0, &client.account.tunnel.1);
    let (one, other) = (&client.timer, &client.answer_timer);
    let up = Half {
        core,
        from: &client.stream,
        to: upstream,
        own: one,
        opposite: other,
        idle,
        moved: up,
    };
    let down = Half {
        core,
        from: upstream,
        to: &client.stream,
        own: other,
        opposite: one,
        idle,
        moved: down,
    };
    let (mut up, mut down) = (pin!(up.run(early)), pin!(down.run(rest)));
    let (mut up_ended, mut down_ended) = (false, false);
    poll_fn(|cx| {
        // A broken direction ends the tunnel: its other end cannot tell what was lost.
        if !up_ended && let Poll::Ready(outcome) = up.as_mut().poll(cx) {
            up_ended = outcome.is_ok();
            if !up_ended {
                return Poll::Ready(());
            }
        }
        if !down_ended && let Poll::Ready(outcome) = down.as_mut().poll(cx) {
            down_ended = outcome.is_ok();
            if !down_ended {
                return Poll::Ready(());
            }
        }
        if up_ended && down_ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// One direction of a tunnel.
struct Half<'a> {
    core: &'a Core,
    from: &'a Stream,
    to: &'a Stream,
    own: &'a Timer,
    /// The timer of the other direction: a byte in one keeps both.
    opposite: &'a Timer,
    idle: Duration,
    /// Counts the bytes.
    moved: &'a Cell<u64>,
}

impl Half<'_> {
    /// Ends in order when the source does, and says so to the destination.
    async fn run(self, first: Buffer) -> io::Result<()> {
        self.keep();
        self.write(first.filled()).await?;
        drop(first);
        let mut turn_bytes = 0;
        loop {
            self.from.readable(self.own).await?;
            // A tunnel that waits owns no buffer.
            let mut buffer = self.core.buffer(BufferSize::Head);
            match self.from.try_read(buffer.spare()) {
                Ok(0) => return self.to.shutdown_write(),
                Ok(count) => buffer.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            self.keep();
            self.write(buffer.filled()).await?;
            turn_bytes += buffer.len();
            if turn_bytes >= RELAY_TURN_BYTES {
                turn_bytes = 0;
                self.core.yield_now().await;
            }
        }
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(&mut [IoSlice::new(bytes)], self.own).await?;
        add(self.moved, bytes.len() as u64);
        Ok(())
    }

    fn keep(&self) {
        self.own.set(self.idle);
        self.opposite.set(self.idle);
    }
}
