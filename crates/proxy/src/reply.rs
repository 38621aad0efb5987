//! Answers of the proxy itself.

use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::Arc;

use baton_http1::{Edits, LocalResponse, RequestFacts, Version, reason_phrase};

use crate::downstream::Client;
use crate::error::ProxyError;
use crate::exchange::{Failure, Outcome};
use crate::proxy::{Proxy, Way};

/// The methods a client may use, for a 405 and for OPTIONS that ask the proxy itself.
pub(crate) const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// An answer of the proxy itself, not yet bound to a request.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: Cow<'static, str>,
    pub(crate) body: ReplyBody,
    /// Further fields, names and values valid.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// The body of an answer of the proxy itself.
pub(crate) enum ReplyBody {
    Text(String),
    /// A part of the configuration.
    Shared(Arc<[u8]>),
}

impl ReplyBody {
    fn as_bytes(&self) -> &[u8] {
        match self {
            ReplyBody::Text(text) => text.as_bytes(),
            ReplyBody::Shared(bytes) => bytes,
        }
    }
}

impl Reply {
    /// A status and what it means, in a few words.
    pub(crate) fn of_status(status: u16, reason: &str) -> Reply {
        let phrase = reason_phrase(status);
        let colon = if reason.is_empty() { "" } else { "\n" };
        let text = format!("{status} {phrase}{colon}{reason}\n");
        Reply { status, content_type: TEXT.into(), body: ReplyBody::Text(text), fields: Vec::new() }
    }

    /// One without a body.
    pub(crate) fn empty(status: u16, fields: Vec<(&'static str, String)>) -> Reply {
        let body = ReplyBody::Text(String::new());
        Reply { status, content_type: TEXT.into(), body, fields }
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Reply {
        self.fields.push((name, value));
        self
    }

    /// With the route's own page for this status, if it has one.
    pub(crate) fn with_page_of(mut self, way: Option<&Way>) -> Reply {
        let pages = way.map_or(&[][..], |way| &way.route().error_pages);
        if let Some((_, page)) = pages.iter().find(|(status, _)| *status == self.status) {
            self.body = ReplyBody::Shared(page.clone());
            self.content_type = HTML.into();
        }
        self
    }
}

/// Sends the answer. `then`: what becomes of the connection. `head_only`: the body is announced and
/// not sent.
pub(crate) async fn send(
    proxy: &Proxy,
    client: &mut Client,
    reply: &Reply,
    facts: Option<RequestFacts>,
    head_only: bool,
    then: Outcome,
) -> Result<Outcome, Box<Failure>> {
    let body = reply.body.as_bytes();
    let mut extra: Vec<(&str, &str)> =
        reply.fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if !body.is_empty() {
        extra.push(("Content-Type", &reply.content_type));
    }
    if reply.status == 405 && !extra.iter().any(|(name, _)| *name == "Allow") {
        extra.push(("Allow", ALLOW));
    }
    let way = client.way.as_ref();
    let edits = way.map_or(Edits::NONE, |way| client.dress.response(way));
    let mut out = Vec::with_capacity(512 + body.len());
    LocalResponse {
        status: reply.status,
        extra: &extra,
        edits,
        date: &proxy.date(),
        body,
        head_only,
        close: then != Outcome::KeepAlive,
        version: facts.map_or(Version::Http11, |facts| facts.version),
    }
    .encode(&mut out);
    proxy.counters().answered(reply.status);
    client.account.status.set(reply.status);
    client.account.body_out.set(if head_only { 0 } else { body.len() as u64 });
    client.timer.set(client.timeouts().body_idle);
    let mut parts = [IoSlice::new(&out)];
    let written = client.stream.write_all(&mut parts, &client.timer).await;
    written.map_err(|error| Failure::early(ProxyError::ClientGone(error), facts))?;
    Ok(then)
}
