//! The client: writes the bytes it is told to and records the bytes that come.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::PATIENCE;
use crate::record::{End, Record, Recorder};

/// How a piece of the script is written to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Whole,
    Bytewise,
    /// In two writes, cut after so many bytes.
    Split(usize),
}

/// Between two bytes of a bytewise write, so that most arrive alone.
pub(crate) const BYTE_GAP: Duration = Duration::from_micros(200);

/// Between the two parts of a split write, so that the first arrives alone.
pub(crate) const SPLIT_GAP: Duration = Duration::from_millis(4);

/// One connection to the proxy.
pub(crate) struct Client {
    recorder: Arc<Recorder>,
    /// `None` once it is closed.
    stream: Option<Arc<TcpStream>>,
    reader: Option<JoinHandle<()>>,
}

impl Client {
    pub(crate) fn connect(proxy: SocketAddr, recorder: Arc<Recorder>) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&proxy, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let stream = Arc::new(stream);
        let (source, shared) = (stream.clone(), recorder.clone());
        let reader = thread::spawn(move || read(&source, &shared));
        Ok(Client { recorder, stream: Some(stream), reader: Some(reader) })
    }

    /// Writes `bytes`. What the proxy no longer takes is lost: the conditions judge that.
    pub(crate) fn send(&self, bytes: &[u8], writing: Writing) {
        match writing {
            Writing::Whole => {
                self.write(bytes);
            }
            Writing::Bytewise => {
                for byte in bytes {
                    if !self.write(std::slice::from_ref(byte)) {
                        return;
                    }
                    self.recorder.wait(BYTE_GAP, |_| false);
                }
            }
            Writing::Split(at) => {
                let (first, second) = bytes.split_at(at);
                self.write(first);
                self.recorder.wait(SPLIT_GAP, |_| false);
                self.write(second);
            }
        }
    }

    /// Writes a byte each `gap` until the text or the time is over, then waits for the rest of it.
    pub(crate) fn trickle(&self, bytes: &[u8], gap: Duration, time: Duration) {
        let deadline = Instant::now() + time;
        let left = || deadline.saturating_duration_since(Instant::now());
        for byte in bytes {
            let ended = self.recorder.wait(gap.min(left()), |record| record.client.end.is_some());
            if ended || left().is_zero() || !self.write(std::slice::from_ref(byte)) {
                break;
            }
        }
        self.recorder.wait(left(), |record| record.client.end.is_some());
    }

    /// Ends its direction and reads on.
    pub(crate) fn shut_down(&self) {
        if let Some(stream) = &self.stream {
            // A connection that the proxy has reset has nothing to shut down.
            stream.shutdown(Shutdown::Write).ok();
        }
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(&mut self) {
        if let Some(stream) = &self.stream {
            baton_platform::set_linger_zero(stream.as_fd()).expect("the socket is open");
        }
        self.end(Shutdown::Read);
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self) {
        self.end(Shutdown::Both);
    }

    fn write(&self, bytes: &[u8]) -> bool {
        self.stream.as_deref().is_some_and(|mut stream| stream.write_all(bytes).is_ok())
    }

    /// `shutdown` makes the reader let go of the socket, which closes with the last reference.
    fn end(&mut self, shutdown: Shutdown) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        self.recorder.change(|record| record.client.ended(End::Ours));
        stream.shutdown(shutdown).ok();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader does not panic");
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

/// Records what comes until the connection ends.
fn read(mut stream: &TcpStream, recorder: &Recorder) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let may_read = |record: &Record| !record.client.paused || record.client.end.is_some();
        while !recorder.wait(PATIENCE, may_read) {}
        // What is unread when the socket closes makes that a reset, as for a client that has died.
        if recorder.record().client.end.is_some() {
            return;
        }
        let end = match stream.read(&mut buffer) {
            Ok(0) => End::Fin,
            Ok(count) => {
                recorder.change(|record| {
                    record.client.bytes.extend_from_slice(&buffer[..count]);
                    record.client.last_byte_at = Some(Instant::now());
                });
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => End::Reset,
        };
        recorder.change(|record| record.client.ended(end));
        return;
    }
}

/// Most bytes of one read.
const READ_BYTES: usize = 64 * 1024;
