//! CPUs and threads, as far as every system promises it. Each thread under test is one of its own.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use baton_platform::{ThreadClass, set_thread_class, thread_cpu_time, topology, usable_cpus};

#[test]
fn the_usable_cpus_are_ascending_and_at_least_one_counts() {
    let cpus = usable_cpus();
    assert!(cpus.ids.is_sorted_by(|a, b| a < b), "{:?}", cpus.ids);
    assert!((1..=cpus.ids.len()).contains(&cpus.count()));
}

#[test]
fn each_usable_cpu_has_a_place() {
    let cpus = usable_cpus().ids;
    let placed: Vec<usize> = topology(&cpus).iter().map(|place| place.cpu).collect();
    assert_eq!(placed, cpus);
}

#[test]
fn a_thread_can_enter_both_classes() {
    for class in [ThreadClass::Reactor, ThreadClass::Background] {
        thread::spawn(move || set_thread_class(class).unwrap()).join().unwrap();
    }
}

#[test]
fn cpu_time_counts_the_work_of_this_thread_alone() {
    // Goal: the clock is neither the process's nor the wall's. Another thread works while this one
    // waits for it; with either of those clocks, its work would show here.
    const WORK: Duration = Duration::from_millis(20);
    let before = thread_cpu_time();
    let work = || {
        let start = thread_cpu_time();
        let mut turns = 0_u64;
        while thread_cpu_time() - start < WORK {
            turns = black_box(turns + 1);
        }
    };
    thread::spawn(work).join().unwrap();
    let ours = thread_cpu_time() - before;
    assert!(ours < WORK, "{ours:?}");
}
