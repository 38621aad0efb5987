//! The operating system below Baton: CPUs, threads, descriptors, TCP sockets and wake-ups.
//!
//! Owns every system call the reactor does not make itself, and every difference between systems.
//! Called by `runtime`, and by `proxy` through it. Holds no state, starts no thread, resolves no
//! name and logs nothing. No function here waits for a peer, with one exception: [`accept`] and
//! [`accept_batch`] wait if the listener they are given is blocking, which one from [`listen`] is
//! not.
//!
//! # Required functions
//!
//! Each topic file below holds what all systems share; a system's own module (`linux`, `macos`)
//! supplies exactly these names, with these signatures:
//!
//! - `usable_cpus() -> UsableCpus` and `topology(&[usize]) -> Vec<CpuPlace>`
//! - `pin_current_thread(usize) -> io::Result<()>`
//! - `set_thread_class(ThreadClass) -> io::Result<()>`
//! - `descriptor_ceiling(hard: u64) -> u64`: highest soft descriptor limit the system accepts
//! - `DESCRIPTOR_DIRECTORY: &str`: the directory that lists this process's descriptors
//! - `resident_bytes() -> Option<u64>` and `release_free_memory()`
//! - `REUSEPORT_BALANCES: bool`
//! - `refuse_new_connections(BorrowedFd) -> io::Result<()>`
//! - `ACCEPT_TRANSIENT_ERRNOS: &[c_int]`: what accept(2) reports about one connection alone
//! - `accept(BorrowedFd, SocketMode) -> io::Result<(OwnedFd, SocketAddr)>`
//! - `SEND_FLAGS: c_int`: what keeps send(2) from waiting and from raising SIGPIPE, where flags can
//! - `recv(BorrowedFd, &mut [u8], flags: c_int)` and `send(BorrowedFd, &[u8])`, `-> io::Result<usize>`
//! - `suppress_sigpipe(BorrowedFd) -> io::Result<()>`
//! - `Doorbell` with `new`, `ring`, `clear` and `fd`
//! - `Poller` with `new`, `add`, `harvest` and `fd`
//! - `ring_diagnosis() -> Option<RingDiagnosis>`
//! - `host_facts() -> HostFacts`

mod connect;
mod cpu;
mod doorbell;
mod host;
mod listener;
mod poller;
mod process;
mod ring;
mod stream;
mod thread;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as sys;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as sys;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!(
    "baton-platform supports Linux and macOS; a new system needs a module with the required functions"
);

#[cfg(target_os = "linux")]
pub use linux::WATCHED_EVENTS;

pub use connect::{Connecting, connect};
pub use cpu::{CpuPlace, UsableCpus, topology, usable_cpus};
pub use doorbell::Doorbell;
pub use host::{
    ClockSource, Container, HostFacts, Limit, Mitigations, Preemption, Reading, host_facts,
};
pub use listener::{
    AcceptFault, Backlog, ListenOptions, REUSEPORT_BALANCES, accept, accept_batch,
    classify_accept_error, listen, refuse_new_connections,
};
pub use poller::{Poller, Readiness};
pub use process::{
    descriptor_limit, open_descriptors, raise_descriptor_limit, release_free_memory, resident_bytes,
};
pub use ring::{RingCause, RingDiagnosis, ring_diagnosis};
pub use stream::{
    SocketMode, is_dead, peek, recv, send, send_vectored, set_linger_zero, set_nodelay,
    set_socket_mode, shutdown, suppress_sigpipe, take_socket_error,
};
pub use thread::{ThreadClass, pin_current_thread, set_thread_class, thread_cpu_time};
