//! Binding a thread to a CPU, and its scheduling policy.

use std::{io, mem};

use core_affinity::CoreId;

use crate::thread::ThreadClass;

pub(crate) fn pin_current_thread(cpu: usize) -> io::Result<()> {
    // core_affinity indexes a set of CPU_SETSIZE bits, and panics beyond it.
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    if core_affinity::set_for_current(CoreId { id: cpu }) {
        return Ok(());
    }
    // `false` is the failure of sched_setaffinity(2), the last call made, so errno is still its.
    Err(io::Error::last_os_error())
}

pub(crate) fn set_thread_class(class: ThreadClass) -> io::Result<()> {
    let policy = match class {
        ThreadClass::Reactor => libc::SCHED_OTHER,
        ThreadClass::Background => libc::SCHED_IDLE,
    };
    // Both policies require priority 0. musl adds fields of its own, hence no literal.
    // SAFETY: `sched_param` is made of integers, for which zero is a value.
    let param: libc::sched_param = unsafe { mem::zeroed() };
    // musl's sched_setscheduler always fails with ENOSYS; the pthread call works with both libcs.
    // SAFETY: has no precondition.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: `thread` is the caller, hence alive; `param` is valid for a read.
    match unsafe { libc::pthread_setschedparam(thread, policy, &raw const param) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::{io, thread};

    use super::{pin_current_thread, set_thread_class};
    use crate::thread::ThreadClass;
    use crate::usable_cpus;

    /// Runs `test` on a thread of its own, whose place and class end with it.
    fn on_a_thread<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
        thread::spawn(test).join().expect("the closure does not panic")
    }

    #[test]
    fn pinning_to_a_cpu_that_does_not_exist_is_invalid_input() {
        for cpu in [1023, 1024, usize::MAX] {
            let error = on_a_thread(move || pin_current_thread(cpu).unwrap_err());
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{cpu}");
        }
    }

    #[test]
    fn a_pinned_thread_sees_its_cpu_alone() {
        for cpu in usable_cpus().ids {
            let seen = on_a_thread(move || {
                pin_current_thread(cpu).unwrap();
                usable_cpus().ids
            });
            assert_eq!(seen, [cpu]);
        }
    }

    #[test]
    fn each_class_has_its_scheduling_policy() {
        let classes = [
            (ThreadClass::Reactor, libc::SCHED_OTHER),
            (ThreadClass::Background, libc::SCHED_IDLE),
        ];
        for (class, policy) in classes {
            let set = on_a_thread(move || {
                set_thread_class(class).unwrap();
                // SAFETY: 0 is the calling thread.
                unsafe { libc::sched_getscheduler(0) }
            });
            assert_eq!(set, policy);
        }
    }
}
