//! A task as the executor knows it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Core;
use crate::mailbox::Phase;
use crate::task::Contained;
use crate::turn;

/// A task of a core: its panic is contained, its end is counted, and an abort drops it.
///
/// A type of its own and not an `async` block, which would hold the task's future twice: as what it
/// captured and as what it awaits.
pub(super) struct Task<F> {
    pub(super) core: Core,
    pub(super) number: usize,
    pub(super) contained: Contained<F>,
}

impl<F: Future<Output = ()>> Future for Task<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let core = self.core.clone();
        let number = self.number;
        // SAFETY: `contained` is pinned whenever `self` is: it is never moved out, no other code
        // reaches it, and `Task` has neither `Drop` nor `Unpin` of its own.
        let mut contained = unsafe { self.map_unchecked_mut(|this| &mut this.contained) };
        turn::begin();
        let polled = contained.as_mut().poll(cx);
        if turn::take_put_off(&mut core.state.yielded.borrow_mut()) {
            core.mailbox().ring();
        }
        let outcome = match polled {
            Poll::Ready(outcome) => outcome,
            Poll::Pending if core.phase() >= Phase::Aborting => contained.end(),
            Poll::Pending => {
                core.state.tasks.waits(number, cx.waker());
                return Poll::Pending;
            }
        };
        if let Err(message) = outcome {
            core.counters().panics.add(1);
            tracing::error!(core = core.index(), message, "a task panicked");
        }
        core.task_ended(number);
        Poll::Ready(())
    }
}
