//! A proxy in this process, waits with a bound, and the two peers of the proxy.

mod stalls;
pub(crate) mod upstream;
pub(crate) mod wire;

use std::io::Write;
use std::net::SocketAddr;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use baton_proxy::config::{self, DriverChoice};
use baton_proxy::server::{Server, ServerError};
use baton_runtime::StartError;

pub(crate) use stalls::on_each_driver_in_time;
pub(crate) use upstream::{Link, Upstream};
pub(crate) use wire::{End, Message, Wire};

/// How long a test waits for what must come. A test that passes gets nowhere near it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A request without a body.
pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// An answer with a body.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Runs `test` on every driver of this system at once, and says so where io_uring is refused.
pub(crate) fn on_each_driver(test: impl Fn(DriverChoice) + Sync) {
    let name = thread::current().name().unwrap_or("a test").to_owned();
    thread::scope(|scope| {
        for (driver, word) in [(DriverChoice::Poll, "poll"), (DriverChoice::IoUring, "io_uring")] {
            if driver == DriverChoice::IoUring
                && let Some(refusal) = io_uring_refusal()
            {
                // Not eprintln: the harness hides what a passing test prints.
                let line = format!("SKIPPED on io_uring: {name}: {refusal}\n");
                std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
                continue;
            }
            let named = thread::Builder::new().name(format!("{name} on {word}"));
            let test = &test;
            named.spawn_scoped(scope, move || test(driver)).expect("a thread can be had");
        }
    });
}

fn io_uring_refusal() -> Option<String> {
    let nowhere: SocketAddr = ([127, 0, 0, 1], 9).into();
    match start(&configuration(DriverChoice::IoUring, &[nowhere], "")) {
        Ok(_) => None,
        Err(ServerError::Start(error @ StartError::Driver { .. })) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// Starts a server that has no file to read anew.
fn start(config: &config::Config) -> Result<Server, ServerError> {
    Server::start(config, Box::new(|| Err("it has no file".to_owned())))
}

fn configuration(driver: DriverChoice, upstreams: &[SocketAddr], settings: &str) -> config::Config {
    let upstreams: Vec<String> = upstreams.iter().map(|address| format!("\"{address}\"")).collect();
    let text = format!(
        "[[listen]]\naddr = \"127.0.0.1:0\"\n[[route]]\nto = [{}]\n{settings}",
        upstreams.join(", ")
    );
    let mut config = config::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"));
    config.runtime.driver = driver;
    config.runtime.cores = Some(1);
    config
}

/// A file of one route to an upstream that may have one connection, for which others wait longer
/// than a test does.
pub(crate) fn one_connection(upstream: &Upstream) -> String {
    format!(
        "[[listen]]\naddr = \"$LISTEN\"\n[upstream.a]\nendpoints = [\"{}\"]\nmax_conns = 1\n\
         queue = {{ length = 10, timeout = \"5m\" }}\n[[route]]\nto = \"a\"\n",
        upstream.address
    )
}

fn whole(driver: DriverChoice, text: &str) -> config::Config {
    let text = text.replace("$LISTEN", "127.0.0.1:0");
    let mut config = config::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"));
    config.runtime.driver = driver;
    config.runtime.cores = Some(1);
    config
}

/// A proxy of one core. When dropped it checks that no task of it has panicked, and aborts.
pub(crate) struct Proxy {
    server: Option<Server>,
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// `settings`: what the configuration file says besides addresses, as TOML.
    pub(crate) fn start(driver: DriverChoice, upstreams: &[SocketAddr], settings: &str) -> Proxy {
        let server = start(&configuration(driver, upstreams, settings));
        let server = server.unwrap_or_else(|error| panic!("{error}"));
        Proxy { address: server.addresses()[0], server: Some(server) }
    }

    /// `text`: the whole configuration file, but for `driver` and one core. Each `$LISTEN` is a free
    /// port of the loopback address.
    pub(crate) fn with(driver: DriverChoice, text: &str) -> Proxy {
        let server = start(&whole(driver, text)).unwrap_or_else(|error| panic!("{error}"));
        Proxy { address: server.addresses()[0], server: Some(server) }
    }

    /// Puts another whole configuration in force, written as for [`Proxy::with`].
    pub(crate) fn reload(&self, driver: DriverChoice, text: &str) -> Result<(), ServerError> {
        self.server().reload(&whole(driver, text))
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("it was not stopped")
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// Sends `request` on a connection of its own and reads the answer.
    pub(crate) fn ask(&self, request: &str) -> Message {
        self.connect().ask(request)
    }

    /// The value of the counter called `name`.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let values = self.server().counters()[0].read();
        let found = values.iter().find(|(other, _)| *other == name);
        found.unwrap_or_else(|| panic!("there is no counter {name}")).1
    }

    /// Waits until the counter called `name` has reached `value`, and checks that it is no more.
    pub(crate) fn wait_for_count(&self, name: &str, value: u64) {
        wait_until(&format!("{name} reaches {value}"), || self.count(name) >= value);
        assert_eq!(self.count(name), value, "{name}");
    }

    /// Waits until the proxy holds `count` client connections.
    pub(crate) fn wait_for_connections(&self, count: usize) {
        let open = || self.server().runtime().connections();
        wait_until(&format!("{count} connections are open"), || open() == count);
    }

    /// Drains it; as [`Server::stop`].
    pub(crate) fn stop(mut self, bound: Duration) -> bool {
        self.assert_no_panic();
        self.server.take().expect("it was not stopped").stop(bound)
    }

    fn assert_no_panic(&self) {
        let panics = self.server().runtime().counters(0).panics.read();
        assert_eq!(panics, 0, "tasks of the proxy have panicked");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let Some(server) = &self.server else { return };
        stalls::note_late_heartbeats(server.runtime().counters(0));
        if !thread::panicking() {
            self.assert_no_panic();
        }
    }
}

/// Waits until `condition` holds, and fails the test if it never does.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "in {PATIENCE:?} it did not come true that {what}");
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// Checks that what began at `start` ends now, `bound` later: at most one tick (100 ms) early, and
/// at most one second late.
pub(crate) fn assert_took(start: Instant, bound: Duration) {
    let allowed: Range<Duration> =
        bound.saturating_sub(Duration::from_millis(100))..bound + Duration::from_secs(1);
    let took = start.elapsed();
    assert!(allowed.contains(&took), "it took {took:?} and not {bound:?}");
}
