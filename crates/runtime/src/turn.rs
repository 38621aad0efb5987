//! How much of a turn is left to the task that runs.
//!
//! Where bytes are always there, a wait on the poll driver ends at once, and a task that reads or
//! writes in a loop would never give way: one fast peer would hold up its whole core. So each wait
//! and each write takes one step of the turn, and without a step left the task is put off until the
//! reactor has looked round. On io_uring each wait goes through the reactor anyway.
//!
//! Called by: [`crate::Core::spawn`]'s tasks (`begin`, `take_put_off`), waits and writes
//! (`poll_step`). Kept per thread, since a wait does not know its core.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

use crate::limits::TURN_STEPS;

thread_local! {
    static STEPS_LEFT: Cell<u32> = const { Cell::new(TURN_STEPS) };
    static PUT_OFF: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

/// A task's turn begins.
pub(crate) fn begin() {
    STEPS_LEFT.set(TURN_STEPS);
}

/// Takes a step of the turn; without one left, puts the task off.
pub(crate) fn poll_step(cx: &Context<'_>) -> Poll<()> {
    match STEPS_LEFT.get().checked_sub(1) {
        Some(left) => {
            STEPS_LEFT.set(left);
            Poll::Ready(())
        }
        None => {
            PUT_OFF.with_borrow_mut(|wakers| wakers.push(cx.waker().clone()));
            Poll::Pending
        }
    }
}

/// Moves whom to wake for those put off in the turn that ends to `wakers`; returns whether there
/// are any.
pub(crate) fn take_put_off(wakers: &mut Vec<Waker>) -> bool {
    PUT_OFF.with_borrow_mut(|put_off| {
        let any = !put_off.is_empty();
        wakers.append(put_off);
        any
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_its_steps_and_puts_off_what_goes_on() {
        let cx = Context::from_waker(Waker::noop());
        let mut wakers = Vec::new();
        for _ in 0..2 {
            begin();
            for _ in 0..TURN_STEPS {
                assert!(poll_step(&cx).is_ready());
            }
            assert!(!take_put_off(&mut wakers));
            assert!(poll_step(&cx).is_pending());
            assert!(poll_step(&cx).is_pending());
            assert!(take_put_off(&mut wakers));
            assert!(!take_put_off(&mut wakers));
        }
        assert_eq!(wakers.len(), 4);
    }
}
