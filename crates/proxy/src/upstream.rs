//! The endpoints requests are sent to, as one core sees them.

mod state;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use baton_runtime::{Core, Stream, TICK, Timer};

use crate::error::{ProxyError, is_timeout};
use crate::pool::Pool;

pub(crate) use state::{EndpointCounters, EndpointState, Health, UpstreamState};

/// A connection to an endpoint, for one exchange.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) endpoint: usize,
    /// Whether an earlier exchange used it: it may have ended unnoticed.
    pub(crate) reused: bool,
}

struct Endpoint {
    address: SocketAddr,
    /// The address as text: the Host of a request that has none.
    host: String,
}

/// A named group of endpoints and this core's idle connections to them.
pub(crate) struct Upstream {
    endpoints: Vec<Endpoint>,
    pool: RefCell<Pool<Stream>>,
    /// The endpoint whose turn it is.
    turn: Cell<usize>,
}

impl Upstream {
    /// `state`: what all cores know of it.
    pub(crate) fn new(core: &Core, state: Arc<UpstreamState>) -> Upstream {
        let config = &state.config().pool;
        let idle_ticks = u64::try_from(config.idle_timeout.as_millis() / TICK.as_millis());
        let known = state.endpoints();
        let endpoints = known.iter().map(|endpoint| Endpoint {
            address: endpoint.address,
            host: endpoint.address.to_string(),
        });
        let share = config.idle.div_ceil(core.cores());
        Upstream {
            pool: RefCell::new(Pool::new(known.len(), share, idle_ticks.unwrap_or(u64::MAX))),
            endpoints: endpoints.collect(),
            // The cores begin at different endpoints, so that a few requests are spread too.
            turn: Cell::new(core.index() % known.len().max(1)),
        }
    }

    /// The endpoint whose turn it is (round robin).
    pub(crate) fn pick(&self) -> usize {
        let endpoint = self.turn.get();
        self.turn.set((endpoint + 1) % self.endpoints.len());
        endpoint
    }

    /// Whether there is no other endpoint to try.
    pub(crate) fn is_single(&self) -> bool {
        self.endpoints.len() == 1
    }

    pub(crate) fn address(&self, endpoint: usize) -> SocketAddr {
        self.endpoints[endpoint].address
    }

    pub(crate) fn host(&self, endpoint: usize) -> &[u8] {
        self.endpoints[endpoint].host.as_bytes()
    }

    /// An idle connection to `endpoint` that is silent and open.
    ///
    /// Each reuse has its look: bytes that came since the last answer would be taken for the answer
    /// to this request, which is another client's.
    pub(crate) fn lease(&self, core: &Core, endpoint: usize) -> Option<Connection> {
        let mut pool = self.pool.borrow_mut();
        while let Some(stream) = pool.lease(endpoint, core.tick()) {
            if !stream.has_stirred() {
                return Some(Connection { stream, endpoint, reused: true });
            }
        }
        None
    }

    /// A new connection to `endpoint`.
    pub(crate) async fn connect(
        &self,
        core: &Core,
        endpoint: usize,
        timer: &Timer,
        bound: Duration,
    ) -> Result<Connection, ProxyError> {
        let address = self.address(endpoint);
        timer.set(bound);
        match core.connect(address, timer).await {
            Ok(stream) => Ok(Connection { stream, endpoint, reused: false }),
            Err(error) if is_timeout(&error) => Err(ProxyError::ConnectTimeout(address, bound)),
            Err(error) if is_shortage(&error) => Err(ProxyError::OutOfResources(error)),
            Err(error) => Err(ProxyError::Connect(address, error)),
        }
    }

    /// Keeps a connection whose exchange ended at a message boundary.
    pub(crate) fn give_back(&self, core: &Core, connection: Connection) {
        if !core.is_draining() {
            let mut pool = self.pool.borrow_mut();
            pool.give_back(connection.endpoint, connection.stream, core.tick());
        }
    }

    /// Closes what has waited too long or has ended.
    pub(crate) fn sweep(&self, core: &Core) {
        self.pool.borrow_mut().sweep(core.tick(), Stream::has_stirred);
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.pool.borrow_mut().clear();
    }
}

/// Whether a connection failed for want of descriptors, memory or ports of ours.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::AddrNotAvailable)
        || baton_runtime::is_out_of_descriptors(error)
}
