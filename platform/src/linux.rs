//! Linux: the required functions.

mod cgroup;
mod cpu;
mod cpu_list;
mod doorbell;
mod host;
mod net;
mod poller;
mod process;
mod ring;
mod thread;
mod topology;

pub(crate) use cpu::usable_cpus;
pub(crate) use doorbell::Doorbell;
pub(crate) use host::host_facts;
pub(crate) use net::{
    ACCEPT_TRANSIENT_ERRNOS, REUSEPORT_BALANCES, SEND_FLAGS, accept, recv, refuse_new_connections,
    send, suppress_sigpipe,
};
pub(crate) use poller::Poller;
pub use poller::WATCHED_EVENTS;
pub(crate) use process::{
    DESCRIPTOR_DIRECTORY, descriptor_ceiling, release_free_memory, resident_bytes,
};
pub(crate) use ring::ring_diagnosis;
pub(crate) use thread::{pin_current_thread, set_thread_class};
pub(crate) use topology::topology;
