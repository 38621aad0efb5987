//! What runs, for those who look at it from outside of the cores.

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
    plan: Mutex<Arc<Plan>>,
}

impl Live {
    pub(crate) fn new(runtime: Observer, shared: Arc<Shared>, plan: Arc<Plan>) -> Live {
        Live { runtime, shared, started: SystemTime::now(), plan: Mutex::new(plan) }
    }

    /// The generation in force.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.lock().expect("no holder of this lock panics").clone()
    }

    /// Puts the next generation in force for those who look from here on.
    pub(crate) fn set_plan(&self, plan: Arc<Plan>) {
        *self.plan.lock().expect("no holder of this lock panics") = plan;
    }
}
