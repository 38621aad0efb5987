use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

/// Milliseconds of one tick.
const TICK_MS: u64 = TICK.as_millis() as u64;

/// Moves the clock to `tick` as a core that is on time does.
fn run_to(wheel: &Wheel, tick: u64) {
    for tick in wheel.now() + 1..=tick {
        wheel.advance(tick);
    }
}

/// Ticks until `timer` expires, looking at most `most` ticks ahead.
fn expires_after(wheel: &Wheel, timer: &Timer, most: u64) -> Option<u64> {
    let start = wheel.now();
    for tick in 1..=most {
        wheel.advance(start + tick);
        if timer.is_expired() {
            return Some(tick);
        }
    }
    None
}

#[test]
fn a_timer_never_expires_before_its_duration_and_at_most_two_ticks_after() {
    // Miri takes minutes for the ticks of an hour.
    let longest = if cfg!(miri) { 60_000 } else { 3_600_000 };
    for milliseconds in [0, 1, 99, 100, 101, 2_500, 51_000, longest] {
        let wheel = Wheel::new();
        let timer = wheel.timer();
        timer.set(Duration::from_millis(milliseconds));
        let exact = milliseconds.div_ceil(TICK_MS);
        let after = expires_after(&wheel, &timer, exact + 5).expect("it expires");
        assert!(after >= exact && after <= exact + 2, "{milliseconds} ms took {after} ticks");
    }
}

#[test]
fn a_duration_beyond_all_ticks_never_expires() {
    let wheel = Wheel::new();
    let timer = wheel.timer();
    timer.set(Duration::MAX);
    assert_eq!(expires_after(&wheel, &timer, 2 * WHEEL_SLOTS as u64), None);
}

#[test]
fn a_timer_moved_later_does_not_expire_at_its_old_time() {
    let wheel = Wheel::new();
    let timer = wheel.timer();
    timer.set(Duration::from_secs(1));
    run_to(&wheel, 9);
    timer.set(Duration::from_secs(1));
    run_to(&wheel, 19);
    assert!(!timer.is_expired());
    run_to(&wheel, 20);
    assert!(timer.is_expired());
}

#[test]
fn a_timer_moved_earlier_expires_at_its_new_time() {
    let wheel = Wheel::new();
    let timer = wheel.timer();
    timer.set(Duration::from_secs(60));
    timer.set(Duration::from_secs(1));
    assert_eq!(expires_after(&wheel, &timer, 100), Some(11));
}

#[test]
fn a_cleared_or_dropped_timer_does_not_expire_and_its_place_is_used_again() {
    let wheel = Wheel::new();
    let cleared = wheel.timer();
    cleared.set(Duration::from_secs(1));
    cleared.clear();
    let dropped = wheel.timer();
    dropped.set(Duration::from_secs(1));
    drop(dropped);
    let fresh = wheel.timer();
    assert_eq!(expires_after(&wheel, &cleared, 40), None);
    assert!(!fresh.is_expired());
    assert_eq!(wheel.shared.lists.borrow().entries.len(), 2);
}

#[test]
fn a_stall_longer_than_the_wheel_expires_all_that_was_due_in_it() {
    let wheel = Wheel::new();
    let timers: Vec<Timer> = (0..1200)
        .map(|n| {
            let timer = wheel.timer();
            timer.set(TICK * n);
            timer
        })
        .collect();
    wheel.advance(1);
    wheel.advance(1000);
    let expired = timers.iter().filter(|timer| timer.is_expired()).count();
    assert_eq!(expired, 1000);
    run_to(&wheel, 1200);
    assert!(timers.iter().all(Timer::is_expired));
}

#[test]
fn a_timer_set_while_the_clock_stood_is_not_cut_short_by_the_stall() {
    let wheel = Wheel::new();
    run_to(&wheel, 5);
    // Set after 20 ticks have gone by unseen: due 10 ticks after that.
    let timer = wheel.timer();
    timer.set(Duration::from_secs(1));
    wheel.advance(25);
    assert!(!timer.is_expired());
    run_to(&wheel, 34);
    assert!(!timer.is_expired());
    run_to(&wheel, 36);
    assert!(timer.is_expired());
}

#[test]
fn draining_hurries_idle_waits_only() {
    let wheel = Wheel::new();
    let (idle, busy) = (wheel.timer(), wheel.timer());
    idle.set_idle(Duration::from_secs(60));
    busy.set(Duration::from_secs(60));
    wheel.hurry_idle(Duration::from_secs(1));
    let later = wheel.timer();
    later.set_idle(Duration::from_secs(60));
    run_to(&wheel, 12);
    assert!(idle.is_expired());
    assert!(later.is_expired());
    assert!(!busy.is_expired());
}

#[test]
fn aborting_expires_everything_from_then_on() {
    let wheel = Wheel::new();
    let old = wheel.timer();
    old.set(Duration::from_secs(60));
    wheel.abort();
    let new = wheel.timer();
    assert!(old.is_expired() && new.is_expired());
}

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_waker_that_owns_a_timer_may_be_dropped_with_the_timer_it_waits_for() {
    /// As a task that waits for one timer and owns another.
    struct Owner(#[expect(dead_code, reason = "only dropped")] std::cell::RefCell<Option<Timer>>);
    // SAFETY: this test has one thread.
    unsafe impl Send for Owner {}
    // SAFETY: as above.
    unsafe impl Sync for Owner {}
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }

    let wheel = Wheel::new();
    let (awaited, owned) = (wheel.timer(), wheel.timer());
    let waker = Waker::from(Arc::new(Owner(std::cell::RefCell::new(Some(owned)))));
    assert!(awaited.poll_expired(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    drop(awaited);
    assert_eq!(wheel.shared.lists.borrow().free.len(), 2);
}

/// Numbers that look random and are the same in each run (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A timer and all that the naive model knows of it.
struct Modelled {
    timer: Timer,
    bell: Arc<Bell>,
    deadline: Option<Deadline>,
}

struct Deadline {
    set_ms: u64,
    duration_ms: u64,
    /// The first heartbeat after it was set: from then on it is known when the timer must expire.
    counted: Option<Counted>,
}

struct Counted {
    /// The tick by whose heartbeat it must have expired.
    latest: u64,
    /// How much of its tick had passed, without a heartbeat, when it was set.
    early_ms_max: u64,
}

impl Modelled {
    /// The clock is about to move to `tick`.
    fn count(&mut self, tick: u64) {
        let Some(deadline) = &mut self.deadline else { return };
        deadline.counted.get_or_insert_with(|| Counted {
            latest: tick + deadline.duration_ms.div_ceil(TICK_MS),
            early_ms_max: deadline.set_ms.saturating_sub(tick * TICK_MS),
        });
    }

    fn check(&mut self, tick: u64, now_ms: u64) {
        let woken = self.bell.0.swap(0, Ordering::Relaxed);
        let Some(Deadline { set_ms, duration_ms, counted: Some(counted) }) = &self.deadline else {
            assert_eq!(woken, 0, "woken without a deadline");
            return;
        };
        if self.timer.is_expired() {
            let earliest_ms = set_ms + duration_ms - counted.early_ms_max;
            assert!(now_ms >= earliest_ms, "expired at {now_ms} ms, before {earliest_ms} ms");
            assert_eq!(woken, 1, "an expired timer wakes its task once");
            self.deadline = None;
        } else {
            assert!(tick < counted.latest, "late: tick {tick}, to expire by {}", counted.latest);
            assert_eq!(woken, 0, "woken early");
        }
    }
}

/// Goal: no timer early, none late, none lost, whatever is done to it and however late the
/// heartbeat. Method: random operations at random times, against deadlines kept in a plain list.
#[test]
fn timers_agree_with_a_naive_model_over_a_long_random_run() {
    let steps = if cfg!(miri) { 200 } else { 200_000 };
    let mut numbers = Numbers(0x0dd_ba11);
    let wheel = Wheel::new();
    let mut timers: Vec<Modelled> = Vec::new();
    let mut now_ms = 0;
    for _ in 0..steps {
        now_ms += match numbers.below(1000) {
            0 => numbers.below(2 * WHEEL_SLOTS as u64 * TICK_MS),
            1..10 => numbers.below(10 * TICK_MS),
            _ => numbers.below(TICK_MS),
        };
        operate(&wheel, &mut timers, &mut numbers, now_ms);
        let tick = now_ms / TICK_MS;
        // Some heartbeats are late even where no operation took long.
        if tick > wheel.now() && numbers.below(4) > 0 {
            timers.iter_mut().for_each(|timer| timer.count(tick));
            wheel.advance(tick);
            timers.iter_mut().for_each(|timer| timer.check(tick, now_ms));
            check_links(&wheel);
        }
    }
}

fn operate(wheel: &Wheel, timers: &mut Vec<Modelled>, numbers: &mut Numbers, now_ms: u64) {
    if timers.len() < 50 {
        let timer = wheel.timer();
        timers.push(Modelled { timer, bell: Arc::default(), deadline: None });
    }
    let chosen = numbers.below(timers.len() as u64) as usize;
    let modelled = &mut timers[chosen];
    match numbers.below(10) {
        0 => drop(timers.swap_remove(chosen)),
        1 => {
            modelled.timer.clear();
            modelled.deadline = None;
        }
        _ => {
            let duration_ms = match numbers.below(3) {
                0 => numbers.below(3 * WHEEL_SLOTS as u64 * TICK_MS),
                1 => numbers.below(20 * TICK_MS),
                _ => numbers.below(3 * TICK_MS),
            };
            modelled.timer.set(Duration::from_millis(duration_ms));
            modelled.deadline = Some(Deadline { set_ms: now_ms, duration_ms, counted: None });
            let waker = Waker::from(modelled.bell.clone());
            let polled = modelled.timer.poll_expired(&mut Context::from_waker(&waker));
            assert!(polled.is_pending(), "a timer just set has not expired");
        }
    }
}

/// The invariants of the wheel's lists.
fn check_links(wheel: &Wheel) {
    let lists = wheel.shared.lists.borrow();
    let mut seen = 0;
    for (number, &head) in lists.slots.iter().enumerate() {
        let (mut previous, mut index) = (NIL, head);
        while index != NIL {
            let entry = &lists.entries[index as usize];
            assert!(entry.linked);
            assert_eq!(slot(entry.filed), number);
            assert_eq!(entry.previous, previous);
            assert!(entry.filed > wheel.now(), "its slot has been passed");
            if entry.state == State::Armed {
                assert!(entry.filed <= entry.due);
            }
            seen += 1;
            (previous, index) = (index, entry.next);
        }
    }
    let linked = lists.entries.iter().filter(|entry| entry.linked).count();
    assert_eq!(seen, linked);
    let armed = lists.entries.iter().filter(|entry| entry.state == State::Armed);
    assert!(armed.into_iter().all(|entry| entry.linked), "an armed timer is in no slot");
}
