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

use std::net::SocketAddr;
use std::rc::Rc;

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
}

/// Starts an origin. It serves until it is drained or dropped.
///
/// Errors: as [`Runtime::start`].
pub fn start(options: &OriginOptions) -> Result<Runtime, StartError> {
    let options = RuntimeOptions {
        cores: options.cores,
        driver: options.driver,
        listen: options.listen.clone(),
        connections_max: limits::CONNECTIONS_MAX,
        ..RuntimeOptions::default()
    };
    Runtime::start(&options, Origin::new)
}

/// What the connections of one core share.
struct Origin {
    core: Core,
    date: DateCache,
    outputs: Outputs,
}

impl Origin {
    fn new(core: Core) -> Origin {
        Origin { date: DateCache::new(core.tick()), outputs: Outputs::default(), core }
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
