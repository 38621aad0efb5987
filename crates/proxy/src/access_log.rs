//! The access log: one line for each finished request, written off the cores.
//!
//! ```text
//! core: AccessLog ─ a line into its buffer ─► full, or each tick: queue ─► thread: file, or
//!   ▲                                                                      standard output
//!   └───────────────────────── empty buffers ◄──────────────────────────────┘
//! ```
//!
//! A core never waits for the disk: with the queue full its lines are dropped and counted. What
//! comes from peers is escaped and cut, so a line is always one line of at most
//! [`LINE_BYTES_MAX`] bytes.
//!
//! A line costs its core 155 ns (Combined) or 360 ns (JSON), 75 ns of them to copy the head, as measured
//! by `cost_of_a_line`.
//!
//! Never on a core: a system call, but one that wakes the thread for each buffer; a lock; an
//! allocation for a line.

mod clock;
mod escape;
mod format;
mod record;
mod sink;
mod writer;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_runtime::Counter;

use crate::config::AccessLogFormat;
use clock::{Stamp, WallClock};
use sink::Batch;

pub(crate) use format::{Cause, Parties};
pub(crate) use record::Record;
pub(crate) use sink::Sink;

/// A core's lines that are not yet in the queue. Bytes. When full: into the queue.
const BUFFER_BYTES: usize = 64 * 1024;

/// Longest line, its newline included. Bytes. What could make it longer is cut.
const LINE_BYTES_MAX: usize = 12 * 1024;

/// Texts of records that a core keeps to use again. When full: freed.
const TEXTS_KEPT: usize = 64;

/// Longest such text. Bytes. A longer one is freed.
const TEXT_KEPT_BYTES: usize = 2 * 1024;

/// How often at most a core says that it dropped lines.
const DROPS_TOLD_EVERY: Duration = Duration::from_secs(1);

const _: () = assert!(4 * LINE_BYTES_MAX <= BUFFER_BYTES);

/// What a core counts of its lines. Kept over reloads.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Lines {
    /// Lines handed to the thread that writes them.
    pub(crate) queued: Counter,
    /// Lines dropped since the queue was full.
    pub(crate) dropped: Counter,
}

/// The access log of one core.
pub(crate) struct AccessLog {
    core: usize,
    /// One per core.
    lines: Arc<[Lines]>,
    on: Cell<bool>,
    /// Borrowed only within a call.
    state: RefCell<State>,
}

struct State {
    sink: Option<Arc<Sink>>,
    batch: Batch,
    clock: WallClock,
    stamp: Stamp,
    /// Texts of finished records, empty.
    texts: Vec<Vec<u8>>,
    /// Lines dropped that the log has not told of.
    untold: u64,
    told_at: Option<Instant>,
}

impl AccessLog {
    /// The access log of core `core`; without a sink it is off.
    pub(crate) fn new(core: usize, lines: Arc<[Lines]>, sink: Option<Arc<Sink>>) -> AccessLog {
        assert!(core < lines.len(), "each core has its counters");
        let state = State {
            sink: None,
            batch: Batch::default(),
            clock: WallClock::read(),
            stamp: Stamp::default(),
            texts: Vec::with_capacity(TEXTS_KEPT),
            untold: 0,
            told_at: None,
        };
        let log = AccessLog { core, lines, on: Cell::new(false), state: RefCell::new(state) };
        log.set_sink(sink);
        log
    }

    /// Whether lines are written: a record that is not needed need not be filled.
    pub(crate) fn is_on(&self) -> bool {
        self.on.get()
    }

    /// Lines go there from here on; what is in the buffer goes to where they went before.
    pub(crate) fn set_sink(&self, sink: Option<Arc<Sink>>) {
        let mut state = self.state.borrow_mut();
        self.hand_over(&mut state);
        state.batch = Batch::default();
        self.on.set(sink.is_some());
        state.sink = sink;
    }

    /// A record of a request whose first byte was there at `started`.
    pub(crate) fn begin(&self, started: Instant) -> Record {
        let text = self.state.borrow_mut().texts.pop();
        Record::new(started, text.unwrap_or_default())
    }

    /// Writes the line of a request that ends at `parties.ended`.
    pub(crate) fn finish(&self, record: Record, parties: &Parties<'_>) {
        let mut state = self.state.borrow_mut();
        let State { sink: Some(sink), batch, clock, stamp, .. } = &mut *state else { return };
        if batch.bytes.capacity() == 0 {
            batch.bytes = sink.empty_buffer();
        }
        let format = sink.format();
        let began = stamp.at(clock.at(record.started));
        let before = batch.bytes.len();
        match format {
            AccessLogFormat::Combined => {
                format::combined(&mut batch.bytes, &record, parties, began)
            }
            AccessLogFormat::Json => {
                format::json(&mut batch.bytes, &record, parties, began, self.core);
            }
        }
        let after = batch.bytes.len();
        debug_assert!(after - before <= LINE_BYTES_MAX, "a line has {} bytes", after - before);
        batch.lines += 1;
        if after + LINE_BYTES_MAX > BUFFER_BYTES {
            self.hand_over(&mut state);
        }
        let mut text = record.into_text();
        if state.texts.len() < TEXTS_KEPT && text.capacity() <= TEXT_KEPT_BYTES {
            text.clear();
            state.texts.push(text);
        }
    }

    /// Hands over what is there, and reads the wall clock. To be called each tick.
    ///
    /// With the queue half full already, a buffer that is not full waits for more.
    pub(crate) fn flush(&self, now: Instant) {
        let mut state = self.state.borrow_mut();
        state.clock = WallClock::read();
        if state.sink.as_ref().is_some_and(|sink| sink.has_room()) {
            self.hand_over(&mut state);
        }
        let told = state.told_at.is_some_and(|at| now.duration_since(at) < DROPS_TOLD_EVERY);
        if state.untold > 0 && !told {
            let (core, dropped) = (self.core, state.untold);
            tracing::warn!(core, dropped, "access log lines were dropped: writing is too slow");
            state.untold = 0;
            state.told_at = Some(now);
        }
    }

    /// Puts the buffer into the queue, or drops its lines. The next line finds an empty one.
    fn hand_over(&self, state: &mut State) {
        let Some(sink) = &state.sink else { return };
        let lines = state.batch.lines;
        if lines == 0 {
            return;
        }
        let counts = &self.lines[self.core];
        match sink.send(std::mem::take(&mut state.batch)) {
            Ok(()) => counts.queued.add(lines),
            Err(mut batch) => {
                counts.dropped.add(lines);
                state.untold += lines;
                batch.clear();
                state.batch = batch;
            }
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.set_sink(None);
    }
}

#[cfg(test)]
mod tests;
