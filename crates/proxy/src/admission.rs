//! From a request's head to its way: who the client is, which route takes the request, and whether
//! it may go on. Waits for nothing.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::LazyLock;

use baton_http1::{
    Authority, ClientFields, Edits, FieldBlock, FieldName, OriginForm, RequestContext, RequestHead,
};

use crate::account::{Account, Seen};
use crate::config::{Action, RateKey};
use crate::downstream::AddressText;
use crate::limiter::{Decision, Key, RateLimiter};
use crate::proxy::{Current, Proxy, Way};
use crate::reply::{Reply, ReplyBody};
use crate::route::{
    ClientAddress, Fields, Found, NO_HOST, Query, RequestId, Resolved, Trace, Values, admits,
};
use crate::upstream::HashInput;

/// What a request wears on its way, beside its own head. Empty for most.
#[derive(Default)]
pub(crate) struct Dress {
    /// The client, where a trusted proxy speaks for it.
    client: Option<AddressText>,
    peer_trusted: bool,
    /// The target it goes on with, if that is another.
    target: Option<Vec<u8>>,
    /// Lines added to it, and to its answer, where they differ from request to request.
    request: Option<FieldBlock>,
    response: Option<FieldBlock>,
    starts_trace: bool,
    /// What it is balanced by.
    pub(crate) key: Option<u64>,
}

/// Where a request came in.
#[derive(Clone, Copy)]
pub(crate) struct Door {
    /// The number of the listener.
    pub(crate) listener: usize,
    pub(crate) peer: SocketAddr,
}

/// What is filled in of a request on its way in.
pub(crate) struct Slots<'a> {
    pub(crate) account: &'a mut Account,
    pub(crate) dress: &'a mut Dress,
    pub(crate) way: &'a mut Option<Way>,
}

impl Dress {
    /// The client's address as text.
    pub(crate) fn client<'a>(&'a self, peer: &'a AddressText) -> &'a AddressText {
        self.client.as_ref().unwrap_or(peer)
    }

    /// What is changed of the answer.
    pub(crate) fn response<'a>(&'a self, way: &'a Way) -> Edits<'a> {
        let edits = &way.rule().edits;
        match &self.response {
            Some(block) => edits.rendered_response(block),
            None => edits.fixed_response().unwrap_or(Edits::NONE),
        }
    }

    /// What is changed of the request.
    pub(crate) fn request<'a>(&'a self, way: &'a Way) -> Edits<'a> {
        let edits = &way.rule().edits;
        match &self.request {
            Some(block) => edits.rendered_request(self.starts_trace, block),
            None => edits.fixed_request().unwrap_or(Edits::NONE),
        }
    }

    /// All that goes on with the request besides its head.
    pub(crate) fn context<'a>(
        &'a self,
        way: &'a Way,
        peer: &'a AddressText,
        fallback_host: &'a [u8],
        via: &'a [u8],
    ) -> RequestContext<'a> {
        let rule = way.rule();
        let forward = way.forward();
        let context = RequestContext::new(peer.as_bytes(), "http", fallback_host, via);
        RequestContext {
            client: ClientFields {
                x_forwarded: forward.x_forwarded,
                forwarded: forward.forwarded,
                peer_trusted: self.peer_trusted,
            },
            target: self.target.as_deref().and_then(OriginForm::new),
            host: rule.host.as_deref().and_then(Authority::new),
            edits: self.request(way),
            ..context
        }
    }
}

/// Finds the way of a request. `Err`: the proxy answers by itself.
pub(crate) fn admit(
    proxy: &Proxy,
    current: &Rc<Current>,
    door: Door,
    head: &RequestHead<'_, '_>,
    slots: Slots<'_>,
) -> Result<(), Box<Reply>> {
    let Slots { account, dress, way: slot } = slots;
    let listener = current.plan.listener(door.listener);
    let client = ClientAddress::of(door.peer.ip(), &listener.config.trusted_proxies, head);
    dress.peer_trusted = client.peer_trusted;
    if client.peer_trusted {
        dress.client = Some(AddressText::new(client.ip));
    }
    let unrouted = |account: &mut Account, reply: Reply, reason| {
        account.capture_unrouted(proxy, Seen::Head(head));
        account.refuse(reason);
        Err(Box::new(reply))
    };
    let path = match current.plan.table.resolve(head.target.path().as_bytes()) {
        Ok(path) => path,
        Err(fault) => {
            proxy.counters().request_head_refused.add(1);
            return unrouted(account, Reply::of_status(400, &fault.to_string()), "path refused");
        }
    };
    let query = Query {
        listener: listener.index.unwrap_or(usize::MAX),
        method: head.method.as_str(),
        host: head.host,
        path: path.normal(),
        fields: head,
    };
    let route = match current.plan.table.find(&query) {
        Found::Route(route) => route,
        Found::MethodNotAllowed(allow) => {
            proxy.counters().method_not_allowed.add(1);
            let reply = Reply::of_status(405, "no route takes this method here");
            return unrouted(account, reply.with("Allow", allow), "method not allowed");
        }
        Found::None => {
            proxy.counters().no_route.add(1);
            return unrouted(account, Reply::of_status(404, "no route takes this"), "no route");
        }
    };
    let way = Way::new(current.clone(), route);
    account.capture(proxy, head, &way);
    *slot = Some(way.clone());
    let asked = Asked { head, path: &path, client, id: OnceCell::new() };
    asked.pass(proxy, &way, account, dress)?;
    asked.act(proxy, &way, account, dress)
}

/// A request that has its route.
struct Asked<'a, 'h, 'b> {
    head: &'a RequestHead<'h, 'b>,
    path: &'a Resolved<'a>,
    client: ClientAddress,
    /// What it goes by, once something asks for that.
    id: OnceCell<RequestId<'b>>,
}

impl Asked<'_, '_, '_> {
    /// Whether the route admits the request, by its lists and limits.
    fn pass(
        &self,
        proxy: &Proxy,
        way: &Way,
        account: &mut Account,
        dress: &mut Dress,
    ) -> Result<(), Box<Reply>> {
        let counters = || way.state().counters(proxy.core.index());
        let route = way.route();
        // First: what is changed of answers is changed of refusals too.
        self.dress(proxy, way, account, dress);
        if !admits(&route.allow, &route.deny, self.client.ip) {
            counters().denied.add(1);
            account.refuse("address refused");
            return Err(Box::new(Reply::of_status(403, "not from this address")));
        }
        if let Some(limiter) = &way.rule().limiter {
            let decision = limiter.check(self.limited_by(limiter), account.started());
            if let Decision::Refused { .. } = decision {
                counters().rate_limited.add(1);
                account.refuse("over the rate limit");
                let mut reply = Reply::of_status(429, "too many requests, see Retry-After");
                rate_fields(limiter, &decision, |name, value| {
                    reply.fields.push((name.as_str(), value.to_owned()));
                });
                return Err(Box::new(reply));
            }
            let edits = &way.rule().edits;
            let block = dress.response.get_or_insert_with(|| edits.response_block());
            rate_fields(limiter, &decision, |name, value| {
                if !edits.takes_from_answer(name) {
                    block.push(name, value.as_bytes());
                }
            });
        }
        if !account.enter(way) {
            counters().over_concurrency.add(1);
            account.refuse("over the concurrency limit");
            return Err(Box::new(Reply::of_status(503, "too many requests are under way")));
        }
        Ok(())
    }

    fn limited_by<'a>(&'a self, limiter: &'a RateLimiter) -> Key<'a> {
        match &limiter.config().key {
            RateKey::ClientIp => Key::Client(self.client.ip),
            RateKey::Field(name) => Key::Field(self.head.values(name).next()),
            RateKey::Route => Key::Route,
        }
    }

    /// Makes the lines that differ from request to request.
    fn dress(&self, proxy: &Proxy, way: &Way, account: &mut Account, dress: &mut Dress) {
        let edits = &way.rule().edits;
        let (of_request, of_response) = (edits.fixed_request(), edits.fixed_response());
        if of_request.is_some() && of_response.is_some() {
            return;
        }
        let client = AddressText::new(self.client.ip);
        let request_id = self.request_id(proxy, account);
        let trace = way.forward().trace_context;
        let trace = trace.then(|| Trace::of(self.head, &mut proxy.random.borrow_mut()));
        let values = self.values(way, client.as_str(), request_id);
        if of_request.is_none() {
            let mut block = FieldBlock::default();
            edits.request(&values, trace.as_ref(), &mut block);
            dress.request = Some(block);
            dress.starts_trace = matches!(trace, Some(Trace::New(_)));
        }
        if of_response.is_none() {
            let mut block = FieldBlock::default();
            edits.response(&values, &mut block);
            dress.response = Some(block);
        }
    }

    fn request_id(&self, proxy: &Proxy, account: &mut Account) -> &str {
        let trusted = self.client.peer_trusted;
        let id = self
            .id
            .get_or_init(|| RequestId::of(self.head, trusted, &mut proxy.random.borrow_mut()));
        account.set_request_id(id.as_str().as_bytes());
        id.as_str()
    }

    fn values<'a>(&'a self, way: &'a Way, client_ip: &'a str, request_id: &'a str) -> Values<'a> {
        Values {
            client_ip,
            host: self.head.host.unwrap_or_default(),
            path: self.head.target.path(),
            query: self.head.target.query(),
            scheme: "http",
            method: self.head.method.as_str(),
            request_id,
            route: &way.route().name,
        }
    }

    /// What the route does with the request. `Err`: it answers by itself.
    fn act(
        &self,
        proxy: &Proxy,
        way: &Way,
        account: &mut Account,
        dress: &mut Dress,
    ) -> Result<(), Box<Reply>> {
        match &way.route().action {
            Action::Proxy(_) => {
                let mut target = Vec::new();
                let query = self.head.target.query();
                if way.rule().rewriter.target(self.path, query, &mut target).is_some() {
                    dress.target = Some(target);
                }
                dress.key = way.upstream().key(HashInput {
                    client: self.client.ip,
                    path: self.path.normal(),
                    fields: self.head.fields().map(|field| (field.name.as_bytes(), field.value)),
                });
                Ok(())
            }
            Action::Redirect { status, to } => {
                let client = AddressText::new(self.client.ip);
                let id = self.request_id(proxy, account);
                let location = to.location(&self.values(way, client.as_str(), id));
                account.refuse(if location.is_some() { "redirect" } else { "no host" });
                Err(Box::new(match location {
                    Some(location) => Reply::empty(*status, vec![("Location", location)]),
                    None => Reply::of_status(400, NO_HOST),
                }))
            }
            Action::Respond { status, content_type, body } => Err(Box::new(Reply {
                status: *status,
                content_type: content_type.clone().into(),
                body: ReplyBody::Shared(body.clone()),
                fields: Vec::new(),
            })),
        }
    }
}

/// Tells `take` the fields that say what is left of a rate.
fn rate_fields(
    limiter: &RateLimiter,
    decision: &Decision,
    mut take: impl FnMut(&'static FieldName, &str),
) {
    static NAMES: LazyLock<[FieldName; 3]> = LazyLock::new(|| {
        ["RateLimit-Policy", "RateLimit", "Retry-After"]
            .map(|name| FieldName::new(name).expect("it is a field that edits may add"))
    });
    let mut lines = Vec::with_capacity(128);
    limiter.append_fields(decision, &mut lines);
    let text = std::str::from_utf8(&lines).expect("they are ASCII");
    for line in text.lines() {
        let (name, value) = line.split_once(':').expect("a field line has a colon");
        let value = value.trim_ascii_start();
        let name = NAMES.iter().find(|known| known.as_str() == name);
        take(name.expect("it is one of three"), value);
    }
}
