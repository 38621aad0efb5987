//! The log: lines on standard error, written by a thread of their own.
//!
//! A core hands its line over and goes on, whatever reads the other end. The queue is bounded: a line
//! that finds it full is dropped there and then by who wrote it, and counted ([`dropped`]). Lines
//! that the thread cannot write, since standard error is closed or full, are lost uncounted.

use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};

use crate::config::LogLevel;

/// Lines that may wait to be written. When full: further lines are dropped.
const LINES_MAX: usize = 8 * 1024;

/// What counts the dropped lines of the log of the process, once it is started.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Lines dropped since the start, as the queue was full.
pub(crate) fn dropped() -> u64 {
    DROPPED.get().map_or(0, |counter| counter.dropped_lines() as u64)
}

/// What changes the level of the log of the process, once it is started.
static LEVEL: OnceLock<Handle<LevelFilter, Registry>> = OnceLock::new();

/// From here on lines of `level` and above are written.
pub(crate) fn set_level(level: LogLevel) {
    let Some(handle) = LEVEL.get() else { return };
    if let Err(error) = handle.reload(filter(level)) {
        tracing::warn!(%error, "the log keeps its level");
    }
}

/// Starts the log. What waits is written out when the guard is dropped, within about a second.
pub(crate) fn start(level: LogLevel) -> WorkerGuard {
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_MAX)
        .lossy(true)
        .thread_name("log")
        .finish(std::io::stderr());
    let dropped = writer.error_counter();
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(writer);
    let (level, handle) = reload::Layer::new(filter(level));
    let subscriber = tracing_subscriber::registry().with(level).with(lines);
    // Only a test that starts two servers finds a log already there; the first one serves both.
    if tracing::subscriber::set_global_default(subscriber).is_ok() {
        let _first = DROPPED.set(dropped);
        let _first = LEVEL.set(handle);
    }
    guard
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}
