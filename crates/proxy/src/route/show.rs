//! The table as text: what `baton routes` and `baton match` print.

use std::fmt::Write;
use std::net::IpAddr;

use baton_http1::{FieldBlock, FieldSlots, HeadError, HeadLimits, RequestHead};

use super::table::{Refusal, Row};
use super::{FieldList, Fields, Found, Query, Random, Rewriter, RouteEdits, RouteTable, Trace};
use super::{Values, admits, client::ClientAddress};
use crate::config::{Action, Config, FieldMatch, Rewrite, Route};

/// Most routes that an explanation says why not of. When reached: the others are counted.
const EXPLAINED_MAX: usize = 100;

/// Why a request is not redirected.
pub(crate) const NO_HOST: &str = "the request names no host to be sent to";

/// A request that somebody asks about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// Index in `config.listeners`.
    pub(crate) listener: usize,
    pub(crate) method: &'a str,
    /// `http` or `https`.
    pub(crate) scheme: &'a str,
    /// `host[:port]`.
    pub(crate) host: Option<&'a str>,
    /// As a client sends it, without the query.
    pub(crate) path: &'a str,
    /// Without its `?`.
    pub(crate) query: Option<&'a str>,
    pub(crate) fields: &'a [(&'a str, &'a str)],
    /// The address the connection comes from.
    pub(crate) peer: IpAddr,
}

impl RouteTable {
    /// Every route of every host as a line, in the order in which they are looked at.
    pub(crate) fn text(&self, config: &Config) -> String {
        let mut lines =
            vec![["#", "route", "host", "path", "conditions", "action"].map(String::from)];
        for (at, row) in self.rows().iter().enumerate() {
            let route = &config.routes[row.route];
            lines.push([
                (at + 1).to_string(),
                route.name.clone(),
                row.host.as_ref().map_or("*".into(), ToString::to_string),
                route.path.to_string(),
                conditions(route),
                action(route),
            ]);
        }
        columns(&lines)
    }

    /// Which route a request takes, why the ones before do not take it, and what the route makes of
    /// it.
    pub(crate) fn explain(&self, config: &Config, question: &Question<'_>) -> String {
        let Question { method, scheme, path, .. } = question;
        let host = question.host.unwrap_or("");
        let query_text = question.query.map(|query| format!("?{query}")).unwrap_or_default();
        let mut out = format!("{method} {scheme}://{host}{path}{query_text}\n");
        if let Some(refusal) = head_refusal(config, question) {
            line(&mut out, format_args!("\nanswered with {}: {refusal}", refusal.status()));
            return out;
        }
        let resolved = match self.resolve(path.as_bytes()) {
            Ok(resolved) => resolved,
            Err(fault) => {
                line(&mut out, format_args!("\nanswered with 400: {fault}"));
                return out;
            }
        };
        if resolved.normal() != path.as_bytes() {
            let normal = String::from_utf8_lossy(resolved.normal()).into_owned();
            line(&mut out, format_args!("routes see the path {normal}"));
        }
        let fields = FieldList::new(question.fields);
        let query = Query {
            listener: question.listener,
            method,
            host: question.host.map(str::as_bytes),
            path: resolved.normal(),
            fields: &fields,
        };
        out.push('\n');
        let found = self.find(&query);
        self.candidates_text(config, &query, &mut out);
        out.push('\n');
        match found {
            Found::None => line(&mut out, format_args!("answered with 404: no route takes it")),
            Found::MethodNotAllowed(allow) => {
                line(&mut out, format_args!("answered with 405: allowed are {allow}"));
            }
            Found::Route(index) => {
                let onward = resolved.onward();
                let rewriter = Rewriter::new(&config.routes[index].rewrite);
                let mut target = Vec::new();
                let target = match rewriter.target(&resolved, question.query, &mut target) {
                    Some(target) => String::from_utf8_lossy(target.as_bytes()).into_owned(),
                    None => format!("{}{query_text}", String::from_utf8_lossy(onward)),
                };
                outcome(config, &config.routes[index], question, &target, &fields, &mut out);
            }
        }
        out
    }

    /// A line for each route up to the one that takes the request; other hosts are counted only.
    fn candidates_text<'b>(
        &self,
        config: &Config,
        query: &Query<'_, impl Fields<'b>>,
        out: &mut String,
    ) {
        let mut lines = Vec::new();
        let (mut other_hosts, mut left_out) = (0, 0);
        for (at, row) in self.rows().iter().enumerate() {
            let (host_fits, path_fits) = row.covers(query.host, query.path);
            if !host_fits {
                other_hosts += 1;
                continue;
            }
            let why = match path_fits {
                false => Some("no: another path".to_owned()),
                true => row.candidate.refusal(query).map(|refusal| reason(refusal, query.method)),
            };
            let taken = why.is_none();
            if taken || lines.len() < EXPLAINED_MAX {
                lines.push(explained(at, row, config, why.unwrap_or_else(|| "yes".into())));
            } else {
                left_out += 1;
            }
            if taken {
                break;
            }
        }
        out.push_str(&columns(&lines));
        if left_out > 0 {
            line(out, format_args!("{left_out} more do not take it"));
        }
        if other_hosts > 0 {
            line(out, format_args!("{other_hosts} are for other hosts"));
        }
    }
}

/// Why the listener refuses the head of the request, if it does.
fn head_refusal(config: &Config, question: &Question<'_>) -> Option<HeadError> {
    let limits = &config.listeners[question.listener].limits;
    let limits = HeadLimits {
        head_bytes_max: limits.head_bytes,
        fields_max: limits.fields,
        target_bytes_max: limits.target_bytes,
    };
    let query = question.query.map(|query| format!("?{query}")).unwrap_or_default();
    // Only HTTP/1.0 has requests without a host.
    let (version, host) = match question.host {
        Some(host) => ("HTTP/1.1", format!("Host: {host}\r\n")),
        None => ("HTTP/1.0", String::new()),
    };
    let mut head = format!("{} {}{query} {version}\r\n{host}", question.method, question.path);
    for (name, value) in question.fields {
        if !name.eq_ignore_ascii_case("host") {
            write!(head, "{name}: {value}\r\n").expect("a string takes every text");
        }
    }
    head.push_str("\r\n");
    RequestHead::parse(head.as_bytes(), &limits, &mut FieldSlots::new()).err()
}

fn explained(at: usize, row: &Row, config: &Config, why: String) -> [String; 5] {
    [
        (at + 1).to_string(),
        config.routes[row.route].name.clone(),
        row.host.as_ref().map_or("*".into(), ToString::to_string),
        row.path.to_string(),
        why,
    ]
}

fn reason(refusal: Refusal<'_>, method: &str) -> String {
    match refusal {
        Refusal::Listener => "no: it is for other listeners".into(),
        Refusal::Field(FieldMatch { name, value: Some(value) }) => {
            format!("no: the field {name} is not {value}")
        }
        Refusal::Field(FieldMatch { name, value: None }) => format!("no: there is no field {name}"),
        Refusal::Method(methods) => format!("no: it is for {}, not {method}", methods.join(", ")),
    }
}

/// What the route makes of the request.
fn outcome(
    config: &Config,
    route: &Route,
    question: &Question<'_>,
    target: &str,
    fields: &FieldList<'_>,
    out: &mut String,
) {
    let trusted = &config.listeners[question.listener].trusted_proxies;
    let client = ClientAddress::of(question.peer, trusted, fields);
    let client_ip = client.ip.to_string();
    if !admits(&route.allow, &route.deny, client.ip) {
        return line(out, format_args!("answered with 403: {client_ip} is not admitted"));
    }
    let values = Values {
        client_ip: &client_ip,
        host: question.host.unwrap_or("").as_bytes(),
        path: question.path,
        query: question.query,
        scheme: question.scheme,
        method: question.method,
        request_id: "<request id>",
        route: &route.name,
    };
    match &route.action {
        Action::Redirect { status, to } => match to.location(&values) {
            Some(location) => {
                line(out, format_args!("answered with {status}, Location: {location}"));
            }
            None => line(out, format_args!("answered with 400: {NO_HOST}")),
        },
        Action::Respond { status, content_type, body } => {
            let bytes = body.len();
            line(out, format_args!("answered with {status}: {bytes} bytes of {content_type}"));
        }
        Action::Proxy(upstream) => {
            line(out, format_args!("sent to the upstream {upstream} as"));
            line(out, format_args!("  {} {target} HTTP/1.1", question.method));
            let configured = config.upstreams.iter().find(|known| known.name == *upstream);
            let host = configured.and_then(|upstream| upstream.host.as_deref());
            if let Some(host) = host.or(question.host) {
                line(out, format_args!("  Host: {host}"));
            }
            changes(config, route, &values, question, fields, out);
        }
    }
}

/// The fields that are taken away of those asked about, and those that are added.
fn changes(
    config: &Config,
    route: &Route,
    values: &Values<'_>,
    question: &Question<'_>,
    fields: &FieldList<'_>,
    out: &mut String,
) {
    let edits = match RouteEdits::new(route, &config.forward) {
        Ok(edits) => edits,
        Err(error) => return line(out, format_args!("  (fields cannot be changed: {error})")),
    };
    let trace = Trace::of(fields, &mut Random::new());
    let mut block = FieldBlock::default();
    let made = edits.request(values, Some(&trace), &mut block);
    for (name, value) in question.fields {
        match made.remove.contains(name.as_bytes()) {
            true => line(out, format_args!("- {name}: {value}")),
            false => line(out, format_args!("  {name}: {value}")),
        }
    }
    for added in String::from_utf8_lossy(made.append.as_bytes()).lines() {
        line(out, format_args!("+ {added}"));
    }
}

/// The conditions of a route beside host and path.
fn conditions(route: &Route) -> String {
    let mut parts = Vec::new();
    if !route.methods.is_empty() {
        parts.push(route.methods.join(", "));
    }
    for FieldMatch { name, value } in &route.fields {
        parts.push(match value {
            Some(value) => format!("{name}: {value}"),
            None => format!("{name}: any"),
        });
    }
    if !route.listeners.is_empty() {
        parts.push(format!("listener {}", route.listeners.join(", ")));
    }
    if parts.is_empty() { "-".into() } else { parts.join("; ") }
}

/// What becomes of a route's requests.
fn action(route: &Route) -> String {
    let text = match &route.action {
        Action::Proxy(upstream) => format!("upstream {upstream}"),
        Action::Redirect { status, to } => format!("{status} {to}"),
        Action::Respond { status, .. } => format!("answer {status}"),
    };
    match &route.rewrite {
        Rewrite::None => text,
        Rewrite::Strip(prefix) => format!("{text}, without {prefix}"),
        Rewrite::Replace { from, to } => format!("{text}, {from} replaced by {to}/"),
    }
}

/// The lines with cells of equal width, two spaces between them.
fn columns<const N: usize>(lines: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for cells in lines {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for cells in lines {
        let start = out.len();
        for (cell, width) in cells.iter().zip(widths) {
            let fill = " ".repeat(width + 2 - cell.chars().count());
            out.push_str(cell);
            out.push_str(&fill);
        }
        let end = out[start..].trim_end().len();
        out.truncate(start + end);
        out.push('\n');
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes every text");
}
