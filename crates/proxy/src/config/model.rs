//! What a configuration says, as plain values: listeners, routes, upstreams.
//!
//! Read by everything that is built from a configuration; filled by the file and the flags alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::{Limits, Timeouts, Word};
use crate::route::{HostPattern, PathPattern, Template};

mod upstream;

pub use upstream::{
    Balance, EjectConfig, Endpoint, HashKey, HealthConfig, QueueConfig, RetryConfig, RetryOn,
    Upstream,
};

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
