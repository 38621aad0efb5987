//! What a configuration says, as plain values: listeners, routes, upstreams.
//!
//! Read by everything that is built from a configuration; filled by the file and the flags alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::{Limits, PoolConfig, Timeouts, UpstreamAddr, Word};
use crate::route::{HostPattern, PathPattern, Template};

/// Where clients come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// What routes and logs call it. Unique.
    pub name: String,
    /// Addresses to accept on; at least one. Port 0 asks the system for a free port.
    pub addresses: Vec<SocketAddr>,
    /// Peers whose connections begin with a PROXY protocol header (v1 or v2), which must be there.
    /// Empty: nobody's do.
    pub proxy_protocol: Vec<IpNet>,
    /// Peers whose X-Forwarded-For or Forwarded fields are believed. Empty: nobody's.
    pub trusted_proxies: Vec<IpNet>,
    /// The settings of `[timeout]` with what this listener changes of them.
    pub timeouts: Timeouts,
    /// The settings of `[limit]` with what this listener changes of them.
    pub limits: Limits,
}

/// Which requests, and what becomes of them. A request meets all conditions that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What logs and metrics call it. Unique; given, or made of host and path.
    pub name: String,
    /// Names of the listeners it is for; empty: all.
    pub listeners: Vec<String>,
    /// Hosts it is for; empty: any.
    pub hosts: Vec<HostPattern>,
    /// Paths it is for; the default is every path.
    pub path: PathPattern,
    /// Methods it is for, as written; empty: any.
    pub methods: Vec<String>,
    /// Fields that must be there.
    pub fields: Vec<FieldMatch>,
    /// What becomes of the request.
    pub action: Action,
    /// What becomes of the path before the request is sent on.
    pub rewrite: Rewrite,
    /// Fields of the request that are changed before it is sent on.
    pub request_fields: FieldEdits,
    /// Fields of the answer that are changed before it goes to the client.
    pub response_fields: FieldEdits,
    /// Clients admitted, by address; empty: all.
    pub allow: Vec<IpNet>,
    /// Clients refused with 403, by address; looked at before `allow`.
    pub deny: Vec<IpNet>,
    /// How many requests it admits in a time.
    pub rate_limit: Option<RateLimit>,
    /// How many requests it has under way at once in the process; over it: 503.
    pub concurrency: Option<usize>,
    /// Bodies for the proxy's own answers, by status, as HTML.
    pub error_pages: Vec<(u16, Arc<[u8]>)>,
    /// Whether its requests are in the access log.
    pub access_log: bool,
    /// The settings of `[timeout]` with what this route changes of them.
    pub timeouts: Timeouts,
    /// The settings of `[limit]` with what this route changes of them.
    pub limits: Limits,
}

impl Route {
    /// A route of every request to the upstream `name`, all else by default.
    pub fn to(name: String, timeouts: Timeouts, limits: Limits) -> Self {
        Self {
            name: name.clone(),
            listeners: Vec::new(),
            hosts: Vec::new(),
            path: PathPattern::default(),
            methods: Vec::new(),
            fields: Vec::new(),
            action: Action::Proxy(name),
            rewrite: Rewrite::None,
            request_fields: FieldEdits::default(),
            response_fields: FieldEdits::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            rate_limit: None,
            concurrency: None,
            error_pages: Vec::new(),
            access_log: true,
            timeouts,
            limits,
        }
    }
}

/// A condition on a field of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldMatch {
    /// The field's name, in lower case.
    pub name: String,
    /// The value it must have; `None`: any.
    pub value: Option<String>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is sent to the upstream of this name.
    Proxy(String),
    /// The client is sent elsewhere.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// The Location.
        to: Template,
    },
    /// The proxy answers by itself.
    Respond {
        /// 200 to 599.
        status: u16,
        /// The Content-Type.
        content_type: String,
        /// The body.
        body: Arc<[u8]>,
    },
}

/// What becomes of the path. Prefixes begin with `/` and do not end with one; they match whole
/// segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rewrite {
    /// It stays.
    #[default]
    None,
    /// The prefix is taken away, if it is there.
    Strip(String),
    /// The prefix `from` gives way to `to`, if it is there.
    Replace {
        /// What is taken away.
        from: String,
        /// What comes in its place; may be empty.
        to: String,
    },
}

/// Changes of fields: first `remove`, then `set`, then `add`. Names are as written, valid, and none
/// that the proxy writes by itself (RFC 9110 §7.6.1 and the framing).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldEdits {
    /// Fields taken away.
    pub remove: Vec<String>,
    /// Fields that have this one value afterwards.
    pub set: Vec<(String, Template)>,
    /// Fields added to what is there.
    pub add: Vec<(String, Template)>,
}

/// A rate of requests, counted for the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Whose requests are counted together.
    pub key: RateKey,
    /// Requests admitted in `per`. Not 0.
    pub requests: u32,
    /// The time they are admitted in.
    pub per: Duration,
    /// Requests admitted at once after a pause. Not 0.
    pub burst: u32,
}

/// Whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateKey {
    /// Those of one client address; of IPv6 the first 64 bits.
    ClientIp,
    /// Those with the same value of this field; those without it, too.
    Field(String),
    /// All of the route.
    Route,
}

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

/// What the proxy adds to requests by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardConfig {
    /// X-Forwarded-For, -Proto and -Host.
    pub x_forwarded: bool,
    /// Forwarded (RFC 7239).
    pub forwarded: bool,
    /// X-Request-Id: the client's where it is a trusted proxy, else a new one.
    pub request_id: bool,
    /// traceparent (W3C Trace Context) where the client sent none.
    pub trace_context: bool,
}

impl Default for ForwardConfig {
    fn default() -> Self {
        Self { x_forwarded: true, forwarded: false, request_id: false, trace_context: false }
    }
}

/// Where operators ask and tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket, made with mode 0600.
    Unix(PathBuf),
}

/// The access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogConfig {
    /// Where it goes.
    pub to: AccessLogTarget,
    /// How a line looks.
    pub format: AccessLogFormat,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// Standard output.
    Stdout,
    /// A file, appended to, opened anew on SIGUSR1.
    File(PathBuf),
}

/// How a line of the access log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// The Combined Log Format.
    #[default]
    Combined,
    /// A JSON object with named fields.
    Json,
}

impl Word for AccessLogFormat {
    const ALL: &'static [(&'static str, Self)] =
        &[("combined", Self::Combined), ("json", Self::Json)];
}

/// As the file and the flags take it.
impl std::fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
