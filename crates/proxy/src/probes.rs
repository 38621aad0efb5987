//! What the control thread finds out about endpoints: the addresses names stand for, and health.
//!
//! ```text
//! Probes ─► names (a task per name)          ─► UpstreamState::resolved
//!        └► health (a supervisor per upstream,
//!           a task per endpoint) ─► check     ─► EndpointState::set_health
//! ```
//!
//! Runs on the control thread alone; cores see what comes of it in the upstream's state. A task ends
//! when what it looks at is gone, or when [`Probes`] is dropped.

mod check;
mod health;
mod limits;
mod names;
mod resolve;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use crate::config::UpstreamAddr;
use crate::upstream::UpstreamState;
use resolve::Resolver;

/// The names and health checks of the upstreams in force. All of it ends when this is dropped.
pub(crate) struct Probes {
    handle: Handle,
    /// Reads the system's configuration of names.
    read: Box<dyn Fn() -> Resolver + Send>,
    /// There once a name is; a new value has all names looked up again.
    resolver: Option<watch::Sender<Arc<Resolver>>>,
    lookups: Arc<Semaphore>,
    checks: Arc<Semaphore>,
    round: Arc<FirstRound>,
    running: Vec<Running>,
}

/// The tasks of one upstream.
struct Running {
    upstream: Arc<UpstreamState>,
    _tasks: Vec<Task>,
}

/// A task that ends when this is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Probes {
    /// Looks up the names of `upstreams` and checks their endpoints from here on, on `handle`.
    /// Reads files of the system: not to be called on a core. Waits for no answer.
    pub(crate) fn start(handle: &Handle, upstreams: &[Arc<UpstreamState>]) -> Probes {
        Probes::start_with(handle, upstreams, Box::new(Resolver::of_system))
    }

    fn start_with(
        handle: &Handle,
        upstreams: &[Arc<UpstreamState>],
        read: Box<dyn Fn() -> Resolver + Send>,
    ) -> Probes {
        let mut probes = Probes {
            handle: handle.clone(),
            read,
            resolver: None,
            lookups: Arc::new(Semaphore::new(limits::LOOKUPS_MAX)),
            checks: Arc::new(Semaphore::new(limits::CHECKS_MAX)),
            round: Arc::default(),
            running: Vec::new(),
        };
        probes.replace(upstreams);
        probes
    }

    /// Goes on with `upstreams`: the tasks of those it knows (the same `Arc`) continue, those of
    /// others end or begin. Reads the system's configuration of names anew, and looks up every name
    /// again. Not to be called on a core.
    pub(crate) fn replace(&mut self, upstreams: &[Arc<UpstreamState>]) {
        if upstreams.iter().any(|upstream| has_name(upstream)) {
            // The resolver may want to know its runtime.
            let _inside = self.handle.enter();
            let resolver = Arc::new((self.read)());
            match &self.resolver {
                Some(sender) => drop(sender.send_replace(resolver)),
                None => self.resolver = Some(watch::channel(resolver).0),
            }
        }
        let mut before = std::mem::take(&mut self.running);
        for upstream in upstreams {
            let known = before.iter().position(|old| Arc::ptr_eq(&old.upstream, upstream));
            let running = match known {
                Some(index) => before.swap_remove(index),
                None => self.run(upstream),
            };
            self.running.push(running);
        }
    }

    /// Waits until each name has been looked up once, whether it was found or not; whether that was
    /// so within `bound`. Blocks: for an ordinary thread other than the control thread.
    pub(crate) fn first_round(&self, bound: Duration) -> bool {
        self.round.wait(bound)
    }

    fn run(&self, upstream: &Arc<UpstreamState>) -> Running {
        let mut tasks = Vec::new();
        let listed = Arc::new(Notify::new());
        for (entry, endpoint) in upstream.config().endpoints.iter().enumerate() {
            let (UpstreamAddr::Name { host, port }, Some(resolver)) =
                (&endpoint.address, &self.resolver)
            else {
                continue;
            };
            let name = names::Name {
                host: host.clone(),
                port: *port,
                upstream: upstream.clone(),
                entry,
                listed: listed.clone(),
            };
            let lookups = self.lookups.clone();
            let untried = FirstRound::join(&self.round);
            let task = name.keep(resolver.subscribe(), lookups, untried);
            tasks.push(Task(self.handle.spawn(task)));
        }
        if upstream.config().health.is_some() {
            let task = health::supervise(upstream.clone(), listed, self.checks.clone());
            tasks.push(Task(self.handle.spawn(task)));
        }
        Running { upstream: upstream.clone(), _tasks: tasks }
    }
}

fn has_name(upstream: &UpstreamState) -> bool {
    let endpoints = &upstream.config().endpoints;
    endpoints.iter().any(|endpoint| matches!(endpoint.address, UpstreamAddr::Name { .. }))
}

/// How many names have not been looked up yet.
#[derive(Default)]
struct FirstRound {
    untried: Mutex<usize>,
    none_left: Condvar,
}

/// A name that has not been looked up yet, until this is dropped.
struct Untried(Arc<FirstRound>);

impl FirstRound {
    fn join(round: &Arc<FirstRound>) -> Untried {
        *round.lock() += 1;
        Untried(round.clone())
    }

    fn wait(&self, bound: Duration) -> bool {
        let until = Instant::now() + bound;
        let mut untried = self.lock();
        while *untried > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.none_left.wait_timeout(untried, left);
            untried = waited.expect("no holder of this lock panics").0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.untried.lock().expect("no holder of this lock panics")
    }
}

impl Drop for Untried {
    fn drop(&mut self) {
        let mut untried = self.0.lock();
        *untried -= 1;
        if *untried == 0 {
            self.0.none_left.notify_all();
        }
    }
}
