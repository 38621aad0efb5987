//! Quality-of-service classes, which stand in for affinity and scheduling policy.

use std::io;

use crate::thread::ThreadClass;

pub(crate) fn pin_current_thread(_cpu: usize) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

pub(crate) fn set_thread_class(class: ThreadClass) -> io::Result<()> {
    let class = match class {
        ThreadClass::Reactor => libc::qos_class_t::QOS_CLASS_USER_INITIATED,
        ThreadClass::Background => libc::qos_class_t::QOS_CLASS_UTILITY,
    };
    // SAFETY: has no precondition; 0 is the highest priority within the class.
    match unsafe { libc::pthread_set_qos_class_self_np(class, 0) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
