//! What must have been seen for a case to hold.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use serde::Deserialize;

use crate::case::{Bytes, Seconds};
use crate::record::Mark;
use crate::strict::{Fields, Request, Responses, field};

/// Conditions that must all hold. Those that begin with `up_` are about the upstream.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Conditions {
    /// At least one of these holds as well.
    any: Vec<Conditions>,
    /// The first final response has one of these.
    status: Option<Vec<Status>>,
    /// Exactly so many final responses, each with one of its statuses.
    statuses: Option<Vec<Vec<Status>>>,
    responses: Option<usize>,
    interim: Option<Vec<u16>>,
    interim_subset: Option<Vec<u16>>,
    /// Whether the connection has been ended.
    close: Option<bool>,
    /// It has been ended so soon after the start of the case.
    close_within: Option<Seconds>,
    /// One more request works, or the last response announced the close.
    usable: Option<bool>,
    complete: Option<bool>,
    body: Option<Bytes>,
    bodies: Option<Vec<Bytes>>,
    version: Option<String>,
    fields: BTreeMap<String, Wanted>,
    trailers: BTreeMap<String, Wanted>,
    tunnel: Option<Bytes>,
    /// None of these is in what the client received.
    absent: Vec<Bytes>,
    up_bytes: Option<usize>,
    /// Requests whose head arrived.
    up_requests: Option<Count>,
    /// Requests that arrived whole.
    up_complete: Option<usize>,
    up_targets: Option<Vec<String>>,
    up_target: Option<Wanted>,
    up_method: Option<String>,
    /// The first request is complete and has this body.
    up_body: Option<Bytes>,
    up_fields: BTreeMap<String, Wanted>,
    up_second_fields: BTreeMap<String, Wanted>,
    /// Field lines with a name.
    up_field_lines: BTreeMap<String, usize>,
    up_trailers: BTreeMap<String, Wanted>,
    up_absent: Vec<Bytes>,
    up_tunnel: Option<Bytes>,
    /// Whether each connection that had bytes has ended.
    up_conn_closed: Option<bool>,
    /// Whether the connection of the first request carried another.
    up_first_reused: Option<bool>,
    /// Requests with a method.
    up_count: BTreeMap<String, Count>,
    /// Bytes the upstream could write.
    up_sent: Option<Count>,
    mark: Option<WantedMark>,
}

/// A status, a class of them (`"4xx"`), or `"none"`: no final response.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Status {
    Is(u16),
    Word(String),
}

impl Status {
    fn allows(&self, status: Option<u16>) -> bool {
        match (self, status) {
            (Status::Is(wanted), Some(status)) => *wanted == status,
            (Status::Word(word), None) => word == "none",
            (Status::Word(word), Some(status)) => *word == format!("{}xx", status / 100),
            (Status::Is(_), None) => false,
        }
    }
}

/// A number, or the least and the most.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Count {
    Is(u64),
    Between(u64, u64),
}

impl Count {
    fn allows(&self, count: u64) -> bool {
        match self {
            Count::Is(wanted) => *wanted == count,
            Count::Between(least, most) => (*least..=*most).contains(&count),
        }
    }
}

/// A value; `null` is its absence.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Wanted {
    Absent(()),
    Is(String),
    Pattern(Pattern),
    AnyOf(Vec<Wanted>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pattern {
    Contains(String),
    /// It is there and does not contain this.
    Lacks(String),
    IgnoringCase(String),
}

impl Wanted {
    fn allows(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Wanted::Absent(()), value) => value.is_none(),
            (Wanted::AnyOf(several), value) => several.iter().any(|one| one.allows(value)),
            (Wanted::Is(wanted), Some(value)) => wanted == value,
            (Wanted::Pattern(Pattern::Contains(part)), Some(value)) => value.contains(part),
            (Wanted::Pattern(Pattern::Lacks(part)), Some(value)) => !value.contains(part),
            (Wanted::Pattern(Pattern::IgnoringCase(wanted)), Some(value)) => {
                wanted.eq_ignore_ascii_case(value)
            }
            (Wanted::Is(_) | Wanted::Pattern(_), None) => false,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedMark {
    extra: usize,
    requests: Option<usize>,
}

/// What was seen at one moment of a case.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Bytes the client received.
    pub(crate) client: Vec<u8>,
    pub(crate) responses: Responses,
    pub(crate) closed: bool,
    /// From the start of the case to the end of the connection.
    pub(crate) closed_after: Option<Duration>,
    /// Whether one more request worked; `None`: not tried, which counts as what is wanted.
    pub(crate) usable: Option<bool>,
    pub(crate) requests: Vec<Request>,
    /// Connection of each request.
    pub(crate) carried_by: Vec<usize>,
    /// Bytes that reached the upstream.
    pub(crate) upstream: Vec<u8>,
    pub(crate) tunnel: Vec<u8>,
    /// Whether each upstream connection that had bytes has ended.
    pub(crate) upstream_closed: Vec<bool>,
    pub(crate) sent: u64,
    pub(crate) mark: Option<Mark>,
}

/// Reasons why conditions do not hold.
#[derive(Default)]
struct Reasons(Vec<String>);

impl Reasons {
    fn check(&mut self, holds: bool, name: &str, got: &impl Debug) {
        if !holds {
            self.0.push(format!("{name}: {got:?}"));
        }
    }

    fn same<T: PartialEq + Debug>(&mut self, name: &str, wanted: Option<&T>, got: &T) {
        self.check(wanted.is_none_or(|wanted| wanted == got), name, got);
    }

    fn fields(&mut self, name: &str, wanted: &BTreeMap<String, Wanted>, got: Option<&Fields>) {
        for (field_name, wanted) in wanted {
            let value = got.and_then(|fields| field(fields, field_name));
            self.check(wanted.allows(value.as_deref()), &format!("{name} {field_name}"), &value);
        }
    }

    fn absent(&mut self, name: &str, unwanted: &[Bytes], got: &[u8]) {
        for part in unwanted {
            let found = got.windows(part.0.len()).any(|window| window == part.0);
            self.check(!found, name, part);
        }
    }
}

impl Conditions {
    /// Why they do not hold; empty if they do.
    pub(crate) fn failures(&self, seen: &Seen) -> Vec<String> {
        let mut reasons = Reasons::default();
        self.check_client(seen, &mut reasons);
        self.check_response(seen, &mut reasons);
        self.check_requests(seen, &mut reasons);
        self.check_upstream(seen, &mut reasons);
        if !self.any.is_empty() {
            let tries = self.any.iter().map(|one| one.failures(seen));
            let nearest = tries.min_by_key(Vec::len).unwrap_or_default();
            reasons.check(nearest.is_empty(), "any", &nearest);
        }
        reasons.0
    }

    /// Whether the answer depends on one more request.
    pub(crate) fn asks_for_use(&self) -> bool {
        self.usable.is_some() || self.any.iter().any(Conditions::asks_for_use)
    }

    fn check_client(&self, seen: &Seen, reasons: &mut Reasons) {
        let finals = &seen.responses.finals;
        let statuses: Vec<u16> = finals.iter().map(|response| response.status).collect();
        if let Some(allowed) = &self.status {
            let first = statuses.first().copied();
            reasons.check(allowed.iter().any(|one| one.allows(first)), "status", &first);
        }
        if let Some(wanted) = &self.statuses {
            let mut pairs = wanted.iter().zip(&statuses);
            let each = pairs.all(|(any, got)| any.iter().any(|one| one.allows(Some(*got))));
            reasons.check(wanted.len() == statuses.len() && each, "statuses", &statuses);
        }
        reasons.same("responses", self.responses.as_ref(), &finals.len());
        let interim = &seen.responses.interim;
        reasons.same("interim", self.interim.as_ref(), interim);
        if let Some(allowed) = &self.interim_subset {
            let all = interim.iter().all(|status| allowed.contains(status));
            reasons.check(all, "interim_subset", interim);
        }
        reasons.same("close", self.close.as_ref(), &seen.closed);
        if let Some(bound) = self.close_within {
            let soon = seen.closed_after.is_some_and(|after| after <= bound.0);
            reasons.check(soon, "close_within", &seen.closed_after);
        }
        if let Some(usable) = &seen.usable {
            reasons.same("usable", self.usable.as_ref(), usable);
        }
        let bodies: Vec<Bytes> = finals.iter().map(|one| Bytes(one.body.clone())).collect();
        reasons.same("bodies", self.bodies.as_ref(), &bodies);
        reasons.absent("absent", &self.absent, &seen.client);
    }

    fn check_response(&self, seen: &Seen, reasons: &mut Reasons) {
        let first = seen.responses.finals.first();
        let complete = first.is_some_and(|response| response.complete);
        reasons.same("complete", self.complete.as_ref(), &complete);
        if let Some(body) = &self.body {
            let got = first.map(|response| &response.body);
            reasons.check(got == Some(&body.0), "body", &got);
        }
        if let Some(version) = &self.version {
            let got = first.map(|response| &response.version);
            reasons.check(got == Some(version), "version", &got);
        }
        reasons.fields("fields", &self.fields, first.map(|response| &response.fields));
        reasons.fields("trailers", &self.trailers, first.map(|response| &response.trailers));
        if let Some(tunnel) = &self.tunnel {
            let got = first.map(|response| &response.tunnel);
            reasons.check(got == Some(&tunnel.0), "tunnel", &got);
        }
    }

    fn check_requests(&self, seen: &Seen, reasons: &mut Reasons) {
        let requests = &seen.requests;
        if let Some(count) = &self.up_requests {
            reasons.check(count.allows(requests.len() as u64), "up_requests", &requests.len());
        }
        let complete = requests.iter().filter(|request| request.complete).count();
        reasons.same("up_complete", self.up_complete.as_ref(), &complete);
        let targets = requests.iter().map(|request| request.target.clone()).collect();
        reasons.same("up_targets", self.up_targets.as_ref(), &targets);
        for (method, count) in &self.up_count {
            let got = requests.iter().filter(|request| request.method == *method).count();
            reasons.check(count.allows(got as u64), "up_count", &got);
        }
        let first = requests.first();
        if let Some(wanted) = &self.up_target {
            let got = first.map(|request| request.target.as_str());
            reasons.check(wanted.allows(got), "up_target", &got);
        }
        if let Some(method) = &self.up_method {
            let got = first.map(|request| &request.method);
            reasons.check(got == Some(method), "up_method", &got);
        }
        if let Some(body) = &self.up_body {
            let whole = first.filter(|request| request.complete).map(|request| &request.body);
            reasons.check(whole == Some(&body.0), "up_body", &whole);
        }
        let needed = [(&self.up_fields, 1), (&self.up_second_fields, 2)];
        for (wanted, least) in needed {
            let enough = wanted.is_empty() || requests.len() >= least;
            reasons.check(enough, "requests with fields", &requests.len());
            let fields = requests.get(least - 1).map(|request| &request.fields);
            reasons.fields("up_fields", wanted, fields);
        }
        for (name, lines) in &self.up_field_lines {
            let count =
                |request: &Request| request.fields.iter().filter(|(n, _)| n == name).count();
            let got = first.map(count);
            reasons.check(got == Some(*lines), "up_field_lines", &got);
        }
        reasons.fields("up_trailers", &self.up_trailers, first.map(|request| &request.trailers));
    }

    fn check_upstream(&self, seen: &Seen, reasons: &mut Reasons) {
        reasons.same("up_bytes", self.up_bytes.as_ref(), &seen.upstream.len());
        reasons.absent("up_absent", &self.up_absent, &seen.upstream);
        let tunnel = Bytes(seen.tunnel.clone());
        reasons.same("up_tunnel", self.up_tunnel.as_ref(), &tunnel);
        let all_closed = seen.upstream_closed.iter().all(|closed| *closed);
        reasons.same("up_conn_closed", self.up_conn_closed.as_ref(), &all_closed);
        let first = seen.carried_by.first();
        let reused = seen.carried_by.iter().skip(1).any(|connection| Some(connection) == first);
        reasons.same("up_first_reused", self.up_first_reused.as_ref(), &reused);
        if let Some(count) = &self.up_sent {
            reasons.check(count.allows(seen.sent), "up_sent", &seen.sent);
        }
        if let Some(wanted) = &self.mark {
            let same = |mark: Mark| {
                let requests = wanted.requests.unwrap_or(mark.requests);
                mark.extra == wanted.extra && mark.requests == requests
            };
            reasons.check(seen.mark.is_some_and(same), "mark", &seen.mark);
        }
    }
}
