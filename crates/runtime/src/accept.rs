//! How connections come to a core: from its own listener, or dealt by the acceptor.
//!
//! Accepting is done in batches after readiness, never by a pending accept: a dropped one would leak
//! its socket. At the process's connection limit accepting pauses and the backlog fills.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use baton_platform::{self as platform, AcceptFault, Backlog, SocketMode};

use crate::core::Core;
use crate::limits::{ACCEPT_BATCH, LISTENER_LAST_TICKS, TICK};
use crate::mailbox::Message;
use crate::reactor::Direction;
use crate::shared::Permits;
use crate::source::Source;
use crate::stream::Stream;

/// A connection that has just come to its core.
pub struct Accepted {
    /// The connection.
    pub stream: Stream,
    /// The client's address.
    pub peer: SocketAddr,
    /// Which listener it came from: the index in [`crate::RuntimeOptions::listen`], or the number
    /// that [`crate::NewListener`] has.
    pub listener: usize,
}

/// What a core does with its connections. One value per core.
pub trait Service: 'static {
    /// Serves one connection to its end.
    fn serve(self: Rc<Self>, connection: Accepted) -> impl Future<Output = ()> + 'static;

    /// What other threads may tell it, through a [`crate::Postbox`].
    type Notice: Send + 'static;

    /// Takes what another thread tells it. Runs between tasks and holds up all of them.
    fn notice(self: Rc<Self>, notice: Self::Notice);
}

/// Where accepted sockets go.
pub(crate) enum Sink<S> {
    /// To this core's own service.
    Own(Rc<S>),
    /// To the less busy of two cores.
    Deal(Dealer),
}

/// Starts the task of one connection; the permits end with it.
pub(crate) fn serve<S: Service>(
    core: &Core,
    service: &Rc<S>,
    connection: Accepted,
    permit: Permits,
) {
    let counters = core.counters();
    counters.accepted.add(1);
    counters.connections.add(1);
    let service = service.clone();
    let open = OpenConnection { core: core.clone(), _permit: permit };
    core.spawn(async move {
        let _open = open;
        service.serve(connection).await;
    });
}

/// Counts a connection as open until it is dropped, a panic of its task included.
struct OpenConnection {
    core: Core,
    _permit: Permits,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.core.counters().connections.sub(1);
    }
}

/// Accepts from `listener` until the core drains or the listener is given up; then sweeps what is
/// queued and closes it.
pub(crate) async fn accept_loop<S: Service>(
    core: Core,
    listener: Source,
    index: usize,
    mut sink: Sink<S>,
) {
    let mut batch = Vec::with_capacity(ACCEPT_BATCH);
    loop {
        let cause = readable_or_over(&core, &listener, index).await;
        sweep(&core, &listener, index, &mut batch, &mut sink).await;
        match cause {
            Cause::Readable => {}
            Cause::Draining => return,
            Cause::GivenUp => break,
        }
    }
    // Closing a listener resets what is queued on it, and who has just been told by the kernel that
    // it is connected is about to be queued. So those come in first, and nobody new.
    if let Err(error) = platform::refuse_new_connections(listener.as_fd()) {
        tracing::debug!(core = core.index(), %error, "a listener ends without its last moment");
    } else {
        let end = core.tick() + LISTENER_LAST_TICKS;
        while core.tick() < end && !core.is_draining() {
            core.sleep(TICK).await;
            sweep(&core, &listener, index, &mut batch, &mut sink).await;
        }
    }
    core.listener_ended(index);
}

/// Accepts what is queued.
async fn sweep<S: Service>(
    core: &Core,
    listener: &Source,
    index: usize,
    batch: &mut Vec<(OwnedFd, SocketAddr)>,
    sink: &mut Sink<S>,
) {
    loop {
        match accept_some(core, listener, index, batch, sink) {
            Swept::Empty => {
                listener.clear(Direction::Read);
                return;
            }
            Swept::Some => core.yield_now().await,
            Swept::Starved if core.is_draining() => return,
            Swept::Full | Swept::Starved => core.sleep(TICK).await,
        }
    }
}

/// Why a wait of an accept loop ended.
enum Cause {
    Readable,
    Draining,
    GivenUp,
}

enum Swept {
    /// Nothing is queued.
    Empty,
    /// More may be queued.
    Some,
    /// The process is at its connection limit. That passes while connections end, and those queued
    /// are then taken, when the core drains as well.
    Full,
    /// The system refuses. That may not pass, so a core that drains gives up what is queued.
    Starved,
}

/// Waits for a connection, or until nobody wants one any more.
async fn readable_or_over(core: &Core, listener: &Source, index: usize) -> Cause {
    let mut readable = pin!(listener.readable());
    poll_fn(|cx| {
        if core.poll_draining(cx).is_ready() {
            return Poll::Ready(Cause::Draining);
        }
        // `poll_draining` has the task woken for this as well.
        if core.is_given_up(index) {
            return Poll::Ready(Cause::GivenUp);
        }
        readable.as_mut().poll(cx).map(|()| Cause::Readable)
    })
    .await
}

fn accept_some<S: Service>(
    core: &Core,
    listener: &Source,
    index: usize,
    batch: &mut Vec<(OwnedFd, SocketAddr)>,
    sink: &mut Sink<S>,
) -> Swept {
    let mut permits = core.shared().acquire_permits(ACCEPT_BATCH);
    if permits.count() == 0 {
        core.counters().accept_paused.add(1);
        return Swept::Full;
    }
    let left =
        platform::accept_batch(listener.as_fd(), SocketMode::NonBlocking, permits.count(), batch);
    let left = match left {
        Ok(left) => left,
        Err(error) => return refused(core, &error),
    };
    for (socket, peer) in batch.drain(..) {
        let permit = permits.split_one();
        match sink {
            Sink::Own(service) => match Stream::adopt(core, socket) {
                Ok(stream) => {
                    serve(core, service, Accepted { stream, peer, listener: index }, permit);
                }
                Err(error) => {
                    tracing::debug!(core = core.index(), %peer, %error, "an accepted socket broke");
                }
            },
            Sink::Deal(dealer) => dealer.deal(core, socket, peer, index, permit),
        }
    }
    match left {
        Backlog::Drained => Swept::Empty,
        Backlog::MayHoldMore => Swept::Some,
    }
}

fn refused(core: &Core, error: &io::Error) -> Swept {
    match platform::classify_accept_error(error) {
        AcceptFault::WouldBlock => Swept::Empty,
        AcceptFault::Transient => Swept::Some,
        AcceptFault::OutOfDescriptors | AcceptFault::OutOfMemory | AcceptFault::Fatal => {
            // Once per tick at most: the loop pauses for a tick after it.
            core.counters().accept_starved.add(1);
            tracing::warn!(core = core.index(), %error, "accepting pauses");
            Swept::Starved
        }
    }
}

/// Deals sockets that no reactor has seen yet to the less busy of two cores.
pub(crate) struct Dealer {
    random: u64,
}

impl Dealer {
    pub(crate) fn new() -> Dealer {
        // Any odd constant: the choice only has to be spread, not secret.
        Dealer { random: 0x9e37_79b9_7f4a_7c15 }
    }

    fn deal(
        &mut self,
        core: &Core,
        socket: OwnedFd,
        peer: SocketAddr,
        listener: usize,
        permit: Permits,
    ) {
        let shared = core.shared();
        let (first, second) = self.two(shared.cores());
        let load = |core: usize| {
            shared.counters(core).connections.read() + shared.mailbox(core).waiting() as u64
        };
        let (best, other) =
            if load(second) < load(first) { (second, first) } else { (first, second) };
        let mut message = Message::Connection { socket, peer, listener, permit };
        for target in [best, other].into_iter().chain(0..shared.cores()) {
            match shared.mailbox(target).send(message) {
                Ok(()) => return,
                Err(back) => message = back,
            }
        }
        // Every mailbox is full: the cores are hopelessly behind. Closing sheds the connection.
        core.counters().accept_starved.add(1);
        tracing::warn!(%peer, "all cores are behind; a connection is dropped");
    }

    /// Two different cores, any two equally likely; the same one twice where there is only one.
    fn two(&mut self, cores: usize) -> (usize, usize) {
        if cores == 1 {
            return (0, 0);
        }
        let first = self.below(cores);
        let second = (first + 1 + self.below(cores - 1)) % cores;
        (first, second)
    }

    /// A number below `bound`, by xorshift.
    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_choices_differ_and_every_pair_comes_up() {
        let mut dealer = Dealer::new();
        let mut pairs = std::collections::BTreeMap::new();
        for _ in 0..12_000 {
            let (first, second) = dealer.two(4);
            assert_ne!(first, second);
            *pairs.entry((first, second)).or_insert(0_u32) += 1;
        }
        assert_eq!(pairs.len(), 12);
        assert!(pairs.values().all(|count| (800..1200).contains(count)), "{pairs:?}");
    }

    #[test]
    fn one_core_is_its_own_alternative() {
        assert_eq!(Dealer::new().two(1), (0, 0));
    }
}
