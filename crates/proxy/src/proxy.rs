//! The proxy on one core: what its connections share.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use baton_http1::HeadLimits;
use baton_runtime::{Accepted, BufferSize, Core, HEAD_BUFFER_BYTES, Service, TICK};

use crate::access_log::{AccessLog, Lines, Sink};
use crate::clients::Clients;
use crate::config::{self, ForwardConfig, Limits, Timeouts};
use crate::counters::Counters;
use crate::downstream::{self, Client};
use crate::error::ProxyError;
use crate::limits::{FAULT_LINES_PER_SECOND, POOL_SWEEP};
use crate::plan::{Plan, RouteState, Rule};
use crate::route::Random;
use crate::upstream::{Upstream, UpstreamNotice, Upstreams};

/// What all cores share, over all generations. Counters each belong to one core.
pub(crate) struct Shared {
    pub(crate) clients: Arc<Clients>,
    /// One per core.
    pub(crate) counters: Arc<[Counters]>,
    /// What each core counts of its access log.
    pub(crate) lines: Arc<[Lines]>,
    pub(crate) sink: AccessLogSink,
}

/// Where the access log goes: one for all cores, replaced by a reload.
#[derive(Default)]
pub(crate) struct AccessLogSink(Mutex<Option<Arc<Sink>>>);

impl AccessLogSink {
    pub(crate) fn new(sink: Option<Arc<Sink>>) -> AccessLogSink {
        AccessLogSink(Mutex::new(sink))
    }

    /// The one in force. Taken at start and at a reload, never by a request.
    pub(crate) fn current(&self) -> Option<Arc<Sink>> {
        self.0.lock().expect("no holder of this lock panics").clone()
    }

    /// Puts another one in force; returns the last.
    pub(crate) fn replace(&self, sink: Option<Arc<Sink>>) -> Option<Arc<Sink>> {
        std::mem::replace(&mut *self.0.lock().expect("no holder of this lock panics"), sink)
    }
}

/// The state of one core.
pub(crate) struct Proxy {
    pub(crate) core: Core,
    pub(crate) shared: Arc<Shared>,
    current: RefCell<Rc<Current>>,
    /// Of all generations in use.
    upstreams: Upstreams,
    /// Heads are encoded here. Borrowed only between two awaits.
    pub(crate) scratch: RefCell<Vec<u8>>,
    pub(crate) access_log: AccessLog,
    /// For request IDs and traces.
    pub(crate) random: RefCell<Random>,
    date: Cell<Date>,
    fault_lines: Cell<FaultLines>,
}

/// The generation that this core works by, with what the core itself holds for it.
pub(crate) struct Current {
    pub(crate) plan: Arc<Plan>,
    /// In the order of `plan.upstreams`.
    upstreams: Vec<Rc<Upstream>>,
}

/// What other threads tell a core.
pub(crate) enum Notice {
    /// The next generation. The sender learns when it is in force here.
    Adopt(Arc<Plan>, SyncSender<()>),
    /// Another core has left something for this one at an endpoint.
    Upstream(UpstreamNotice),
}

/// The way a request takes. Cheap to clone. It keeps its generation until its end.
#[derive(Clone)]
pub(crate) struct Way {
    current: Rc<Current>,
    route: usize,
}

impl Way {
    pub(crate) fn new(current: Rc<Current>, route: usize) -> Way {
        Way { current, route }
    }

    pub(crate) fn route(&self) -> &config::Route {
        &self.current.plan.config.routes[self.route]
    }

    /// What all cores know of the route.
    pub(crate) fn state(&self) -> &RouteState {
        &self.current.plan.routes[self.route]
    }

    /// Where it leads, if that is an upstream.
    pub(crate) fn some_upstream(&self) -> Option<&Upstream> {
        let upstream = self.current.plan.rule(self.route).upstream?;
        Some(&self.current.upstreams[upstream])
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.route().timeouts
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.route().limits
    }

    pub(crate) fn rule(&self) -> &Rule {
        self.current.plan.rule(self.route)
    }

    /// What is added to requests.
    pub(crate) fn forward(&self) -> &ForwardConfig {
        &self.current.plan.config.forward
    }

    pub(crate) fn answer_head(&self) -> &HeadLimits {
        &self.current.plan.rule(self.route).answer_head
    }

    /// Whether an answer with this status may be asked for once more.
    pub(crate) fn has_retry_status(&self, status: u16) -> bool {
        status >= 500 && self.upstream().state().config().retry.statuses.contains(&status)
    }

    /// Where it leads. Only for a route that leads to an upstream.
    pub(crate) fn upstream(&self) -> &Upstream {
        self.some_upstream().expect("asked of routes to an upstream alone")
    }
}

impl Current {
    fn new(core: &Core, plan: Arc<Plan>, known: &Upstreams) -> Current {
        let upstreams = plan.upstreams.iter().map(|state| known.open(core, state));
        let upstreams = upstreams.collect();
        Current { plan, upstreams }
    }
}

/// The Date field's value at a tick of the core's clock.
#[derive(Clone, Copy)]
struct Date {
    tick: u64,
    text: [u8; DATE_BYTES],
}

/// Bytes of an IMF-fixdate (RFC 9110 §5.6.7).
const DATE_BYTES: usize = 29;

/// Log lines about peers' faults within the second that began at a tick.
#[derive(Clone, Copy, Default)]
struct FaultLines {
    since: u64,
    written: u32,
    suppressed: u64,
}

impl Proxy {
    pub(crate) fn new(core: Core, shared: Arc<Shared>, plan: Arc<Plan>) -> Proxy {
        let upstreams = Upstreams::default();
        let current = Current::new(&core, plan, &upstreams);
        Proxy {
            access_log: AccessLog::new(core.index(), shared.lines.clone(), shared.sink.current()),
            random: RefCell::new(Random::new()),
            date: Cell::new(Date::at(core.tick())),
            current: RefCell::new(Rc::new(current)),
            upstreams,
            core,
            shared,
            scratch: RefCell::default(),
            fault_lines: Cell::default(),
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.core.index()]
    }

    /// The generation in force on this core.
    pub(crate) fn current(&self) -> Rc<Current> {
        self.current.borrow().clone()
    }

    /// Puts the next generation in force. What is under way keeps the one it began with.
    fn adopt(&self, plan: Arc<Plan>) {
        let next = Current::new(&self.core, plan, &self.upstreams);
        self.access_log.set_sink(self.shared.sink.current());
        // What the last one alone held is dropped outside of the borrow.
        let _last = self.current.replace(Rc::new(next));
    }

    /// The size of buffer a head of at most `limit` bytes fits into.
    pub(crate) fn head_buffer(limit: usize) -> BufferSize {
        if limit <= HEAD_BUFFER_BYTES { BufferSize::Head } else { BufferSize::Body }
    }

    /// The value of a Date field, right to a second.
    pub(crate) fn date(&self) -> [u8; DATE_BYTES] {
        let mut date = self.date.get();
        if date.tick != self.core.tick() {
            date = Date::at(self.core.tick());
            self.date.set(date);
        }
        date.text
    }

    /// Counts a failure and logs it, as long as not too many come at once.
    pub(crate) fn report(&self, error: &ProxyError, peer: SocketAddr, status: Option<u16>) {
        error.counter(self.counters()).add(1);
        let Some(suppressed) = self.may_log() else {
            self.counters().log_lines_suppressed.add(1);
            return;
        };
        let (core, side) = (self.core.index(), error.side());
        if suppressed > 0 {
            tracing::warn!(core, suppressed, "lines about faults were left out");
        }
        tracing::warn!(core, %peer, %side, status, "{error}");
    }

    /// Counts a failure after which the request is sent once more.
    pub(crate) fn retried(&self, error: &ProxyError, client: &Client) {
        self.report(error, client.peer, None);
        client.account.retries.set(client.account.retries.get() + 1);
        self.counters().upstream_retries.add(1);
    }

    /// Whether one more line fits into this second; with it, how many were left out before.
    fn may_log(&self) -> Option<u64> {
        let mut lines = self.fault_lines.get();
        let ticks_per_second = 1_000 / u64::try_from(baton_runtime::TICK.as_millis()).unwrap_or(1);
        let mut before = 0;
        if self.core.tick() >= lines.since + ticks_per_second {
            before = lines.suppressed;
            lines = FaultLines { since: self.core.tick(), written: 0, suppressed: 0 };
        }
        let fits = lines.written < FAULT_LINES_PER_SECOND;
        if fits {
            lines.written += 1;
        } else {
            lines.suppressed += 1;
        }
        self.fault_lines.set(lines);
        fits.then_some(before)
    }

    /// Hands the lines of the access log over, each tick, until the core drains; what comes later
    /// goes when the core ends.
    pub(crate) async fn tend_access_log(self: Rc<Self>) {
        let timer = self.core.timer();
        while !self.core.is_draining() {
            timer.set_idle(TICK);
            timer.expired().await;
            self.access_log.flush(Instant::now());
        }
    }

    /// Looks after the idle connections to endpoints until the core drains.
    pub(crate) async fn tend_pool(self: Rc<Self>) {
        let timer = self.core.timer();
        while !self.core.is_draining() {
            timer.set_idle(POOL_SWEEP);
            timer.expired().await;
            self.upstreams.sweep();
        }
        self.upstreams.clear();
    }
}

impl Date {
    fn at(tick: u64) -> Date {
        let text = httpdate::fmt_http_date(SystemTime::now());
        let text = text.as_bytes().try_into().expect("an IMF-fixdate has a fixed length");
        Date { tick, text }
    }
}

/// The service as the runtime sees it. Its pool is tended by a task of its own.
pub(crate) struct Front(Rc<Proxy>);

impl Front {
    pub(crate) fn start(core: Core, shared: Arc<Shared>, plan: Arc<Plan>) -> Front {
        let proxy = Rc::new(Proxy::new(core, shared, plan));
        proxy.core.spawn(proxy.clone().tend_pool());
        proxy.core.spawn(proxy.clone().tend_access_log());
        Front(proxy)
    }
}

impl Service for Front {
    type Notice = Notice;

    fn notice(self: Rc<Self>, notice: Notice) {
        match notice {
            Notice::Upstream(notice) => self.0.upstreams.handle(&notice),
            Notice::Adopt(plan, done) => {
                self.0.adopt(plan);
                // Whoever waited may have given up.
                let _heard = done.send(());
            }
        }
    }

    fn serve(self: Rc<Self>, connection: Accepted) -> impl Future<Output = ()> + 'static {
        downstream::serve(self.0.clone(), connection)
    }
}
