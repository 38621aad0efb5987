//! The table of settings: each one's name, meaning, default and bounds, written once.
//!
//! From it come the structs of `Config`, the keys of the file, the flags, their help, and the
//! complete file that `print` writes, so that these cannot differ.

use std::time::Duration;

use super::value::{Kind, Slot};
use super::{AcceptMode, DriverChoice};

/// A table of the file and the flags with the same prefix.
pub(crate) struct Group {
    /// Name of the table in the file.
    pub(crate) table: &'static str,
    /// What comes before the setting's name in a flag, with its hyphen; empty for none.
    pub(crate) flag_prefix: &'static str,
    /// Title over the flags in the help.
    pub(crate) heading: &'static str,
    /// In the order in which they are documented.
    pub(crate) fields: &'static [Field],
}

/// One setting.
pub(crate) struct Field {
    /// Key in the file; also the name of the struct's field.
    pub(crate) name: &'static str,
    /// The doc comment, a line each.
    pub(crate) doc: &'static [&'static str],
    /// What it holds, within which bounds, and where in `Config`.
    pub(crate) kind: Kind,
}

/// The tables of the file in the order of its documentation.
pub(crate) static SETTINGS: [&Group; 5] = [&RUNTIME, &TIMEOUT, &LIMIT, &POOL, &LOG];

/// Defines one struct of settings, its `Default`, and its `Group`.
///
/// `part` is the struct's field in `Config`. Each setting reads
/// `name: type = default, Kind(bounds)`, where `Kind(…)` is a variant of `Kind`.
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        $Type:ident as $GROUP:ident, $part:ident: [$table:literal], $flag_prefix:literal, $heading:literal;
        $(
            $(#[doc = $doc:literal])*
            $field:ident: $type:ty = $default:expr, $kind:ident($($bound:expr),*);
        )*
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Type {
            $(
                $(#[doc = $doc])*
                #[doc = ""]
                #[doc = concat!("Default: `", stringify!($default), "`.")]
                pub $field: $type,
            )*
        }

        impl Default for $Type {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        pub(crate) static $GROUP: Group = Group {
            table: $table,
            flag_prefix: $flag_prefix,
            heading: $heading,
            fields: &[$(
                Field {
                    name: stringify!($field),
                    doc: &[$($doc),*],
                    kind: Kind::$kind(
                        Slot {
                            read: |config| &config.$part.$field,
                            write: |config| &mut config.$part.$field,
                        }
                        $(, $bound)*
                    ),
                },
            )*],
        };
    };
}

settings! {
    /// Cores and how they wait for I/O.
    RuntimeConfig as RUNTIME, runtime: ["runtime"], "", "Runtime";

    /// Cores that serve connections; auto: every CPU this process may use.
    cores: Option<usize> = None, CountOr(1..=CORES_MAX, "auto");

    /// How a core waits for I/O; auto: io_uring where it works, else poll.
    driver: DriverChoice = DriverChoice::Auto, Driver();

    /// How connections are spread: by the kernel, or dealt to the less busy core.
    accept: AcceptMode = AcceptMode::PerCore, Accept();
}

settings! {
    /// How long each wait may last.
    Timeouts as TIMEOUT, timeouts: ["timeout"], "timeout-", "Timeouts";

    /// The whole request head, from its first byte.
    head: Duration = 10 * SECOND, Duration(SHORTEST..=LONGEST);

    /// Between two reads of a request body, or two writes to a slow client.
    body_idle: Duration = 30 * SECOND, Duration(SHORTEST..=LONGEST);

    /// Idle between two requests of one client.
    keep_alive: Duration = 60 * SECOND, Duration(SHORTEST..=LONGEST);

    /// Reading away what a client still sends after an error, before the close.
    linger: Duration = SECOND, Duration(Duration::ZERO..=LONGEST);

    /// Connecting to an endpoint.
    connect: Duration = 3 * SECOND, Duration(SHORTEST..=LONGEST);

    /// From the request sent to the head of the answer.
    first_byte: Duration = 60 * SECOND, Duration(SHORTEST..=LONGEST);

    /// Between two reads of the body of an answer.
    upstream_idle: Duration = 60 * SECOND, Duration(SHORTEST..=LONGEST);

    /// Without a byte in either direction of an upgraded connection (a tunnel).
    tunnel_idle: Duration = 3_600 * SECOND, Duration(SHORTEST..=LONGEST);

    /// At stop, for exchanges under way to end.
    drain: Duration = 30 * SECOND, Duration(Duration::ZERO..=LONGEST);
}

settings! {
    /// How much each peer may ask for.
    Limits as LIMIT, limits: ["limit"], "limit-", "Limits";

    /// Request head, with its last empty line. Over it: 431.
    head_bytes: usize = 16 * KIB, Size(KIB..=64 * KIB);

    /// Fields of one head. Over it: 431 to a request, 502 for an answer.
    fields: usize = 100, Count(1..=FIELDS_MAX);

    /// Request target; at most head_bytes. Over it: 414.
    target_bytes: usize = 8 * KIB, Size(256..=64 * KIB);

    /// Request body. Over it: 413.
    body_bytes: Option<u64> = None, SizeOrNone(0..=1_024 << 40);

    /// Bytes of a request body that must come within body_idle, unless it ends before. A client that
    /// sends a byte now and then is closed with 408. 0: any byte will do.
    body_progress_bytes: usize = 512, Size(0..=MIB);

    /// Bytes read ahead of the request being served. When full: not read.
    pipelined_bytes: usize = 64 * KIB, Size(KIB..=MIB);

    /// Client connections of the process. When full: accepted when one ends.
    /// Each may need a second socket, to an endpoint: allow twice as many open files.
    connections: usize = 8_192, Count(1..=1_000_000);

    /// Client connections of one IP address. Over it: closed at once.
    connections_per_ip: Option<usize> = None, CountOr(1..=1_000_000, "none");

    /// Requests of one client connection, which is then closed.
    requests_per_connection: usize = 10_000, Count(1..=1_000_000_000);

    /// Head of an answer. Over it: 502.
    upstream_head_bytes: usize = 32 * KIB, Size(KIB..=64 * KIB);

    /// Request body read away after an early answer. Over it: closed.
    drain_bytes: usize = 256 * KIB, Size(0..=64 * MIB);

    /// Interim (1xx) responses of one exchange. Over it: 502.
    interim_responses: usize = 16, Count(1..=1_000);
}

settings! {
    /// Idle connections to endpoints.
    PoolConfig as POOL, pool: ["pool"], "pool-", "Upstream pool";

    /// Idle connections kept to each endpoint, over all cores; 0: none.
    idle: usize = 8_192, Count(0..=65_536);

    /// Keeping an idle connection to an endpoint; less than the endpoint keeps it.
    /// A request that meets the endpoint's close may be lost; common servers close after 5s.
    idle_timeout: Duration = 4 * SECOND, Duration(SHORTEST..=LONGEST);

    /// Age from which a connection is no longer kept, less up to a tenth by chance.
    max_age: Duration = 3_600 * SECOND, Duration(SHORTEST..=LONGEST);
}

/// The table `[log]`, whose one setting is a field of `Config` itself. The flag is `--log`.
pub(crate) static LOG: Group = Group {
    table: "log",
    flag_prefix: "",
    heading: "Log",
    fields: std::slice::from_ref(&LOG_LEVEL),
};

/// The setting that is no part of a struct of settings.
pub(crate) static LOG_LEVEL: Field = Field {
    name: "level",
    doc: &[" The least severe event that is logged."],
    kind: Kind::LogLevel(Slot {
        read: |config| &config.log_level,
        write: |config| &mut config.log_level,
    }),
};

const SECOND: Duration = Duration::from_secs(1);
/// The reactors' timers count milliseconds; a shorter wait would be zero.
const SHORTEST: Duration = Duration::from_millis(1);
/// A wait over a day is as good as none, and hides the mistake of a wrong unit.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Slots for the fields of a parsed head, which are storage of fixed size in the parser.
const FIELDS_MAX: usize = 128;
/// CPUs in one affinity mask as Linux lays it out by default (`CPU_SETSIZE`).
const CORES_MAX: usize = 1_024;
