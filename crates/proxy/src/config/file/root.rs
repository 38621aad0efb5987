//! The file itself, whose keys are tables.

use super::listen::{LIMITS_OF_LISTENER, LISTEN, ListenTable, TIMEOUTS_OF_LISTENER};
use super::route::{
    LIMITS_OF_ROUTE, RATE_LIMIT, REDIRECT, REPLACE, REQUEST_EDITS, RESPOND, ROUTE, RouteTable,
    TIMEOUTS_OF_ROUTE,
};
use super::upstream::{EJECT, ENDPOINT_TABLE, HEALTH, QUEUE, RETRY, UPSTREAM, UpstreamTable};
use crate::config::ForwardConfig;
use crate::config::settings::{
    ADMIN_TABLE, AdminSettings, FORWARD, LIMIT, LOG, Limits, LogSettings, POOL, PoolConfig,
    RUNTIME, RuntimeConfig, TIMEOUT, Timeouts,
};
use crate::config::shapes::{Entries, Many, Named, Overrides, Subset, Tables};
use crate::config::table::{At, Table, table};
use crate::config::texts::{INCLUDE, NAME, NAME_PATTERN};

table! {
    /// A configuration of baton.
    Root as ROOT: "the file", [];

    /// Files with further [[listen]], [[route]] and [upstream.NAME] tables. Relative to this file;
    /// `*` stands for any part of a name.
    include: Vec<At<String>> = Many(INCLUDE), r#"["conf.d/*.toml"]"#;

    /// Where clients come in.
    listen: Vec<At<ListenTable>> = Tables(&LISTEN), "";

    /// Groups of endpoints.
    upstream: Entries<String, UpstreamTable> = Named {
        name: NAME,
        table: &UPSTREAM,
        key_pattern: NAME_PATTERN,
    }, "";

    /// Which requests, and what becomes of them.
    route: Vec<At<RouteTable>> = Tables(&ROUTE), "";

    /// Cores and how they wait for I/O.
    runtime: Overrides<RuntimeConfig> = Subset { table: &RUNTIME, only: None, label: "[runtime]" }, "";

    /// How long each wait may last.
    timeout: Overrides<Timeouts> = Subset { table: &TIMEOUT, only: None, label: "[timeout]" }, "";

    /// How much each peer may ask for.
    limit: Overrides<Limits> = Subset { table: &LIMIT, only: None, label: "[limit]" }, "";

    /// Idle connections to endpoints.
    pool: Overrides<PoolConfig> = Subset { table: &POOL, only: None, label: "[pool]" }, "";

    /// What the proxy adds to requests by itself.
    forward: Overrides<ForwardConfig> = Subset { table: &FORWARD, only: None, label: "[forward]" }, "";

    /// What is logged, and where to.
    log: Overrides<LogSettings> = Subset { table: &LOG, only: None, label: "[log]" }, "";

    /// Where operators ask and tell.
    admin: Overrides<AdminSettings> = Subset { table: &ADMIN_TABLE, only: None, label: "[admin]" }, "";
}

/// The keys that an included file may have.
pub(crate) const INCLUDED: &[&str] = &["include", "listen", "upstream", "route"];
/// What messages call an included file.
pub(crate) const INCLUDED_LABEL: &str = "an included file";

/// The tables that have a key of this name, as they are written, those with most use first.
/// `label`: of the table it was found in.
pub(crate) fn homes(name: &str, label: &str) -> Vec<String> {
    fn has<A: ?Sized>(table: &Table<A>, name: &str) -> bool {
        table.fields.iter().any(|field| field.name == name)
    }
    if label == INCLUDED_LABEL && has(&ROOT, name) {
        return vec!["the file that includes this one".to_owned()];
    }
    let tables = [
        ("the lines before the first table", name == "include"),
        ("[[listen]]", has(&LISTEN, name)),
        ("[[route]]", has(&ROUTE, name)),
        ("[upstream.NAME]", has(&UPSTREAM, name)),
        ("[runtime]", has(&RUNTIME, name)),
        ("[timeout]", has(&TIMEOUT, name)),
        ("[limit]", has(&LIMIT, name)),
        ("[pool]", has(&POOL, name)),
        ("[forward]", has(&FORWARD, name)),
        ("[log]", has(&LOG, name)),
        ("[admin]", has(&ADMIN_TABLE, name)),
        ("[listen.timeout]", TIMEOUTS_OF_LISTENER.contains(&name)),
        ("[listen.limit]", LIMITS_OF_LISTENER.contains(&name)),
        ("[route.timeout]", TIMEOUTS_OF_ROUTE.contains(&name)),
        ("[route.limit]", LIMITS_OF_ROUTE.contains(&name)),
        ("[upstream.NAME.health]", has(&HEALTH, name)),
        ("[upstream.NAME.queue]", has(&QUEUE, name)),
        ("[upstream.NAME.retry]", has(&RETRY, name)),
        ("[upstream.NAME.eject]", has(&EJECT, name)),
        ("[route.rate_limit]", has(&RATE_LIMIT, name)),
        ("[route.redirect]", has(&REDIRECT, name)),
        ("[route.respond]", has(&RESPOND, name)),
        ("[route.replace_prefix]", has(&REPLACE, name)),
        ("[route.request_headers]", has(&REQUEST_EDITS, name)),
        ("one of `endpoints`, as in { addr = \"a:1\", weight = 2 }", has(&ENDPOINT_TABLE, name)),
    ];
    let homes = tables.iter().filter(|(home, has)| *has && *home != label);
    homes.take(HOMES_MAX).map(|(home, _)| (*home).to_owned()).collect()
}

/// Tables that a message names for one key.
const HOMES_MAX: usize = 2;
