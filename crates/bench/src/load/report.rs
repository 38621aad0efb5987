//! What a load found out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// No connection.
    Connect,
    /// The connection broke while the request was sent.
    Send,
    /// The connection broke while the answer was read.
    Receive,
    /// The connection ended before the answer did.
    Ended,
    /// Something took over 10 s.
    TimedOut,
    /// The answer is not HTTP/1.
    Malformed,
    /// The status is neither 2xx nor 3xx.
    Status(u16),
    /// A client, or its core, broke.
    Client,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Connect => "connect failed",
            Failure::Send => "send failed",
            Failure::Receive => "receive failed",
            Failure::Ended => "ended early",
            Failure::TimedOut => "timed out",
            Failure::Malformed => "malformed answer",
            Failure::Status(status) => return write!(f, "status {status}"),
            Failure::Client => "client broke",
        })
    }
}

/// The outcome of a load on one core, or on all.
pub struct Report {
    /// Latencies of the answered requests, nanoseconds.
    latencies: Histogram<u64>,
    failures: BTreeMap<Failure, u64>,
    /// Bytes of answers' bodies.
    bytes: u64,
    /// From the first request to the last answer.
    pub(super) elapsed: Duration,
    pub(super) unsent: u64,
}

impl Default for Report {
    fn default() -> Report {
        /// Longest latency told apart from longer ones, nanoseconds: two minutes, which no
        /// request takes within its time limits and the time it may wait for its turn.
        const LONGEST: u64 = 120_000_000_000;
        /// A latency is right to one part in a thousand.
        const DIGITS: u8 = 3;
        let latencies = Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("valid bounds");
        let failures = BTreeMap::new();
        Report { latencies, failures, bytes: 0, elapsed: Duration::ZERO, unsent: 0 }
    }
}

impl Report {
    /// Notes the end of a request: the body bytes of its answer, or how it failed.
    pub(super) fn note(&mut self, outcome: Result<u64, Failure>, latency: Duration) {
        match outcome {
            Ok(bytes) => {
                self.bytes += bytes;
                let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
                self.latencies.saturating_record(nanoseconds);
            }
            Err(failure) => self.add_failures(failure, 1),
        }
    }

    pub(super) fn add_failures(&mut self, failure: Failure, count: u64) {
        if count > 0 {
            *self.failures.entry(failure).or_default() += count;
        }
    }

    pub(super) fn add(&mut self, other: &Report) {
        self.latencies.add(&other.latencies).expect("all reports have the same bounds");
        for (&failure, &count) in &other.failures {
            self.add_failures(failure, count);
        }
        self.bytes += other.bytes;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.unsent += other.unsent;
    }

    /// Requests answered with 2xx or 3xx.
    pub fn succeeded(&self) -> u64 {
        self.latencies.len()
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Failed requests by kind.
    pub fn failures(&self) -> &BTreeMap<Failure, u64> {
        &self.failures
    }

    /// Requests of an open loop that were due and never sent, since no connection was free.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The latency that `share` of the answers did not exceed. 0 to 1.
    pub fn latency(&self, share: f64) -> Duration {
        Duration::from_nanos(self.latencies.value_at_quantile(share))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without one answer the time is 0, and so are the rates.
        let seconds = self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        writeln!(f, "answered  {} in {seconds:.2} s", self.succeeded())?;
        writeln!(f, "failed    {}", self.failed())?;
        for (failure, count) in &self.failures {
            writeln!(f, "          {count} {failure}")?;
        }
        if self.unsent > 0 {
            writeln!(f, "unsent    {} were due while every connection was busy", self.unsent)?;
        }
        let (rate, bytes) = (self.succeeded() as f64 / seconds, self.bytes as f64 / seconds);
        writeln!(f, "rate      {rate:.0}/s, {:.1} MB/s of bodies", bytes / 1e6)?;
        write!(f, "latency ")?;
        for (name, share) in
            [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)]
        {
            write!(f, "  {name} {:.3} ms", self.latency(share).as_secs_f64() * 1e3)?;
        }
        Ok(())
    }
}
