//! A configuration as text: the complete file, the reference of all keys, and one line for
//! `baton check`.

use std::path::Path;

use super::file::{
    EditsTable, EjectTable, EndpointTable, HealthTable, LISTEN, ListenTable, PageTable, QueueTable,
    ROOT, ROUTE, RateTable, RedirectTable, ReplaceTable, RespondTable, RetryTable, RouteTable,
    UPSTREAM, UpstreamTable, own_name, route_name,
};
use super::groups::SETTINGS;
use super::settings::{LIMIT, POOL, TIMEOUT};
use super::shapes::{Entries, Overrides, write_key};
use super::table::{Access, At, Table, written};
use super::texts::{ListenAddr, To};
use super::{
    Action, Config, EjectConfig, FieldEdits, HealthConfig, Listener, QueueConfig, RetryConfig,
    Rewrite, Route, Upstream,
};
use crate::route::Template;

/// Writes the complete file that says what `config` says, every setting with its meaning; of
/// listeners, upstreams and routes what is not by default. [`super::parse`] reads the same `config`
/// back.
pub fn print(config: &Config) -> String {
    let mut out = String::new();
    for listener in &config.listeners {
        block(&mut out, "[[listen]]", &LISTEN, &listen_table(config, listener));
    }
    for upstream in config.upstreams.iter().filter(|upstream| !is_own(config, upstream)) {
        let label = format!("[upstream.{}]", write_key(&upstream.name));
        block(&mut out, &label, &UPSTREAM, &upstream_table(config, upstream));
    }
    for route in &config.routes {
        block(&mut out, "[[route]]", &ROUTE, &route_table(config, route));
    }
    for section in SETTINGS {
        section.print(config, &mut out);
    }
    out
}

fn block<C>(out: &mut String, label: &str, table: &Table<dyn Access<C>>, from: &C) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&format!("{label}\n"));
    for (name, text) in written(table, from) {
        out.push_str(&format!("{name} = {text}\n"));
    }
}

/// Writes a file with every key there is: an example of each, and its meaning.
pub fn reference() -> String {
    let mut out = String::new();
    for field in ROOT.fields.iter().filter(|field| field.name == "include") {
        explain(&mut out, field.doc);
        out.push_str(&format!("# {} = {}\n\n", field.name, field.example));
    }
    explained(&mut out, "[[listen]]", &LISTEN);
    explained(&mut out, "\n[upstream.api]", &UPSTREAM);
    explained(&mut out, "\n[[route]]", &ROUTE);
    for section in SETTINGS {
        section.print(&Config::defaults(), &mut out);
    }
    out
}

fn explained<C>(out: &mut String, label: &str, table: &Table<dyn Access<C>>) {
    out.push_str(&format!("{label}\n"));
    for field in table.fields {
        explain(out, field.doc);
        for (name, doc) in field.access.nested() {
            let doc: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
            out.push_str(&format!("#   {name}: {}\n", doc.join(" ")));
        }
        let (sign, example) = match field.example.strip_prefix("# ") {
            Some(example) => ("# ", example),
            None => ("", field.example),
        };
        out.push_str(&format!("{sign}{} = {example}\n", field.name));
    }
}

fn explain(out: &mut String, doc: &[&str]) {
    for line in doc {
        out.push_str(&format!("#{line}\n"));
    }
}

/// One line on what the file at `path` sets up.
pub fn summary(config: &Config, path: &Path) -> String {
    let count = |count: usize, thing: &str, things: &str| {
        format!("{count} {}", if count == 1 { thing } else { things })
    };
    let parts = [
        count(config.addresses().count(), "address", "addresses"),
        count(config.routes.len(), "route", "routes"),
        count(config.upstreams.len(), "upstream", "upstreams"),
        count(config.endpoints().count(), "endpoint", "endpoints"),
    ];
    format!("{}: ok, {}", path.display(), parts.join(", "))
}

fn said<T>(value: T) -> Option<At<T>> {
    Some(At::nowhere(value))
}

fn said_unless<T: PartialEq>(value: T, default: &T) -> Option<At<T>> {
    (value != *default).then(|| At::nowhere(value))
}

fn many<T: Clone>(values: &[T]) -> Option<At<Vec<At<T>>>> {
    let all: Vec<At<T>> = values.iter().cloned().map(At::nowhere).collect();
    (!all.is_empty()).then(|| At::nowhere(all))
}

/// Whether a route names its endpoints itself.
fn is_own(config: &Config, upstream: &Upstream) -> bool {
    let plain =
        Upstream::new(own_upstream(upstream), upstream.endpoints.clone(), config.pool.clone());
    *upstream == plain
        && upstream.endpoints.iter().all(|endpoint| endpoint.weight == 1 && !endpoint.backup)
}

fn own_upstream(upstream: &Upstream) -> String {
    own_name(upstream.endpoints.iter().map(|endpoint| &endpoint.address))
}

fn listen_table(config: &Config, listener: &Listener) -> ListenTable {
    let addresses: Vec<ListenAddr> = listener.addresses.iter().copied().map(ListenAddr).collect();
    let default = addresses.first().map_or_else(String::new, ListenAddr::to_string);
    ListenTable {
        addr: many(&addresses),
        name: said_unless(listener.name.clone(), &default),
        proxy_protocol: many(&listener.proxy_protocol),
        trusted_proxies: many(&listener.trusted_proxies),
        timeout: Overrides::between(&TIMEOUT, &config.timeouts, &listener.timeouts),
        limit: Overrides::between(&LIMIT, &config.limits, &listener.limits),
    }
}

fn upstream_table(config: &Config, upstream: &Upstream) -> UpstreamTable {
    let default = Upstream::new(String::new(), Vec::new(), config.pool.clone());
    let endpoints: Vec<EndpointTable> = upstream
        .endpoints
        .iter()
        .map(|endpoint| EndpointTable {
            addr: said(endpoint.address.clone()),
            weight: said_unless(endpoint.weight, &1),
            backup: said_unless(endpoint.backup, &false),
        })
        .collect();
    let QueueConfig { length, timeout } = upstream.queue.clone();
    let RetryConfig { attempts, budget_percent, budget_min, on, statuses } = upstream.retry.clone();
    let EjectConfig { failures, period, max_percent } = upstream.eject.clone();
    let queue = (upstream.queue != default.queue)
        .then(|| At::nowhere(QueueTable { length: said(length), timeout: said(timeout) }));
    let retry = (upstream.retry != default.retry).then(|| {
        At::nowhere(RetryTable {
            attempts: said(attempts),
            budget: said(budget_percent),
            budget_min: said(budget_min),
            on: if attempts == 0 { None } else { many(&on) },
            statuses: many(&statuses),
        })
    });
    let eject = (upstream.eject != default.eject).then(|| {
        At::nowhere(EjectTable {
            failures: said(failures),
            period: said(period),
            max_percent: said(max_percent),
        })
    });
    UpstreamTable {
        endpoints: many(&endpoints),
        balance: said_unless(upstream.balance.clone(), &default.balance),
        host: upstream.host.clone().map(At::nowhere),
        max_conns: said_unless(upstream.max_conns, &None),
        queue,
        pool: Overrides::between(&POOL, &config.pool, &upstream.pool),
        retry,
        health: upstream.health.as_ref().map(|health| At::nowhere(health_table(health))),
        eject,
        slow_start: said_unless(upstream.slow_start, &default.slow_start),
    }
}

fn health_table(health: &HealthConfig) -> HealthTable {
    HealthTable {
        path: said(health.path.clone()),
        host: health.host.clone().map(At::nowhere),
        interval: said(health.interval),
        timeout: said(health.timeout),
        rise: said(health.rise),
        fall: said(health.fall),
        expect: many(&health.expect),
    }
}

fn route_table(config: &Config, route: &Route) -> RouteTable {
    let (strip_prefix, replace_prefix) = match &route.rewrite {
        Rewrite::None => (None, None),
        Rewrite::Strip(prefix) => (said(prefix.clone()), None),
        Rewrite::Replace { from, to } => {
            (None, said(ReplaceTable { from: said(from.clone()), to: said(to.clone()) }))
        }
    };
    let fields: Entries<String, String> = route
        .fields
        .iter()
        .map(|field| {
            let value = field.value.clone().unwrap_or_else(|| "*".to_owned());
            (At::nowhere(field.name.clone()), At::nowhere(value))
        })
        .collect();
    let pages: Entries<u16, PageTable> = route
        .error_pages
        .iter()
        .map(|(status, body)| {
            let body = String::from_utf8_lossy(body).into_owned();
            let page = PageTable { file: None, body: said(body) };
            (At::nowhere(*status), At::nowhere(page))
        })
        .collect();
    let rate_limit = route.rate_limit.as_ref().map(|limit| {
        At::nowhere(RateTable {
            key: said(limit.key.clone()),
            rate: said((limit.requests, limit.per)),
            burst: said(limit.burst),
        })
    });
    let table = RouteTable {
        name: said_unless(route.name.clone(), &route_name(&route.hosts, &route.path)),
        listen: many(&route.listeners),
        host: many(&route.hosts),
        path: said_unless(route.path.clone(), &Default::default()),
        method: many(&route.methods),
        header: (!fields.is_empty()).then(|| At::nowhere(fields)),
        strip_prefix,
        replace_prefix,
        request_headers: edits_table(&route.request_fields),
        response_headers: edits_table(&route.response_fields),
        allow: many(&route.allow),
        deny: many(&route.deny),
        rate_limit,
        concurrency: route.concurrency.map(At::nowhere),
        error_pages: (!pages.is_empty()).then(|| At::nowhere(pages)),
        access_log: said_unless(route.access_log, &true),
        timeout: Overrides::between(&TIMEOUT, &config.timeouts, &route.timeouts),
        limit: Overrides::between(&LIMIT, &config.limits, &route.limits),
        ..RouteTable::default()
    };
    with_action(table, config, &route.action)
}

fn with_action(mut table: RouteTable, config: &Config, action: &Action) -> RouteTable {
    match action {
        Action::Proxy(name) => {
            let own = config.upstreams.iter().find(|known| known.name == *name);
            let addresses: Vec<To> = match own.filter(|own| is_own(config, own)) {
                Some(own) => own
                    .endpoints
                    .iter()
                    .map(|endpoint| To::Address(endpoint.address.clone()))
                    .collect(),
                None => vec![To::Name(name.clone())],
            };
            table.to = many(&addresses);
        }
        Action::Redirect { status, to } => {
            let status = said_unless(*status, &308);
            table.redirect = said(RedirectTable { to: said(to.clone()), status });
        }
        Action::Respond { status, content_type, body } => {
            let (text, base64) = match std::str::from_utf8(body) {
                Ok("") => (None, None),
                Ok(text) => (said(text.to_owned()), None),
                Err(_) => (None, said(body.to_vec())),
            };
            table.respond = said(RespondTable {
                status: said(*status),
                content_type: said(content_type.clone()),
                body: text,
                file: None,
                base64,
            });
        }
    }
    table
}

fn edits_table(edits: &FieldEdits) -> Option<At<EditsTable>> {
    let pairs = |pairs: &[(String, Template)]| {
        let all: Entries<String, Template> = pairs
            .iter()
            .map(|(name, value)| (At::nowhere(name.clone()), At::nowhere(value.clone())))
            .collect();
        (!all.is_empty()).then(|| At::nowhere(all))
    };
    let FieldEdits { remove, set, add } = edits;
    let table = EditsTable { set: pairs(set), add: pairs(add), remove: many(remove) };
    (*edits != FieldEdits::default()).then(|| At::nowhere(table))
}
