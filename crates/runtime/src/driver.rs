//! Which kernel interface the reactors use, and the way down when the better one is refused.
//!
//! A ring needs single-issuer and cooperative task running to be worth having: with the default
//! flags a proxied request costs half as much again as on epoll. So `Auto` tries the ring with these
//! flags, then a smaller one (locked memory may be short), then epoll.

use std::fmt;
use std::future::Future;
use std::io;

use monoio::time::TimeDriver;
use monoio::{LegacyDriver, RuntimeBuilder};

/// What the operator asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverChoice {
    /// io_uring where it works, else epoll or kqueue with a warning.
    #[default]
    Auto,
    /// io_uring, or fail to start.
    IoUring,
    /// epoll or kqueue.
    Poll,
}

/// What the cores run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// io_uring.
    IoUring,
    /// epoll on Linux, kqueue on macOS.
    Poll,
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Driver::IoUring => "io_uring",
            Driver::Poll => "poll",
        })
    }
}

/// One step of the way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung {
    #[cfg(target_os = "linux")]
    Ring {
        entries: u32,
        tuned: bool,
    },
    Poll,
}

impl Rung {
    pub(crate) fn driver(self) -> Driver {
        match self {
            #[cfg(target_os = "linux")]
            Rung::Ring { .. } => Driver::IoUring,
            Rung::Poll => Driver::Poll,
        }
    }
}

/// The steps to try in turn. Empty where the choice cannot be had on this system.
#[cfg(target_os = "linux")]
pub(crate) fn ladder(choice: DriverChoice) -> &'static [Rung] {
    use crate::limits::{RING_ENTRIES, RING_ENTRIES_SMALL};
    const TUNED: Rung = Rung::Ring { entries: RING_ENTRIES, tuned: true };
    const TUNED_SMALL: Rung = Rung::Ring { entries: RING_ENTRIES_SMALL, tuned: true };
    // Kernels before 6.0 refuse the flags; asked for by name, the ring is had without them.
    const PLAIN: Rung = Rung::Ring { entries: RING_ENTRIES_SMALL, tuned: false };
    match choice {
        DriverChoice::Auto => &[TUNED, TUNED_SMALL, Rung::Poll],
        DriverChoice::IoUring => &[TUNED, TUNED_SMALL, PLAIN],
        DriverChoice::Poll => &[Rung::Poll],
    }
}

/// The steps to try in turn. Empty where the choice cannot be had on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ladder(choice: DriverChoice) -> &'static [Rung] {
    match choice {
        DriverChoice::Auto | DriverChoice::Poll => &[Rung::Poll],
        DriverChoice::IoUring => &[],
    }
}

/// The executor and reactor of one thread. Built on the thread that runs it: a single-issuer ring
/// belongs to the thread that made it.
pub(crate) enum Reactor {
    #[cfg(target_os = "linux")]
    Ring(monoio::Runtime<TimeDriver<monoio::IoUringDriver>>),
    Poll(monoio::Runtime<TimeDriver<LegacyDriver>>),
}

impl Reactor {
    pub(crate) fn build(rung: Rung) -> io::Result<Reactor> {
        match rung {
            #[cfg(target_os = "linux")]
            Rung::Ring { entries, tuned } => ring::build(entries, tuned).map(Reactor::Ring),
            Rung::Poll => {
                RuntimeBuilder::<LegacyDriver>::new().enable_timer().build().map(Reactor::Poll)
            }
        }
    }

    pub(crate) fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        match self {
            #[cfg(target_os = "linux")]
            Reactor::Ring(runtime) => runtime.block_on(future),
            Reactor::Poll(runtime) => runtime.block_on(future),
        }
    }
}

#[cfg(target_os = "linux")]
mod ring {
    use std::io;

    use io_uring::{IoUring, opcode};
    use monoio::time::TimeDriver;
    use monoio::{IoUringDriver, RuntimeBuilder};

    use crate::limits::RING_ENTRIES_PROBE;

    pub(super) fn build(
        entries: u32,
        tuned: bool,
    ) -> io::Result<monoio::Runtime<TimeDriver<IoUringDriver>>> {
        try_entering(tuned)?;
        RuntimeBuilder::<IoUringDriver>::new()
            .with_entries(entries)
            .uring_builder(builder(tuned))
            .enable_timer()
            .build()
    }

    /// Runs one operation on a small ring. A seccomp filter may allow a ring to be set up and
    /// refuse to enter it, and the reactor ignores errors while it waits: it would spin.
    fn try_entering(tuned: bool) -> io::Result<()> {
        let mut ring: IoUring = builder(tuned).build(RING_ENTRIES_PROBE)?;
        let nop = opcode::Nop::new().build();
        // SAFETY: the entry must stay valid until it completes; a no-op refers to nothing.
        let pushed = unsafe { ring.submission().push(&nop) };
        pushed.map_err(|_| io::Error::other("the ring has no room for one operation"))?;
        ring.submit_and_wait(1)?;
        match ring.completion().next() {
            Some(completion) if completion.result() >= 0 => Ok(()),
            Some(completion) => Err(io::Error::from_raw_os_error(-completion.result())),
            None => Err(io::Error::other("the ring did not complete an operation")),
        }
    }

    fn builder(tuned: bool) -> io_uring::Builder {
        let mut builder = IoUring::builder();
        if tuned {
            builder.setup_single_issuer().setup_coop_taskrun();
        }
        builder
    }
}
