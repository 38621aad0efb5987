//! Starting the threads of a runtime: all of them together, or none.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use baton_platform::{self as platform, ListenOptions, ThreadClass, UsableCpus};

use crate::accept::Service;
use crate::core::Core;
use crate::driver::{Driver, DriverChoice, Executor, Rung, ladder};
use crate::reactor::Reactor;
use crate::runtime::{RuntimeOptions, StartError};
use crate::shared::Shared;
use crate::source::Source;

/// One list of listeners per accepting thread, and the addresses they got.
pub(crate) type Listeners = (Vec<Vec<(usize, TcpListener)>>, Vec<SocketAddr>);

/// Opens the listeners of `threads` accepting threads.
pub(crate) fn open_listeners(
    options: &RuntimeOptions,
    threads: usize,
) -> Result<Listeners, StartError> {
    let mut lists: Vec<Vec<(usize, TcpListener)>> = (0..threads).map(|_| Vec::new()).collect();
    let mut addresses = Vec::with_capacity(options.listen.len());
    for (index, &address) in options.listen.iter().enumerate() {
        let (bound, sockets) = open_listener(address, options.backlog, threads)?;
        addresses.push(bound);
        for (list, socket) in lists.iter_mut().zip(sockets) {
            list.push((index, socket));
        }
    }
    Ok((lists, addresses))
}

/// Opens one listener of `threads` accepting threads: the address it got, and a socket for each.
pub(crate) fn open_listener(
    address: SocketAddr,
    backlog: u32,
    threads: usize,
) -> Result<(SocketAddr, Vec<TcpListener>), StartError> {
    let failed = |error| StartError::Listen { address, error };
    // A first socket that shares its port with nobody: another process that listens there with
    // SO_REUSEPORT would otherwise silently get half of the connections.
    let alone = ListenOptions { backlog, reuse_port: false };
    let first = platform::listen(address, alone).map_err(failed)?;
    let bound = first.local_addr().map_err(failed)?;
    if threads == 1 {
        return Ok((bound, vec![first]));
    }
    drop(first);
    let together = ListenOptions { backlog, reuse_port: true };
    let sockets = (0..threads).map(|_| platform::listen(bound, together).map_err(failed));
    Ok((bound, sockets.collect::<Result<_, _>>()?))
}

/// The CPU for thread `index`: none where the quota is smaller than the mask, since a pinned thread
/// that is throttled stalls its whole core, and none for an acceptor.
pub(crate) fn seat_cpu(usable: &UsableCpus, cores: usize, index: usize) -> Option<usize> {
    let advised = usable.pinning_advised() && cores <= usable.ids.len() && index < cores;
    advised.then(|| usable.ids[index])
}

/// What `cores` cores would run on under `choice`: the first step of the way down on which all of
/// them can be built together, since what they lock in memory adds up. They are taken down again.
///
/// Blocks until a thread of its own has tried: what it builds belongs to that thread.
///
/// # Errors
/// `StartError::Driver` with what the last step failed with, `StartError::System` without a thread.
pub fn probe_driver(choice: DriverChoice, cores: usize) -> Result<Driver, StartError> {
    let probe = move || {
        let mut refused = None;
        for &rung in ladder(choice) {
            let built: io::Result<Vec<_>> = (0..cores.max(1)).map(|_| build(rung)).collect();
            match built {
                Ok(_) => return Ok(rung.driver()),
                Err(error) => refused = Some(error),
            }
        }
        Err(StartError::Driver { choice, error: refused })
    };
    let thread = std::thread::Builder::new().name("probe".to_owned()).spawn(probe);
    let outcome = thread.map_err(StartError::System)?.join();
    outcome.unwrap_or_else(|_| {
        Err(StartError::System(io::Error::other("the thread that tried it panicked")))
    })
}

/// What a thread is given.
pub(crate) struct Seat {
    pub(crate) index: usize,
    pub(crate) cpu: Option<usize>,
    pub(crate) listeners: Vec<(usize, TcpListener)>,
    pub(crate) shared: Arc<Shared>,
}

impl Seat {
    /// Whether it deals connections to the cores instead of serving them.
    fn is_acceptor(&self) -> bool {
        self.index == self.shared.cores()
    }
}

/// Starts one thread per seat and returns once each has its reactor and service.
pub(crate) fn start_threads<S: Service>(
    choice: DriverChoice,
    seats: Vec<Seat>,
    make: Arc<impl Fn(Core) -> S + Send + Sync + 'static>,
) -> Result<(Driver, Vec<JoinHandle<()>>), StartError> {
    let shared = seats[0].shared.clone();
    let mut starting = Vec::with_capacity(seats.len());
    let mut outcome = Ok(());
    for seat in seats {
        match Starting::spawn(seat, make.clone()) {
            Ok(thread) => starting.push(thread),
            Err(error) => {
                outcome = Err(StartError::System(error));
                break;
            }
        }
    }
    let outcome = outcome.and_then(|()| descend(choice, &starting));
    let outcome = outcome.and_then(|driver| go(&starting).map(|()| driver));
    if outcome.is_err() {
        // For those that run already. The others end as the sender of their orders is dropped.
        shared.abort();
    }
    let threads: Vec<JoinHandle<()>> = starting.into_iter().map(|core| core.thread).collect();
    match outcome {
        Ok(driver) => Ok((driver, threads)),
        Err(error) => {
            for thread in threads {
                // A panic is in `error` already.
                let _panicked = thread.join();
            }
            Err(error)
        }
    }
}

/// A thread that builds its reactor as it is told.
struct Starting {
    orders: SyncSender<Verdict>,
    /// The outcome of each order.
    results: Receiver<io::Result<()>>,
    thread: JoinHandle<()>,
}

enum Verdict {
    Try(Rung),
    Go,
}

impl Starting {
    fn spawn<S: Service>(
        seat: Seat,
        make: Arc<impl Fn(Core) -> S + Send + Sync + 'static>,
    ) -> io::Result<Starting> {
        let (orders, ordered) = sync_channel(1);
        let (done, results) = sync_channel(1);
        let name =
            if seat.is_acceptor() { "acceptor".into() } else { format!("core-{}", seat.index) };
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || run_thread(seat, make.as_ref(), &ordered, &done))?;
        Ok(Starting { orders, results, thread })
    }

    /// The outcome of the last order.
    fn result(&self) -> io::Result<()> {
        self.results.recv().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

/// Goes down the ladder with all threads together, until all of them stand on one rung.
fn descend(choice: DriverChoice, starting: &[Starting]) -> Result<Driver, StartError> {
    let mut refused: Option<(Rung, io::Error)> = None;
    for &rung in ladder(choice) {
        match order_all(starting, || Verdict::Try(rung)) {
            Ok(()) => {
                report(choice, rung, refused.as_ref());
                return Ok(rung.driver());
            }
            Err(error) => refused = Some((rung, error)),
        }
    }
    Err(StartError::Driver { choice, error: refused.map(|(_, error)| error) })
}

/// Lets all threads make their services and run.
fn go(starting: &[Starting]) -> Result<(), StartError> {
    order_all(starting, || Verdict::Go).map_err(StartError::System)
}

/// Gives all threads one order and waits for all outcomes.
fn order_all(starting: &[Starting], order: impl Fn() -> Verdict) -> io::Result<()> {
    for core in starting {
        // A thread that is gone shows as a missing result below.
        let _gone = core.orders.send(order());
    }
    let mut outcome = Ok(());
    for core in starting {
        // Every outcome is taken, so that none is left over for the next order.
        outcome = outcome.and(core.result());
    }
    outcome
}

/// One warning where the driver is not what it could be.
fn report(choice: DriverChoice, rung: Rung, refused: Option<&(Rung, io::Error)>) {
    let Some((wanted, error)) = refused else { return };
    if rung.driver() == wanted.driver() {
        tracing::info!(%error, ?rung, "a lesser ring is used");
        return;
    }
    let diagnosis =
        platform::ring_diagnosis(error).map(|found| found.to_string()).unwrap_or_default();
    tracing::warn!(
        %error,
        diagnosis,
        ?choice,
        "io_uring cannot be had, running on epoll; driver = \"poll\" silences this"
    );
}

fn run_thread<S: Service>(
    seat: Seat,
    make: &(impl Fn(Core) -> S + Send + Sync),
    orders: &Receiver<Verdict>,
    done: &SyncSender<io::Result<()>>,
) {
    if let Some(cpu) = seat.cpu
        && let Err(error) = platform::pin_current_thread(cpu)
    {
        tracing::debug!(core = seat.index, cpu, %error, "not pinned");
    }
    if let Err(error) = platform::set_thread_class(ThreadClass::Reactor) {
        tracing::debug!(core = seat.index, %error, "no thread class");
    }
    let mut parts = None;
    let mut driver = Driver::Poll;
    loop {
        match orders.recv() {
            Ok(Verdict::Try(rung)) => {
                // The refused one is dropped first: its locked memory counts against the next.
                drop(parts.take());
                driver = rung.driver();
                let built = build(rung).map(|new| parts = Some(new));
                if done.send(built).is_err() {
                    return;
                }
            }
            Ok(Verdict::Go) => break,
            Err(_) => return,
        }
    }
    let (mut executor, reactor) = parts.expect("the last rung was built, or there is no Go");
    let presence = Presence { index: seat.index, shared: seat.shared.clone() };
    if let Err(error) = executor.block_on(run_core(seat, driver, reactor, make, done)) {
        tracing::error!(core = presence.index, %error, "a core ended");
        // Heard only while the runtime still starts.
        let _started = done.send(Err(error));
    }
}

fn build(rung: Rung) -> io::Result<(Executor, Reactor)> {
    Ok((Executor::build(rung)?, Reactor::build(rung)?))
}

/// Says that the thread has ended, by a panic as well.
struct Presence {
    index: usize,
    shared: Arc<Shared>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.shared.ended(self.index);
    }
}

async fn run_core<S: Service>(
    seat: Seat,
    driver: Driver,
    reactor: Reactor,
    make: &(impl Fn(Core) -> S + Send + Sync),
    done: &SyncSender<io::Result<()>>,
) -> io::Result<()> {
    let is_acceptor = seat.is_acceptor();
    let core = Core::new(seat.index, driver, reactor, seat.shared);
    let watched: io::Result<Vec<(usize, Source)>> = seat
        .listeners
        .into_iter()
        .map(|(index, listener)| Ok((index, Source::new(core.reactor(), listener.into())?)))
        .collect();
    let (watched, awakeners) = (watched?, core.awaken()?);
    let service = (!is_acceptor).then(|| Rc::new(make(core.clone())));
    for (index, listener) in watched {
        core.accept_from(index, listener, &service);
    }
    // Nobody listens only if another thread has failed, and then the order to abort follows.
    let _failed = done.send(Ok(()));
    core.live(awakeners, service).await
}
