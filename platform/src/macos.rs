//! macOS: the required functions.
//!
//! The system places threads itself and offers no CPU affinity, no cgroup and no eventfd.

mod cpu;
mod doorbell;
mod host;
mod net;
mod poller;
mod process;
mod sysctl;
mod thread;

use crate::ring::RingDiagnosis;

pub(crate) use cpu::{topology, usable_cpus};
pub(crate) use doorbell::Doorbell;
pub(crate) use host::host_facts;
pub(crate) use net::{
    ACCEPT_TRANSIENT_ERRNOS, REUSEPORT_BALANCES, SEND_FLAGS, accept, recv, refuse_new_connections,
    send, suppress_sigpipe,
};
pub(crate) use poller::Poller;
pub(crate) use process::{
    DESCRIPTOR_DIRECTORY, descriptor_ceiling, release_free_memory, resident_bytes,
};
pub(crate) use thread::{pin_current_thread, set_thread_class};

/// io_uring is Linux's.
pub(crate) fn ring_diagnosis() -> Option<RingDiagnosis> {
    None
}
