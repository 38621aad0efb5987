//! One case against one proxy: play it, wait until it has settled, judge.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_proxy::server::Server;

use crate::PATIENCE;
use crate::case::{Act, Case, Step};
use crate::client::{Client, Writing};
use crate::conditions::Seen;
use crate::record::{End, Record, Recorder};
use crate::strict::{Asked, Finding, Responses, responses};
use crate::upstream::Upstream;

/// A proxy and the upstream behind it. One case at a time.
pub(crate) struct Pair {
    pub(crate) server: Server,
    pub(crate) upstream: Upstream,
    /// Connections the clients have opened so far.
    pub(crate) opened: u64,
}

/// How a case is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) writing: Writing,
    /// A valid request goes first on the same connection.
    pub(crate) after_keep_alive: bool,
}

/// A case that did not hold.
pub(crate) struct Failure {
    pub(crate) reasons: Vec<String>,
    pub(crate) seen: String,
}

impl Pair {
    /// Plays `case`. The connections of both sides are closed when it returns.
    pub(crate) fn run(&mut self, case: &Case, form: Form) -> Result<(), Failure> {
        let recorder = Arc::new(Recorder::default());
        self.upstream.begin(recorder.clone(), form.writing);
        let client = Client::connect(self.server.addresses()[0], recorder.clone());
        let client = client.map_err(|error| Failure::of(format!("connect: {error}")))?;
        self.opened += 1;
        let mut run =
            Run { case, form, recorder, client, writing: form.writing, started: Instant::now() };
        let result = run.play();
        drop(run);
        // The proxy must have let go of the exchange before its upstream is used again, else its
        // last bytes would count for the next case.
        let ended = self.wait_until_idle();
        self.upstream.finish();
        if !ended {
            return Err(Failure::of("the exchange goes on though the client has left".to_owned()));
        }
        result
    }

    /// Waits until the proxy has accepted every client and let go of it.
    fn wait_until_idle(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let runtime = self.server.runtime();
        let accepted = || runtime.counters(0).accepted.read();
        while accepted() < self.opened || runtime.connections() > 0 {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        true
    }
}

impl Failure {
    fn of(reason: String) -> Failure {
        Failure { reasons: vec![reason], seen: String::new() }
    }
}

struct Run<'a> {
    case: &'a Case,
    form: Form,
    recorder: Arc<Recorder>,
    client: Client,
    /// How the next `send` is written.
    writing: Writing,
    started: Instant,
}

impl Run<'_> {
    fn play(&mut self) -> Result<(), Failure> {
        if self.form.after_keep_alive {
            self.use_connection()?;
        }
        self.recorder.change(|record| record.restart(&self.case.upstream));
        self.started = Instant::now();
        for step in &self.case.steps {
            self.step(step);
        }
        self.judge()
    }

    /// Sends a valid request and takes its answer, which do not count.
    fn use_connection(&self) -> Result<(), Failure> {
        self.client.send(b"GET /first HTTP/1.1\r\nHost: a\r\n\r\n", Writing::Whole);
        let answered = self.recorder.wait(PATIENCE, |record| {
            let found = responses(&record.client.bytes, false, Asked::PLAIN);
            record.is_between_scripts() && found.complete() == 1 && found.finals[0].status == 200
        });
        if answered {
            return Ok(());
        }
        Err(Failure::of("the request before the case was not answered".to_owned()))
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send(bytes) => {
                self.client.send(&bytes.0, self.writing);
                // Only the first is cut.
                if matches!(self.writing, Writing::Split(_)) {
                    self.writing = Writing::Whole;
                }
            }
            Step::SendBytewise(bytes) => self.client.send(&bytes.0, Writing::Bytewise),
            Step::Repeat(bytes, times) => {
                self.client.send(&bytes.0.repeat(*times), Writing::Whole);
            }
            Step::Trickle { text, gap, r#for } => self.client.trickle(&text.0, gap.0, r#for.0),
            Step::Wait(time) => {
                self.recorder.wait(time.0, |record| record.client.end.is_some());
            }
            Step::WaitResponses(count) => {
                self.wait(|record| self.responses(record).complete() >= *count);
            }
            Step::WaitText(text) => {
                self.wait(|record| {
                    record.client.bytes.windows(text.0.len()).any(|window| window == text.0)
                });
            }
            Step::WaitUpstream(count) => self.wait(|record| record.requests.len() >= *count),
            Step::WaitScripts => {
                self.recorder.wait(PATIENCE, Record::is_between_scripts);
            }
            Step::Client(Act::Shutdown) => self.client.shut_down(),
            Step::Client(Act::Close) => self.client.close(),
            Step::Client(Act::Rst) => self.client.reset(),
            Step::Client(Act::Noread) => self.recorder.change(|record| record.client.paused = true),
        }
    }

    /// Waits until `ready` or the end of the connection.
    fn wait(&self, ready: impl Fn(&Record) -> bool) {
        self.recorder.wait(PATIENCE, |record| record.client.end.is_some() || ready(record));
    }

    fn responses(&self, record: &Record) -> Responses {
        let asked = Asked { methods: &self.case.methods, versions: &self.case.versions };
        responses(&record.client.bytes, record.client.end == Some(End::Fin), asked)
    }

    /// Waits until nothing more is to be expected, and judges. What does not hold may do so until
    /// the deadline.
    fn judge(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + self.case.deadline.0;
        let left = || deadline.saturating_duration_since(Instant::now());
        while !left().is_zero() {
            let settled = |record: &Record| {
                let complete = self.responses(record).complete();
                record.client.end.is_some()
                    || complete >= self.case.responses
                    || complete > 0 && record.client.last_byte_at.is_some_and(is_quiet_since)
            };
            // The quiet is no change of the record, so it is looked for from time to time.
            if self.recorder.wait(left().min(QUIET / 4), settled) {
                break;
            }
        }
        self.recorder.wait(GRACE, |_| false);
        let mut last = None;
        let holds = self.recorder.wait_for(left(), |record| {
            let seen = self.seen(record);
            let reasons = self.reasons(&seen, record);
            last = Some((seen, reasons));
            last.as_ref().is_some_and(|(_, reasons)| reasons.is_empty()).then_some(())
        });
        let (mut seen, mut reasons) = last.expect("it is judged at least once");
        let asks = self.case.expect.asks_for_use() || self.case.must.asks_for_use();
        if holds.is_some() && asks {
            seen.usable = Some(self.is_usable(&seen));
            reasons = self.reasons(&seen, &self.recorder.record());
        }
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Failure { reasons, seen: describe(&seen) })
    }

    /// Whether one more request works, or the last response announced the close.
    fn is_usable(&self, seen: &Seen) -> bool {
        let before = seen.responses.finals.len();
        if seen.closed {
            let last = seen.responses.finals.last();
            return last.is_some_and(|last| {
                let connection = crate::strict::field(&last.fields, "connection");
                last.complete && connection.is_some_and(|value| value.eq_ignore_ascii_case("close"))
            });
        }
        self.client.send(b"GET /probe HTTP/1.1\r\nHost: a\r\n\r\n", Writing::Whole);
        self.wait(|record| self.responses(record).complete() > before);
        let found = self.responses(&self.recorder.record());
        let last = found.finals.last();
        found.finals.len() == before + 1
            && last.is_some_and(|last| last.status == 200 && last.body == b"up:/probe")
    }

    /// Everything that is wrong with what was seen. The findings are those of `record`, which may
    /// have gone on.
    fn reasons(&self, seen: &Seen, record: &Record) -> Vec<String> {
        let requests = record.requests.iter().flat_map(|arrived| &arrived.request.violations);
        let between = record.connections.iter().flat_map(|side| &side.violations);
        let answers = self.responses(record).violations;
        let found = requests.chain(between).map(|one| Finding::Request(*one));
        let found = found.chain(answers.iter().map(|one| Finding::Answer(*one)));
        let mut findings: Vec<Finding> = Vec::new();
        for finding in found {
            if !self.case.allow.contains(&finding) && !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        let mut reasons: Vec<String> = findings.iter().map(|one| format!("{one:?}")).collect();
        reasons.extend(self.case.must.failures(seen).iter().map(|one| format!("must {one}")));
        reasons.extend(self.case.expect.failures(seen));
        reasons
    }

    fn seen(&self, record: &Record) -> Seen {
        let client = &record.client;
        let sides = || record.connections.iter();
        let tunnels = || sides().filter_map(|side| side.tunnel.as_ref());
        let mut upstream: Vec<u8> =
            sides().flat_map(|side| &side.bytes[side.counted_from..]).copied().collect();
        upstream.extend(tunnels().flatten());
        Seen {
            client: client.bytes.clone(),
            responses: self.responses(record),
            closed: client.end.is_some(),
            closed_after: client.ended_at.map(|at| at.saturating_duration_since(self.started)),
            usable: None,
            requests: record.requests.iter().map(|arrived| arrived.request.clone()).collect(),
            carried_by: record.requests.iter().map(|arrived| arrived.connection).collect(),
            upstream,
            tunnel: tunnels().flatten().copied().collect(),
            upstream_closed: sides()
                .filter(|side| side.was_used())
                .map(|side| side.end.is_some())
                .collect(),
            sent: sides().map(|side| side.sent).sum(),
            mark: record.mark,
        }
    }
}

fn is_quiet_since(last_byte: Instant) -> bool {
    last_byte.elapsed() > QUIET
}

/// What a failure shows: escaped, and cut where it is long.
fn describe(seen: &Seen) -> String {
    let shown = |bytes: &[u8]| {
        let cut = bytes.len().min(SHOWN_BYTES_MAX);
        format!("{} bytes \"{}\"", bytes.len(), bytes[..cut].escape_ascii())
    };
    let closed = match seen.closed_after {
        Some(after) => format!("closed after {after:.1?}"),
        None => "open".to_owned(),
    };
    let (client, upstream) = (shown(&seen.client), shown(&seen.upstream));
    format!("client ({closed}) {client}\n    upstream {upstream}")
}

/// How long late bytes may take to be seen after the responses.
const GRACE: Duration = Duration::from_millis(60);

/// After this long without a byte the responses that are missing are not waited for.
const QUIET: Duration = Duration::from_millis(350);

/// Most bytes of each side that a failure shows.
const SHOWN_BYTES_MAX: usize = 800;
