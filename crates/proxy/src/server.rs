//! The proxy as a process part: configuration in, running cores out, and their end.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use baton_http1::HeadLimits;
use baton_platform as platform;
use baton_runtime::{AcceptMode, DriverChoice, Runtime, RuntimeOptions, StartError};

use crate::clients::Clients;
use crate::config::{self, Config, UpstreamAddr};
use crate::counters::Counters;
use crate::limits::{DESCRIPTORS_PER_CONNECTION, DESCRIPTORS_RESERVED};
use crate::proxy::{Front, Settings};

/// A running proxy.
pub struct Server {
    runtime: Runtime,
    settings: Arc<Settings>,
}

/// Why a proxy did not start.
#[derive(Debug)]
pub enum ServerError {
    /// The name of an endpoint has no address.
    Resolve {
        /// The name and port.
        endpoint: String,
        /// What the resolver said; `None`: no address.
        error: Option<io::Error>,
    },
    /// The cores did not start.
    Start(StartError),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Resolve { endpoint, error: Some(error) } => {
                write!(f, "cannot resolve upstream {endpoint}: {error}")
            }
            ServerError::Resolve { endpoint, error: None } => {
                write!(f, "upstream {endpoint} has no address")
            }
            ServerError::Start(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServerError {}

impl Server {
    /// Resolves the endpoints' names and starts the cores. Blocks: not to be called on a core.
    pub fn start(config: &Config) -> Result<Server, ServerError> {
        let endpoints = config.endpoints().map(resolve).collect::<Result<_, _>>()?;
        let connections = connections_max(config.limits.connections);
        let cores = config.runtime.cores.unwrap_or_else(|| platform::usable_cpus().count()).max(1);
        let options = RuntimeOptions {
            cores: Some(cores),
            driver: driver_choice(config.runtime.driver),
            accept: accept_mode(config.runtime.accept),
            listen: config.addresses().collect(),
            connections_max: connections,
            ..RuntimeOptions::default()
        };
        let settings = Arc::new(settings(config, endpoints, cores));
        let shared = settings.clone();
        let make = move |core| Front::start(core, shared.clone());
        let runtime = Runtime::start(&options, make).map_err(ServerError::Start)?;
        Ok(Server { runtime, settings })
    }

    /// The addresses clients reach it at, ports filled in.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.runtime.addresses()
    }

    /// The cores below it.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The counters of each core, read while it runs.
    pub fn counters(&self) -> &[Counters] {
        &self.settings.counters
    }

    /// Stops accepting, lets exchanges under way end within the drain bound, waits for it, and
    /// writes the counters to the log. Returns whether all ended by themselves.
    pub fn stop(self, bound: Duration) -> bool {
        self.runtime.drain();
        let clean = self.runtime.join(bound);
        self.settings.log_counters();
        clean
    }

    /// Writes every counter that is not 0 to the log, summed over the cores.
    pub fn log_counters(&self) {
        tracing::info!(open = self.runtime.connections(), "connections");
        self.settings.log_counters();
    }
}

impl Settings {
    fn log_counters(&self) {
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for counters in &self.counters {
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

fn settings(config: &Config, endpoints: Vec<SocketAddr>, cores: usize) -> Settings {
    let limits = &config.limits;
    let head = |head_bytes_max| HeadLimits {
        head_bytes_max,
        fields_max: limits.fields,
        target_bytes_max: limits.target_bytes,
    };
    Settings {
        endpoints,
        request_head: head(limits.head_bytes),
        answer_head: head(limits.upstream_head_bytes),
        clients: limits.connections_per_ip.map(|most| Arc::new(Clients::new(most))),
        counters: (0..cores).map(|_| Counters::default()).collect(),
        timeouts: config.timeouts.clone(),
        limits: limits.clone(),
        pool: config.pool.clone(),
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

#[expect(clippy::disallowed_methods, reason = "runs before any core does")]
fn resolve(endpoint: &UpstreamAddr) -> Result<SocketAddr, ServerError> {
    let (host, port) = match endpoint {
        UpstreamAddr::Ip(address) => return Ok(*address),
        UpstreamAddr::Name { host, port } => (host.as_str(), *port),
    };
    let failed = |error| ServerError::Resolve { endpoint: endpoint.to_string(), error };
    let mut addresses = (host, port).to_socket_addrs().map_err(|error| failed(Some(error)))?;
    addresses.next().ok_or_else(|| failed(None))
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
