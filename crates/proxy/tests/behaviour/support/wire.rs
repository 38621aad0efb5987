//! One end of a connection to the proxy, client's or upstream's, which reads messages by itself:
//! it shares no code with the proxy.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::PATIENCE;

/// Interim responses that a test reads over.
const INTERIMS_MAX: usize = 100;

/// A socket and what was read from it too early.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Orderly,
    Reset,
}

/// A request or a response.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Start line and fields, with the final empty line.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The trailer section, with its final empty line; empty unless the body was chunked.
    pub(crate) trailers: String,
}

impl Message {
    pub(crate) fn status(&self) -> u16 {
        status(&self.head)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The values of all fields called `name`.
    pub(crate) fn fields(&self, name: &str) -> Vec<&str> {
        fields(&self.head, name).collect()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    /// Whether the sender says that it closes the connection.
    pub(crate) fn closes(&self) -> bool {
        self.field("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The status in a response head.
pub(crate) fn status(head: &str) -> u16 {
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    status.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("a status in {head:?}"))
}

pub(crate) fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    fields(head, name).next()
}

fn fields<'h>(head: &'h str, name: &str) -> impl Iterator<Item = &'h str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    lines.filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Wire {
        Wire::new(TcpStream::connect(address).expect("the address is listened on"))
    }

    pub(crate) fn new(stream: TcpStream) -> Wire {
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound above 0");
        stream.set_write_timeout(Some(PATIENCE)).expect("a bound above 0");
        stream.set_nodelay(true).expect("a TCP socket");
        Wire { stream, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the peer takes it");
    }

    /// As [`Wire::send`], to a peer that may be gone.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    pub(crate) fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Sends a request that is no HEAD, and reads its final answer.
    pub(crate) fn ask(&mut self, request: &str) -> Message {
        self.send(request);
        self.answer()
    }

    /// The next final response, to a request that was no HEAD.
    pub(crate) fn answer(&mut self) -> Message {
        self.try_answer().expect("a whole answer")
    }

    /// As [`Wire::answer`]; `UnexpectedEof` if it is cut short.
    pub(crate) fn try_answer(&mut self) -> io::Result<Message> {
        for _ in 0..INTERIMS_MAX {
            let head = self.head()?;
            match status(&head) {
                101 => return Ok(Message { head, body: Vec::new(), trailers: String::new() }),
                100..200 => {}
                _ => return self.body(head),
            }
        }
        panic!("interim responses without end");
    }

    /// The next request; `None` if the peer has ended or broken the connection.
    pub(crate) fn request(&mut self) -> Option<Message> {
        let head = self.head().ok()?;
        self.body(head).ok()
    }

    /// The next head of either kind.
    pub(crate) fn head(&mut self) -> io::Result<String> {
        self.text_until("\r\n\r\n")
    }

    /// The rest of the message whose head was read.
    pub(crate) fn body(&mut self, head: String) -> io::Result<Message> {
        let mut message = Message { head, body: Vec::new(), trailers: String::new() };
        let is_response = message.head.starts_with("HTTP/");
        if message.field("Transfer-Encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                message.body.extend(chunk);
            }
            message.trailers = self.section()?;
        } else if let Some(length) = message.field("Content-Length") {
            message.body = self.bytes(length.parse().expect("a number"))?;
        } else if is_response && ![204, 304].contains(&message.status()) {
            while self.fill()? > 0 {}
            message.body = std::mem::take(&mut self.unread);
        }
        Ok(message)
    }

    /// The data of the next chunk; `None` at the last one, whose trailer section follows.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.text_until("\r\n")?;
        let size = usize::from_str_radix(line.trim_end(), 16).expect("a chunk size");
        if size == 0 {
            return Ok(None);
        }
        let mut data = self.bytes(size + 2)?;
        assert_eq!(data.split_off(size), b"\r\n", "the end of a chunk");
        Ok(Some(data))
    }

    fn section(&mut self) -> io::Result<String> {
        let mut section = String::new();
        while !section.ends_with("\r\n\r\n") && section != "\r\n" {
            section.push_str(&self.text_until("\r\n")?);
        }
        Ok(section)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < count {
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.unread.drain(..count).collect())
    }

    fn text_until(&mut self, end: &str) -> io::Result<String> {
        let mut from = 0;
        loop {
            let window = &self.unread[from..];
            let found = window.windows(end.len()).position(|bytes| bytes == end.as_bytes());
            if let Some(at) = found {
                let text = self.unread.drain(..from + at + end.len()).collect();
                return Ok(String::from_utf8(text).expect("heads are text"));
            }
            from = self.unread.len().saturating_sub(end.len());
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads once more from the socket; 0 is the end.
    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = vec![0; 64 * 1024];
        let count = self.stream.read(&mut piece)?;
        self.unread.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    /// Reads to the end of the connection; what was there still, and how it ended.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, End) {
        let end = loop {
            match self.fill() {
                Ok(0) => break End::Orderly,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break End::Reset,
                Err(error) => panic!("the connection did not end: {error}"),
            }
        };
        (std::mem::take(&mut self.unread), end)
    }

    /// Checks that the peer ends the connection in order without another byte.
    pub(crate) fn assert_closed(&mut self) {
        let (rest, end) = self.rest();
        assert_eq!((String::from_utf8_lossy(&rest).as_ref(), end), ("", End::Orderly));
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        let zero = Some(std::time::Duration::ZERO);
        socket2::SockRef::from(&self.stream).set_linger(zero).expect("a TCP socket");
    }
}
