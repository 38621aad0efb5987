//! The configuration: text to a validated [`Config`], once, at start.
//!
//! A `Config` comes from the file ([`load`], [`parse`]) or from flags ([`crate::cli::parse`]);
//! both fill it through the same tables, which name each key, describe it and bound it
//! (`settings`, `file`), and from which the schema and the reference are made too. What is out of bounds or unknown is an error; a `Config` that
//! exists can be used as it is.
//!
//! Never: opens a socket, resolves a name, or reads the clock.

mod address;
mod file;
mod format;
mod groups;
mod model;
mod print;
mod problem;
mod reader;
mod schema;
mod settings;
mod shapes;
mod table;
mod texts;
mod value;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use address::{AddressError, UpstreamAddr, parse_listen, parse_upstream};
pub use file::{Loaded, load_text, parse};
pub use format::format;
pub(crate) use groups::{Flag, FlagError, SETTINGS};
pub use model::{
    AccessLogConfig, AccessLogFormat, AccessLogTarget, Action, AdminAddress, Balance, EjectConfig,
    Endpoint, FieldEdits, FieldMatch, ForwardConfig, HashKey, HealthConfig, Listener, QueueConfig,
    RateKey, RateLimit, RetryConfig, RetryOn, Rewrite, Route, Upstream,
};
pub use print::{print, reference, summary};
pub use problem::Problems;
pub use schema::schema;
pub use settings::{Limits, PoolConfig, RuntimeConfig, Timeouts};
pub(crate) use texts::ADMIN;
pub(crate) use value::{Given, Scalar};

/// Everything the proxy is told at start. Does not change while it runs.
///
/// Invariants, checked by every constructor: there is a listener and a route; names are unique, and
/// each that is referred to exists; no address is listened on twice (port 0 excepted); addresses,
/// routes and endpoints are within `LISTENERS_MAX`, `ROUTES_MAX` and `UPSTREAMS_MAX`; every setting
/// is within its bounds; `limits.target_bytes <= limits.head_bytes`, of each listener too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where clients come in.
    pub listeners: Vec<Listener>,
    /// Which requests go where, in the order of the file.
    pub routes: Vec<Route>,
    /// The groups of endpoints that routes name.
    pub upstreams: Vec<Upstream>,
    /// Cores and how they wait for I/O.
    pub runtime: RuntimeConfig,
    /// How long each wait may last.
    pub timeouts: Timeouts,
    /// How much each peer may ask for.
    pub limits: Limits,
    /// Idle connections to endpoints.
    pub pool: PoolConfig,
    /// What is added to requests.
    pub forward: ForwardConfig,
    /// The least severe event that is logged.
    pub log_level: LogLevel,
    /// The access log; `None`: none is written.
    pub access_log: Option<AccessLogConfig>,
    /// Where operators ask and tell; `None`: nowhere.
    pub admin: Option<AdminAddress>,
}

impl Config {
    /// All settings at their defaults, no address yet: what a file or the flags are read into.
    pub(crate) fn defaults() -> Self {
        Self {
            listeners: Vec::new(),
            routes: Vec::new(),
            upstreams: Vec::new(),
            runtime: RuntimeConfig::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            pool: PoolConfig::default(),
            forward: ForwardConfig::default(),
            log_level: LogLevel::default(),
            access_log: None,
            admin: None,
        }
    }

    /// Adds an address to accept on. Error, in words: it is already there, or there are
    /// `LISTENERS_MAX`. Port 0 may be repeated, as the system gives a different port each time.
    pub(crate) fn add_listener(&mut self, address: SocketAddr) -> Result<(), String> {
        if self.addresses().count() == LISTENERS_MAX {
            return Err(format!("there are more than {LISTENERS_MAX} addresses to listen on"));
        }
        if address.port() != 0 && self.addresses().any(|known| known == address) {
            return Err(format!("{address} is listened on twice"));
        }
        if self.listeners.is_empty() {
            self.listeners.push(Listener {
                name: "default".to_owned(),
                addresses: Vec::new(),
                proxy_protocol: Vec::new(),
                trusted_proxies: Vec::new(),
                timeouts: self.timeouts.clone(),
                limits: self.limits.clone(),
            });
        }
        self.listeners[0].addresses.push(address);
        Ok(())
    }

    /// Adds an endpoint of the one upstream. Error, in words: it is already there, or there are
    /// `UPSTREAMS_MAX`.
    pub(crate) fn add_upstream(&mut self, address: UpstreamAddr) -> Result<(), String> {
        if self.endpoints().count() == UPSTREAMS_MAX {
            return Err(format!("there are more than {UPSTREAMS_MAX} endpoints"));
        }
        if self.endpoints().any(|known| *known == address) {
            return Err(format!("the endpoint {address} is listed twice"));
        }
        if self.upstreams.is_empty() {
            let name = "default".to_owned();
            self.routes.push(Route::to(name.clone(), self.timeouts.clone(), self.limits.clone()));
            self.upstreams.push(Upstream::new(name, Vec::new(), self.pool.clone()));
        }
        self.upstreams[0].endpoints.push(Endpoint { address, weight: 1, backup: false });
        Ok(())
    }

    /// Every address that is listened on, in the order of the listeners.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().flat_map(|listener| listener.addresses.iter().copied())
    }

    /// Every endpoint of every upstream.
    pub fn endpoints(&self) -> impl Iterator<Item = &UpstreamAddr> {
        let endpoints = self.upstreams.iter().flat_map(|upstream| &upstream.endpoints);
        endpoints.map(|endpoint| &endpoint.address)
    }

    /// The relations between settings that no bound of a single one states. The text says what is
    /// wrong, with both values.
    pub(crate) fn check_relations(&self) -> Result<(), String> {
        self.limits.check()
    }
}

impl Limits {
    /// The target is a part of the head.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Limits { head_bytes, target_bytes, .. } = self;
        if target_bytes <= head_bytes {
            return Ok(());
        }
        Err(format!(
            "a request target of {} does not fit in a head of {}",
            crate::units::format_size(*target_bytes as u64),
            crate::units::format_size(*head_bytes as u64),
        ))
    }
}

/// A setting that is one of a few words.
pub(crate) trait Word: Copy + Eq + 'static {
    /// Every value with its spelling in the file and on the command line.
    const ALL: &'static [(&'static str, Self)];

    /// The spelling of this value.
    fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, value)| *value == self);
        found.expect("every value is listed").0
    }
}

/// How a core waits for I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverChoice {
    /// io_uring where the kernel allows it, readiness elsewhere.
    #[default]
    Auto,
    /// io_uring, or the start fails.
    IoUring,
    /// Readiness: epoll on Linux, kqueue on macOS.
    Poll,
}

impl Word for DriverChoice {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("io_uring", Self::IoUring), ("poll", Self::Poll)];
}

/// How accepted connections are spread over the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptMode {
    /// Each core accepts on a socket of its own; the kernel spreads connections by hash.
    #[default]
    PerCore,
    /// A connection goes to the less busy of two cores before it is registered with either.
    Dealt,
}

impl Word for AcceptMode {
    const ALL: &'static [(&'static str, Self)] =
        &[("per-core", Self::PerCore), ("dealt", Self::Dealt)];
}

/// The least severe event that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// What stops the proxy or loses a request by its own fault.
    Error,
    /// What an operator should look at.
    Warn,
    /// Start, stop and configuration.
    #[default]
    Info,
    /// Connections and exchanges.
    Debug,
}

impl Word for LogLevel {
    const ALL: &'static [(&'static str, Self)] = &[
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];
}

/// Why there is no configuration. `Display` is the whole text for the user, several lines where a
/// file has several problems, without a final newline.
#[derive(Debug)]
pub enum ConfigError {
    /// The file could not be opened or read.
    Unreadable {
        /// The file as it was named.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is over [`FILE_BYTES_MAX`].
    TooLarge {
        /// The file as it was named.
        path: PathBuf,
    },
    /// The file is not UTF-8, which TOML requires.
    NotUtf8 {
        /// The file as it was named.
        path: PathBuf,
        /// Line of the first wrong byte, from 1.
        line: usize,
    },
    /// The text is not valid TOML, or says what the proxy does not understand.
    Invalid(Problems),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => {
                write!(f, "{}: cannot read: {error}", path.display())
            }
            Self::TooLarge { path } => {
                let bound = crate::units::format_size(FILE_BYTES_MAX);
                write!(f, "{}: the file is over {bound}", path.display())
            }
            Self::NotUtf8 { path, line } => {
                write!(f, "{}:{line}: the line is not UTF-8", path.display())
            }
            Self::Invalid(problems) => problems.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { error, .. } => Some(error),
            Self::TooLarge { .. } | Self::NotUtf8 { .. } | Self::Invalid(_) => None,
        }
    }
}

/// Reads and parses the file at `path`, and what it includes. Blocks on the files; never called on
/// a core.
///
/// Errors: every `ConfigError`.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    let unreadable = |error| ConfigError::Unreadable { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let text = read_text(file, path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.display().to_string();
    file::load_with(&text, &name, folder, Some(path), &file::OfProcess)
}

/// What standard input is called in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// As [`load`], from standard input. Relative paths begin in the current folder.
pub fn load_input(input: impl Read) -> Result<Loaded, ConfigError> {
    let text = read_text(input, Path::new(STANDARD_INPUT))?;
    load_text(&text, STANDARD_INPUT)
}

/// The text of a file within [`FILE_BYTES_MAX`]. `path`: the file's, for the messages.
pub fn read_text(input: impl Read, path: &Path) -> Result<String, ConfigError> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is over the bound.
    let read = input.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ConfigError::TooLarge { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        ConfigError::NotUtf8 { path: path.to_owned(), line }
    })
}

/// Longest configuration file read. Bytes. A file for one route has a few hundred; the bound is
/// there so that a wrong path (a device, a log) fails at once. When over it: `TooLarge`.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Addresses to accept on. Each costs one socket on each core. When over it: the file or the flags
/// are refused.
pub const LISTENERS_MAX: usize = 64;

/// Routes. Each request is compared with those of its host. When over it: the file is refused.
pub const ROUTES_MAX: usize = 1_024;

/// Bytes of a file that is the body of an answer. It is kept in memory. When over it: the file that
/// names it is refused.
pub const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// Endpoints. Each has a pool on each core. When over it: the file or the flags are refused.
pub const UPSTREAMS_MAX: usize = 1_024;

#[cfg(test)]
pub(crate) mod tests;
