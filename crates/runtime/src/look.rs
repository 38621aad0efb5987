//! When a core looks at its sockets: between the turns of its tasks, and when nothing is left to do.
//!
//! A look costs one system call on epoll and none on io_uring; a wait of the executor costs more.
//! So the core looks once more after the tasks that a look has woken, and waits only if that found
//! nothing. Under load sockets become ready faster than the core serves them, and it rarely waits.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use crate::core::Core;
use crate::driver::Awaited;
use crate::limits::LOOKS_WITHOUT_WAIT;

/// Looks round until the core is over. `sockets`: what tells that a look would find something.
///
/// To be run as a task of its own, so that those it wakes run before it runs again.
pub(crate) async fn look_round(core: Core, sockets: Awaited) -> io::Result<()> {
    loop {
        let mut looks = 0;
        while core.reactor().harvest()? > 0 {
            looks += 1;
            // The executor notices a rung bell and due timers only when it waits. The first is known
            // here without a call; the second can bear to be late.
            if core.is_called() || looks % LOOKS_WITHOUT_WAIT == 0 {
                core.yield_now().await;
            } else {
                after_queued_tasks().await;
            }
        }
        if readable_or_over(&core, &sockets).await? {
            return Ok(());
        }
    }
}

/// Waits until the sockets have something to tell; `true` once the core is over.
async fn readable_or_over(core: &Core, sockets: &Awaited) -> io::Result<bool> {
    let mut readable = pin!(sockets.readable());
    poll_fn(|cx| {
        if core.is_over(cx) {
            return Poll::Ready(Ok(true));
        }
        readable.as_mut().poll(cx).map_ok(|()| false)
    })
    .await
}

/// Lets the tasks that are queued run first. A task that wakes itself would be put in front of them.
async fn after_queued_tasks() {
    let mut queued = false;
    poll_fn(|cx| {
        if queued {
            return Poll::Ready(());
        }
        queued = true;
        let waker = cx.waker().clone();
        monoio::spawn(async move { waker.wake() });
        Poll::Pending
    })
    .await;
}
