//! The upstream: records each request and plays the script of the case for it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::PATIENCE;
use crate::case::Action;
use crate::client::{BYTE_GAP, SPLIT_GAP, Writing};
use crate::record::{End, Mark, Record, Recorder, UpstreamSide};
use crate::strict::field;

/// A listener that lives for many cases, one after the other.
pub(crate) struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stage: Mutex<Stage>,
    /// With each connection accepted.
    accepted: Condvar,
}

/// The case that new connections belong to.
#[derive(Default)]
struct Stage {
    case: Option<(Arc<Recorder>, Writing)>,
    threads: Vec<JoinHandle<()>>,
    /// Where the connection accepted last came from.
    last_from: Option<SocketAddr>,
    closed: bool,
}

impl Shared {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().expect(UNBROKEN)
    }
}

impl Upstream {
    pub(crate) fn listen() -> io::Result<Upstream> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = shared.clone();
        thread::spawn(move || accept(&listener, &accepting));
        Ok(Upstream { address, shared })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections belong to `recorder` from now on; scripts write as `writing` says.
    pub(crate) fn begin(&self, recorder: Arc<Recorder>, writing: Writing) {
        self.shared.stage().case = Some((recorder, writing));
    }

    /// Ends the case, for which the proxy opens no more connections: closes those it has and waits
    /// until they are.
    pub(crate) fn finish(&self) {
        let ended = self.shared.stage().case.take();
        if let Some((recorder, _)) = ended {
            recorder.change(|record| record.over = true);
        }
        // Connections are accepted in the order in which they were made: once this one is, none of
        // the case is left to be taken for one of the next.
        let last = TcpStream::connect(self.address).expect("the listener is open");
        let from = last.local_addr().expect("the socket is open");
        let is_queued = |stage: &mut Stage| stage.last_from != Some(from);
        let waited = self.shared.accepted.wait_while(self.shared.stage(), is_queued);
        let threads = std::mem::take(&mut waited.expect(UNBROKEN).threads);
        for thread in threads {
            thread.join().expect("a script does not panic");
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stage().closed = true;
        // Wakes the thread that accepts, which then sees that it is over.
        TcpStream::connect(self.address).ok();
    }
}

fn accept(listener: &TcpListener, shared: &Shared) {
    while let Ok((stream, from)) = listener.accept() {
        let mut stage = shared.stage();
        if stage.closed {
            return;
        }
        stage.last_from = Some(from);
        shared.accepted.notify_all();
        // Between two cases nobody wants the connection.
        let Some((recorder, writing)) = stage.case.clone() else {
            continue;
        };
        stream.set_nodelay(true).expect("a new connection takes options");
        stream.set_write_timeout(Some(WRITE_TURN)).expect("a new connection takes options");
        let index = recorder.change(|record| {
            record.connections.push(UpstreamSide::default());
            record.connections.len() - 1
        });
        let stream = Arc::new(stream);
        let connection = Connection { stream, recorder, index, writing };
        stage.threads.push(thread::spawn(move || connection.run()));
    }
}

/// Whether a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Request,
    /// HTTP is over on it, and it stays open.
    Stay,
    Close(Shutdown),
}

/// One connection of the proxy.
struct Connection {
    stream: Arc<TcpStream>,
    recorder: Arc<Recorder>,
    index: usize,
    writing: Writing,
}

impl Connection {
    fn run(self) {
        let (source, shared, index) = (self.stream.clone(), self.recorder.clone(), self.index);
        let reader = thread::spawn(move || read(&source, &shared, index));
        let mut next = Next::Request;
        while next == Next::Request {
            next = self.exchange();
        }
        let shutdown = match next {
            Next::Close(shutdown) => shutdown,
            Next::Stay | Next::Request => {
                self.wait(FOREVER, |_, _| false);
                Shutdown::Both
            }
        };
        // The reader lets go of the socket, which closes with the last reference.
        self.stream.shutdown(shutdown).ok();
        reader.join().expect("the reader does not panic");
        let Connection { stream, recorder, .. } = self;
        drop(stream);
        recorder.change(|record| {
            let side = &mut record.connections[index];
            side.end.get_or_insert(End::Ours);
            side.under_way = None;
        });
    }

    /// Records one request and plays its script.
    fn exchange(&self) -> Next {
        let next = |record: &mut Record| match record.next_request(self.index) {
            Some(request) => Some(Some(request)),
            None => (record.over || self.side(record).end.is_some()).then_some(None),
        };
        let Some((request, script)) = self.recorder.wait_for(FOREVER, next).flatten() else {
            return Next::Stay;
        };
        for action in &script {
            if self.recorder.record().over {
                return Next::Stay;
            }
            if let Err(next) = self.act(action, request) {
                return next;
            }
        }
        let complete = |record: &Record| record.requests[request].request.complete;
        self.wait(FOREVER, |record, _| complete(record));
        self.recorder.change(|record| {
            let next = if complete(record) { Next::Request } else { Next::Stay };
            self.side(record).under_way = None;
            next
        })
    }

    /// Plays one action. Error: the script ends with it.
    fn act(&self, action: &Action, request: usize) -> Result<(), Next> {
        match action {
            Action::WaitComplete => {
                self.wait(FOREVER, |record, _| record.requests[request].request.complete);
                if !self.recorder.record().requests[request].request.complete {
                    return Err(Next::Stay);
                }
            }
            Action::WaitTunnel(bytes) => {
                self.wait(TUNNEL_WAIT, |_, side| {
                    side.tunnel.as_ref().is_some_and(|tunnel| tunnel.len() >= *bytes)
                });
            }
            Action::Sleep(time) => {
                self.recorder.wait(time.0, |record| record.over);
            }
            Action::Mark => self.recorder.change(|record| {
                let requests = record.requests.len();
                let complete = record.requests[request].request.complete;
                let side = self.side(record);
                let extra = if complete { side.bytes.len() - side.parsed } else { 0 };
                record.mark.get_or_insert(Mark { extra, requests });
            }),
            Action::Reply => self.reply(request),
            Action::Send(bytes) => self.send(&bytes.0),
            Action::SendIfExpect(bytes) => {
                let asked = {
                    let record = self.recorder.record();
                    field(&record.requests[request].request.fields, "expect").is_some()
                };
                if asked {
                    self.send(&bytes.0);
                }
            }
            Action::Repeat(bytes, times) => self.write(&bytes.0.repeat(*times)),
            Action::Tunnel => self.recorder.change(|record| {
                let side = self.side(record);
                side.tunnel = Some(side.bytes.split_off(side.parsed));
            }),
            Action::Fin => {
                self.stream.shutdown(Shutdown::Write).ok();
            }
            Action::Close => return Err(Next::Close(Shutdown::Both)),
            Action::Rst => {
                baton_platform::set_linger_zero(self.stream.as_fd()).expect("the socket is open");
                return Err(Next::Close(Shutdown::Read));
            }
        }
        Ok(())
    }

    fn reply(&self, request: usize) {
        let (target, head_only) = {
            let record = self.recorder.record();
            let request = &record.requests[request].request;
            (request.target.clone(), request.method == "HEAD")
        };
        let body: Vec<u8> =
            "up:".bytes().chain(target.chars().filter_map(|c| u8::try_from(c).ok())).collect();
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        if !head_only {
            answer.extend_from_slice(&body);
        }
        self.send(&answer);
    }

    fn send(&self, bytes: &[u8]) {
        match self.writing {
            Writing::Bytewise if bytes.len() <= BYTEWISE_BYTES_MAX => {
                for byte in bytes {
                    self.write(std::slice::from_ref(byte));
                    self.recorder.wait(BYTE_GAP, |_| false);
                }
            }
            Writing::Split(_) if bytes.len() > 1 => {
                let (first, second) = bytes.split_at(bytes.len() / 2);
                self.write(first);
                self.recorder.wait(SPLIT_GAP, |_| false);
                self.write(second);
            }
            _ => self.write(bytes),
        }
    }

    /// Writes until all is written, the connection fails, the case is over, or for [`WRITE_MAX`].
    fn write(&self, mut bytes: &[u8]) {
        let deadline = Instant::now() + WRITE_MAX;
        while !bytes.is_empty() && Instant::now() < deadline && !self.recorder.record().over {
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            match (&*self.stream).write(piece) {
                Ok(count) => {
                    bytes = &bytes[count..];
                    self.recorder.change(|record| self.side(record).sent += count as u64);
                }
                Err(error) if is_pause(&error) => {}
                Err(_) => return,
            }
        }
    }

    /// Waits until `ready`, the end of the connection or of the case. Returns whether it came.
    fn wait(&self, bound: Duration, ready: impl Fn(&Record, &UpstreamSide) -> bool) -> bool {
        self.recorder.wait(bound, |record| {
            let side = &record.connections[self.index];
            record.over || side.end.is_some() || ready(record, side)
        })
    }

    fn side<'a>(&self, record: &'a mut Record) -> &'a mut UpstreamSide {
        &mut record.connections[self.index]
    }
}

/// Records what comes until the connection ends.
fn read(mut stream: &TcpStream, recorder: &Recorder, index: usize) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let end = match stream.read(&mut buffer) {
            Ok(0) => End::Fin,
            Ok(count) => {
                recorder.change(|record| record.arrived(index, &buffer[..count]));
                continue;
            }
            Err(error) if is_pause(&error) => continue,
            Err(_) => End::Reset,
        };
        recorder.change(|record| {
            record.connections[index].end.get_or_insert(end);
        });
        return;
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

const UNBROKEN: &str = "nothing panics while it holds the stage";

/// Waits with this bound end with the case.
const FOREVER: Duration = Duration::from_secs(600);

/// How long a script waits for the bytes of a tunnel.
const TUNNEL_WAIT: Duration = PATIENCE;

/// Longest write; the proxy need not take everything.
const WRITE_MAX: Duration = Duration::from_secs(6);

/// After this long a write that makes no way looks whether its case is over.
const WRITE_TURN: Duration = Duration::from_millis(50);

/// Most bytes of one read or write.
const PIECE_BYTES: usize = 64 * 1024;

/// What is longer is not written byte by byte.
const BYTEWISE_BYTES_MAX: usize = 1024;
