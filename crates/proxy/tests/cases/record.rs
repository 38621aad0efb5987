//! Everything that arrives during one case, on the client's side and on the upstream's.
//!
//! The sockets' threads write it, the thread that runs the case reads it. One lock and one
//! condition variable: whoever waits, waits for the record to change.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::case::Action;
use crate::strict::{self, Request, Violation};

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The proxy ended it in order.
    Fin,
    /// The proxy reset it.
    Reset,
    /// The case ended it.
    Ours,
}

/// Bytes beyond the request under way, and requests so far, at the moment a script asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) extra: usize,
    pub(crate) requests: usize,
}

/// What one case has seen so far.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) client: ClientSide,
    pub(crate) connections: Vec<UpstreamSide>,
    /// Requests in order of their arrival.
    pub(crate) requests: Vec<Arrived>,
    pub(crate) mark: Option<Mark>,
    /// Scripts of the requests to come.
    pub(crate) scripts: VecDeque<Vec<Action>>,
    /// The case is over: every thread of it ends.
    pub(crate) over: bool,
}

/// What the client received.
#[derive(Default)]
pub(crate) struct ClientSide {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: Option<End>,
    pub(crate) ended_at: Option<Instant>,
    pub(crate) last_byte_at: Option<Instant>,
    /// The client does not read.
    pub(crate) paused: bool,
}

impl ClientSide {
    /// Notes the end, once.
    pub(crate) fn ended(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            self.ended_at = Some(Instant::now());
        }
    }
}

/// A request and the connection it came on.
pub(crate) struct Arrived {
    pub(crate) connection: usize,
    pub(crate) request: Request,
}

/// What arrived on one connection to the upstream.
///
/// `counted_from <= parsed <= bytes.len()` from the first request of the case on.
#[derive(Default)]
pub(crate) struct UpstreamSide {
    /// What arrived up to a tunnel.
    pub(crate) bytes: Vec<u8>,
    /// Where the bytes of the case begin; before it is what made the connection used.
    pub(crate) counted_from: usize,
    /// Start of the message that is not complete yet.
    pub(crate) parsed: usize,
    /// Index in `Record::requests` of the request under way.
    pub(crate) under_way: Option<usize>,
    /// Of bytes between messages.
    pub(crate) violations: Vec<Violation>,
    /// What arrived since the script said that HTTP is over.
    pub(crate) tunnel: Option<Vec<u8>>,
    pub(crate) end: Option<End>,
    pub(crate) sent: u64,
}

impl UpstreamSide {
    /// Whether anything of this case arrived on it.
    pub(crate) fn was_used(&self) -> bool {
        self.bytes.len() > self.counted_from || self.tunnel.as_ref().is_some_and(|t| !t.is_empty())
    }
}

impl Record {
    /// Takes what arrived on an upstream connection.
    pub(crate) fn arrived(&mut self, connection: usize, bytes: &[u8]) {
        let side = &mut self.connections[connection];
        if let Some(tunnel) = &mut side.tunnel {
            tunnel.extend_from_slice(bytes);
            return;
        }
        side.bytes.extend_from_slice(bytes);
        if let Some(index) = side.under_way {
            let request = &mut self.requests[index].request;
            if !request.complete {
                let parsed = strict::request(&side.bytes[side.parsed..]);
                *request = parsed.expect("its head was there before");
                if request.complete {
                    side.parsed += request.used;
                }
            }
        }
    }

    /// Begins with the next request on a connection, if its head is there. Returns its script.
    pub(crate) fn next_request(&mut self, connection: usize) -> Option<(usize, Vec<Action>)> {
        let side = &mut self.connections[connection];
        while side.bytes[side.parsed..].starts_with(b"\r\n") {
            side.violations.push(Violation::StrayCrlf);
            side.parsed += 2;
        }
        let request = strict::request(&side.bytes[side.parsed..])?;
        if request.complete {
            side.parsed += request.used;
        }
        let index = self.requests.len();
        side.under_way = Some(index);
        self.requests.push(Arrived { connection, request });
        let script = self.scripts.pop_front();
        Some((index, script.unwrap_or_else(|| vec![Action::WaitComplete, Action::Reply])))
    }

    /// Whether no script is under way.
    pub(crate) fn is_between_scripts(&self) -> bool {
        self.connections.iter().all(|side| side.under_way.is_none())
    }

    /// Forgets what made the connections used, and takes the scripts of the case.
    pub(crate) fn restart(&mut self, scripts: &[Vec<Action>]) {
        self.client.bytes.clear();
        self.requests.clear();
        self.scripts = scripts.iter().cloned().collect();
        for side in &mut self.connections {
            side.counted_from = side.bytes.len();
            side.violations.clear();
            side.sent = 0;
        }
    }
}

/// A [`Record`] that threads share.
#[derive(Default)]
pub(crate) struct Recorder {
    record: Mutex<Record>,
    changed: Condvar,
}

impl Recorder {
    /// Changes the record and wakes whoever waits for that.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let value = change(&mut self.record());
        self.changed.notify_all();
        value
    }

    /// The record as it is.
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no thread of a case panics while it holds the record")
    }

    /// Waits until `ready` returns a value, or for `bound`. With the value it may have changed the
    /// record, so others are woken.
    pub(crate) fn wait_for<T>(
        &self,
        bound: Duration,
        mut ready: impl FnMut(&mut Record) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + bound;
        let mut record = self.record();
        loop {
            if let Some(value) = ready(&mut record) {
                self.changed.notify_all();
                return Some(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(record, left);
            record = waited.expect("no thread of a case panics while it holds the record").0;
        }
    }

    /// Waits until `ready`, or for `bound`. Returns whether it was.
    pub(crate) fn wait(&self, bound: Duration, ready: impl Fn(&Record) -> bool) -> bool {
        let failed = "no thread of a case panics while it holds the record";
        let waiting = |record: &mut Record| !ready(record);
        let waited = self.changed.wait_timeout_while(self.record(), bound, waiting);
        !waited.expect(failed).1.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_before_a_request_is_a_violation_and_the_request_is_still_seen() {
        let mut record = Record::default();
        record.connections.push(UpstreamSide::default());
        record.arrived(0, b"\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(record.next_request(0).is_some());
        assert_eq!(record.connections[0].violations, [Violation::StrayCrlf]);
        assert_eq!(record.requests[0].request.violations, [Violation::Canary]);
    }

    #[test]
    fn a_request_in_pieces_is_complete_with_its_last_byte_and_not_before() {
        let mut record = Record::default();
        record.connections.push(UpstreamSide::default());
        let request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok";
        let (all_but_last, last) = request.split_at(request.len() - 1);
        record.arrived(0, all_but_last);
        assert!(record.next_request(0).is_some());
        assert!(!record.requests[0].request.complete);
        record.arrived(0, last);
        assert!(record.requests[0].request.complete);
        assert_eq!(record.connections[0].parsed, request.len());
    }
}
