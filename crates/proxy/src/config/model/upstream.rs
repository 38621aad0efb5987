//! What a configuration says of upstreams.

use std::time::Duration;

use crate::config::{PoolConfig, UpstreamAddr, Word};

/// A named group of endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Unique; given, or the text of its endpoints where a route names them itself.
    pub name: String,
    /// At least one; none twice.
    pub endpoints: Vec<Endpoint>,
    /// Which endpoint takes a request.
    pub balance: Balance,
    /// The Host of requests to it; `None`: the client's.
    pub host: Option<String>,
    /// Connections to each endpoint, over all cores, never more. `None`: no bound.
    pub max_conns: Option<usize>,
    /// Requests that wait for a connection under `max_conns`.
    pub queue: QueueConfig,
    /// Idle connections.
    pub pool: PoolConfig,
    /// When a request is sent once more.
    pub retry: RetryConfig,
    /// Requests of the proxy's own that tell whether an endpoint is well.
    pub health: Option<HealthConfig>,
    /// When an endpoint that fails is left out for a while.
    pub eject: EjectConfig,
    /// Time in which an endpoint that came back rises to its share; 0: at once.
    pub slow_start: Duration,
}

/// One endpoint of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address, or a name that may stand for several, each then with this weight.
    pub address: UpstreamAddr,
    /// Its share relative to the others, 1 to 1000.
    pub weight: u32,
    /// Whether it takes requests only while no other endpoint can.
    pub backup: bool,
}

/// Which endpoint takes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Of two at random the one with fewer requests under way for its weight.
    #[default]
    P2c,
    /// Each in turn, by weight.
    RoundRobin,
    /// The same for the same key, as long as it can be (consistent hashing).
    Hash(HashKey),
}

/// What consistent hashing looks at. A request without it is balanced by `P2c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address.
    ClientIp,
    /// The path, without the query.
    Path,
    /// The value of a field.
    Field(String),
    /// The value of a cookie.
    Cookie(String),
}

/// Requests that wait for a connection, of one endpoint's, in the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Most that wait; over it: 503.
    pub length: usize,
    /// How long each waits at most; over it: 503.
    pub timeout: Duration,
}

/// When a request is sent once more. Only a request that is idempotent, was sent whole, is still
/// there, and whose answer the client has seen nothing of, but for `Connect`, which takes any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryConfig {
    /// Times after the first; 0: never.
    pub attempts: usize,
    /// Retries under way in the process, as a percentage of the upstream's requests under way,
    /// beside `budget_min`.
    pub budget_percent: u32,
    /// Retries under way that are always allowed.
    pub budget_min: u32,
    /// After what.
    pub on: Vec<RetryOn>,
    /// Statuses of an answer after which, too; 500 to 599.
    pub statuses: Vec<u16>,
}

/// What a retry may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryOn {
    /// No connection could be made.
    Connect,
    /// The connection ended before an answer.
    NoAnswer,
    /// No answer in time.
    Timeout,
    /// An answer that is not HTTP.
    Invalid,
}

impl Word for RetryOn {
    const ALL: &'static [(&'static str, Self)] = &[
        ("connect", Self::Connect),
        ("no-answer", Self::NoAnswer),
        ("timeout", Self::Timeout),
        ("invalid", Self::Invalid),
    ];
}

/// Requests of the proxy's own, `GET`, once per process and endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// The target, beginning with `/`.
    pub path: String,
    /// The Host; `None`: the endpoint's address.
    pub host: Option<String>,
    /// From one to the next, with a little jitter.
    pub interval: Duration,
    /// For connection and answer together.
    pub timeout: Duration,
    /// Good ones in a row after which a bad endpoint is good.
    pub rise: u32,
    /// Bad ones in a row after which a good endpoint is bad.
    pub fall: u32,
    /// Statuses that are good, as ranges with both ends.
    pub expect: Vec<(u16, u16)>,
}

/// When an endpoint that fails is left out for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EjectConfig {
    /// Failures in a row; 0: never.
    pub failures: u32,
    /// How long at first; each further time in a row takes as much longer, up to ten times.
    pub period: Duration,
    /// Most of the upstream's endpoints that are left out at once, percent.
    pub max_percent: u32,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self { length: 1_000, timeout: Duration::from_secs(1) }
    }
}

impl Default for RetryConfig {
    fn default() -> Self {
        use RetryOn::{Connect, Invalid, NoAnswer, Timeout};
        Self {
            attempts: 1,
            budget_percent: 20,
            budget_min: 3,
            on: vec![Connect, NoAnswer, Timeout, Invalid],
            statuses: Vec::new(),
        }
    }
}

impl HealthConfig {
    /// Checks of `path`, all else by default.
    pub fn new(path: String) -> Self {
        Self {
            path,
            host: None,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            rise: 2,
            fall: 3,
            expect: vec![(200, 299)],
        }
    }
}

impl Default for EjectConfig {
    fn default() -> Self {
        Self { failures: 5, period: Duration::from_secs(10), max_percent: 50 }
    }
}

impl Upstream {
    /// An upstream of these endpoints, all else by default.
    pub fn new(name: String, endpoints: Vec<Endpoint>, pool: PoolConfig) -> Self {
        Self {
            name,
            endpoints,
            balance: Balance::default(),
            host: None,
            max_conns: None,
            queue: QueueConfig::default(),
            pool,
            retry: RetryConfig::default(),
            health: None,
            eject: EjectConfig::default(),
            slow_start: Duration::ZERO,
        }
    }
}
