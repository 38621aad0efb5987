//! One generation of the configuration, compiled: what all cores work by until the next reload.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_http1::HeadLimits;
use baton_runtime::Counter;

use crate::config::{self, Action, Config, Limits};
use crate::histogram::Histogram;
use crate::limiter::RateLimiter;
use crate::route::{Rewriter, RouteEdits, RouteTable};
use crate::upstream::UpstreamState;

/// A generation. Immutable but for the counters and states it refers to.
pub(crate) struct Plan {
    /// 1 at start; rises with each reload.
    pub(crate) generation: u64,
    pub(crate) config: Config,
    /// In the order of `config.upstreams`.
    pub(crate) upstreams: Vec<Arc<UpstreamState>>,
    /// In the order of `config.routes`.
    pub(crate) routes: Vec<Arc<RouteState>>,
    /// Which route takes a request.
    pub(crate) table: RouteTable,
    /// What is made of each route, in the same order.
    rules: Vec<Rule>,
    /// By the number that the runtime gave each listener.
    listeners: Vec<Option<Arc<ListenerRule>>>,
}

/// What is made of a route.
pub(crate) struct Rule {
    /// The upstream it sends to, by its place in `Plan::upstreams`.
    pub(crate) upstream: Option<usize>,
    pub(crate) answer_head: HeadLimits,
    /// The Host of requests to its upstream; none: the client's.
    pub(crate) host: Option<Box<[u8]>>,
    pub(crate) rewriter: Rewriter,
    pub(crate) edits: RouteEdits,
    /// Counts go on over reloads as long as the limit stays as it is.
    pub(crate) limiter: Option<Arc<RateLimiter>>,
}

/// What is made of a listener.
#[derive(Clone)]
pub(crate) struct ListenerRule {
    pub(crate) config: config::Listener,
    /// Its place in `config.listeners`; none once it is given up.
    pub(crate) index: Option<usize>,
    pub(crate) request_head: HeadLimits,
    /// The generation that has it no more.
    given_up_in: Option<u64>,
}

/// Generations after which a listener that is given up is forgotten. Its last connections come in
/// within a second; after that, one that is still open goes on as of another listener.
const GENERATIONS_REMEMBERED: u64 = 64;

/// What all cores know of a route; kept over reloads by its name.
pub(crate) struct RouteState {
    pub(crate) name: String,
    /// Requests under way.
    pub(crate) in_flight: AtomicUsize,
    counters: Box<[RouteCounters]>,
}

/// What one core counts of one route.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct RouteCounters {
    /// Requests, by the class of their final status: 1xx to 5xx.
    pub(crate) answers: [Counter; 5],
    /// Requests that ended without an answer.
    pub(crate) unanswered: Counter,
    /// Requests refused by its rate limit.
    pub(crate) rate_limited: Counter,
    /// Requests refused by its concurrency limit.
    pub(crate) over_concurrency: Counter,
    /// Requests refused for their address.
    pub(crate) denied: Counter,
    /// From the first byte of the request to the end of the answer.
    pub(crate) duration: Histogram,
}

impl RouteState {
    pub(crate) fn new(name: String, cores: usize) -> RouteState {
        let counters = (0..cores).map(|_| RouteCounters::default()).collect();
        RouteState { name, in_flight: AtomicUsize::new(0), counters }
    }

    /// What core `core` counts of it; written by that core alone.
    pub(crate) fn counters(&self, core: usize) -> &RouteCounters {
        &self.counters[core]
    }

    /// What each core counts of it.
    pub(crate) fn all_counters(&self) -> &[RouteCounters] {
        &self.counters
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

impl Plan {
    /// Compiles `config` for `cores` cores. What `before` knows of upstreams that are configured as
    /// before, and of routes, is kept. `numbers`: for each listener of the configuration, the numbers
    /// that the runtime gave its addresses.
    pub(crate) fn new(
        config: Config,
        cores: usize,
        numbers: &[Vec<usize>],
        before: Option<&Plan>,
    ) -> Plan {
        assert_eq!(numbers.len(), config.listeners.len());
        let generation = before.map_or(1, |plan| plan.generation + 1);
        let upstreams = config.upstreams.iter().map(|upstream| {
            let named = |known: &&Arc<UpstreamState>| known.config().name == upstream.name;
            match before.and_then(|plan| plan.upstreams.iter().find(named)) {
                Some(known) if known.config() == upstream => known.clone(),
                known => {
                    let known = known.map(Arc::as_ref);
                    Arc::new(UpstreamState::new(upstream.clone(), cores, known))
                }
            }
        });
        let routes = config.routes.iter().map(|route| {
            let known =
                before.and_then(|plan| plan.routes.iter().find(|known| known.name == route.name));
            known.cloned().unwrap_or_else(|| Arc::new(RouteState::new(route.name.clone(), cores)))
        });
        let rules = config.routes.iter().map(|route| Rule::new(route, &config, before));
        Plan {
            generation,
            upstreams: upstreams.collect(),
            routes: routes.collect(),
            rules: rules.collect(),
            table: RouteTable::new(&config),
            listeners: listener_rules(&config, numbers, generation, before),
            config,
        }
    }

    /// What is made of route `route`.
    pub(crate) fn rule(&self, route: usize) -> &Rule {
        &self.rules[route]
    }

    /// What is made of the listener that the runtime gave this number.
    pub(crate) fn listener(&self, number: usize) -> &ListenerRule {
        let known = self.listeners.get(number).and_then(Option::as_ref);
        let any = || self.listeners.iter().flatten().find(|rule| rule.index.is_some());
        known.or_else(any).expect("a configuration has a listener")
    }
}

impl ListenerRule {
    /// Whether a connection from `peer` begins with a PROXY protocol header.
    pub(crate) fn expects_introduction(&self, peer: IpAddr) -> bool {
        let from = &self.config.proxy_protocol;
        !from.is_empty() && crate::route::contains(from, peer.to_canonical())
    }
}

impl Rule {
    fn new(route: &config::Route, config: &Config, before: Option<&Plan>) -> Rule {
        let upstream = match &route.action {
            Action::Proxy(name) => {
                let place = config.upstreams.iter().position(|known| known.name == *name);
                Some(place.expect("a configuration names only upstreams it has"))
            }
            Action::Redirect { .. } | Action::Respond { .. } => None,
        };
        let host = upstream.and_then(|place| config.upstreams[place].host.as_ref());
        let limiter = route.rate_limit.as_ref().map(|limit| {
            let known = before.and_then(|plan| plan.limiter_of(&route.name));
            let same = known.filter(|known| known.config() == limit);
            same.unwrap_or_else(|| Arc::new(RateLimiter::new(limit)))
        });
        let edits = RouteEdits::new(route, &config.forward);
        Rule {
            upstream,
            answer_head: head_limits(&route.limits, route.limits.upstream_head_bytes),
            host: host.map(|host| host.as_bytes().into()),
            rewriter: Rewriter::new(&route.rewrite),
            edits: edits.expect("a configuration changes only fields that may be changed"),
            limiter,
        }
    }
}

impl Plan {
    fn limiter_of(&self, route: &str) -> Option<Arc<RateLimiter>> {
        let place = self.routes.iter().position(|known| known.name == route)?;
        self.rules[place].limiter.clone()
    }
}

fn listener_rules(
    config: &Config,
    numbers: &[Vec<usize>],
    generation: u64,
    before: Option<&Plan>,
) -> Vec<Option<Arc<ListenerRule>>> {
    let mut rules: Vec<Option<Arc<ListenerRule>>> = Vec::new();
    for rule in before.map_or(&[][..], |plan| &plan.listeners) {
        let given_up = rule.as_ref().and_then(|rule| {
            let since = rule.given_up_in.unwrap_or(generation);
            let remembered = generation - since < GENERATIONS_REMEMBERED;
            let config = rule.config.clone();
            let request_head = rule.request_head;
            let given_up_in = Some(since);
            remembered.then_some(ListenerRule { config, index: None, request_head, given_up_in })
        });
        rules.push(given_up.map(Arc::new));
    }
    for (index, (listener, numbers)) in config.listeners.iter().zip(numbers).enumerate() {
        for &number in numbers {
            if rules.len() <= number {
                rules.resize(number + 1, None);
            }
            rules[number] = Some(Arc::new(ListenerRule {
                config: listener.clone(),
                index: Some(index),
                request_head: head_limits(&listener.limits, listener.limits.head_bytes),
                given_up_in: None,
            }));
        }
    }
    rules
}

fn head_limits(limits: &Limits, head_bytes_max: usize) -> HeadLimits {
    HeadLimits { head_bytes_max, fields_max: limits.fields, target_bytes_max: limits.target_bytes }
}
