//! One generation of the configuration, compiled: what all cores work by until the next reload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_runtime::Counter;

use crate::config::Config;
use crate::histogram::Histogram;
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
}

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
    /// From the head of the request to the end of the answer.
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
    /// before, and of routes, is kept.
    pub(crate) fn new(config: Config, cores: usize, before: Option<&Plan>) -> Plan {
        let upstreams = config.upstreams.iter().map(|upstream| {
            let known = before
                .and_then(|plan| plan.upstreams.iter().find(|known| known.config() == upstream));
            known.cloned().unwrap_or_else(|| Arc::new(UpstreamState::new(upstream.clone(), cores)))
        });
        let upstreams = upstreams.collect();
        let routes = config.routes.iter().map(|route| {
            let known =
                before.and_then(|plan| plan.routes.iter().find(|known| known.name == route.name));
            known.cloned().unwrap_or_else(|| Arc::new(RouteState::new(route.name.clone(), cores)))
        });
        let routes = routes.collect();
        let generation = before.map_or(1, |plan| plan.generation + 1);
        Plan { generation, config, upstreams, routes }
    }
}
