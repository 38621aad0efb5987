//! The lines of the table, in their order, and what a route asks for beside host and path.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use super::Query;
use crate::config::{Config, FieldMatch};
use crate::route::path::normal_pattern;
use crate::route::{Fields, HostPattern, PathPattern, host_name};

/// One host of one route: a line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Index in `config.routes`.
    pub(crate) route: usize,
    /// The host of the route that the row is for; `None`: any.
    pub(crate) host: Option<HostPattern>,
    pub(crate) path: PathPattern,
    pub(crate) candidate: Candidate,
    pub(super) key: RowKey,
}

/// What rows are sorted by: kind, length and first appearance of the host, the same of the path, the
/// number of conditions, the index of the route.
pub(super) type RowKey =
    (u8, Reverse<usize>, usize, u8, Reverse<usize>, usize, Reverse<usize>, usize);

/// A route in its place; `conditions` are those beside host and path.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(super) route: usize,
    pub(super) conditions: Option<Arc<Conditions>>,
}

/// Conditions of a route beside host and path.
#[derive(Debug)]
pub(super) struct Conditions {
    /// Indices in `config.listeners`; empty if there is no such condition.
    listeners: Vec<usize>,
    methods: Vec<String>,
    fields: Vec<FieldMatch>,
}

impl Candidate {
    /// Why the route does not take a request of its host and path; `None`: it does.
    pub(crate) fn refusal<'b, F: Fields<'b>>(&self, query: &Query<'_, F>) -> Option<Refusal<'_>> {
        let conditions = self.conditions.as_ref()?;
        if !conditions.listeners.is_empty() && !conditions.listeners.contains(&query.listener) {
            return Some(Refusal::Listener);
        }
        for wanted in &conditions.fields {
            let fits = |value: &[u8]| match &wanted.value {
                Some(expected) => value == expected.as_bytes(),
                None => true,
            };
            if !query.fields.values(&wanted.name).any(fits) {
                return Some(Refusal::Field(wanted));
            }
        }
        // Last: what is refused by its method alone may be answered with 405.
        let methods = &conditions.methods;
        if !methods.is_empty() && !methods.iter().any(|method| method == query.method) {
            return Some(Refusal::Method(methods));
        }
        None
    }
}

/// A condition that a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal<'t> {
    Listener,
    Field(&'t FieldMatch),
    /// The methods there are; all else is met.
    Method(&'t [String]),
}

impl Row {
    /// Whether the row is for `host` and the normal path `path`, whatever its other conditions.
    pub(crate) fn covers(&self, host: Option<&[u8]>, path: &[u8]) -> (bool, bool) {
        let name = host.map(|host| host_name(host).to_ascii_lowercase());
        let host = match (&self.host, name) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(pattern @ HostPattern::Exact(_)), Some(name)) => {
                let name = if name.starts_with(b"[") { ipv6_key(&name) } else { name };
                *host_key(pattern) == *name
            }
            (Some(pattern @ HostPattern::Below(_)), Some(name)) => {
                let end = host_key(pattern);
                name.len() > end.len() && name.ends_with(&end)
            }
        };
        let path = match &self.path {
            PathPattern::Exact(exact) => normal_pattern(exact) == path,
            PathPattern::Prefix(prefix) => is_below(path, &prefix_key(prefix)),
            PathPattern::Regex(regex) => regex.is_match(path),
        };
        (host, path)
    }
}

/// Kinds of hosts and of paths in a [`RowKey`].
pub(super) const EXACT: u8 = 0;
pub(super) const PREFIX: u8 = 1;
pub(super) const EXPRESSION: u8 = 2;
pub(super) const EVERY: u8 = 3;

pub(super) fn rows(config: &Config) -> Vec<Row> {
    // What is seen first of equal length stands first; each distinct text has a number.
    let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut number = |text: Vec<u8>| {
        let next = numbers.len();
        *numbers.entry(text).or_insert(next)
    };
    let mut rows = Vec::new();
    for (route, config_route) in config.routes.iter().enumerate() {
        let position =
            |name: &String| config.listeners.iter().position(|known| known.name == *name);
        let conditions = Conditions {
            listeners: config_route
                .listeners
                .iter()
                // A name of no listener was refused; it is for none here.
                .map(|name| position(name).unwrap_or(usize::MAX))
                .collect(),
            methods: config_route.methods.clone(),
            fields: config_route.fields.clone(),
        };
        let count = usize::from(!conditions.listeners.is_empty())
            + usize::from(!conditions.methods.is_empty())
            + conditions.fields.len();
        let conditions = (count > 0).then(|| Arc::new(conditions));
        let (path_kind, path_length, path_text) = match &config_route.path {
            PathPattern::Exact(path) => (EXACT, 0, normal_pattern(path)),
            PathPattern::Prefix(prefix) => match prefix_key(prefix) {
                key if key.is_empty() => (EVERY, 0, key),
                key => (PREFIX, key.len(), key),
            },
            PathPattern::Regex(regex) => (EXPRESSION, 0, regex.as_str().as_bytes().to_vec()),
        };
        let path_number = number([b"path", path_text.as_slice()].concat());
        let any = [None];
        let hosts: Vec<Option<&HostPattern>> = match config_route.hosts.as_slice() {
            [] => any.to_vec(),
            hosts => hosts.iter().map(Some).collect(),
        };
        for (at, host) in hosts.iter().enumerate() {
            if hosts[..at].contains(host) {
                continue;
            }
            let (host_kind, host_length, text) = match host {
                Some(host @ HostPattern::Exact(_)) => (EXACT, 0, host_key(host).to_vec()),
                Some(host @ HostPattern::Below(end)) => {
                    (PREFIX, end.len(), host_key(host).to_vec())
                }
                None => (EVERY, 0, Vec::new()),
            };
            rows.push(Row {
                route,
                host: host.cloned(),
                path: config_route.path.clone(),
                candidate: Candidate { route, conditions: conditions.clone() },
                key: (
                    host_kind,
                    Reverse(host_length),
                    number([b"host", text.as_slice()].concat()),
                    path_kind,
                    Reverse(path_length),
                    path_number,
                    Reverse(count),
                    route,
                ),
            });
        }
    }
    rows.sort_by_key(|row| row.key);
    rows
}

/// What a host is looked up by: lower case, an IPv6 address in its one spelling.
pub(super) fn host_key(host: &HostPattern) -> Box<[u8]> {
    let text = match host {
        HostPattern::Exact(name) | HostPattern::Below(name) => name.to_ascii_lowercase(),
    };
    let key = if text.starts_with('[') { ipv6_key(text.as_bytes()) } else { text.into_bytes() };
    key.into_boxed_slice()
}

/// `[::1]` for every way to write it; what is no address stays.
pub(super) fn ipv6_key(name: &[u8]) -> Vec<u8> {
    let address = name.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let address = address.and_then(|text| std::str::from_utf8(text).ok()?.parse::<Ipv6Addr>().ok());
    address.map_or(name.to_vec(), |address| format!("[{address}]").into_bytes())
}

/// What a prefix is looked up by: its normal form, without a slash at its end.
pub(super) fn prefix_key(prefix: &str) -> Vec<u8> {
    let mut key = normal_pattern(prefix);
    while key.last() == Some(&b'/') {
        key.pop();
    }
    key
}

/// Whether `path` is `prefix` or below it.
pub(super) fn is_below(path: &[u8], prefix: &[u8]) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| matches!(rest, [] | [b'/', ..]) || prefix.is_empty())
}
