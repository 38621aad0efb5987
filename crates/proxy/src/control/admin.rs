//! What the admin server answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use hyper::{Request, Response, StatusCode};
use tokio::sync::Mutex;

use super::access::{self, Way};
use super::metrics::{self, Format};
use super::paths::{PATHS, Target};
use super::snapshot::Source;
use super::{Hooks, limits, page};
use crate::config;

/// Answers requests from what is live.
pub(super) struct Admin {
    source: Arc<Source>,
    hooks: Arc<Hooks>,
    /// Held while a reload is under way. A second one meanwhile is refused: 409.
    reload: Arc<Mutex<()>>,
}

pub(super) type Answer = Response<Full<Bytes>>;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Admin {
    pub(super) fn new(source: Arc<Source>, hooks: Hooks) -> Admin {
        Admin { source, hooks: Arc::new(hooks), reload: Arc::new(Mutex::new(())) }
    }

    /// Answers `request`, which came by `way`. Never waits for a core.
    pub(super) async fn answer(&self, request: Request<Incoming>, way: Way) -> Answer {
        let Some(target) = Target::of(request.uri().path()) else { return unknown() };
        if !target.is_monitoring() && !access::is_own_host(way, request.headers()) {
            let why = "ask by address or as localhost, so that a page from elsewhere cannot\n";
            return text(StatusCode::FORBIDDEN, why);
        }
        if !target.allows(request.method()) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "another method is needed\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(target.methods()));
            return answer;
        }
        if target.is_change() && !access::may_change(request.headers()) {
            let why = "a change needs the field X-Baton: curl -X POST -H 'X-Baton: 1' …\n";
            return text(StatusCode::FORBIDDEN, why);
        }
        let format = Format::accepted(request.headers().get(ACCEPT));
        let body = Limited::new(request.into_body(), limits::BODY_BYTES_MAX);
        if body.collect().await.is_err() {
            return text(StatusCode::PAYLOAD_TOO_LARGE, "no request needs a body\n");
        }
        match target {
            Target::Page => page(),
            Target::Status => self.status(),
            Target::Metrics => self.metrics(format),
            Target::Healthz => self.healthz(),
            Target::Readyz => self.readyz(),
            Target::Config => self.config(),
            Target::Routes => self.routes(),
            Target::Reload => self.reload().await,
            Target::Endpoint { upstream, endpoint, drained } => {
                self.set_drained(&upstream, endpoint, drained)
            }
        }
    }

    fn status(&self) -> Answer {
        let json = serde_json::to_vec(&self.source.take());
        answer(StatusCode::OK, JSON, json.expect("numbers and texts are JSON"))
    }

    fn metrics(&self, format: Format) -> Answer {
        let text = metrics::write(&self.source.take(), format);
        answer(StatusCode::OK, format.content_type(), text)
    }

    fn healthz(&self) -> Answer {
        match self.source.silent_core() {
            None => text(StatusCode::OK, "every core runs\n"),
            Some((core, silence)) => {
                let seconds = silence.as_secs();
                let why = format!("core {core} has not answered for {seconds} s\n");
                text(StatusCode::SERVICE_UNAVAILABLE, why)
            }
        }
    }

    fn readyz(&self) -> Answer {
        match self.hooks.ready.load(Ordering::Relaxed) {
            true => text(StatusCode::OK, "ready\n"),
            false => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        }
    }

    fn config(&self) -> Answer {
        answer(StatusCode::OK, "application/toml", config::print(&self.source.live().plan().config))
    }

    fn routes(&self) -> Answer {
        let plan = self.source.live().plan();
        text(StatusCode::OK, plan.table.text(&plan.config))
    }

    async fn reload(&self) -> Answer {
        let Ok(turn) = self.reload.clone().try_lock_owned() else {
            return text(StatusCode::CONFLICT, "a reload is under way\n");
        };
        let hooks = self.hooks.clone();
        // The turn goes along: a client that leaves does not end the reload that it began.
        let reload = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            (hooks.reload)()
        });
        match reload.await {
            Ok(Ok(done)) => text(StatusCode::OK, line(done)),
            Ok(Err(why)) => text(StatusCode::UNPROCESSABLE_ENTITY, line(why)),
            Err(_) => {
                text(StatusCode::INTERNAL_SERVER_ERROR, "the reload broke off: see the log\n")
            }
        }
    }

    fn set_drained(&self, upstream: &str, endpoint: SocketAddr, drained: bool) -> Answer {
        let plan = self.source.live().plan();
        let Some(group) = plan.upstreams.iter().find(|known| known.config().name == upstream)
        else {
            let names = plan.upstreams.iter().map(|known| known.config().name.as_str());
            let names = names.collect::<Vec<_>>().join("\n  ");
            let why = format!("there is no upstream {upstream:?}; there are:\n  {names}\n");
            return text(StatusCode::NOT_FOUND, why);
        };
        let endpoints = group.endpoints();
        let Some(state) = endpoints.iter().find(|known| known.address == endpoint) else {
            let known: Vec<_> = endpoints.iter().map(|known| known.address.to_string()).collect();
            let known = known.join("\n  ");
            let why =
                format!("upstream {upstream:?} has no endpoint {endpoint}; it has:\n  {known}\n");
            return text(StatusCode::NOT_FOUND, why);
        };
        state.set_drained(drained);
        let word = if drained { "drained" } else { "enabled" };
        tracing::info!(upstream, %endpoint, "an endpoint is {word} by the admin address");
        let in_flight = state.in_flight.load(Ordering::Relaxed);
        text(StatusCode::OK, format!("{endpoint} is {word}; requests under way: {in_flight}\n"))
    }
}

fn page() -> Answer {
    let mut answer = answer(StatusCode::OK, "text/html; charset=utf-8", page::HTML);
    let policy = HeaderValue::from_static(page::policy());
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    answer
}

fn unknown() -> Answer {
    let mut body = String::from("there is no such path; there are:\n");
    for (method, path, meaning) in PATHS {
        body.push_str(&format!("  {method:4} {path:<42} {meaning}\n"));
    }
    text(StatusCode::NOT_FOUND, body)
}

fn line(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, TEXT, body)
}

/// Nothing may keep an answer, guess its type, or tell others where it came from.
fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let fields = answer.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}
