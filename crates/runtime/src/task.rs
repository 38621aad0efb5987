//! The tasks of a core: a panic ends its own task alone, and an abort ends them all.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Wraps a task's future; yields the panic's message if polling or dropping it panics.
pub(crate) struct Contained<F> {
    /// `None` once it has ended.
    future: Option<F>,
}

impl<F: Future<Output = ()>> Contained<F> {
    pub(crate) fn new(future: F) -> Contained<F> {
        Contained { future: Some(future) }
    }

    /// Drops the future where it stands.
    pub(crate) fn end(self: Pin<&mut Self>) -> Result<(), String> {
        let mut future = self.project();
        catch_unwind(AssertUnwindSafe(|| future.set(None)))
            .map_err(|payload| message(payload.as_ref()))
    }

    fn project(self: Pin<&mut Self>) -> Pin<&mut Option<F>> {
        // SAFETY: `future` is pinned whenever `self` is: it is never moved out, no other code
        // reaches it, and `Contained` has neither `Drop` nor `Unpin` of its own.
        unsafe { self.map_unchecked_mut(|this| &mut this.future) }
    }
}

impl<F: Future<Output = ()>> Future for Contained<F> {
    type Output = Result<(), String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = self.as_mut().project().as_pin_mut() else {
            return Poll::Ready(Ok(()));
        };
        // The state a panic leaves behind is dropped with the task and never looked at again.
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(self.end()),
            Err(payload) => {
                let text = message(payload.as_ref());
                Poll::Ready(self.end().and(Err(text)))
            }
        }
    }
}

/// The text of a panic, for the log.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

/// The tasks of a core that have not ended, and how to wake those that wait.
///
/// Invariant: `count + free.len() == wakers.len()`.
#[derive(Default)]
pub(crate) struct Tasks {
    count: Cell<usize>,
    wakers: RefCell<Vec<Option<Waker>>>,
    free: RefCell<Vec<usize>>,
}

impl Tasks {
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// A task begins; the number is its own until it ends.
    pub(crate) fn begin(&self) -> usize {
        self.count.set(self.count.get() + 1);
        self.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut wakers = self.wakers.borrow_mut();
            wakers.push(None);
            wakers.len() - 1
        })
    }

    /// Task `number` waits, to be woken by `waker`.
    pub(crate) fn waits(&self, number: usize, waker: &Waker) {
        let known = &mut self.wakers.borrow_mut()[number];
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    pub(crate) fn end(&self, number: usize) {
        self.wakers.borrow_mut()[number] = None;
        self.free.borrow_mut().push(number);
        self.count.set(self.count.get() - 1);
    }

    pub(crate) fn wake_all(&self) {
        for waker in self.wakers.borrow().iter().flatten() {
            waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;

    use super::*;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }

    fn poll_once<F: Future<Output = ()>>(task: Pin<&mut Contained<F>>) -> Poll<Result<(), String>> {
        task.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_panic_while_polled_ends_the_task_with_its_message() {
        let number = 7;
        let mut task = pin!(Contained::new(async move { panic!("number {number}") }));
        assert_eq!(poll_once(task.as_mut()), Poll::Ready(Err("number 7".to_owned())));
    }

    #[test]
    fn a_panic_while_an_unfinished_task_is_dropped_is_contained() {
        let kept = PanicsWhenDropped;
        let mut task = pin!(Contained::new(async move {
            let _kept = kept;
            pending().await
        }));
        assert_eq!(poll_once(task.as_mut()), Poll::Pending);
        assert_eq!(task.as_mut().end(), Err("in drop".to_owned()));
        assert_eq!(task.as_mut().end(), Ok(()));
    }

    #[test]
    fn a_payload_that_is_no_text_is_named_as_such() {
        let mut task = pin!(Contained::new(async { std::panic::panic_any(7) }));
        let expected = "a panic without a message".to_owned();
        assert_eq!(poll_once(task.as_mut()), Poll::Ready(Err(expected)));
    }

    #[test]
    fn the_number_of_a_task_that_has_ended_is_used_again() {
        let tasks = Tasks::default();
        let (first, second) = (tasks.begin(), tasks.begin());
        assert_ne!(first, second);
        tasks.waits(first, Waker::noop());
        tasks.end(first);
        assert_eq!(tasks.begin(), first);
        assert_eq!(tasks.count(), 2);
        assert!(tasks.wakers.borrow()[first].is_none());
    }
}
