//! A few ordinary threads for calls that block: names, files. Not for computation.
//!
//! Bounded: [`BLOCKING_THREADS`] threads and [`BLOCKING_QUEUE_JOBS`] waiting jobs for the process.
//! A result goes back through a slot of its own, and its core learns of it by a message.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Poll, Waker};

use crossbeam_queue::ArrayQueue;

use crate::limits::{BLOCKING_QUEUE_JOBS, BLOCKING_THREADS};
use crate::mailbox::{Message, Phase};
use crate::shared::Shared;

/// Why a blocking job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingError {
    /// All threads are busy and the queue is full.
    QueueFull,
    /// The job panicked.
    Panicked,
}

impl fmt::Display for BlockingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockingError::QueueFull => {
                write!(f, "over {BLOCKING_QUEUE_JOBS} blocking jobs wait already")
            }
            BlockingError::Panicked => f.write_str("the blocking job panicked"),
        }
    }
}

impl std::error::Error for BlockingError {}

type Job = Box<dyn FnOnce() + Send>;

/// The threads, started with the first job.
pub(crate) struct BlockingPool {
    queue: ArrayQueue<Job>,
    state: Mutex<PoolState>,
    wake: Condvar,
}

#[derive(Default)]
struct PoolState {
    threads: usize,
    idle: usize,
    closed: bool,
}

impl BlockingPool {
    pub(crate) fn new() -> BlockingPool {
        BlockingPool {
            queue: ArrayQueue::new(BLOCKING_QUEUE_JOBS),
            state: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    /// Lets the threads end once the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_all();
    }

    pub(crate) fn submit(self: &Arc<Self>, job: Job) -> Result<(), BlockingError> {
        // Pushed under the lock: where no thread can be had, the last job is the one to take back.
        let mut state = self.lock();
        if let Err(job) = self.queue.push(job) {
            // What it owns is dropped outside of the lock.
            drop(state);
            drop(job);
            return Err(BlockingError::QueueFull);
        }
        // Not `idle == 0`: a thread that was woken and has not run since still counts as idle.
        if self.queue.len() > state.idle && state.threads < BLOCKING_THREADS {
            let pool = self.clone();
            let name = format!("blocking-{}", state.threads);
            let started = std::thread::Builder::new().name(name).spawn(move || pool.work());
            match started {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    tracing::error!(%error, "no thread for blocking calls");
                    // Nobody will come for it.
                    let job = self.queue.pop();
                    drop(state);
                    drop(job);
                    return Err(BlockingError::QueueFull);
                }
                Err(_) => {}
            }
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = self.queue.pop() {
                drop(state);
                job();
                state = self.lock();
                continue;
            }
            if state.closed {
                state.threads -= 1;
                return;
            }
            state.idle += 1;
            state = self.wake.wait(state).expect("no holder of this lock panics");
            state.idle -= 1;
        }
    }

    /// Held for a few instructions by submitters and workers; jobs run outside of it.
    fn lock(&self) -> std::sync::MutexGuard<'_, PoolState> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

/// The jobs of one core that are under way.
#[derive(Default)]
pub(crate) struct Pending {
    jobs: RefCell<Jobs>,
}

#[derive(Default)]
struct Jobs {
    slots: Vec<JobState>,
    free: Vec<u32>,
}

enum JobState {
    Free,
    Waiting(Option<Waker>),
    /// Its future was dropped; the number is free again once the message has come.
    Abandoned,
    Done,
}

impl Pending {
    /// Runs `job` on the pool's threads on behalf of core `core`.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        shared: &Arc<Shared>,
        core: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BlockingError> {
        let number = self.jobs.borrow_mut().insert();
        let ticket = Ticket { pending: self, number };
        let result = Arc::new(ArrayQueue::new(1));
        let (slot, back) = (result.clone(), shared.clone());
        let submitted = shared.blocking().submit(Box::new(move || {
            if let Ok(value) = catch_unwind(AssertUnwindSafe(job)) {
                // The slot is empty: this job alone fills it, once.
                drop(slot.push(value));
            }
            let mailbox = back.mailbox(core);
            let mut message = Message::Done { job: number };
            while let Err(refused) = mailbox.send(message) {
                if mailbox.ordered() == Phase::Ended {
                    break;
                }
                message = refused;
                std::thread::yield_now();
            }
        }));
        if let Err(error) = submitted {
            self.complete(number);
            return Err(error);
        }
        poll_fn(|cx| self.jobs.borrow_mut().poll_done(number, cx.waker())).await;
        drop(ticket);
        result.pop().ok_or(BlockingError::Panicked)
    }

    /// The message of job `number` has come.
    pub(crate) fn complete(&self, number: u32) {
        let mut jobs = self.jobs.borrow_mut();
        match std::mem::replace(&mut jobs.slots[number as usize], JobState::Done) {
            JobState::Waiting(Some(waker)) => waker.wake(),
            JobState::Waiting(None) => {}
            JobState::Abandoned => jobs.release(number),
            JobState::Free | JobState::Done => unreachable!("a job is done once"),
        }
    }
}

impl Jobs {
    fn insert(&mut self) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = JobState::Waiting(None);
            return number;
        }
        self.slots.push(JobState::Waiting(None));
        u32::try_from(self.slots.len() - 1).expect("fewer jobs than 2^32")
    }

    fn release(&mut self, number: u32) {
        self.slots[number as usize] = JobState::Free;
        self.free.push(number);
    }

    fn poll_done(&mut self, number: u32, waker: &Waker) -> Poll<()> {
        match &mut self.slots[number as usize] {
            JobState::Done => Poll::Ready(()),
            state => {
                *state = JobState::Waiting(Some(waker.clone()));
                Poll::Pending
            }
        }
    }
}

/// Gives a job's number back when its future ends, finished or dropped.
struct Ticket<'a> {
    pending: &'a Pending,
    number: u32,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut jobs = self.pending.jobs.borrow_mut();
        match jobs.slots[self.number as usize] {
            JobState::Done => jobs.release(self.number),
            _ => jobs.slots[self.number as usize] = JobState::Abandoned,
        }
    }
}
