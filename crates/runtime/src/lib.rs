//! Pinned cores, each with its own executor, reactor, listener, timers and mailbox.
//!
//! A [`Runtime`] starts one thread per core. What runs on a core holds a [`Core`] and never leaves
//! it; a socket belongs to one core for life. Other threads reach a core through its mailbox alone.
//!
//! This is the only crate that names monoio: its reactor can be replaced here without a change
//! elsewhere.

mod accept;
mod blocking;
mod buffer;
mod core;
mod counters;
mod driver;
mod limits;
mod look;
mod mailbox;
mod poller;
mod postbox;
mod reactor;
mod runtime;
mod shared;
mod source;
mod start;
mod stream;
mod task;
mod timer;
mod turn;

pub use crate::accept::{Accepted, Service};
pub use crate::blocking::BlockingError;
pub use crate::buffer::{Buffer, BufferSize};
pub use crate::core::Core;
pub use crate::counters::{CoreCounters, Counter, LAG_BOUNDS_US};
pub use crate::driver::{Driver, DriverChoice};
pub use crate::limits::{BODY_BUFFER_BYTES, HEAD_BUFFER_BYTES, TICK};
pub use crate::postbox::Postbox;
pub use crate::runtime::{AcceptMode, NewListener, Observer, Runtime, RuntimeOptions, StartError};
pub use crate::start::probe_driver;
pub use crate::stream::{Stream, is_out_of_descriptors};
pub use crate::timer::Timer;
