//! Jobs on the threads that may block.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use baton_runtime::{BlockingError, Core};

use crate::on_core::{poll_once, run, start, yield_until};
use crate::support::{PATIENCE, for_each_driver, wait_until};

/// A job that waits until the test lets it go on, and counts itself as started.
#[derive(Clone)]
struct Gate {
    started: Arc<AtomicUsize>,
    open: Arc<AtomicBool>,
}

impl Gate {
    fn new() -> Gate {
        Gate { started: Arc::default(), open: Arc::default() }
    }

    fn pass(&self) {
        self.started.fetch_add(1, Ordering::AcqRel);
        wait_until("the gate opens", || self.open.load(Ordering::Acquire));
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::Acquire)
    }

    fn open(&self) {
        self.open.store(true, Ordering::Release);
    }
}

#[test]
fn a_job_over_the_queues_bound_is_refused_and_all_others_run() {
    for_each_driver(|driver| {
        // Four threads and 256 places in the queue.
        const THREADS: usize = 4;
        const PLACES: usize = 256;
        let finished = run(driver, async |core: Core| {
            let gate = Gate::new();
            let finished = Arc::new(AtomicUsize::new(0));
            let job = || {
                let (core, gate, finished) = (core.clone(), gate.clone(), finished.clone());
                async move {
                    core.blocking(move || gate.pass()).await.unwrap();
                    finished.fetch_add(1, Ordering::AcqRel);
                }
            };
            for busy in 1..=THREADS {
                core.spawn(job());
                yield_until(&core, "a thread takes the job", || gate.started() == busy).await;
            }
            for _ in 0..PLACES {
                core.spawn(job());
            }
            core.yield_now().await;
            assert_eq!(core.blocking(|| ()).await, Err(BlockingError::QueueFull));
            gate.open();
            let all = THREADS + PLACES;
            let done = || finished.load(Ordering::Acquire) == all;
            yield_until(&core, "all accepted jobs end", done).await;
            assert_eq!(core.blocking(|| 7).await, Ok(7));
            finished.load(Ordering::Acquire)
        });
        assert_eq!(finished, THREADS + PLACES);
    });
}

#[test]
fn a_panicking_job_is_an_error_for_its_caller_and_its_thread_goes_on() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            for _ in 0..10 {
                let outcome = core.blocking(|| -> u8 { panic!("asked for") }).await;
                assert_eq!(outcome, Err(BlockingError::Panicked));
            }
            assert_eq!(core.blocking(|| "well".to_owned()).await.as_deref(), Ok("well"));
        });
    });
}

#[test]
fn a_job_whose_future_is_dropped_runs_to_its_end_and_confuses_no_other() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            for turn in 0..100 {
                let ran = Arc::new(AtomicBool::new(false));
                let (gate, marks) = (Gate::new(), ran.clone());
                let jobs_gate = gate.clone();
                {
                    let mut dropped = pin!(core.blocking(move || {
                        jobs_gate.pass();
                        marks.store(true, Ordering::Release);
                        "for nobody"
                    }));
                    assert!(poll_once(dropped.as_mut()).await.is_pending());
                }
                // Its number must not be given to this one while its message is still to come.
                let mut other = pin!(core.blocking(move || turn));
                assert!(poll_once(other.as_mut()).await.is_pending());
                gate.open();
                assert_eq!(other.await, Ok(turn));
                yield_until(&core, "the dropped job ends", || ran.load(Ordering::Acquire)).await;
            }
        });
    });
}

#[test]
fn jobs_that_wait_for_each_other_all_run_though_some_threads_are_idle() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            // One more job each time than there are idle threads, all submitted at once: those that
            // are woken and have not run yet must not be counted on twice.
            for jobs in 1..=4 {
                let met = Arc::new(Barrier::new(jobs));
                let leaders = Arc::new(AtomicUsize::new(0));
                let ended = Arc::new(AtomicUsize::new(0));
                for _ in 0..jobs {
                    let (core, met) = (core.clone(), met.clone());
                    let (leaders, ended) = (leaders.clone(), ended.clone());
                    core.clone().spawn(async move {
                        if core.blocking(move || met.wait().is_leader()).await.unwrap() {
                            leaders.fetch_add(1, Ordering::AcqRel);
                        }
                        ended.fetch_add(1, Ordering::AcqRel);
                    });
                }
                let all = || ended.load(Ordering::Acquire) == jobs;
                yield_until(&core, "all jobs have met", all).await;
                assert_eq!(leaders.load(Ordering::Acquire), 1);
                // Gives the threads time to become idle; if they do not, the test asks less.
                core.sleep(Duration::from_millis(5)).await;
            }
        });
    });
}

#[test]
fn the_core_goes_on_while_a_job_blocks() {
    for_each_driver(|driver| {
        let (release, blocked): (SyncSender<u8>, Receiver<u8>) = sync_channel(1);
        let blocked = Mutex::new(Some(blocked));
        let task = start(driver, async move |core: Core| {
            let blocked = blocked.lock().unwrap().take().unwrap();
            core.blocking(move || blocked.recv_timeout(PATIENCE).unwrap()).await
        });
        let counters = task.counters();
        let seen = counters.heartbeats.read();
        wait_until("heartbeats come", || counters.heartbeats.read() > seen + 2);
        release.send(9).unwrap();
        assert_eq!(task.finish(), Ok(9));
    });
}

#[test]
fn each_of_thousands_of_results_reaches_its_own_caller() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            const TASKS: usize = 100;
            const JOBS: usize = 50;
            let finished = Arc::new(AtomicUsize::new(0));
            for task in 0..TASKS {
                let (handle, finished) = (core.clone(), finished.clone());
                core.spawn(async move {
                    for job in 0..JOBS {
                        assert_eq!(handle.blocking(move || task * job).await, Ok(task * job));
                    }
                    finished.fetch_add(1, Ordering::AcqRel);
                });
            }
            let done = || finished.load(Ordering::Acquire) == TASKS;
            yield_until(&core, "all tasks end", done).await;
        });
    });
}
