//! The mailbox of a core: what other threads hand it, and the bell that interrupts its wait.
//!
//! Bounded, lock-free, many producers, one consumer. The bell is rung on the false -> true change of
//! one flag, so that a bell already rung is not rung again.

use std::any::Any;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::time::Duration;

use baton_platform::Doorbell;
use crossbeam_queue::ArrayQueue;

use crate::limits::MAILBOX_MESSAGES;
use crate::shared::Permits;

/// What crosses from another thread to a core. All of it is owned and `Send`.
pub(crate) enum Message {
    /// An accepted socket that no reactor has seen yet.
    Connection { socket: OwnedFd, peer: SocketAddr, listener: usize, permit: Permits },
    /// The blocking job with this number has left its result.
    Done { job: u32 },
    /// What another thread tells the service: its `Notice`.
    Notice(Box<dyn Any + Send>),
    /// A listener to accept from.
    Listen { listener: usize, socket: TcpListener },
    /// The listener of this number is given up.
    Unlisten { listener: usize },
}

/// How long [`Mailbox::send_surely`] waits before it looks again.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// Running -> Draining -> Aborting -> Ended, never back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Running,
    /// It accepts no more, ends idle connections and finishes the rest.
    Draining,
    /// Every wait ends now.
    Aborting,
    /// Its thread takes no more messages.
    Ended,
}

pub(crate) struct Mailbox {
    queue: ArrayQueue<Message>,
    bell: Doorbell,
    /// Set by whoever rings, cleared by the core before it looks into the queue.
    rung: AtomicBool,
    /// The [`Phase`] that the core is told to enter. Not a message: there is always room for it.
    ordered: AtomicU8,
}

impl Mailbox {
    pub(crate) fn new() -> std::io::Result<Mailbox> {
        Ok(Mailbox {
            queue: ArrayQueue::new(MAILBOX_MESSAGES),
            bell: Doorbell::new()?,
            rung: AtomicBool::new(false),
            ordered: AtomicU8::new(Phase::Running as u8),
        })
    }

    /// Puts a message in and wakes the core. A full mailbox, or that of a core that has ended,
    /// gives the message back.
    pub(crate) fn send(&self, message: Message) -> Result<(), Message> {
        if self.ordered() == Phase::Ended {
            return Err(message);
        }
        self.queue.push(message)?;
        // Pairs with the fence in `close`: either we see here that the core has ended, or the
        // closing side, which says so before it empties the queue, finds the message.
        fence(Ordering::SeqCst);
        if self.ordered() == Phase::Ended {
            self.discard();
        } else {
            self.ring();
        }
        Ok(())
    }

    /// As [`Mailbox::send`], and waits while the mailbox is full; drops the message if the core has
    /// ended. Not for cores, which could wait for each other.
    pub(crate) fn send_surely(&self, mut message: Message) {
        while let Err(back) = self.send(message) {
            if self.ordered() == Phase::Ended {
                return;
            }
            message = back;
            std::thread::park_timeout(FULL_PAUSE);
        }
    }

    /// Tells the core to enter `phase` once it has taken what was sent before.
    pub(crate) fn order(&self, phase: Phase) {
        // Release pairs with the load in `ordered`: who sees the order finds what was sent before.
        self.ordered.fetch_max(phase as u8, Ordering::AcqRel);
        self.ring();
    }

    /// The phase that the core is told to enter.
    pub(crate) fn ordered(&self) -> Phase {
        const PHASES: [Phase; 4] = [Phase::Running, Phase::Draining, Phase::Aborting, Phase::Ended];
        PHASES[usize::from(self.ordered.load(Ordering::Acquire))]
    }

    /// The core takes no more messages; those left are dropped.
    pub(crate) fn close(&self) {
        self.ordered.store(Phase::Ended as u8, Ordering::Release);
        fence(Ordering::SeqCst);
        self.discard();
    }

    /// Interrupts the core's wait, or the next one if it is awake.
    pub(crate) fn ring(&self) {
        // AcqRel pairs with the swap in `open`: either we see the flag cleared and ring, or the
        // core, which cleared it before it looked, sees what we pushed before this line.
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }

    /// Whether the bell is rung and the core has not come to the door yet.
    pub(crate) fn is_rung(&self) -> bool {
        // A hint for the core alone: it opens in any case before it takes a message.
        self.rung.load(Ordering::Relaxed)
    }

    /// The descriptor that is readable while the bell is rung.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.fd()
    }

    /// Silences the bell; the core then takes messages until there is none.
    pub(crate) fn open(&self) {
        self.bell.clear();
        self.rung.swap(false, Ordering::AcqRel);
    }

    /// Messages that wait, from any thread.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn take(&self) -> Option<Message> {
        self.queue.pop()
    }

    fn discard(&self) {
        while let Some(message) = self.queue.pop() {
            drop(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_mailbox_gives_the_message_back() {
        let mailbox = Mailbox::new().expect("a doorbell");
        for job in 0..MAILBOX_MESSAGES as u32 {
            assert!(mailbox.send(Message::Done { job }).is_ok());
        }
        assert!(matches!(mailbox.send(Message::Done { job: 7 }), Err(Message::Done { job: 7 })));
    }

    #[test]
    fn the_mailbox_of_a_core_that_has_ended_gives_the_message_back() {
        let mailbox = Mailbox::new().expect("a doorbell");
        assert!(mailbox.send(Message::Done { job: 1 }).is_ok());
        mailbox.close();
        assert_eq!(mailbox.waiting(), 0);
        assert!(mailbox.send(Message::Done { job: 2 }).is_err());
    }

    #[test]
    fn an_order_is_never_taken_back() {
        let mailbox = Mailbox::new().expect("a doorbell");
        for (order, then) in [
            (Phase::Running, Phase::Running),
            (Phase::Aborting, Phase::Aborting),
            (Phase::Draining, Phase::Aborting),
            (Phase::Ended, Phase::Ended),
            (Phase::Running, Phase::Ended),
        ] {
            mailbox.order(order);
            assert_eq!(mailbox.ordered(), then);
        }
    }

    #[test]
    fn no_message_is_left_in_a_mailbox_that_closes_while_producers_send() {
        for _ in 0..if cfg!(miri) { 20 } else { 1000 } {
            let mailbox = Mailbox::new().expect("a doorbell");
            std::thread::scope(|scope| {
                for job in 0..2 {
                    let mailbox = &mailbox;
                    scope.spawn(move || while mailbox.send(Message::Done { job }).is_ok() {});
                }
                while mailbox.waiting() == 0 {
                    std::thread::yield_now();
                }
                mailbox.close();
            });
            assert_eq!(mailbox.waiting(), 0);
        }
    }

    #[test]
    fn messages_come_out_in_order_and_each_once_while_producers_race() {
        let mailbox = Mailbox::new().expect("a doorbell");
        const EACH: u32 = if cfg!(miri) { 300 } else { 10_000 };
        let mut seen = [0_u32; 2];
        std::thread::scope(|scope| {
            for producer in 0..2_u32 {
                let mailbox = &mailbox;
                scope.spawn(move || {
                    for n in 0..EACH {
                        let mut message = Message::Done { job: producer << 16 | n };
                        while let Err(back) = mailbox.send(message) {
                            message = back;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            while seen != [EACH; 2] {
                mailbox.open();
                while let Some(message) = mailbox.take() {
                    let Message::Done { job } = message else { panic!("only jobs were sent") };
                    let producer = (job >> 16) as usize;
                    assert_eq!(job & 0xffff, seen[producer]);
                    seen[producer] += 1;
                }
                std::thread::yield_now();
            }
        });
    }
}
