//! Which kernel interface the reactors use, and the way down when the better one is refused.
//!
//! A ring needs single-issuer and cooperative task running to be worth having: with the default
//! flags a proxied request costs half as much again as on epoll. So `Auto` tries the ring with these
//! flags, then a smaller one (locked memory may be short), then epoll.

use std::fmt;
use std::future::Future;
use std::io;
use std::mem::ManuallyDrop;
use std::net::TcpStream as StdTcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use monoio::net::TcpStream;
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
        /// Room of the queue in which the kernel tells of sockets.
        completions: u32,
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
    use crate::limits::{POLLER_COMPLETIONS, POLLER_COMPLETIONS_SMALL};
    const TUNED: Rung = Rung::Ring { completions: POLLER_COMPLETIONS, tuned: true };
    const TUNED_SMALL: Rung = Rung::Ring { completions: POLLER_COMPLETIONS_SMALL, tuned: true };
    // Kernels before 6.0 refuse the flags; asked for by name, the ring is had without them.
    const PLAIN: Rung = Rung::Ring { completions: POLLER_COMPLETIONS_SMALL, tuned: false };
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

/// What runs the tasks of one thread and waits when none is ready. Built on the thread that runs it:
/// a single-issuer ring belongs to the thread that made it.
pub(crate) enum Executor {
    #[cfg(target_os = "linux")]
    Ring(monoio::Runtime<TimeDriver<monoio::IoUringDriver>>),
    Poll(monoio::Runtime<TimeDriver<LegacyDriver>>),
}

impl Executor {
    pub(crate) fn build(rung: Rung) -> io::Result<Executor> {
        match rung {
            #[cfg(target_os = "linux")]
            Rung::Ring { tuned, .. } => ring::build(tuned).map(Executor::Ring),
            Rung::Poll => {
                RuntimeBuilder::<LegacyDriver>::new().enable_timer().build().map(Executor::Poll)
            }
        }
    }

    pub(crate) fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        match self {
            #[cfg(target_os = "linux")]
            Executor::Ring(runtime) => runtime.block_on(future),
            Executor::Poll(runtime) => runtime.block_on(future),
        }
    }
}

/// A descriptor that the executor itself waits for: the doorbell, and what tells of all sockets.
pub(crate) struct Awaited {
    /// Never dropped: it would close the descriptor through the ring, which refuses to close a ring
    /// (`io_close`, io_uring/openclose.c). What stays behind at the end of a core is a few bytes.
    io: ManuallyDrop<TcpStream>,
    _descriptor: OwnedFd,
}

impl Awaited {
    /// Registers `descriptor`, which need not be a socket, with the executor of this thread.
    pub(crate) fn new(descriptor: OwnedFd) -> io::Result<Awaited> {
        let io = ManuallyDrop::new(TcpStream::from_std(StdTcpStream::from(descriptor))?);
        // SAFETY: nobody else may close the descriptor: `io` owns it and is never dropped.
        let descriptor = unsafe { OwnedFd::from_raw_fd(io.as_raw_fd()) };
        Ok(Awaited { io, _descriptor: descriptor })
    }

    /// Waits until the descriptor is readable.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        // Not relaxed: with edge-triggered polling a remembered readiness may be stale.
        self.io.readable(false).await
    }
}

#[cfg(target_os = "linux")]
pub(crate) use ring::builder as ring_builder;

#[cfg(target_os = "linux")]
mod ring {
    use std::io;
    use std::os::fd::AsRawFd;

    use baton_platform::{Doorbell, WATCHED_EVENTS};
    use io_uring::{IoUring, cqueue, opcode, types};
    use monoio::time::TimeDriver;
    use monoio::{IoUringDriver, RuntimeBuilder};

    use crate::limits::{EXECUTOR_ENTRIES, PROBE_ENTRIES};

    pub(super) fn build(tuned: bool) -> io::Result<monoio::Runtime<TimeDriver<IoUringDriver>>> {
        try_polling(tuned)?;
        RuntimeBuilder::<IoUringDriver>::new()
            .with_entries(EXECUTOR_ENTRIES)
            .uring_builder(builder(tuned))
            .enable_timer()
            .build()
    }

    /// Begins a poll that lasts, on a small ring, of a doorbell that is rung. A seccomp filter may
    /// allow a ring to be set up and refuse to enter it, and the executor ignores errors while it
    /// waits: it would spin. And before Linux 5.13 no poll lasts.
    fn try_polling(tuned: bool) -> io::Result<()> {
        let mut ring: IoUring = builder(tuned).build(PROBE_ENTRIES)?;
        let bell = Doorbell::new()?;
        bell.ring();
        let poll = opcode::PollAdd::new(types::Fd(bell.fd().as_raw_fd()), WATCHED_EVENTS);
        // SAFETY: the entry must stay valid until it completes; it refers to no memory.
        let pushed = unsafe { ring.submission().push(&poll.multi(true).build()) };
        pushed.map_err(|_| io::Error::other("the ring has no room for one operation"))?;
        ring.submit_and_wait(1)?;
        match ring.completion().next() {
            Some(completion) if completion.result() < 0 => {
                Err(io::Error::from_raw_os_error(-completion.result()))
            }
            Some(completion) if cqueue::more(completion.flags()) => Ok(()),
            Some(_) => Err(io::Error::other("the ring has no poll that lasts")),
            None => Err(io::Error::other("the ring did not complete an operation")),
        }
    }

    pub(crate) fn builder(tuned: bool) -> io_uring::Builder {
        let mut builder = IoUring::builder();
        if tuned {
            builder.setup_single_issuer().setup_coop_taskrun();
        }
        builder
    }
}
