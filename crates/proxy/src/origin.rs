//! The embedded origin: a small HTTP server for demos, tests and benchmarks.
//!
//! Owns: listeners and cores of its own, apart from the proxy's. Called by: the command line and
//! tests. Never: opens a file or a connection, or answers with anything but what the request and
//! the clock say. Invariant: every bound in `limits` holds for each connection, so what a client can
//! make it hold is one body of `/echo` or one WebSocket message.
//!
//! ```text
//! client ─► connection (head) ─► page (pure) ─► answer ─► connection (output)
//!                                                │
//!                        body, echo, websocket ◄─┘
//! ```

mod answer;
mod body;
mod connection;
mod date;
mod echo;
mod fault;
mod head;
mod limits;
mod page;
mod websocket;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use baton_runtime::{Accepted, Core, DriverChoice, Runtime, RuntimeOptions, Service, StartError};

use connection::Outputs;
use date::DateCache;

/// What an origin is started with.
#[derive(Clone, Debug)]
pub struct OriginOptions {
    /// Addresses to listen on; port 0 for any free one.
    pub listen: Vec<SocketAddr>,
    /// Cores to run; `None` for as many as the process may use.
    pub cores: Option<usize>,
    /// The kernel interface.
    pub driver: DriverChoice,
    /// How well it serves.
    pub temper: Temper,
}

/// How well an origin serves: for demonstrations of what a proxy makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Temper {
    /// Each answer as soon as it is there.
    #[default]
    Even,
    /// Each answer after this time.
    Slow(Duration),
    /// For this many requests of a core each answer; for as many after it none: the connection ends
    /// instead.
    Fitful(u64),
}

/// Starts an origin. It serves until it is drained or dropped.
///
/// Errors: as [`Runtime::start`].
pub fn start(chosen: &OriginOptions) -> Result<Runtime, StartError> {
    let options = RuntimeOptions {
        cores: chosen.cores,
        driver: chosen.driver,
        listen: chosen.listen.clone(),
        connections_max: limits::CONNECTIONS_MAX,
        ..RuntimeOptions::default()
    };
    let temper = chosen.temper;
    Runtime::start(&options, move |core| Origin::new(core, temper))
}

/// What the connections of one core share.
struct Origin {
    core: Core,
    date: DateCache,
    outputs: Outputs,
    temper: Temper,
    /// Requests so far.
    requests: Cell<u64>,
}

impl Origin {
    fn new(core: Core, temper: Temper) -> Origin {
        Origin {
            date: DateCache::new(core.tick()),
            outputs: Outputs::default(),
            core,
            temper,
            requests: Cell::new(0),
        }
    }

    /// How the next request is served: the pause before its answer, or none at all.
    fn mood(&self) -> Option<Duration> {
        let number = self.requests.get();
        self.requests.set(number + 1);
        match self.temper {
            Temper::Even => Some(Duration::ZERO),
            Temper::Slow(pause) => Some(pause),
            Temper::Fitful(stretch) => {
                (number / stretch.max(1)).is_multiple_of(2).then_some(Duration::ZERO)
            }
        }
    }
}

impl Service for Origin {
    type Notice = std::convert::Infallible;

    fn notice(self: Rc<Self>, notice: Self::Notice) {
        match notice {}
    }

    fn serve(self: Rc<Self>, connection: Accepted) -> impl Future<Output = ()> + 'static {
        connection::serve(self, connection.stream)
    }
}
