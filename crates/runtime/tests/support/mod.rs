//! Starting runtimes, waiting with a bound, and clients, for all tests.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use baton_runtime::{
    AcceptMode, Accepted, BufferSize, Core, CoreCounters, Counter, DriverChoice, Runtime,
    RuntimeOptions, Service,
};

/// How long a test waits for what must come. A test that passes gets nowhere near it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `test` on every driver of this system, and says so where io_uring is refused.
pub(crate) fn for_each_driver(test: impl Fn(DriverChoice)) {
    test(DriverChoice::Poll);
    match io_uring_refusal() {
        None => test(DriverChoice::IoUring),
        Some(refusal) => {
            let name = thread::current().name().unwrap_or("a test").to_owned();
            // Not eprintln: the harness hides what a passing test prints.
            writeln!(std::io::stderr().lock(), "SKIPPED on io_uring: {name}: {refusal}").unwrap();
        }
    }
}

/// As [`for_each_driver`], with each way of accepting as well.
pub(crate) fn for_each_driver_and_mode(test: impl Fn(DriverChoice, AcceptMode)) {
    for_each_driver(|driver| {
        test(driver, AcceptMode::PerCore);
        test(driver, AcceptMode::Dealt);
    });
}

/// What this machine answers when io_uring is asked for by name.
fn io_uring_refusal() -> Option<&'static str> {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    let probe = || {
        let options = RuntimeOptions {
            cores: Some(1),
            driver: DriverChoice::IoUring,
            ..RuntimeOptions::default()
        };
        match Runtime::start(&options, |core| Handler { core, handler: echo }) {
            Ok(runtime) => {
                stop(runtime);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    };
    REFUSAL.get_or_init(probe).as_deref()
}

/// A service made of one async function.
pub(crate) struct Handler<F> {
    pub(crate) core: Core,
    pub(crate) handler: F,
}

impl<F: AsyncFn(Core, Accepted) + 'static> Service for Handler<F> {
    type Notice = std::convert::Infallible;

    fn notice(self: Rc<Self>, notice: Self::Notice) {
        match notice {}
    }

    async fn serve(self: Rc<Self>, connection: Accepted) {
        (self.handler)(self.core.clone(), connection).await;
    }
}

/// One listener on a free port of the loopback address.
pub(crate) fn listening(driver: DriverChoice, cores: usize) -> RuntimeOptions {
    RuntimeOptions {
        cores: Some(cores),
        driver,
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        ..RuntimeOptions::default()
    }
}

/// Starts a runtime that serves each connection with `handler`.
pub(crate) fn serve(
    options: &RuntimeOptions,
    handler: impl AsyncFn(Core, Accepted) + Clone + Send + Sync + 'static,
) -> Runtime {
    Runtime::start(options, move |core| Handler { core, handler: handler.clone() }).unwrap()
}

/// Sends back what comes, until the client ends.
pub(crate) async fn echo(core: Core, connection: Accepted) {
    let (stream, timer) = (connection.stream, core.timer());
    loop {
        timer.set_idle(PATIENCE);
        if stream.readable(&timer).await.is_err() {
            return;
        }
        let mut buffer = core.buffer(BufferSize::Head);
        timer.set(PATIENCE);
        match stream.read(buffer.spare(), &timer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => buffer.advance(count),
        }
        let mut parts = [IoSlice::new(buffer.filled())];
        if stream.write_all(&mut parts, &timer).await.is_err() {
            return;
        }
    }
}

/// Drains the runtime and checks that all of it ends by itself.
pub(crate) fn stop(runtime: Runtime) {
    runtime.drain();
    assert!(runtime.join(PATIENCE), "the runtime did not end by itself");
}

/// Waits until `condition` holds, and fails the test if it never does.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "in {PATIENCE:?} it did not come true that {what}");
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// The sum of one number over all cores.
pub(crate) fn sum(runtime: &Runtime, number: impl Fn(&CoreCounters) -> &Counter) -> u64 {
    (0..runtime.cores()).map(|core| number(runtime.counters(core)).read()).sum()
}

/// CPU time that the core's thread uses in `heartbeats` heartbeats from now.
pub(crate) fn cpu_over(core: &CoreCounters, heartbeats: u64) -> Duration {
    let beats_after = |count: u64| {
        let seen = core.heartbeats.read();
        wait_until("the core is alive", || core.heartbeats.read() >= seen + count);
        core.cpu_ns.read()
    };
    let before = beats_after(1);
    Duration::from_nanos(beats_after(heartbeats) - before)
}

/// A client whose reads and writes fail instead of hanging.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `message` and checks that it comes back.
pub(crate) fn assert_echoed(client: &mut TcpStream, message: &[u8]) {
    client.write_all(message).unwrap();
    let mut answer = vec![0; message.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, message);
}

/// Checks that the server ends the connection, in order or by a reset, without another byte.
pub(crate) fn assert_ended(client: &mut TcpStream) {
    match client.read(&mut [0]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        outcome => panic!("the connection should have ended: {outcome:?}"),
    }
}
