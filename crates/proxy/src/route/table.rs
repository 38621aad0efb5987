//! The routes of a configuration, compiled: the most specific one that takes a request.
//!
//! Order, the first that takes the request wins:
//!
//! 1. the host: exact, then the longest wildcard, then any;
//! 2. the path: exact, then the longest prefix of whole segments, then expressions in the order of
//!    the file, then every path;
//! 3. more conditions (listener, fields, methods) before fewer;
//! 4. the order of the file.

mod rows;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use regex::bytes::Regex;

use super::path::{PathFault, Resolved, normal_pattern, resolve};
use super::{Fields, HostPattern, PathPattern, host_name};
use crate::config::{Config, Rewrite};
pub(crate) use rows::{Candidate, Refusal, Row};
use rows::{EVERY, host_key, ipv6_key, is_below, prefix_key, rows};

/// Longest host that is looked up. Bytes (RFC 1035 §2.3.4). A longer one is no configured one, yet may
/// be below one: its end is looked at.
const HOST_BYTES_MAX: usize = 255;

/// The compiled routes. Immutable.
pub(crate) struct RouteTable {
    /// The route that every request takes, where there is only one and it has no conditions.
    only: Option<usize>,
    /// Whether a route looks at paths or changes them.
    paths_matter: bool,
    hosts: HostMap,
    /// By what follows the `*` of a wildcard.
    below: HostMap,
    below_bytes_max: usize,
    any: Paths,
    rows: Vec<Row>,
}

type HostMap = HashMap<Box<[u8]>, Paths, BuildHasherDefault<Fnv>>;

/// The routes of one host, or of any.
#[derive(Default)]
struct Paths {
    /// Sorted by path.
    exact: Vec<(Box<[u8]>, Vec<Candidate>)>,
    /// Sorted so that a path stands before those below it, and these before any other.
    prefixes: Vec<Prefix>,
    expressions: Vec<(Arc<Regex>, Vec<Candidate>)>,
    every: Vec<Candidate>,
}

struct Prefix {
    path: Box<[u8]>,
    /// The longest other prefix that this one is below.
    parent: Option<usize>,
    candidates: Vec<Candidate>,
}

/// What routes see of a request.
pub(crate) struct Query<'a, F> {
    /// Index in `config.listeners`.
    pub(crate) listener: usize,
    pub(crate) method: &'a str,
    /// `host[:port]`: of an absolute-form target, else of Host.
    pub(crate) host: Option<&'a [u8]>,
    /// The path in normal form: [`Resolved::normal`] of what [`RouteTable::resolve`] made.
    pub(crate) path: &'a [u8],
    pub(crate) fields: &'a F,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// To the route with this index in `config.routes`.
    Route(usize),
    /// Nowhere, but with another method it would go somewhere: 405, and Allow with this value.
    MethodNotAllowed(String),
    /// Nowhere: 404.
    None,
}

impl RouteTable {
    /// Compiles the routes of `config`.
    pub(crate) fn new(config: &Config) -> RouteTable {
        let rows = rows(config);
        let mut table = RouteTable {
            only: None,
            paths_matter: config.routes.iter().any(|route| {
                route.path != PathPattern::default() || route.rewrite != Rewrite::None
            }),
            hosts: HostMap::default(),
            below: HostMap::default(),
            below_bytes_max: 0,
            any: Paths::default(),
            rows: Vec::new(),
        };
        for row in &rows {
            let paths = match &row.host {
                None => &mut table.any,
                Some(host @ HostPattern::Exact(_)) => {
                    table.hosts.entry(host_key(host)).or_default()
                }
                Some(host @ HostPattern::Below(_)) => {
                    let key = host_key(host);
                    table.below_bytes_max = table.below_bytes_max.max(key.len());
                    table.below.entry(key).or_default()
                }
            };
            paths.add(&row.path, row.candidate.clone());
        }
        for paths in table.hosts.values_mut().chain(table.below.values_mut()) {
            paths.seal();
        }
        table.any.seal();
        table.only = match rows.as_slice() {
            [row] if row.host.is_none() && row.key.3 == EVERY => {
                row.candidate.conditions.is_none().then_some(row.route)
            }
            _ => None,
        };
        table.rows = rows;
        table
    }

    /// `path`, without its query, as the routes see it. A table whose routes have no use for paths
    /// does not look at it.
    pub(crate) fn resolve<'a>(&self, path: &'a [u8]) -> Result<Resolved<'a>, PathFault> {
        if self.paths_matter { resolve(path) } else { Ok(Resolved::as_sent(path)) }
    }

    /// The route that takes the request. Allocates only for a 405.
    pub(crate) fn find<'b, F: Fields<'b>>(&self, query: &Query<'_, F>) -> Found {
        if let Some(route) = self.only {
            return Found::Route(route);
        }
        let mut found = None;
        self.candidates(query.host, query.path, &mut |candidate| {
            found = candidate.refusal(query).is_none().then_some(candidate.route);
            found.is_some()
        });
        match found {
            Some(route) => Found::Route(route),
            None => self.other_methods(query),
        }
    }

    /// The answer to a request that no route takes.
    #[cold]
    fn other_methods<'b, F: Fields<'b>>(&self, query: &Query<'_, F>) -> Found {
        let mut allowed: Vec<String> = Vec::new();
        self.candidates(query.host, query.path, &mut |candidate| {
            if let Some(Refusal::Method(methods)) = candidate.refusal(query) {
                for method in methods {
                    if !allowed.contains(method) {
                        allowed.push(method.clone());
                    }
                }
            }
            false
        });
        match allowed.is_empty() {
            true => Found::None,
            false => Found::MethodNotAllowed(allowed.join(", ")),
        }
    }

    /// Shows `visit` each route of the host and path, most specific first, until it says `true`.
    fn candidates(
        &self,
        host: Option<&[u8]>,
        path: &[u8],
        visit: &mut impl FnMut(&Candidate) -> bool,
    ) -> bool {
        let hosts_matter = !self.hosts.is_empty() || !self.below.is_empty();
        if let Some(host) = host.filter(|_| hosts_matter)
            && self.of_host(host_name(host), path, visit)
        {
            return true;
        }
        self.any.candidates(path, visit)
    }

    fn of_host(
        &self,
        name: &[u8],
        path: &[u8],
        visit: &mut impl FnMut(&Candidate) -> bool,
    ) -> bool {
        let mut lower = [0; HOST_BYTES_MAX];
        let end = &name[name.len().saturating_sub(HOST_BYTES_MAX)..];
        let is_whole = end.len() == name.len();
        let name = &mut lower[..end.len()];
        name.copy_from_slice(end);
        name.make_ascii_lowercase();
        let name = &*name;
        let exact = match name.first() {
            _ if !is_whole => None,
            Some(b'[') => self.hosts.get(ipv6_key(name).as_slice()),
            _ => self.hosts.get(name),
        };
        if exact.is_some_and(|paths| paths.candidates(path, visit)) {
            return true;
        }
        if self.below.is_empty() {
            return false;
        }
        // The longest end first; what stands in front of it is not empty.
        let first = name.len().saturating_sub(self.below_bytes_max).max(1);
        let ends = (first..name.len()).filter(|at| name[*at] == b'.').map(|at| &name[at..]);
        let mut found = ends.filter_map(|end| self.below.get(end));
        found.any(|paths| paths.candidates(path, visit))
    }

    /// Every host of every route, most specific first.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    #[cfg(test)]
    /// The routes in the order in which they are looked at, as indices in `config.routes`. A route
    /// of several hosts is there where its first one stands.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        for row in &self.rows {
            if !order.contains(&row.route) {
                order.push(row.route);
            }
        }
        order
    }
}

impl Paths {
    /// Adds a route of `path`. Those of one path come in their order.
    fn add(&mut self, path: &PathPattern, candidate: Candidate) {
        match path {
            PathPattern::Exact(exact) => {
                let key = normal_pattern(exact);
                match self.exact.last_mut().filter(|last| *last.0 == *key) {
                    Some(last) => last.1.push(candidate),
                    None => self.exact.push((key.into_boxed_slice(), vec![candidate])),
                }
            }
            PathPattern::Prefix(prefix) => {
                let path = prefix_key(prefix);
                if path.is_empty() {
                    return self.every.push(candidate);
                }
                match self.prefixes.last_mut().filter(|last| *last.path == *path) {
                    Some(last) => last.candidates.push(candidate),
                    None => self.prefixes.push(Prefix {
                        path: path.into_boxed_slice(),
                        parent: None,
                        candidates: vec![candidate],
                    }),
                }
            }
            PathPattern::Regex(regex) => {
                let last = self.expressions.last_mut();
                match last.filter(|last| last.0.as_str() == regex.as_str()) {
                    Some(last) => last.1.push(candidate),
                    None => self.expressions.push((regex.clone(), vec![candidate])),
                }
            }
        }
    }

    /// Sorts what was added for the search.
    fn seal(&mut self) {
        self.exact.sort_by(|a, b| a.0.cmp(&b.0));
        self.prefixes.sort_by(|a, b| by_segments(&a.path, &b.path));
        for at in 1..self.prefixes.len() {
            let path = &self.prefixes[at].path;
            let mut parent = Some(at - 1);
            while let Some(up) = parent.filter(|up| !is_below(path, &self.prefixes[*up].path)) {
                parent = self.prefixes[up].parent;
            }
            self.prefixes[at].parent = parent;
        }
    }

    fn candidates(&self, path: &[u8], visit: &mut impl FnMut(&Candidate) -> bool) -> bool {
        if let Ok(at) = self.exact.binary_search_by(|(known, _)| known.as_ref().cmp(path))
            && self.exact[at].1.iter().any(&mut *visit)
        {
            return true;
        }
        // What stands between the longest prefix of `path` and the place of `path` is below that
        // prefix, so the way up from the last one before it meets every prefix of `path`.
        let behind =
            self.prefixes.partition_point(|prefix| by_segments(&prefix.path, path).is_le());
        let mut next = behind.checked_sub(1);
        while let Some(at) = next {
            let prefix = &self.prefixes[at];
            if is_below(path, &prefix.path) && prefix.candidates.iter().any(&mut *visit) {
                return true;
            }
            next = prefix.parent;
        }
        let mut expressions = self.expressions.iter();
        expressions
            .any(|(regex, candidates)| regex.is_match(path) && candidates.iter().any(&mut *visit))
            || self.every.iter().any(visit)
    }
}

/// The order of paths in which a path stands right before those below it.
fn by_segments(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    // A slash sorts before every other byte.
    let rank = |byte: &u8| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 };
    let differs = a.iter().zip(b).position(|(a, b)| a != b);
    match differs {
        Some(at) => rank(&a[at]).cmp(&rank(&b[at])),
        None => a.len().cmp(&b.len()),
    }
}

/// FNV-1a. Keys are those of the configuration: no peer can choose what collides.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_usize(&mut self, _: usize) {
        // The length of a key in front of it tells keys of one kind no better apart.
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
