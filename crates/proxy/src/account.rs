//! What is noted of a request while it is served, and where that goes at its end: the counters of
//! its route, and its line in the access log.
//!
//! One per client connection, begun anew with each request. The two directions of an exchange write
//! to it at once, so that they do through cells.

use std::cell::Cell;
use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Instant;

use baton_http1::RequestHead;

use crate::access_log::{Cause, Parties, Record};
use crate::downstream::AddressText;
use crate::error::ProxyError;
use crate::limiter::{InFlight, try_enter};
use crate::plan::RouteState;
use crate::proxy::{Proxy, Way};

/// What is noted of one request.
pub(crate) struct Account {
    /// When its first byte was there.
    started: Instant,
    /// When its head was complete, if that was later.
    head_at: Cell<Option<Instant>>,
    /// When there was a connection for it, if it had to wait for one.
    pub(crate) connected_at: Cell<Option<Instant>>,
    pub(crate) first_byte_at: Cell<Option<Instant>>,
    /// The status of the final answer; 0: none was sent.
    pub(crate) status: Cell<u16>,
    /// Body bytes from the client, without their framing.
    pub(crate) body_in: Cell<u64>,
    /// Body bytes to the client, without their framing.
    pub(crate) body_out: Cell<u64>,
    /// Bytes of a tunnel from the client, and to it.
    pub(crate) tunnel: (Cell<u64>, Cell<u64>),
    pub(crate) retries: Cell<u32>,
    /// The endpoint that answered, or was tried last, and whether by a used connection.
    pub(crate) endpoint: Cell<Option<(SocketAddr, bool)>>,
    /// Why the proxy would not send it on.
    refusal: Cell<Option<&'static str>>,
    record: Option<Record>,
    /// While it counts as one of its route's.
    under_way: Option<InFlight<RouteOf>>,
}

/// The route of a way.
pub(crate) struct RouteOf(Way);

impl Deref for RouteOf {
    type Target = RouteState;

    fn deref(&self) -> &RouteState {
        self.0.state()
    }
}

/// A number that rises.
pub(crate) fn add(cell: &Cell<u64>, amount: u64) {
    cell.set(cell.get() + amount);
}

impl Account {
    /// Of a request whose first byte is there.
    pub(crate) fn begin() -> Account {
        Account {
            started: Instant::now(),
            head_at: Cell::new(None),
            connected_at: Cell::new(None),
            first_byte_at: Cell::new(None),
            status: Cell::new(0),
            body_in: Cell::new(0),
            body_out: Cell::new(0),
            tunnel: (Cell::new(0), Cell::new(0)),
            retries: Cell::new(0),
            endpoint: Cell::new(None),
            refusal: Cell::new(None),
            record: None,
            under_way: None,
        }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Its head took more than one read.
    pub(crate) fn head_was_late(&self) {
        self.head_at.set(Some(Instant::now()));
    }

    /// The head is there. Copies what the log says of it, if it says anything.
    pub(crate) fn capture(&mut self, proxy: &Proxy, head: &RequestHead<'_, '_>, way: &Way) {
        if proxy.access_log.is_on() && way.route().access_log {
            let mut record = proxy.access_log.begin(self.started);
            record.capture(head);
            self.record = Some(record);
        }
    }

    /// The head is there and has no route, or is refused.
    pub(crate) fn capture_unrouted(&mut self, proxy: &Proxy, seen: Seen<'_>) {
        if !proxy.access_log.is_on() {
            return;
        }
        let mut record = proxy.access_log.begin(self.started);
        match seen {
            Seen::Head(head) => record.capture(head),
            Seen::Bytes(input) => record.capture_refused(input),
        }
        self.record = Some(record);
    }

    /// The ID that the request goes by.
    pub(crate) fn set_request_id(&mut self, id: &[u8]) {
        if let Some(record) = &mut self.record {
            record.set_request_id(id);
        }
    }

    /// Counts the request as one of its route's; `false`: those that may be are under way.
    pub(crate) fn enter(&mut self, way: &Way) -> bool {
        self.under_way = try_enter(RouteOf(way.clone()), way.route().concurrency);
        self.under_way.is_some()
    }

    /// The proxy answers by itself, for this reason.
    pub(crate) fn refuse(&self, reason: &'static str) {
        self.refusal.set(Some(reason));
    }

    /// The request is over. `failure`: why before its time.
    pub(crate) fn close(
        &mut self,
        proxy: &Proxy,
        way: Option<&Way>,
        (peer, client): (SocketAddr, &AddressText),
        failure: Option<&ProxyError>,
    ) {
        self.under_way = None;
        if self.started_nothing(way) {
            return;
        }
        let ended = Instant::now();
        let status = self.status.get();
        if let Some(way) = way {
            let counters = way.state().counters(proxy.core.index());
            match status {
                0 => counters.unanswered.add(1),
                _ => counters.answers[usize::from(status / 100).clamp(1, 5) - 1].add(1),
            }
            counters.duration.add(ended - self.started);
        }
        let Some(mut record) = self.record.take() else { return };
        record.head_at = Some(self.head_at.get().unwrap_or(self.started));
        record.connected_at = self.connected_at.get();
        record.first_byte_at = self.first_byte_at.get();
        record.status = status;
        record.body_in = self.body_in.get();
        record.body_out = self.body_out.get();
        (record.tunnel_in, record.tunnel_out) = (self.tunnel.0.get(), self.tunnel.1.get());
        record.retries = self.retries.get();
        let endpoint = self.endpoint.get();
        record.reused = endpoint.is_some_and(|(_, reused)| reused);
        let refusal = || self.refusal.get().map(Cause::Refusal);
        let parties = Parties {
            ended,
            client: client.as_bytes(),
            peer,
            route: way.map(|way| way.route().name.as_str()),
            upstream: way.and_then(|way| Some(way.some_upstream()?.state().config().name.as_str())),
            endpoint: endpoint.map(|(address, _)| address),
            cause: failure.map(Cause::Failure).or_else(refusal),
        };
        proxy.access_log.finish(record, &parties);
    }

    /// Whether the client left before there was a request.
    fn started_nothing(&self, way: Option<&Way>) -> bool {
        way.is_none() && self.record.is_none()
    }
}

/// What is there of a request without a route.
pub(crate) enum Seen<'a> {
    Head(&'a RequestHead<'a, 'a>),
    Bytes(&'a [u8]),
}
