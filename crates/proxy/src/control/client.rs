//! Asking an admin address, for commands: one request, one answer, bounded, on the caller's thread.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::access::CHANGE_FIELD;
use super::limits;
use crate::config::AdminAddress;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as text, for people.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Asks for `path`. Blocks up to `CLIENT_STEP_BOUND` per step.
pub(crate) fn get(address: &AdminAddress, path: &str) -> io::Result<Reply> {
    ask(address, "GET", path, limits::CLIENT_STEP_BOUND)
}

/// Asks for the change that `path` is. Blocks up to `CLIENT_BOUND`.
pub(crate) fn post(address: &AdminAddress, path: &str) -> io::Result<Reply> {
    ask(address, "POST", path, limits::CLIENT_BOUND)
}

trait Transport: Read + Write {
    fn set_bounds(&self, read: Duration, write: Duration) -> io::Result<()>;
}

impl Transport for TcpStream {
    fn set_bounds(&self, read: Duration, write: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(read))?;
        self.set_write_timeout(Some(write))
    }
}

impl Transport for UnixStream {
    fn set_bounds(&self, read: Duration, write: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(read))?;
        self.set_write_timeout(Some(write))
    }
}

fn ask(address: &AdminAddress, method: &str, path: &str, bound: Duration) -> io::Result<Reply> {
    let step = limits::CLIENT_STEP_BOUND;
    match address {
        AdminAddress::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, step)?;
            exchange(stream, method, path, &address.to_string(), bound)
        }
        AdminAddress::Unix(path_of_socket) => {
            exchange(UnixStream::connect(path_of_socket)?, method, path, "localhost", bound)
        }
    }
}

/// HTTP/1.0: the answer ends with the connection, and is never chunked.
fn exchange(
    mut stream: impl Transport,
    method: &str,
    path: &str,
    host: &str,
    bound: Duration,
) -> io::Result<Reply> {
    stream.set_bounds(bound, limits::CLIENT_STEP_BOUND)?;
    let request = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n{CHANGE_FIELD}: 1\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let until = Instant::now() + limits::CLIENT_BOUND;
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = match stream.read(&mut piece) {
            Ok(0) => return parse(&bytes),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // What a read timeout is called on this system.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
            }
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(&piece[..count]);
        if bytes.len() as u64 > limits::CLIENT_ANSWER_BYTES_MAX {
            return Err(invalid("the answer is too long"));
        }
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the answer does not end"));
        }
    }
}

fn parse(bytes: &[u8]) -> io::Result<Reply> {
    let no_http = || invalid("the answer is not HTTP: is this an admin address?");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(no_http)?;
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| no_http())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(status).ok_or_else(no_http)?;
    let body = &bytes[end + 4..];
    let lengths = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value.trim())
    });
    for length in lengths {
        if length.parse() != Ok(body.len()) {
            return Err(invalid("the answer broke off"));
        }
    }
    Ok(Reply { status, body: body.to_vec() })
}

fn status(line: &str) -> Option<u16> {
    let (version, rest) = line.split_once(' ')?;
    let status = rest.split(' ').next()?;
    (version.starts_with("HTTP/1.") && status.len() == 3).then(|| status.parse().ok())?
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_is_an_error() {
        for bytes in ["", "HTTP/1.0 200 OK\r\n", "SSH-2.0-x\r\n\r\n", "HTTP/1.0 2x0 OK\r\n\r\n"] {
            let error = parse(bytes.as_bytes()).expect_err(bytes);
            assert!(error.to_string().contains("not HTTP"), "{error}");
        }
        let cut = "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nabcd";
        assert!(parse(cut.as_bytes()).expect_err("cut").to_string().contains("broke off"));
    }

    #[test]
    fn status_and_body_are_found() {
        let whole = "HTTP/1.1 422 X\r\ncontent-length: 4\r\n\r\nabcd";
        let reply = parse(whole.as_bytes()).expect("an answer");
        assert_eq!(reply, Reply { status: 422, body: b"abcd".to_vec() });
        assert!(!reply.is_success());
        assert_eq!(reply.text(), "abcd");
    }
}
