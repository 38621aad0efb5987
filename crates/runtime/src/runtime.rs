//! All cores of the process: started together, stopped together.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_platform as platform;

use crate::accept::Service;
use crate::core::Core;
use crate::counters::CoreCounters;
use crate::driver::{Driver, DriverChoice};
use crate::mailbox::Message;
use crate::postbox::Postbox;
use crate::shared::Shared;
use crate::start::{Seat, open_listener, open_listeners, seat_cpu, start_threads};

/// How connections come to the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptMode {
    /// Each core has a listening socket of its own and the kernel spreads connections over them.
    /// Where the kernel does not (macOS), they are dealt.
    #[default]
    PerCore,
    /// One acceptor deals each socket to the less busy of two cores.
    Dealt,
}

/// What a runtime is started with.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Cores to run; `None` for as many as the process may use.
    pub cores: Option<usize>,
    /// The kernel interface.
    pub driver: DriverChoice,
    /// How connections come to the cores.
    pub accept: AcceptMode,
    /// Addresses to listen on; port 0 for any free one. May be empty.
    pub listen: Vec<SocketAddr>,
    /// Connections the kernel queues per listening socket before it refuses more.
    pub backlog: u32,
    /// Connections open at once in the process. When reached: accepting pauses.
    pub connections_max: usize,
}

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        RuntimeOptions {
            cores: None,
            driver: DriverChoice::Auto,
            accept: AcceptMode::PerCore,
            listen: Vec::new(),
            backlog: 4096,
            connections_max: 10_000,
        }
    }
}

/// Why a runtime did not start.
#[derive(Debug)]
pub enum StartError {
    /// An address cannot be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel interface asked for cannot be had.
    Driver {
        /// What was asked for.
        choice: DriverChoice,
        /// What the system said; `None` where this system has no such interface.
        error: Option<io::Error>,
    },
    /// A thread or a descriptor could not be had.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen { address, error } => {
                write!(f, "cannot listen on {address}: {error}")
            }
            StartError::Driver { choice, error: Some(error) } => {
                write!(f, "driver {choice:?} cannot be had: {error}")?;
                match platform::ring_diagnosis(error) {
                    Some(diagnosis) => write!(f, " ({diagnosis})"),
                    None => Ok(()),
                }
            }
            StartError::Driver { choice, error: None } => {
                write!(f, "driver {choice:?} does not exist on this system")
            }
            StartError::System(error) => write!(f, "cannot start a core: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// The running cores.
pub struct Runtime {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    driver: Driver,
    addresses: Vec<SocketAddr>,
    backlog: u32,
    /// The threads that accept: `accepting.start..accepting.end`.
    accepting: std::ops::Range<usize>,
    /// Numbers given to listeners so far.
    listeners: AtomicUsize,
}

impl Runtime {
    /// Opens the listeners, starts the cores and lets each make its service with `make`.
    ///
    /// Returns once every core has its service and watches its listeners. If it fails, no thread,
    /// descriptor or listener is left behind.
    pub fn start<S: Service>(
        options: &RuntimeOptions,
        make: impl Fn(Core) -> S + Send + Sync + 'static,
    ) -> Result<Runtime, StartError> {
        let usable = platform::usable_cpus();
        let cores = options.cores.unwrap_or_else(|| usable.count()).max(1);
        let dealt = options.accept == AcceptMode::Dealt || !platform::REUSEPORT_BALANCES;
        let (mut listeners, addresses) = open_listeners(options, if dealt { 1 } else { cores })?;
        let threads = if dealt { cores + 1 } else { cores };
        let shared = Shared::new(cores, threads, options.connections_max);
        let shared = Arc::new(shared.map_err(StartError::System)?);
        let seats = (0..threads).map(|index| {
            // The acceptor is the last thread; it alone has listeners when sockets are dealt.
            let listens = !dealt || index == cores;
            Seat {
                index,
                cpu: seat_cpu(&usable, cores, index),
                listeners: if listens { listeners.pop().unwrap_or_default() } else { Vec::new() },
                shared: shared.clone(),
            }
        });
        let (driver, threads) = start_threads(options.driver, seats.collect(), Arc::new(make))?;
        Ok(Runtime {
            shared,
            threads: Mutex::new(threads),
            driver,
            accepting: if dealt { cores..cores + 1 } else { 0..cores },
            listeners: AtomicUsize::new(addresses.len()),
            addresses,
            backlog: options.backlog,
        })
    }

    /// A view of the cores that outlives nothing and holds up nothing.
    pub fn observer(&self) -> Observer {
        Observer { shared: self.shared.clone(), driver: self.driver }
    }

    /// What the cores run on.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// Cores that serve connections.
    pub fn cores(&self) -> usize {
        self.shared.cores()
    }

    /// The addresses listened on, in the order of [`RuntimeOptions::listen`], ports filled in.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The counters of core `index`, read while it runs. The acceptor, where there is one, comes
    /// after the cores.
    pub fn counters(&self, index: usize) -> &CoreCounters {
        self.shared.counters(index)
    }

    /// Connections open now, in the process; up to 16 more per accepting thread while it accepts.
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }

    /// A way to tell the service of any core something. `N` is the service's
    /// [`Service::Notice`].
    pub fn postbox<N: Send + 'static>(&self) -> Postbox<N> {
        Postbox::new(self.shared.clone())
    }

    /// Opens the sockets of one more address, from which nobody accepts yet. Blocks for a few system
    /// calls.
    ///
    /// # Errors
    /// `StartError::Listen`; nothing is left behind.
    pub fn open_listener(&self, address: SocketAddr) -> Result<NewListener, StartError> {
        let (address, sockets) = open_listener(address, self.backlog, self.accepting.len())?;
        let number = self.listeners.fetch_add(1, Ordering::Relaxed);
        Ok(NewListener { number, address, sockets })
    }

    /// Accepts from a listener. What was posted to the cores before comes before its connections.
    pub fn accept_from(&self, listener: NewListener) {
        let NewListener { number, sockets, .. } = listener;
        for (thread, socket) in self.accepting.clone().zip(sockets) {
            let message = Message::Listen { listener: number, socket };
            self.shared.mailbox(thread).send_surely(message);
        }
    }

    /// Gives up a listener. Who is connected already, or about to be, is still served.
    pub fn unlisten(&self, listener: usize) {
        for thread in self.accepting.clone() {
            self.shared.mailbox(thread).send_surely(Message::Unlisten { listener });
        }
    }

    /// Sets another bound of connections in the process. Those over it stay open.
    pub fn set_connections_max(&self, connections_max: usize) {
        self.shared.set_connections_max(connections_max);
    }

    /// Lets the cores stop accepting and finish what is under way. Returns at once.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// Lets every wait on the cores end now: timers expire, and a task that still waits after that
    /// is dropped. Returns at once.
    pub fn abort(&self) {
        self.shared.abort();
    }

    /// Whether all cores have ended.
    pub fn is_finished(&self) -> bool {
        self.threads().iter().all(JoinHandle::is_finished)
    }

    /// Waits until the cores have ended after [`Runtime::drain`]; after `bound` what is still under
    /// way is aborted. Returns whether everything ended by itself.
    pub fn join(&self, bound: Duration) -> bool {
        let end = Instant::now() + bound;
        let mut clean = true;
        while !self.is_finished() && clean {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::park_timeout(left.min(JOIN_POLL));
            clean = !left.is_zero();
        }
        if !clean {
            self.abort();
        }
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            clean &= thread.join().is_ok();
        }
        clean
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().expect("no holder of this lock panics")
    }
}

/// Sockets that listen, and from which nobody accepts yet. Dropped, they are closed again.
#[derive(Debug)]
pub struct NewListener {
    number: usize,
    address: SocketAddr,
    sockets: Vec<TcpListener>,
}

impl NewListener {
    /// The number its connections will come with: [`crate::Accepted::listener`].
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its address, the port filled in.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The cores' numbers, from any thread, while they run and after.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
    driver: Driver,
}

impl Observer {
    /// What the cores run on.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// Cores that serve connections.
    pub fn cores(&self) -> usize {
        self.shared.cores()
    }

    /// As [`Runtime::counters`].
    pub fn counters(&self, index: usize) -> &CoreCounters {
        self.shared.counters(index)
    }

    /// As [`Runtime::connections`].
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // After `join` no thread is left to hear it.
        self.abort();
        self.shared.blocking().close();
    }
}

/// How often [`Runtime::join`] looks whether the cores have ended.
const JOIN_POLL: Duration = Duration::from_millis(10);
