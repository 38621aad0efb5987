//! The proxy as a process part: configuration in, running cores out, and their end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;
use std::{fmt, io};

use baton_platform as platform;
use baton_runtime::{AcceptMode, DriverChoice, NewListener, Runtime, RuntimeOptions, StartError};

use crate::access_log::{Lines, Sink};
use crate::clients::Clients;
use crate::config::{self, AdminAddress, Config};
use crate::control::{self, Control, Hooks, Reception};
use crate::counters::Counters;
use crate::limits::{
    ACCESS_LOG_STOP, DESCRIPTORS_PER_CONNECTION, DESCRIPTORS_RESERVED, NAMES_BOUND,
};
use crate::live::Live;
use crate::plan::Plan;
use crate::probes::Probes;
use crate::proxy::{AccessLogSink, Front, Notice, Shared};

mod reload;

/// A running proxy: its cores, and the control plane beside them.
pub struct Server {
    running: Arc<Running>,
    addresses: Vec<SocketAddr>,
    control: Mutex<Option<Control>>,
}

/// The part of a server that a reload changes.
struct Running {
    runtime: Runtime,
    shared: Arc<Shared>,
    live: Arc<Live>,
    /// Whether new clients are welcome.
    ready: Arc<AtomicBool>,
    listening: Mutex<Vec<Listening>>,
    /// Where operators are answered; set once the control plane is there.
    reception: OnceLock<Arc<Reception>>,
    /// What looks names up and checks endpoints; none before it is started and once it has ended.
    probes: Mutex<Option<Probes>>,
    /// Reads the configuration anew.
    load: Load,
}

/// Reads the configuration that a server runs by anew. Its error is for whoever asked.
pub type Load = Box<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// An address that is listened on.
#[derive(Clone)]
struct Listening {
    /// As it was asked for: with port 0 for any free one.
    asked: SocketAddr,
    /// The number that the runtime gave it.
    number: usize,
}

/// Why a proxy did not start, or does not change.
#[derive(Debug)]
pub enum ServerError {
    /// The cores did not start, or an address cannot be listened on.
    Start(StartError),
    /// A setting that stays as it was at start: its name.
    Fixed(&'static str),
    /// The access log cannot be opened.
    AccessLog(io::Error),
    /// The control plane cannot be started, or its address not be listened on.
    Admin(io::Error),
    /// It starts or stops just now.
    NotReady,
    /// A core does not answer.
    Stuck,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Start(error) => error.fmt(f),
            ServerError::Fixed(setting) => {
                write!(f, "`{setting}` cannot change while the proxy runs; restart it instead")
            }
            ServerError::AccessLog(error) => error.fmt(f),
            ServerError::Admin(error) => write!(f, "admin: {error}"),
            ServerError::NotReady => f.write_str("the proxy is starting or stopping"),
            ServerError::Stuck => f.write_str("a core has not yet taken the new configuration"),
        }
    }
}

impl std::error::Error for ServerError {}

impl Server {
    /// Starts the cores and the control plane. Blocks, for names that are to be resolved up to
    /// 2 s: not to be called on a core. `load`: what a reload asked of the control plane
    /// reads.
    ///
    /// # Errors
    /// Every `ServerError` but `Fixed` and `NotReady`; nothing is left behind.
    pub fn start(config: &Config, load: Load) -> Result<Server, ServerError> {
        let cores = config.runtime.cores.unwrap_or_else(|| platform::usable_cpus().count()).max(1);
        let options = RuntimeOptions {
            cores: Some(cores),
            driver: driver_choice(config.runtime.driver),
            accept: accept_mode(config.runtime.accept),
            connections_max: connections_max(config.limits.connections),
            ..RuntimeOptions::default()
        };
        let sink = access_log_sink(config, cores)?;
        let shared = Arc::new(Shared {
            clients: Arc::new(Clients::new(config.limits.connections_per_ip)),
            counters: (0..cores).map(|_| Counters::default()).collect(),
            lines: (0..cores).map(|_| Lines::default()).collect(),
            sink: AccessLogSink::new(sink),
        });
        // The runtime numbers listeners in the order in which they are opened.
        let listening: Vec<Listening> = config
            .addresses()
            .enumerate()
            .map(|(number, asked)| Listening { asked, number })
            .collect();
        let numbers = numbers_of(config, &listening);
        let plan = Arc::new(Plan::new(config.clone(), cores, &numbers, None));
        let (given, first) = (shared.clone(), plan.clone());
        let make = move |core| Front::start(core, given.clone(), first.clone());
        let runtime = Runtime::start(&options, make).map_err(ServerError::Start)?;
        // Clients that come from here on wait in the backlog.
        let opened: Result<Vec<NewListener>, StartError> =
            config.addresses().map(|address| runtime.open_listener(address)).collect();
        let opened = opened.map_err(ServerError::Start)?;
        debug_assert!(opened.iter().map(NewListener::number).eq(0..listening.len()));
        let addresses = opened.iter().map(NewListener::address).collect();
        connect_upstreams(&runtime, &plan);
        let live = Arc::new(Live::new(runtime.observer(), shared.clone(), plan));
        let ready = Arc::new(AtomicBool::new(false));
        let listening = Mutex::new(listening);
        let running = Arc::new(Running {
            runtime,
            shared,
            live,
            ready,
            listening,
            reception: OnceLock::new(),
            probes: Mutex::default(),
            load,
        });
        let control = start_control(&running, config)?;
        running.reception.get_or_init(|| control.reception().clone());
        let probes = Probes::start(&control.handle(), &running.live.plan().upstreams);
        if !probes.first_round(NAMES_BOUND) {
            tracing::warn!(bound = ?NAMES_BOUND, "serving before all names were looked up once");
        }
        *running.probes() = Some(probes);
        for listener in opened {
            running.runtime.accept_from(listener);
        }
        running.ready.store(true, Ordering::Release);
        Ok(Server { running, addresses, control: Mutex::new(Some(control)) })
    }

    /// Puts another configuration in force: everything but the cores themselves. Connections,
    /// listeners and pools whose settings stay are not touched; what is under way ends as it began.
    /// Blocks until every core has it.
    ///
    /// # Errors
    /// `ServerError::Fixed`, `NotReady`, `Start`, `AccessLog`: nothing has changed. `Stuck`: the
    /// cores that answer have it, the others take it once they answer.
    pub fn reload(&self, config: &Config) -> Result<(), ServerError> {
        self.running.reload(config)
    }

    /// As [`Server::reload`], with what the server's own `load` reads.
    ///
    /// # Errors
    /// Why nothing, or not yet everything, has changed, in words.
    pub fn reload_again(&self) -> Result<String, String> {
        self.running.reload_again()
    }

    /// What `look` sees in the configuration in force.
    pub fn config<T>(&self, look: impl FnOnce(&Config) -> T) -> T {
        look(&self.running.live.plan().config)
    }

    /// The addresses clients reach it at, ports filled in, in the order of the configuration it was
    /// started with.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where operators reach it, the port filled in.
    pub fn admin_address(&self) -> Option<AdminAddress> {
        self.running.reception.get().and_then(|reception| reception.address())
    }

    /// The cores below it.
    pub fn runtime(&self) -> &Runtime {
        &self.running.runtime
    }

    /// Opens the file of the access log anew: it was moved away.
    pub fn reopen_access_log(&self) {
        if let Some(sink) = self.running.shared.sink.current() {
            sink.reopen();
        }
    }

    /// The counters of each core, read while it runs.
    pub fn counters(&self) -> &[Counters] {
        &self.running.shared.counters
    }

    /// Stops accepting, lets exchanges under way end within the drain bound, waits for it, and
    /// writes the counters to the log. Returns whether all ended by themselves. The control plane
    /// answers until then, and says that it is not ready.
    pub fn stop(&self, bound: Duration) -> bool {
        let Running { runtime, shared, ready, listening, .. } = &*self.running;
        {
            // A reload under way comes to its end first, and none begins from here on.
            let _reloads = listening.lock().expect("no holder of this lock panics");
            ready.store(false, Ordering::Release);
        }
        runtime.drain();
        let clean = runtime.join(bound);
        if let Some(sink) = shared.sink.replace(None)
            && !sink.stop(ACCESS_LOG_STOP)
        {
            tracing::warn!("the access log is not written to its end");
        }
        let probes = self.running.probes().take();
        drop(probes);
        let control = self.control.lock().expect("no holder of this lock panics").take();
        drop(control);
        shared.log_counters();
        clean
    }

    /// Writes every counter that is not 0 to the log, summed over the cores.
    pub fn log_counters(&self) {
        tracing::info!(open = self.running.runtime.connections(), "connections");
        self.running.shared.log_counters();
    }
}

/// Starts the thread beside the cores.
fn start_control(running: &Arc<Running>, config: &Config) -> Result<Control, ServerError> {
    // Not to hold the server up from within itself.
    let asked: Weak<Running> = Arc::downgrade(running);
    let reload = move || asked.upgrade().ok_or("the proxy stops")?.reload_again();
    let hooks = Hooks { reload: Box::new(reload), ready: running.ready.clone() };
    control::start(running.live.clone(), config.admin.clone(), hooks).map_err(ServerError::Admin)
}

impl Running {
    fn probes(&self) -> MutexGuard<'_, Option<Probes>> {
        self.probes.lock().expect("no holder of this lock panics")
    }
}

/// Opens the access log, if there is to be one.
fn access_log_sink(config: &Config, cores: usize) -> Result<Option<Arc<Sink>>, ServerError> {
    let Some(access_log) = &config.access_log else { return Ok(None) };
    Sink::start(access_log, cores).map(Some).map_err(ServerError::AccessLog)
}

/// Lets the upstreams tell a core that another one left something for it.
fn connect_upstreams(runtime: &Runtime, plan: &Plan) {
    for upstream in &plan.upstreams {
        let postbox = runtime.postbox::<Notice>();
        upstream.set_postbox(Box::new(move |core, notice| {
            // What it was about stands at the endpoint; a notice that is lost only delays it.
            let _lost = postbox.post(core, Notice::Upstream(notice));
        }));
    }
}

/// For each listener of the configuration, the numbers of its addresses. `listening`: all of these,
/// in the same order.
fn numbers_of(config: &Config, listening: &[Listening]) -> Vec<Vec<usize>> {
    let mut listening = listening.iter();
    let numbers = config.listeners.iter().map(|listener| {
        listening.by_ref().take(listener.addresses.len()).map(|known| known.number).collect()
    });
    numbers.collect()
}

impl Shared {
    fn log_counters(&self) {
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for counters in self.counters.iter() {
            for (index, (name, value)) in counters.read().into_iter().enumerate() {
                match sums.get_mut(index) {
                    Some((_, sum)) => *sum += value,
                    None => sums.push((name, value)),
                }
            }
        }
        let text: Vec<String> = sums
            .iter()
            .filter(|(_, sum)| *sum > 0)
            .map(|(name, sum)| format!("{name}={sum}"))
            .collect();
        tracing::info!("counters: {}", text.join(" "));
    }
}

/// The connection limit that the descriptor limit allows; a warning where it is lower than asked.
fn connections_max(asked: usize) -> usize {
    let descriptors = match platform::raise_descriptor_limit() {
        Ok(descriptors) => descriptors,
        Err(error) => {
            tracing::warn!(%error, "the descriptor limit is unknown");
            return asked;
        }
    };
    let room = descriptors.saturating_sub(DESCRIPTORS_RESERVED) / DESCRIPTORS_PER_CONNECTION;
    let room = usize::try_from(room).unwrap_or(usize::MAX).max(1);
    if room < asked {
        tracing::warn!(
            descriptors,
            asked,
            allowed = room,
            "fewer connections than asked: raise the limit of open files"
        );
    }
    asked.min(room)
}

/// The runtime's word for the configured driver.
pub fn driver_choice(driver: config::DriverChoice) -> DriverChoice {
    match driver {
        config::DriverChoice::Auto => DriverChoice::Auto,
        config::DriverChoice::IoUring => DriverChoice::IoUring,
        config::DriverChoice::Poll => DriverChoice::Poll,
    }
}

fn accept_mode(mode: config::AcceptMode) -> AcceptMode {
    match mode {
        config::AcceptMode::PerCore => AcceptMode::PerCore,
        config::AcceptMode::Dealt => AcceptMode::Dealt,
    }
}
