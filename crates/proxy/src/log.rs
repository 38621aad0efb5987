//! The log: lines on standard error, written by a thread of their own.
//!
//! A core hands its line over and goes on, whatever reads the other end. The queue is bounded; what
//! does not fit is dropped by the writer's thread and not waited for.

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};

use crate::config::LogLevel;

/// Lines that may wait to be written. When full: further lines are dropped.
const LINES_MAX: usize = 8 * 1024;

/// Starts the log. What waits is written out when the guard is dropped.
pub(crate) fn start(level: LogLevel) -> WorkerGuard {
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_MAX)
        .lossy(true)
        .thread_name("log")
        .finish(std::io::stderr());
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(writer)
        .finish();
    // Only a test that starts two servers finds a log already there; the first one serves both.
    let _already = tracing::subscriber::set_global_default(subscriber);
    guard
}
