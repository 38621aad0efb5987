//! What runs, for those who look at it from outside of the cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use baton_runtime::Observer;

use crate::plan::Plan;
use crate::proxy::Shared;

/// The running proxy as the control plane sees it.
pub(crate) struct Live {
    /// The cores' own numbers.
    pub(crate) runtime: Observer,
    /// What the cores count, and where their access log goes.
    pub(crate) shared: Arc<Shared>,
    pub(crate) started: SystemTime,
    pub(crate) reloads: Reloads,
    plan: Mutex<Arc<Plan>>,
}

/// What became of the reloads that were asked for, since the start.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    pub(crate) taken: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Live {
    pub(crate) fn new(runtime: Observer, shared: Arc<Shared>, plan: Arc<Plan>) -> Live {
        let (started, plan) = (SystemTime::now(), Mutex::new(plan));
        Live { runtime, shared, started, plan, reloads: Reloads::default() }
    }

    /// The generation in force.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.lock().expect("no holder of this lock panics").clone()
    }

    /// Puts the next generation in force for those who look from here on.
    pub(crate) fn set_plan(&self, plan: Arc<Plan>) {
        *self.plan.lock().expect("no holder of this lock panics") = plan;
    }

    /// A reload has put its configuration in force, be it that a core takes it later.
    pub(crate) fn reload_taken(&self) {
        self.reloads.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// A reload has changed nothing.
    pub(crate) fn reload_refused(&self) {
        self.reloads.refused.fetch_add(1, Ordering::Relaxed);
    }
}
