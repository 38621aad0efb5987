//! A few requests a second, so that a demonstration has something to show.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// From one request to the next.
const PACE: Duration = Duration::from_millis(20);
/// For one write, or one read of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is asked for, in turn.
const TARGETS: [&str; 8] = [
    "/bytes/2000",
    "/three/bytes/500",
    "/three/echo",
    "/three/bytes/20000",
    "/status/404",
    "/three/bytes/100",
    "/delay/20",
    "/three/chunked/3000",
];

/// A thread that asks until it is dropped.
pub(super) struct Traffic {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    /// Begins to ask the proxy at `proxy`.
    pub(super) fn start(proxy: SocketAddr) -> io::Result<Traffic> {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let name = "demo-traffic".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || ask(proxy, &told))?;
        Ok(Traffic { over, thread: Some(thread) })
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing to say.
            let _ended = thread.join();
        }
    }
}

fn ask(proxy: SocketAddr, over: &AtomicBool) {
    for target in TARGETS.iter().cycle() {
        std::thread::park_timeout(PACE);
        if over.load(Ordering::Relaxed) {
            return;
        }
        // What becomes of it is what the demonstration shows.
        let _outcome = ask_once(proxy, target);
    }
}

/// Asks on a connection of its own and reads the answer away.
fn ask_once(proxy: SocketAddr, target: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&proxy, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n")?;
    let mut answer = [0; 16 * 1024];
    while stream.read(&mut answer)? > 0 {}
    Ok(())
}
