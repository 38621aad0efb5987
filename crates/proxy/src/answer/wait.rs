//! Waiting for the endpoint, while the request goes out and after.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::Answer;
use crate::error::{ProxyError, is_timeout};
use crate::exchange::Failure;
use crate::limits::{ANSWER_AFTER_REFUSED_BODY, WATCH_CLIENT_AFTER};
use crate::relay::Patience;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// The endpoint has something to say.
    Readable,
    /// The request has gone out whole.
    Sent,
}

impl Answer<'_> {
    /// Waits until the endpoint has something to say. `first`: nothing was heard of it yet.
    pub(super) async fn wait(
        &self,
        first: bool,
        patience: &mut Patience,
    ) -> Result<(), Box<Failure>> {
        if !self.upload.complete.get()
            && Box::pin(self.wait_while_sending()).await? == Waited::Readable
        {
            return Ok(());
        }
        let since = self.proxy.core.tick();
        let outcome = self.wait_when_sent(first, patience.left()).await;
        patience.waited(self.proxy.core.tick() - since);
        outcome
    }

    /// As [`Answer::wait`] once the request is sent, for `bound`.
    async fn wait_when_sent(&self, first: bool, bound: Duration) -> Result<(), Box<Failure>> {
        let upstream = &self.connection.stream;
        if first {
            self.timer.set(WATCH_CLIENT_AFTER.min(bound));
            match upstream.readable(self.timer).await {
                Ok(()) => return Ok(()),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(self.no_answer(error, true)),
            }
        }
        Box::pin(self.wait_and_watch(first, bound)).await
    }

    /// As [`Answer::wait`], and notices if the client breaks its connection in the meantime.
    async fn wait_and_watch(&self, first: bool, bound: Duration) -> Result<(), Box<Failure>> {
        let upstream = &self.connection.stream;
        self.timer.set(bound);
        let mut readable = pin!(upstream.readable(self.timer));
        let mut broken = pin!(self.client.broken());
        let outcome = poll_fn(|cx| {
            if let Poll::Ready(outcome) = readable.as_mut().poll(cx) {
                return Poll::Ready(Ok(outcome));
            }
            broken.as_mut().poll(cx).map(Err)
        })
        .await;
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if is_timeout(&error) => Err(self.late()),
            Ok(Err(error)) => Err(self.no_answer(error, first)),
            Err(error) => Err(self.failure(ProxyError::ClientGone(error))),
        }
    }

    /// As [`Answer::wait`] while the request is being sent, which bounds itself; ends with it.
    async fn wait_while_sending(&self) -> Result<Waited, Box<Failure>> {
        match self.upload.refused.get() {
            true => self.timer.set(ANSWER_AFTER_REFUSED_BODY),
            false => self.timer.clear(),
        }
        let mut readable = pin!(self.connection.stream.readable(self.timer));
        let outcome = poll_fn(|cx| {
            if self.upload.complete.get() {
                return Poll::Ready(Ok(Waited::Sent));
            }
            readable.as_mut().poll(cx).map_ok(|()| Waited::Readable)
        })
        .await;
        outcome.map_err(|error| match is_timeout(&error) {
            // The timer is set only once the endpoint takes no more of the request.
            true => self.no_answer(io::ErrorKind::BrokenPipe.into(), false),
            false => self.no_answer(error, false),
        })
    }
}
