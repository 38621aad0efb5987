//! One async function on a core of its own, and the thread of the test beside it.

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::task::Poll;

use baton_runtime::{Core, CoreCounters, DriverChoice, Runtime, RuntimeOptions, Stream, TICK};

use crate::support::{Handler, PATIENCE, echo, stop, wait_until};

/// A core that runs one task, whose result is fetched by [`OnCore::finish`].
pub(crate) struct OnCore<T> {
    runtime: Runtime,
    result: Receiver<T>,
}

/// Starts a core without listeners and `task` on it.
pub(crate) fn start<T: Send + 'static>(
    driver: DriverChoice,
    task: impl AsyncFn(Core) -> T + Send + Sync + 'static,
) -> OnCore<T> {
    let (sender, result) = sync_channel(1);
    let task = Arc::new(task);
    let options = RuntimeOptions { cores: Some(1), driver, ..RuntimeOptions::default() };
    let runtime = Runtime::start(&options, move |core: Core| {
        let (task, sender, handle) = (task.clone(), sender.clone(), core.clone());
        core.spawn(async move {
            let result = task(handle).await;
            sender.send(result).unwrap();
        });
        Handler { core, handler: echo }
    });
    OnCore { runtime: runtime.unwrap(), result }
}

/// Runs `task` on a core to its end.
pub(crate) fn run<T: Send + 'static>(
    driver: DriverChoice,
    task: impl AsyncFn(Core) -> T + Send + Sync + 'static,
) -> T {
    start(driver, task).finish()
}

impl<T> OnCore<T> {
    /// The core's counters.
    pub(crate) fn counters(&self) -> &CoreCounters {
        self.runtime.counters(0)
    }

    /// Waits for the result of the task, then for the end of the core.
    pub(crate) fn finish(self) -> T {
        let mut result = None;
        wait_until("the task ends", || {
            assert_eq!(self.runtime.counters(0).panics.read(), 0, "the task panicked");
            match self.result.try_recv() {
                Ok(value) => result = Some(value),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => panic!("the core is gone"),
            }
            result.is_some()
        });
        stop(self.runtime);
        result.unwrap()
    }
}

/// Polls `future` once.
pub(crate) async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// Gives way until `condition` holds; the task fails if it never does.
pub(crate) async fn yield_until(core: &Core, what: &str, mut condition: impl FnMut() -> bool) {
    let end = core.tick() + (PATIENCE.as_millis() / TICK.as_millis()) as u64;
    while !condition() {
        assert!(core.tick() < end, "in {PATIENCE:?} it did not come true that {what}");
        core.yield_now().await;
    }
}

/// Connects to `address`, which listens.
pub(crate) async fn connect(core: &Core, address: SocketAddr) -> Stream {
    let timer = core.timer();
    timer.set(PATIENCE);
    core.connect(address, &timer).await.unwrap()
}

/// A listener for a core to connect to.
pub(crate) fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The next connection of `listener`, with reads and writes that fail instead of hanging.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let mut accepted = None;
    wait_until("a connection comes", || match listener.accept() {
        Ok((stream, _)) => {
            accepted = Some(stream);
            true
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    });
    let stream = accepted.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}
