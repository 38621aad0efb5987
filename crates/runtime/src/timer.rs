//! Deadlines that cost a few memory writes to move.
//!
//! A connection owns one [`Timer`] and moves it several times per request. Moving it later only
//! stores the new tick; the wheel notices when the old slot comes round and files the timer anew.
//! Owned by: the core's thread. Called by: the heartbeat (`advance`), connection tasks (the rest).
//!
//! Invariants: a timer is linked in exactly one slot while it is armed; the slot's tick is never
//! later than the tick the timer is due at (so nothing is late by more than one tick).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::limits::{TICK, WHEEL_SLOTS};

/// No entry: end of a slot's list.
const NIL: u32 = u32::MAX;

/// The timers of one core.
#[derive(Clone)]
pub(crate) struct Wheel {
    shared: Rc<Shared>,
}

struct Shared {
    /// Ticks since the core started.
    now: Cell<u64>,
    /// Set when the core is told to leave at once: every timer counts as expired.
    aborting: Cell<bool>,
    /// Most ticks an idle wait may still last; less than for ever once the core drains.
    idle_ticks_max: Cell<u64>,
    lists: RefCell<Lists>,
}

struct Lists {
    entries: Vec<Entry>,
    free: Vec<u32>,
    slots: [u32; WHEEL_SLOTS],
}

struct Entry {
    state: State,
    /// Whether the wait is only for a next request; such waits end early when the core drains.
    idle: bool,
    /// The tick it is due at, while armed.
    due: u64,
    /// The tick that was the last one known when it was armed.
    armed: u64,
    /// The tick whose slot it is linked in (`filed <= due`), while linked.
    filed: u64,
    linked: bool,
    previous: u32,
    next: u32,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unarmed,
    Armed,
    Expired,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        let lists = Lists { entries: Vec::new(), free: Vec::new(), slots: [NIL; WHEEL_SLOTS] };
        Wheel {
            shared: Rc::new(Shared {
                now: Cell::new(0),
                aborting: Cell::new(false),
                idle_ticks_max: Cell::new(u64::MAX),
                lists: RefCell::new(lists),
            }),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.shared.now.get()
    }

    /// A new, unarmed timer.
    pub(crate) fn timer(&self) -> Timer {
        let index = self.shared.lists.borrow_mut().insert();
        Timer { shared: self.shared.clone(), index }
    }

    /// Moves the clock to `tick` and wakes the tasks whose timers are due.
    pub(crate) fn advance(&self, tick: u64) {
        let from = self.shared.now.get();
        if tick <= from {
            return;
        }
        self.shared.now.set(tick);
        if tick > from + 1 {
            self.shared.lists.borrow_mut().allow_for_stall(from, tick - from - 1);
        }
        // After a stall longer than the wheel every slot is visited once.
        let first = (from + 1).max(tick.saturating_sub(WHEEL_SLOTS as u64 - 1));
        for slot_tick in first..=tick {
            self.sweep(slot_tick, tick);
        }
    }

    fn sweep(&self, slot_tick: u64, now: u64) {
        let mut lists = self.shared.lists.borrow_mut();
        let mut index = lists.slots[slot(slot_tick)];
        while index != NIL {
            let next = lists.entries[index as usize].next;
            let entry = &lists.entries[index as usize];
            if entry.filed <= now {
                let due = entry.due;
                let armed = entry.state == State::Armed;
                lists.unlink(index);
                if armed && due > now {
                    lists.link(index, due, now);
                } else if armed {
                    lists.expire(index);
                }
            }
            index = next;
        }
    }

    /// Lets every idle wait end within `grace`, now and in future: the core drains.
    pub(crate) fn hurry_idle(&self, grace: Duration) {
        let now = self.now();
        self.shared.idle_ticks_max.set(ticks(grace));
        let limit = now + ticks(grace);
        let mut lists = self.shared.lists.borrow_mut();
        for index in 0..lists.entries.len() as u32 {
            let entry = &lists.entries[index as usize];
            if entry.state == State::Armed && entry.idle && entry.due > limit {
                lists.arm(index, limit, true, now);
            }
        }
    }

    /// Expires every timer, now and in future: the core leaves at once.
    pub(crate) fn abort(&self) {
        self.shared.aborting.set(true);
        let mut lists = self.shared.lists.borrow_mut();
        for index in 0..lists.entries.len() as u32 {
            lists.unlink(index);
            lists.expire(index);
        }
    }
}

impl Lists {
    fn insert(&mut self) -> u32 {
        let entry = Entry {
            state: State::Unarmed,
            idle: false,
            due: 0,
            armed: 0,
            filed: 0,
            linked: false,
            previous: NIL,
            next: NIL,
            waker: None,
        };
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            return index;
        }
        let index = u32::try_from(self.entries.len()).expect("fewer timers than 2^32");
        assert!(index != NIL, "the last index marks the end of a list");
        self.entries.push(entry);
        index
    }

    fn arm(&mut self, index: u32, due: u64, idle: bool, now: u64) {
        let entry = &mut self.entries[index as usize];
        entry.state = State::Armed;
        entry.idle = idle;
        entry.due = due;
        entry.armed = now;
        if entry.linked && entry.filed <= due {
            return;
        }
        self.unlink(index);
        self.link(index, due, now);
    }

    /// The clock stood at `from` while `missed` ticks went by. Deadlines set in that time were
    /// counted from too early a tick; those set just before cannot be told from them and are put
    /// off as well.
    fn allow_for_stall(&mut self, from: u64, missed: u64) {
        for entry in &mut self.entries {
            if entry.state == State::Armed && entry.armed == from {
                entry.due = entry.due.saturating_add(missed);
            }
        }
    }

    fn link(&mut self, index: u32, due: u64, now: u64) {
        debug_assert!(due > now, "a due timer expires instead of being filed");
        let filed = due.min(now + WHEEL_SLOTS as u64 - 1);
        let head = self.slots[slot(filed)];
        let entry = &mut self.entries[index as usize];
        debug_assert!(!entry.linked);
        entry.filed = filed;
        entry.linked = true;
        entry.previous = NIL;
        entry.next = head;
        if head != NIL {
            self.entries[head as usize].previous = index;
        }
        self.slots[slot(filed)] = index;
    }

    fn unlink(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        if !entry.linked {
            return;
        }
        entry.linked = false;
        let (previous, next, filed) = (entry.previous, entry.next, entry.filed);
        match previous {
            NIL => self.slots[slot(filed)] = next,
            _ => self.entries[previous as usize].next = next,
        }
        if next != NIL {
            self.entries[next as usize].previous = previous;
        }
    }

    fn expire(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.state = State::Expired;
        if let Some(waker) = entry.waker.take() {
            // Waking only queues the task, so it is fine under the borrow of the lists.
            waker.wake();
        }
    }
}

fn slot(tick: u64) -> usize {
    (tick as usize) & (WHEEL_SLOTS - 1)
}

/// Ticks that pass before `duration` has surely gone by.
fn ticks(duration: Duration) -> u64 {
    let whole = duration.as_millis().div_ceil(TICK.as_millis());
    u64::try_from(whole).unwrap_or(u64::MAX / 2) + 1
}

/// One deadline of one task. Made by [`crate::Core::timer`], moved as often as needed.
///
/// It expires at most two [`TICK`]s after its duration, later by what the core's loop is late, and
/// not before it; only a deadline set while the loop is late may end early, by less than one tick.
pub struct Timer {
    shared: Rc<Shared>,
    index: u32,
}

impl Timer {
    /// Arms or moves the deadline to `duration` from now.
    pub fn set(&self, duration: Duration) {
        self.arm(duration, false);
    }

    /// As [`Timer::set`], for a wait that may be cut short when the core drains.
    pub fn set_idle(&self, duration: Duration) {
        self.arm(duration, true);
    }

    /// Takes the deadline away.
    pub fn clear(&self) {
        self.shared.lists.borrow_mut().entries[self.index as usize].state = State::Unarmed;
    }

    /// Whether the deadline has passed, or the core leaves at once.
    pub fn is_expired(&self) -> bool {
        let state = self.shared.lists.borrow().entries[self.index as usize].state;
        state == State::Expired || self.shared.aborting.get()
    }

    /// Ready once the deadline has passed.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.shared.aborting.get() {
            return Poll::Ready(());
        }
        let mut lists = self.shared.lists.borrow_mut();
        let entry = &mut lists.entries[self.index as usize];
        if entry.state == State::Expired {
            return Poll::Ready(());
        }
        match &entry.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => entry.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Waits until the deadline has passed.
    pub async fn expired(&self) {
        std::future::poll_fn(|cx| self.poll_expired(cx)).await;
    }

    fn arm(&self, duration: Duration, idle: bool) {
        let now = self.shared.now.get();
        let most = if idle { self.shared.idle_ticks_max.get() } else { u64::MAX };
        let due = now.saturating_add(ticks(duration).min(most));
        self.shared.lists.borrow_mut().arm(self.index, due, idle, now);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let mut lists = self.shared.lists.borrow_mut();
        lists.unlink(self.index);
        let entry = &mut lists.entries[self.index as usize];
        entry.state = State::Unarmed;
        let waker = entry.waker.take();
        lists.free.push(self.index);
        // It may own a task, and the task timers: the lists must be free by then.
        drop(lists);
        drop(waker);
    }
}

#[cfg(test)]
mod tests;
