//! The origin over loopback, by a client that shares no code with it; each test on every driver
//! this machine has.

mod bodies;
mod lifecycle;
mod pages;
mod requests;
mod websocket;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

use baton_runtime::{DriverChoice, Runtime, StartError};

use super::{OriginOptions, Temper, start};

/// Runs `test` against an origin on each driver.
fn on_each_driver(test: impl Fn(&Runtime)) {
    for driver in [DriverChoice::Poll, DriverChoice::IoUring] {
        if let Some(origin) = start_on(driver) {
            test(&origin);
        }
    }
}

/// An origin on `driver`; `None`, and a line that says so, where the system refuses the driver.
fn start_on(driver: DriverChoice) -> Option<Runtime> {
    start_with(driver, Temper::Even)
}

fn start_with(driver: DriverChoice, temper: Temper) -> Option<Runtime> {
    let listen = vec![(Ipv4Addr::LOCALHOST, 0).into()];
    match start(&OriginOptions { listen, cores: Some(1), driver, temper }) {
        Ok(origin) => Some(origin),
        Err(error @ StartError::Driver { choice: DriverChoice::IoUring, .. }) => {
            eprintln!("SKIPPED on io_uring: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Longest wait for the origin. A test that reaches it fails.
const PATIENCE: Duration = Duration::from_secs(20);

struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }
}

impl Client {
    fn connect(origin: &Runtime) -> Client {
        let stream = TcpStream::connect(origin.addresses()[0]).expect("the origin listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a bound on reads");
        stream.set_write_timeout(Some(PATIENCE)).expect("a bound on writes");
        stream.set_nodelay(true).expect("no delay");
        Client { stream, unread: Vec::new() }
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the origin reads");
    }

    /// Sends a request without body.
    fn request(&mut self, method: &str, target: &str) {
        self.send(format!("{method} {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
    }

    /// Sends a request without body and reads its answer.
    fn ask(&mut self, method: &str, target: &str) -> Answer {
        self.request(method, target);
        self.answer(method)
    }

    fn end_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Reads one answer; its body as its own head frames it, given the request's method.
    fn answer(&mut self, method: &str) -> Answer {
        let mut answer = self.head();
        let is_bodiless = method == "HEAD" || matches!(answer.status, 100..=199 | 204 | 304);
        if is_bodiless {
            return answer;
        }
        if answer.field("transfer-encoding") == Some("chunked") {
            loop {
                let size = self.line();
                let size = usize::from_str_radix(&size, 16).expect("a chunk size");
                if size == 0 {
                    break;
                }
                let data = self.take(size);
                answer.body.extend_from_slice(&data);
                assert_eq!(self.take(2), b"\r\n");
            }
            answer.trailers = self.field_lines();
        } else if let Some(length) = answer.field("content-length") {
            answer.body = self.take(length.parse().expect("a length"));
        } else {
            answer.body = self.rest();
        }
        answer
    }

    fn head(&mut self) -> Answer {
        let line = self.line();
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = status.and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not a status line: {line:?}"));
        Answer { status, fields: self.field_lines(), body: Vec::new(), trailers: Vec::new() }
    }

    fn field_lines(&mut self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return fields;
            }
            let (name, value) = line.split_once(": ").expect("a field line");
            fields.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The next line, without its CRLF.
    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.unread.drain(..end + 2).take(end).collect();
                return String::from_utf8(line).expect("a line is text");
            }
            assert_ne!(self.read(), 0, "the connection ended after {:?}", self.unread);
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert_ne!(self.read(), 0, "the connection ended after {:x?}", self.unread);
        }
        self.unread.drain(..count).collect()
    }

    /// Everything up to the end of the connection, which must not be a reset.
    fn rest(&mut self) -> Vec<u8> {
        while self.read() != 0 {}
        std::mem::take(&mut self.unread)
    }

    fn read(&mut self) -> usize {
        let mut piece = [0; 16 * 1024];
        let count = loop {
            match self.stream.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => break outcome.expect("the origin sends or ends"),
            }
        };
        self.unread.extend_from_slice(&piece[..count]);
        count
    }
}
