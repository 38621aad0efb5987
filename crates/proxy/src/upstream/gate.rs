//! Who waits for a connection to one endpoint whose connections are bounded, on which core.
//!
//! The connections are counted by the endpoint; the requests that wait are in lists of their cores.
//! Here is what other cores need to know of them, in atomics, and what they hand over: permits. A
//! permit is the right to have one connection open; it is counted from the moment it is taken until
//! it is given back, whichever core holds it, so that there are never more than `most`.
//!
//! No wake-up is lost: who begins to wait announces it and then looks for what is free; who frees
//! something makes that seen and then looks for who waits. Both are sequentially consistent, so that
//! one of the two sees the other.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use Ordering::SeqCst;

pub(super) struct Gate {
    most: u32,
    queue_most: u32,
    /// Requests that wait, on all cores.
    queued: AtomicU32,
    lines: Box<[Line]>,
}

/// What one core shows to the others.
///
/// Invariant, but for the moments of a change: `unclaimed` <= the requests that wait on it <=
/// `unclaimed` + the permits that are promised or on their way to it.
#[derive(Default)]
#[repr(align(128))]
struct Line {
    /// Requests that wait for which no other core has sent a permit yet. Raised by this core,
    /// lowered by whoever serves one.
    unclaimed: AtomicU32,
    /// Since when its first one waits, milliseconds of the process.
    since: AtomicU64,
    /// Its idle connections.
    idle: AtomicU32,
    /// Permits other cores gave it, which it has not taken yet.
    granted: AtomicU32,
    /// Idle connections others asked it to give up, which it has not looked at yet.
    asked: AtomicU32,
}

impl Gate {
    pub(super) fn new(most: usize, queue_most: usize, cores: usize) -> Gate {
        let bound = |bound: usize| u32::try_from(bound).unwrap_or(u32::MAX);
        Gate {
            most: bound(most),
            queue_most: bound(queue_most),
            queued: AtomicU32::new(0),
            lines: (0..cores).map(|_| Line::default()).collect(),
        }
    }

    /// Takes a permit, if one is free.
    pub(super) fn take(&self, connections: &AtomicU32) -> bool {
        let more = |open: u32| (open < self.most).then_some(open + 1);
        connections.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// Takes one of the places of the queue, if one is free.
    pub(super) fn enter(&self) -> bool {
        let more = |queued: u32| (queued < self.queue_most).then_some(queued + 1);
        self.queued.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// Gives a place of the queue back.
    pub(super) fn leave(&self) {
        self.queued.fetch_sub(1, SeqCst);
    }

    /// Requests that wait, on all cores.
    pub(super) fn queued(&self) -> u32 {
        self.queued.load(Ordering::Relaxed)
    }

    /// One more request waits on `core`, whose first one waits since `since`.
    pub(super) fn announce(&self, core: usize, since: u64) {
        self.lines[core].since.store(since, SeqCst);
        self.lines[core].unclaimed.fetch_add(1, SeqCst);
    }

    /// A request on `core` waits no more; `left` still do, the first since `since`.
    pub(super) fn withdraw(&self, core: usize, left: usize, since: Option<u64>) {
        let line = &self.lines[core];
        if let Some(since) = since {
            line.since.store(since, SeqCst);
        }
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let fewer = |unclaimed: u32| (unclaimed > left).then_some(left);
        // Nothing to change: what left had been claimed.
        let _unchanged = line.unclaimed.fetch_update(SeqCst, SeqCst, fewer);
    }

    /// Promises a permit to one that waits on `core`; `false`: none does.
    pub(super) fn claim(&self, core: usize) -> bool {
        let fewer = |unclaimed: u32| unclaimed.checked_sub(1);
        self.lines[core].unclaimed.fetch_update(SeqCst, SeqCst, fewer).is_ok()
    }

    /// The core other than `core` whose first request waits longest, and since when.
    pub(super) fn oldest_elsewhere(&self, core: usize) -> Option<(usize, u64)> {
        let others = self.lines.iter().enumerate().filter(|(other, _)| *other != core);
        let waiting = others.filter(|(_, line)| line.unclaimed.load(SeqCst) > 0);
        waiting.map(|(other, line)| (other, line.since.load(SeqCst))).min_by_key(|(_, at)| *at)
    }

    /// Hands a permit to `core`; whether it must be told.
    pub(super) fn grant(&self, core: usize) -> bool {
        self.lines[core].granted.fetch_add(1, SeqCst) == 0
    }

    /// The permits handed to `core`.
    pub(super) fn take_granted(&self, core: usize) -> u32 {
        self.lines[core].granted.swap(0, SeqCst)
    }

    pub(super) fn show_idle(&self, core: usize, idle: usize) {
        self.lines[core].idle.store(u32::try_from(idle).unwrap_or(u32::MAX), SeqCst);
    }

    /// A core other than `core` that has idle connections which nobody has asked for.
    pub(super) fn idle_elsewhere(&self, core: usize) -> Option<usize> {
        let has = |line: &Line| line.idle.load(SeqCst) > line.asked.load(SeqCst);
        (0..self.lines.len()).find(|other| *other != core && has(&self.lines[*other]))
    }

    /// Asks `core` for an idle connection; whether it must be told.
    pub(super) fn ask(&self, core: usize) -> bool {
        self.lines[core].asked.fetch_add(1, SeqCst) == 0
    }

    /// How many idle connections `core` is asked for.
    pub(super) fn take_asked(&self, core: usize) -> u32 {
        self.lines[core].asked.swap(0, SeqCst)
    }
}
