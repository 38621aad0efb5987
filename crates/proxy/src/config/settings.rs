//! The settings: each one's name, meaning, default and bounds, written once.
//!
//! From it come the structs of `Config`, the keys of the file, the flags, their help, the schema,
//! and the complete file that `print` writes, so that these cannot differ.

use std::marker::PhantomData;
use std::time::Duration;

use super::table::{Direct, Field, Setting, Table};
use super::texts::{ACCESS, ADMIN};
use super::value::{CountIn, CountOr, DurationIn, OneOf, SizeIn, SizeOrNone, YesNo};
use super::{
    AcceptMode, AccessLogFormat, AccessLogTarget, AdminAddress, DriverChoice, ForwardConfig,
    LogLevel,
};

/// Defines one struct of settings, its `Default`, and its `Table`.
///
/// Each setting reads `name: type = default, codec`.
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        $vis:vis $Type:ident as $TABLE:ident: $label:literal;
        $(
            $(#[doc = $doc:literal])*
            $field:ident: $type:ty = $default:expr, $codec:expr;
        )*
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $Type {
            $(
                $(#[doc = $doc])*
                #[doc = ""]
                #[doc = concat!("Default: `", stringify!($default), "`.")]
                $vis $field: $type,
            )*
        }

        impl Default for $Type {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        settings_of! {
            $Type as $TABLE: $label, [$($about),*];
            $($(#[doc = $doc])* $field = $codec;)*
        }
    };
}

/// As `settings!` for a struct that is there with its `Default`.
macro_rules! settings_of {
    (
        $Type:ident as $TABLE:ident: $label:literal, [$($about:literal),*];
        $(
            $(#[doc = $doc:literal])*
            $field:ident = $codec:expr;
        )*
    ) => {
        pub(crate) static $TABLE: Table<dyn Setting<$Type>> = Table {
            label: $label,
            doc: &[$($about),*],
            rules: &[],
            fields: &[$(
                Field {
                    name: stringify!($field),
                    doc: &[$($doc),*],
                    example: "",
                    access: &Direct {
                        get: |from: &$Type| &from.$field,
                        get_mut: |to: &mut $Type| &mut to.$field,
                        codec: $codec,
                    },
                },
            )*],
        };
    };
}

settings! {
    /// Cores and how they wait for I/O.
    pub RuntimeConfig as RUNTIME: "[runtime]";

    /// Cores that serve connections; auto: every CPU this process may use.
    cores: Option<usize> = None, CountOr(1..=CORES_MAX, "auto");

    /// How a core waits for I/O; auto: io_uring where it works, else poll.
    driver: DriverChoice = DriverChoice::Auto, OneOf(PhantomData);

    /// How connections are spread: by the kernel, or dealt to the less busy core.
    accept: AcceptMode = AcceptMode::PerCore, OneOf(PhantomData);
}

settings! {
    /// How long each wait may last.
    pub Timeouts as TIMEOUT: "[timeout]";

    /// The whole request head, from its first byte.
    head: Duration = 10 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// Between two reads of a request body, or two writes to a slow client.
    body_idle: Duration = 30 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// Idle between two requests of one client.
    keep_alive: Duration = 60 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// Reading away what a client still sends after an error, before the close.
    linger: Duration = SECOND, DurationIn(Duration::ZERO..=LONGEST);

    /// Connecting to an endpoint.
    connect: Duration = 3 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// From the request sent to the head of the answer.
    first_byte: Duration = 60 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// Between two reads of the body of an answer.
    upstream_idle: Duration = 60 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// Without a byte in either direction of an upgraded connection (a tunnel).
    tunnel_idle: Duration = 3_600 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// At stop, for exchanges under way to end.
    drain: Duration = 30 * SECOND, DurationIn(Duration::ZERO..=LONGEST);
}

settings! {
    /// How much each peer may ask for.
    pub Limits as LIMIT: "[limit]";

    /// Request head, with its last empty line. Over it: 431.
    head_bytes: usize = 16 * KIB, SizeIn(KIB..=64 * KIB);

    /// Fields of one head. Over it: 431 to a request, 502 for an answer.
    fields: usize = 100, CountIn(1..=FIELDS_MAX);

    /// Request target; at most head_bytes. Over it: 414.
    target_bytes: usize = 8 * KIB, SizeIn(256..=64 * KIB);

    /// Request body. Over it: 413.
    body_bytes: Option<u64> = None, SizeOrNone(0..=1_024 << 40);

    /// Bytes of a request body that must come within body_idle, unless it ends before.
    /// A client that sends a byte now and then is closed with 408. 0: any byte will do.
    body_progress_bytes: usize = 512, SizeIn(0..=MIB);

    /// Bytes read ahead of the request being served. When full: not read.
    pipelined_bytes: usize = 64 * KIB, SizeIn(KIB..=MIB);

    /// Client connections of the process. When full: accepted when one ends.
    /// Each may need a second socket, to an endpoint: allow twice as many open files.
    connections: usize = 8_192, CountIn(1..=1_000_000);

    /// Client connections of one IP address. Over it: closed at once.
    connections_per_ip: Option<usize> = None, CountOr(1..=1_000_000, "none");

    /// Requests of one client connection, which is then closed.
    requests_per_connection: usize = 10_000, CountIn(1..=1_000_000_000);

    /// Head of an answer. Over it: 502.
    upstream_head_bytes: usize = 32 * KIB, SizeIn(KIB..=64 * KIB);

    /// Request body read away after an early answer. Over it: closed.
    drain_bytes: usize = 256 * KIB, SizeIn(0..=64 * MIB);

    /// Interim (1xx) responses of one exchange. Over it: 502.
    interim_responses: usize = 16, CountIn(1..=1_000);
}

settings! {
    /// Idle connections to endpoints.
    pub PoolConfig as POOL: "[pool]";

    /// Idle connections kept to each endpoint, over all cores; 0: none.
    idle: usize = 8_192, CountIn(0..=65_536);

    /// Keeping an idle connection to an endpoint; less than the endpoint keeps it.
    /// A request that meets the endpoint's close may be lost; common servers close after 5s.
    idle_timeout: Duration = 4 * SECOND, DurationIn(SHORTEST..=LONGEST);

    /// Age from which a connection is no longer kept, less up to a tenth by chance.
    max_age: Duration = 3_600 * SECOND, DurationIn(SHORTEST..=LONGEST);
}

settings_of! {
    ForwardConfig as FORWARD: "[forward]", [" What the proxy adds to requests by itself."];

    /// X-Forwarded-For, -Proto and -Host.
    x_forwarded = YesNo;

    /// Forwarded (RFC 7239).
    forwarded = YesNo;

    /// X-Request-Id: the client's where it is a trusted proxy, else a new one.
    request_id = YesNo;

    /// traceparent (W3C Trace Context) where the client sent none.
    trace_context = YesNo;
}

settings! {
    /// What is logged, and where to.
    pub(crate) LogSettings as LOG: "[log]";

    /// The least severe event that is logged.
    level: LogLevel = LogLevel::Info, OneOf(PhantomData);

    /// The access log: none, stdout, or the whole path of a file, opened anew on SIGUSR1.
    access: Option<AccessLogTarget> = None, ACCESS;

    /// How a line of the access log looks.
    access_format: AccessLogFormat = AccessLogFormat::Combined, OneOf(PhantomData);
}

settings! {
    /// Where operators ask and tell.
    pub(crate) AdminSettings as ADMIN_TABLE: "[admin]";

    /// Metrics, state and orders: an address, or a Unix socket, made with mode 0600.
    listen: Option<AdminAddress> = None, ADMIN;

    /// Whether an address that others can reach is accepted. Nobody is asked for a password there.
    public: bool = false, YesNo;
}

impl AdminSettings {
    /// Error: others could reach the address, and it is not said that they may. What is wrong, and
    /// what to write.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.listen {
            Some(AdminAddress::Tcp(address)) if !address.ip().is_loopback() && !self.public => {
                Err(format!(
                    "{address} can be reached from other machines, and whoever reaches it may \
                     drain endpoints and read the configuration"
                ))
            }
            _ => Ok(()),
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// The reactors' timers count milliseconds; a shorter wait would be zero.
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);
/// A wait over a day is as good as none, and hides the mistake of a wrong unit.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3_600);
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Slots for the fields of a parsed head, which are storage of fixed size in the parser.
const FIELDS_MAX: usize = 128;
/// CPUs in one affinity mask as Linux lays it out by default (`CPU_SETSIZE`).
const CORES_MAX: usize = 1_024;
