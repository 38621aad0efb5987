//! A load generator on Baton's own runtime.
//!
//! Closed loop: each connection sends its next request once it has its answer. Open loop: requests
//! are due at a fixed rate, whichever connection is free sends the next one, and its latency
//! counts from when it was due; so a server that stalls cannot hide it by slowing its load down.
//!
//! ```text
//! Args ─► Plan ─► run ─► per core: CoreLoad ─► Client × n ─► Report
//! ```

mod args;
mod client;
mod pace;
mod report;

pub use args::{Args, Plan, PlanError};
pub use report::{Failure, Report};

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use baton_runtime::{Accepted, Core, Runtime, RuntimeOptions, Service, StartError};

use client::Client;
use pace::Pace;

/// Wait for the cores to end once all clients have. They have nothing left to do.
const JOIN_BOUND: Duration = Duration::from_secs(5);

/// Runs `plan` to its end. Blocks for its duration, and at most one request's time longer.
///
/// Errors: the cores did not start. Failed requests are no error but part of the report.
pub fn run(plan: &Plan) -> Result<Report, StartError> {
    let cores = plan.args.cores as usize;
    let options = RuntimeOptions {
        cores: Some(cores),
        driver: plan.args.driver,
        ..RuntimeOptions::default()
    };
    let (results, reports) = sync_channel(cores);
    let shared = Arc::new(plan.clone());
    let runtime = Runtime::start(&options, move |core| {
        let load = CoreLoad { plan: shared.clone(), results: results.clone() };
        core.spawn(load.run(core.clone()));
        NoService
    })?;
    let mut total = Report::default();
    for _ in 0..cores {
        match reports.recv() {
            Ok(report) => total.add(&report),
            Err(_) => total.add_failures(Failure::Client, 1),
        }
    }
    let panics = (0..cores).map(|core| runtime.counters(core).panics.read()).sum();
    total.add_failures(Failure::Client, panics);
    runtime.drain();
    runtime.join(JOIN_BOUND);
    Ok(total)
}

/// The load of one core.
struct CoreLoad {
    plan: Arc<Plan>,
    results: SyncSender<Report>,
}

impl CoreLoad {
    /// Connects the core's share of clients, then lets all of them go at once.
    async fn run(self, core: Core) {
        let args = &self.plan.args;
        let share = |total: usize| (total + core.cores() - 1 - core.index()) / core.cores();
        let outcome = Rc::new(Outcome { report: RefCell::default(), results: self.results });
        let mut clients = Vec::new();
        for _ in 0..share(args.connections as usize) {
            let mut client = Client::new(&core, self.plan.clone());
            if !args.new_connections {
                // A failure shows again, and is counted, with the client's first request.
                let _counted_later = client.connect().await;
            }
            clients.push(client);
        }
        let rate = args.rate.map(|rate| rate / core.cores() as f64);
        let duration = Duration::from_secs_f64(args.seconds);
        let pace = Rc::new(Pace::new(Instant::now(), duration, rate));
        for client in clients {
            core.spawn(drive(core.clone(), client, pace.clone(), outcome.clone()));
        }
    }
}

/// Sends requests until their time is over.
async fn drive(core: Core, mut client: Client, pace: Rc<Pace>, outcome: Rc<Outcome>) {
    /// Pause after a failure, so that a server that is down is not asked in a busy loop.
    const FAILURE_PAUSE: Duration = Duration::from_millis(10);
    /// Requests after which the core's other clients go first.
    const TURN_REQUESTS: u64 = 64;
    let mut requests: u64 = 0;
    while let Some(due) = pace.next(&core).await {
        let answered = client.exchange().await;
        outcome.report.borrow_mut().note(answered, due.elapsed());
        requests += 1;
        if answered.is_err() {
            core.sleep(FAILURE_PAUSE).await;
        } else if requests.is_multiple_of(TURN_REQUESTS) {
            core.yield_now().await;
        }
    }
    let mut report = outcome.report.borrow_mut();
    report.elapsed = pace.elapsed();
    report.unsent = pace.unsent();
}

/// What the clients of a core found out; sent when the last of them is gone.
struct Outcome {
    report: RefCell<Report>,
    results: SyncSender<Report>,
}

impl Drop for Outcome {
    fn drop(&mut self) {
        // Nobody waits for it if the whole load was given up.
        drop(self.results.send(mem::take(self.report.get_mut())));
    }
}

/// A load listens on nothing.
struct NoService;

impl Service for NoService {
    type Notice = std::convert::Infallible;

    fn notice(self: Rc<Self>, notice: Self::Notice) {
        match notice {}
    }

    async fn serve(self: Rc<Self>, _connection: Accepted) {}
}
