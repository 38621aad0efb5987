//! Tasks of one core: giving way, pauses, panics, and what the heartbeat tells of them.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use baton_runtime::{Core, LAG_BOUNDS_US, Runtime, RuntimeOptions, TICK};

use crate::on_core::{run, start, yield_until};
use crate::support::{Handler, echo, for_each_driver, stop, wait_until};

#[test]
fn a_task_that_keeps_giving_way_starves_neither_timers_nor_tasks() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            let (slept, expired, spawned) =
                (Rc::new(Cell::new(false)), core.timer(), Rc::new(Cell::new(0)));
            expired.set(Duration::from_millis(100));
            let (handle, sleeper) = (core.clone(), slept.clone());
            core.spawn(async move {
                handle.sleep(Duration::from_millis(20)).await;
                sleeper.set(true);
            });
            for _ in 0..10 {
                let (handle, count) = (core.clone(), spawned.clone());
                core.spawn(async move {
                    handle.yield_now().await;
                    count.set(count.get() + 1);
                });
            }
            yield_until(&core, "all have had their turn", || {
                slept.get() && expired.is_expired() && spawned.get() == 10
            })
            .await;
        });
    });
}

#[test]
fn giving_way_lets_each_ready_task_run_once_before_it_returns() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            let turns = Rc::new(Cell::new(0));
            for _ in 0..100 {
                let turns = turns.clone();
                core.spawn(async move { turns.set(turns.get() + 1) });
            }
            core.yield_now().await;
            assert_eq!(turns.get(), 100);
        });
    });
}

#[test]
fn a_pause_lasts_at_least_as_long_as_asked_for() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            for milliseconds in [0, 1, 30] {
                let begun = Instant::now();
                core.sleep(Duration::from_millis(milliseconds)).await;
                assert!(begun.elapsed() >= Duration::from_millis(milliseconds));
            }
        });
    });
}

#[test]
fn a_timer_does_not_expire_before_the_ticks_of_its_duration_have_passed() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            let timer = core.timer();
            for milliseconds in [0, 1, 100, 250] {
                let tick = core.tick();
                timer.set(Duration::from_millis(milliseconds));
                timer.expired().await;
                // One more, since the current tick had begun already.
                let least = milliseconds.div_ceil(TICK.as_millis() as u64) + 1;
                assert!(core.tick() - tick >= least);
            }
        });
    });
}

#[test]
fn a_panicking_task_is_counted_and_the_others_go_on() {
    for_each_driver(|driver| {
        let options = RuntimeOptions { cores: Some(1), driver, ..RuntimeOptions::default() };
        let runtime = Runtime::start(&options, |core: Core| {
            let handle = core.clone();
            core.spawn(async move {
                handle.yield_now().await;
                panic!("the first");
            });
            core.spawn(async { panic!("the second") });
            let handle = core.clone();
            core.spawn(async move { handle.sleep(Duration::from_millis(10)).await });
            Handler { core, handler: echo }
        });
        let runtime = runtime.unwrap();
        wait_until("all tasks have ended", || runtime.counters(0).tasks.read() == 0);
        assert_eq!(runtime.counters(0).panics.read(), 2);
        stop(runtime);
    });
}

#[test]
fn the_heartbeat_tells_of_a_task_that_blocked_the_core() {
    for_each_driver(|driver| {
        const BLOCKED: Duration = Duration::from_millis(250);
        let task = start(driver, async |core: Core| {
            core.sleep(Duration::from_millis(1)).await;
            let begun = Instant::now();
            while begun.elapsed() < BLOCKED {
                std::hint::spin_loop();
            }
            // A heartbeat was due within the first tick, and could not come before the end.
            let counters = core.counters();
            yield_until(&core, "the late heartbeat is counted", || {
                counters.lag_worst_us.read() >= 100_000
            })
            .await;
            let late = LAG_BOUNDS_US.iter().position(|bound| *bound == 100_000).unwrap() + 1;
            let counted: u64 = counters.lag[late..].iter().map(|class| class.read()).sum();
            assert!(counted >= 1);
            let all: u64 = counters.lag.iter().map(|class| class.read()).sum();
            assert_eq!(all, counters.heartbeats.read());
        });
        task.finish();
    });
}

#[test]
fn a_late_heartbeat_is_not_followed_by_hurried_ones() {
    for_each_driver(|driver| {
        run(driver, async |core: Core| {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(350) {
                std::hint::spin_loop();
            }
            core.sleep(Duration::from_millis(1)).await;
            yield_until(&core, "ten ticks pass", || core.tick() >= 10).await;
            // One for each tick but those that were missed; this one may not be counted yet.
            assert!(core.counters().heartbeats.read() <= core.tick() - 2);
        });
    });
}
