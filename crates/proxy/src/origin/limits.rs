//! Every bound of the origin: unit, reason, and what happens when it is reached.

use std::time::Duration;

use baton_runtime::{BODY_BUFFER_BYTES, HEAD_BUFFER_BYTES};

/// Connections open at once. When reached: accepting pauses.
pub(super) const CONNECTIONS_MAX: usize = 10_000;

/// Wait for the next request of a connection. When over: closed without a word.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// A request head, from its first byte to its last. When over: 408.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(10);

/// Wait for more of a request body. When over: 408.
pub(super) const BODY_IDLE: Duration = Duration::from_secs(30);

/// One write to a client that does not read. When over: the connection is reset.
pub(super) const WRITE_TIME: Duration = Duration::from_secs(30);

/// Reading away what a client still sends once its connection ends, so that the answer is not
/// destroyed by a reset (RFC 9112 §9.6). When over: closed.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// The same in bytes. When over: closed.
pub(super) const LINGER_BYTES_MAX: usize = 256 * 1024;

/// Body of an answer of `/bytes` and `/chunked`. Bytes. When over: 400.
pub(super) const ANSWER_BYTES_MAX: u64 = 10 << 30;

/// Body of a request that is counted or read away, not kept. Bytes. When over: 413.
pub(super) const UPLOAD_BYTES_MAX: u64 = 10 << 30;

/// Body that `/echo` keeps and gives back. Bytes. When over: 413.
pub(super) const ECHO_BYTES_MAX: u64 = 1 << 20;

/// Longest pause of `/delay`. When over: 400.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(600);

/// Most CPU time of one `/spin`, for which nothing else of the core runs. When over: 400.
pub(super) const SPIN_MAX: Duration = Duration::from_secs(1);

/// Wait for the next frame of a WebSocket. When over: closed with code 1001.
pub(super) const WEBSOCKET_IDLE: Duration = Duration::from_secs(60);

/// A WebSocket message, which is kept until it is complete. Bytes. When over: closed with 1009.
pub(super) const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Bytes that one connection reads and writes in a turn. When reached: other tasks run first.
/// Four reads or writes of [`BODY_BUFFER_BYTES`], some 50 µs.
pub(super) const TURN_BYTES: usize = 4 * BODY_BUFFER_BYTES;

/// What a request counts in a turn besides its bytes: 64 pipelined ones fill it.
pub(super) const TURN_BYTES_PER_REQUEST: usize = TURN_BYTES / 64;

/// Answers kept for one write. Bytes. When reached: they are written.
pub(super) const OUTPUT_BYTES: usize = HEAD_BUFFER_BYTES;

/// Body bytes that are copied behind their head, so that both go out in one write with the
/// answers before and after. A longer body is written from where it is.
pub(super) const INLINE_BODY_BYTES_MAX: usize = 4 * 1024;
const _: () = assert!(INLINE_BODY_BYTES_MAX < OUTPUT_BYTES);

/// Unused output buffers a core keeps. When full: a returned one is freed.
pub(super) const OUTPUTS_FREE_MAX: usize = 64;
