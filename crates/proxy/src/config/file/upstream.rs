//! The tables `[upstream.NAME]`.

use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::config::settings::{LONGEST, POOL, PoolConfig, SHORTEST};
use crate::config::shapes::{Many, Overrides, Short, Sub, Subset};
use crate::config::table::{At, Rule, table};
use crate::config::texts::{BALANCE, ENDPOINT, HOST_FIELD, PERCENT, TARGET};
use crate::config::value::{
    CountIn, CountOr, DurationIn, Given, OneOf, Refusal, Scalar, YesNo, count, within,
};
use crate::config::{Balance, RetryOn, UpstreamAddr};

/// Connections to one endpoint that a bound may name.
const CONNECTIONS_MAX: usize = 1_000_000;
/// Requests that may wait.
const QUEUE_MAX: usize = 1_000_000;
/// Times a request may be sent once more.
const RETRIES_MAX: usize = 10;

table! {
    /// An endpoint with what is said of it.
    EndpointTable as ENDPOINT_TABLE: "[upstream.NAME.endpoints]", [Rule::Required(&["addr"])];

    /// Its address.
    addr: UpstreamAddr = ENDPOINT, r#""10.0.0.1:9000""#;

    /// Its share relative to the others; 1 by default.
    weight: u32 = CountIn(1..=1_000), "2";

    /// Whether it takes requests only while no other endpoint can.
    backup: bool = YesNo, "true";
}

table! {
    /// Requests that wait for a connection under `max_conns`.
    QueueTable as QUEUE: "[upstream.NAME.queue]", [];

    /// Most that wait for one endpoint, in the process; over it: 503. By default 1000.
    length: usize = CountIn(0..=QUEUE_MAX), "1000";

    /// How long each waits at most; over it: 503. By default 1s.
    timeout: Duration = DurationIn(SHORTEST..=LONGEST), r#""1s""#;
}

table! {
    /// When a request is sent once more.
    RetryTable as RETRY: "[upstream.NAME.retry]", [];

    /// Times after the first; 0: never. By default 1.
    attempts: usize = CountIn(0..=RETRIES_MAX), "1";

    /// Retries under way in the process, of the upstream's requests under way. By default 20%.
    budget: u32 = PERCENT, r#""20%""#;

    /// Retries under way that are always allowed. By default 3.
    budget_min: u32 = CountIn(0..=1_000), "3";

    /// After what: connect, no-answer, timeout, invalid. By default all of them.
    on: Vec<At<RetryOn>> = Many(OneOf(PhantomData)), r#"["connect", "no-answer", "timeout", "invalid"]"#;

    /// Statuses of an answer after which, too. By default none.
    statuses: Vec<At<u16>> = Many(CountIn(500..=599)), "[502, 503]";
}

table! {
    /// Requests of the proxy's own that tell whether an endpoint is well.
    HealthTable as HEALTH: "[upstream.NAME.health]", [Rule::Required(&["path"])];

    /// The target.
    path: String = TARGET, r#""/healthz""#;

    /// The Host; by default the endpoint's address.
    host: String = HOST_FIELD, r#""api.internal""#;

    /// From one to the next. By default 5s.
    interval: Duration = DurationIn(INTERVAL), r#""5s""#;

    /// For connection and answer together. By default 1s.
    timeout: Duration = DurationIn(SHORTEST..=LONGEST), r#""1s""#;

    /// Good ones in a row after which a bad endpoint is good. By default 2.
    rise: u32 = CountIn(1..=100), "2";

    /// Bad ones in a row after which a good endpoint is bad. By default 3.
    fall: u32 = CountIn(1..=100), "3";

    /// Statuses that are good. By default 200 to 299.
    expect: Vec<At<(u16, u16)>> = Many(StatusRange), r#"["200-299"]"#;
}

/// More often than ten times a second is a load of its own.
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=LONGEST;

table! {
    /// When an endpoint that fails is left out for a while.
    EjectTable as EJECT: "[upstream.NAME.eject]", [];

    /// Failures in a row; 0: never. By default 5.
    failures: u32 = CountIn(0..=10_000), "5";

    /// How long at first; each further time in a row takes as much longer. By default 10s.
    period: Duration = DurationIn(INTERVAL), r#""10s""#;

    /// Most of the upstream's endpoints that are left out at once, percent. By default 50.
    max_percent: u32 = CountIn(0..=100), "50";
}

table! {
    /// A named group of endpoints.
    UpstreamTable as UPSTREAM: "[upstream.NAME]", [
        Rule::Required(&["endpoints"]),
        Rule::Needs("queue", "max_conns", "nothing waits where connections have no bound")
    ];

    /// Addresses, or tables with `addr`, `weight` and `backup`. A name is resolved, and resolved
    /// again when its time is over.
    endpoints: Vec<At<EndpointTable>> = Many(Short {
        one: ENDPOINT,
        get: |endpoint: &EndpointTable| endpoint.addr.as_ref().map(|addr| &addr.value),
        put: |endpoint: &mut EndpointTable, addr| endpoint.addr = Some(addr),
        table: &ENDPOINT_TABLE,
    }), r#"["10.0.0.1:9000", { addr = "b:9000", weight = 2 }, { addr = "c:9000", backup = true }]"#;

    /// Which endpoint takes a request: p2c (of two at random the one with fewer under way), which is
    /// the default, round-robin, hash:client-ip, hash:path, hash:header:NAME, hash:cookie:NAME.
    balance: Balance = BALANCE, r#""p2c""#;

    /// The Host of requests to it. By default the client's.
    host: String = HOST_FIELD, r#""api.internal""#;

    /// Connections to each endpoint, over all cores, never more. By default none: no bound.
    max_conns: Option<usize> = CountOr(1..=CONNECTIONS_MAX, "none"), "500";

    /// Requests that wait for a connection under max_conns.
    queue: QueueTable = Sub(&QUEUE), r#"{ length = 1000, timeout = "1s" }"#;

    /// What is other than in [pool] here.
    pool: Overrides<PoolConfig> = Subset {
        table: &POOL,
        only: Some(&["idle", "idle_timeout", "max_age"]),
        label: "[upstream.NAME.pool]",
    }, r#"{ idle = 64, idle_timeout = "4s", max_age = "10m" }"#;

    /// When a request is sent once more.
    retry: RetryTable = Sub(&RETRY), r#"{ attempts = 1, budget = "20%", budget_min = 3, on = ["connect", "no-answer"], statuses = [502, 503] }"#;

    /// Requests of the proxy's own that tell whether an endpoint is well. By default none are sent.
    health: HealthTable = Sub(&HEALTH), r#"{ path = "/healthz", interval = "5s", timeout = "1s", rise = 2, fall = 3, expect = ["200-299"] }"#;

    /// When an endpoint that fails is left out for a while.
    eject: EjectTable = Sub(&EJECT), r#"{ failures = 5, period = "10s", max_percent = 50 }"#;

    /// Time in which an endpoint that came back rises to its share. By default 0s: at once.
    slow_start: Duration = DurationIn(Duration::ZERO..=LONGEST), r#""10s""#;
}

/// A status, or a range of them with both ends.
struct StatusRange;

impl Scalar for StatusRange {
    type Value = (u16, u16);

    fn parse(&self, given: Given<'_>) -> Result<(u16, u16), Refusal> {
        let one = |number: u64| {
            within(u16::try_from(number).unwrap_or(u16::MAX), &(100..=599), u16::to_string)
        };
        let Ok(text) = given.text() else {
            let status = one(count(given)?)?;
            return Ok((status, status));
        };
        let wrong = || Refusal::new(format!("\"{text}\" is no range of statuses"), "");
        if let Some(class) = text.strip_suffix("xx").filter(|class| class.len() == 1) {
            return Err(Refusal { fix: format!("write \"{class}00-{class}99\""), ..wrong() });
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (Ok(first), Ok(last)) = (count(Given::Flag(first)), count(Given::Flag(last))) else {
            return Err(wrong());
        };
        let (first, last) = (one(first)?, one(last)?);
        if first > last {
            let fix = format!("write \"{last}-{first}\"");
            return Err(Refusal::new(format!("{first} comes after {last}"), fix));
        }
        Ok((first, last))
    }

    fn show(&self, (first, last): &(u16, u16)) -> String {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    }

    fn expected(&self, _: Given<'_>, _: &str) -> String {
        r#"a status such as 200, or a range such as "200-299""#.to_owned()
    }

    fn placeholder(&self) -> String {
        "STATUS".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 100, "maximum": 599 },
            { "type": "string", "pattern": "^[1-5][0-9][0-9](-[1-5][0-9][0-9])?$" },
        ] })
    }
}
