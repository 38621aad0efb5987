//! The control plane: one ordinary thread for everything that may be slow.
//!
//! Owns the admin server, and gives what else must not run on a core (names, health checks) a place
//! to run. The cores are other threads, so it answers when they do not. It reads their numbers and
//! never waits for one of them.

mod access;
mod admin;
pub(crate) mod client;
pub(crate) mod limits;
mod listener;
mod metrics;
mod page;
mod paths;
mod reception;
pub(crate) mod snapshot;

#[cfg(test)]
pub(crate) mod made_up;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use crate::config::AdminAddress;
use crate::live::Live;
use admin::Admin;
use snapshot::Source;

pub(crate) use reception::Reception;

/// What the control plane asks the rest of the process to do.
pub(crate) struct Hooks {
    /// Reads the configuration anew and puts it in force. May block; is called once at a time, on
    /// a thread of its own. `Ok`: what it did, in a line; `Err`: why nothing changed, in words.
    pub(crate) reload: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// Whether new requests are welcome; false from the moment the process drains.
    pub(crate) ready: Arc<AtomicBool>,
}

/// The running control plane. Ends when it is dropped: what it is answering then is cut off.
pub(crate) struct Control {
    handle: Handle,
    reception: Arc<Reception>,
    /// Dropped to stop the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the thread; listens on `admin` before it returns. Blocks on the file system at most: not
/// to be called on a core.
///
/// Errors: the address or the socket's path cannot be had, or there is no thread.
pub(crate) fn start(
    live: Arc<Live>,
    admin: Option<AdminAddress>,
    hooks: Hooks,
) -> io::Result<Control> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(limits::BLOCKING_THREADS)
        .thread_name("control-blocking")
        .build()?;
    let handle = runtime.handle().clone();
    let source = Arc::new(Source::new(live, hooks.ready.clone()));
    let reception = Reception::new(handle.clone(), Admin::new(source.clone(), hooks));
    reception.move_to(reception.open(admin.as_ref())?);
    handle.spawn(watch(source));
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || run(runtime, stopped))?;
    let reception = Arc::new(reception);
    Ok(Control { handle, reception, stop: Some(stop), thread: Some(thread) })
}

fn run(runtime: Runtime, stopped: oneshot::Receiver<()>) {
    // An error says that the sender was dropped, which is how it is told to stop.
    let _told = runtime.block_on(stopped);
    runtime.shutdown_timeout(limits::STOP_BOUND);
}

/// Looks at the cores' heartbeats, so that a core that has stopped is known when somebody asks.
async fn watch(source: Arc<Source>) {
    loop {
        source.look();
        tokio::time::sleep(limits::WATCH_PERIOD).await;
    }
}

impl Control {
    /// Where tasks that must not run on a core run.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Where operators are answered.
    pub(crate) fn reception(&self) -> &Arc<Reception> {
        &self.reception
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the control thread panicked");
        }
    }
}
