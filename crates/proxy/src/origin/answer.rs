//! Pages to answers.

use baton_http1::{
    CHUNK_END, CHUNK_HEADER_BYTES_MAX, Framing, LAST_CHUNK, RequestFacts, Version, chunk_header,
    reason_phrase,
};
use baton_runtime::BODY_BUFFER_BYTES;

use super::body::{Body, Part};
use super::connection::{After, Connection, Request};
use super::echo::Report;
use super::fault::Fault;
use super::head::{ALLOW, CLOSE, Head, KEEP_ALIVE};
use super::limits::{ECHO_BYTES_MAX, UPLOAD_BYTES_MAX};
use super::page::{INDEX, Page};
use super::websocket::{self, AcceptKey, HandshakeError};

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const OCTETS: &str = "application/octet-stream";

/// What bodies of `/bytes` and `/chunked` are made of, over and over: lines of 64 bytes.
static PATTERN: [u8; BODY_BUFFER_BYTES] = {
    let mut pattern = [b'\n'; BODY_BUFFER_BYTES];
    let mut at = 0;
    while at < pattern.len() {
        if at % 64 < 63 {
            pattern[at] = b'a' + (at % 26) as u8;
        }
        at += 1;
    }
    pattern
};

/// Reads the body of a request, as far as its page wants it, and answers.
pub(super) async fn respond(connection: &mut Connection, request: Request) -> Result<After, Fault> {
    let mut exchange = Exchange { connection, facts: request.facts, body_left: false, keep: false };
    match request.page {
        Page::Echo(report) => exchange.echo(*report).await?,
        Page::Upload => exchange.upload().await?,
        Page::Early => exchange.early().await?,
        Page::WebSocket(Ok(key)) => return exchange.websocket(key).await,
        page => {
            exchange.drop_body().await?;
            exchange.answer(page).await?;
        }
    }
    Ok(exchange.after())
}

/// Answers a fault; `None` if the client cannot be answered.
pub(super) fn refuse(connection: &mut Connection, fault: &Fault) -> Option<After> {
    let status = fault.status()?;
    let body = format!("{status} {}: {fault}\n", reason_phrase(status));
    let head = Head {
        status,
        content_type: TEXT,
        framing: Framing::Length(body.len() as u64),
        fields: if status == 405 { ALLOW } else { "" },
    };
    let date = connection.date();
    let output = connection.output();
    head.encode(CLOSE, &date, output);
    output.extend_from_slice(body.as_bytes());
    Some(After::Linger)
}

/// A request whose head is read, on its way to being answered.
struct Exchange<'c> {
    connection: &'c mut Connection,
    facts: RequestFacts,
    /// Whether the request has a body that is not read.
    body_left: bool,
    /// Whether the client was told that another request may follow.
    keep: bool,
}

impl Exchange<'_> {
    /// Answers a request whose body is done with.
    async fn answer(&mut self, page: Page) -> Result<(), Fault> {
        match page {
            Page::Index => self.whole(200, HTML, INDEX.as_bytes()).await,
            Page::Bytes(length) => self.pattern(length, Framing::Length(length)).await,
            Page::Chunked(length) => self.pattern(length, self.unsized_framing()).await,
            Page::Delay(duration) => {
                self.connection.pause(duration).await?;
                self.whole(200, TEXT, b"delayed\n").await
            }
            Page::Spin(duration) => {
                let start = baton_platform::thread_cpu_time();
                while baton_platform::thread_cpu_time() - start < duration {}
                self.whole(200, TEXT, b"spun\n").await
            }
            Page::Status(status) => self.status(status, "").await,
            Page::Hints => self.hints().await,
            Page::Trailers => self.trailers().await,
            Page::Server => self.status(204, ALLOW).await,
            Page::NotFound => {
                self.whole(404, TEXT, b"404 Not Found: no page has this path, see /\n").await
            }
            Page::BadNumber(range) => {
                let (least, most) = range.into_inner();
                let body = format!("400 Bad Request: expected a number from {least} to {most}\n");
                self.whole(400, TEXT, body.as_bytes()).await
            }
            Page::WebSocket(Err(error)) => self.refuse_websocket(error).await,
            Page::WebSocket(Ok(_)) | Page::Echo(_) | Page::Upload | Page::Early => {
                unreachable!("these pages have a way of their own with the body")
            }
        }
    }

    /// An answer about nothing but a status. 204 and 304 have no body, 205 an empty one
    /// (RFC 9110 §15.3.6).
    async fn status(&mut self, status: u16, fields: &str) -> Result<(), Fault> {
        let body = match status {
            204 | 205 | 304 => String::new(),
            _ => format!("{status} {}\n", reason_phrase(status)),
        };
        let framing = match status {
            204 | 304 => Framing::None,
            _ => Framing::Length(body.len() as u64),
        };
        let content_type = if body.is_empty() { "" } else { TEXT };
        self.begin(&Head { status, content_type, framing, fields });
        self.send(body.as_bytes(), framing).await
    }

    /// `length` bytes of [`PATTERN`].
    async fn pattern(&mut self, length: u64, framing: Framing) -> Result<(), Fault> {
        self.begin(&Head { status: 200, content_type: OCTETS, framing, fields: "" });
        let mut left = if self.facts.is_head() { 0 } else { length };
        while left > 0 {
            let count = usize::try_from(left).map_or(PATTERN.len(), |left| left.min(PATTERN.len()));
            self.send(&PATTERN[..count], framing).await?;
            left -= count as u64;
        }
        self.end(framing, "");
        Ok(())
    }

    async fn hints(&mut self) -> Result<(), Fault> {
        // RFC 9110 §15.2: no interim response to HTTP/1.0.
        if self.facts.version == Version::Http11 {
            let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
            self.connection.output().extend_from_slice(hints);
            // Apart from the answer, as from a server that has yet to find it.
            self.connection.flush().await?;
        }
        self.whole(200, TEXT, b"after the hints\n").await
    }

    async fn trailers(&mut self) -> Result<(), Fault> {
        let body = b"see the trailer\n";
        let framing = self.unsized_framing();
        let fields = if framing == Framing::Chunked { "Trailer: X-Checksum\r\n" } else { "" };
        self.begin(&Head { status: 200, content_type: TEXT, framing, fields });
        self.send(body, framing).await?;
        self.end(framing, &format!("X-Checksum: {:08x}\r\n", crc32fast::hash(body)));
        Ok(())
    }

    async fn echo(&mut self, mut report: Report) -> Result<(), Fault> {
        report.take_body(self.wanted_body(ECHO_BYTES_MAX)?).await?;
        self.whole(200, JSON, &report.json()).await
    }

    async fn upload(&mut self) -> Result<(), Fault> {
        let mut body = self.wanted_body(UPLOAD_BYTES_MAX)?;
        let (mut bytes, mut checksum) = (0, crc32fast::Hasher::new());
        while let Some(part) = body.next().await? {
            if let Part::Data(data) = part {
                bytes += data.len();
                checksum.update(data);
            }
        }
        let json = format!("{{\"bytes\":{bytes},\"crc32\":\"{:08x}\"}}\n", checksum.finalize());
        self.whole(200, JSON, json.as_bytes()).await
    }

    async fn early(&mut self) -> Result<(), Fault> {
        self.body_left = true;
        self.whole(413, TEXT, b"413 Content Too Large: no body is read here\n").await
    }

    /// Switches protocols; the connection ends with the WebSocket.
    async fn websocket(self, key: AcceptKey) -> Result<After, Fault> {
        let fields = format!("Upgrade: websocket\r\nSec-WebSocket-Accept: {key}\r\n");
        let head = Head { status: 101, content_type: "", framing: Framing::None, fields: &fields };
        let date = self.connection.date();
        head.encode("Connection: upgrade\r\n", &date, self.connection.output());
        websocket::run(self.connection).await
    }

    async fn refuse_websocket(&mut self, error: HandshakeError) -> Result<(), Fault> {
        let status = error.status();
        let body = format!("{status} {}: {error}\n", reason_phrase(status));
        let framing = Framing::Length(body.len() as u64);
        self.begin(&Head { status, content_type: TEXT, framing, fields: error.fields() });
        self.send(body.as_bytes(), framing).await
    }

    /// The body of a request whose page wants it.
    fn wanted_body(&mut self, bytes_max: u64) -> Result<Body<'_>, Fault> {
        let mut body = Body::new(self.connection, self.facts.framing, bytes_max)?;
        if self.facts.expects_continue {
            body.invite();
        }
        Ok(body)
    }

    /// Reads the body of a request whose page does not want it. A client that holds it back is
    /// not asked for it.
    async fn drop_body(&mut self) -> Result<(), Fault> {
        if self.facts.expects_continue && self.connection.filled().is_empty() {
            self.body_left = true;
            return Ok(());
        }
        let mut body = Body::new(self.connection, self.facts.framing, UPLOAD_BYTES_MAX)?;
        while body.next().await?.is_some() {}
        Ok(())
    }

    /// An answer with its body at hand.
    async fn whole(&mut self, status: u16, content_type: &str, body: &[u8]) -> Result<(), Fault> {
        let framing = Framing::Length(body.len() as u64);
        self.begin(&Head { status, content_type, framing, fields: "" });
        self.send(body, framing).await
    }

    /// Writes the head, which settles whether the connection persists.
    fn begin(&mut self, head: &Head<'_>) {
        self.keep = self.facts.persistent
            && !self.body_left
            && head.framing != Framing::UntilClose
            && !self.connection.core().is_draining();
        let line = match (self.keep, self.facts.version) {
            (false, _) => CLOSE,
            (true, Version::Http10) => KEEP_ALIVE,
            (true, Version::Http11) => "",
        };
        let date = self.connection.date();
        head.encode(line, &date, self.connection.output());
    }

    /// Sends a piece of the body, if the method has one.
    async fn send(&mut self, data: &[u8], framing: Framing) -> Result<(), Fault> {
        if self.facts.is_head() || data.is_empty() {
            return Ok(());
        }
        if framing == Framing::Chunked {
            let mut line = [0; CHUNK_HEADER_BYTES_MAX];
            let line = chunk_header(data.len(), &mut line);
            self.connection.send(&[line, data, CHUNK_END]).await?;
        } else {
            self.connection.send(&[data]).await?;
        }
        Ok(())
    }

    /// Ends the body. `trailers`: field lines, each with its CRLF; chunked only.
    fn end(&mut self, framing: Framing, trailers: &str) {
        if framing != Framing::Chunked || self.facts.is_head() {
            return;
        }
        let (size, end) = LAST_CHUNK.split_at(LAST_CHUNK.len() - 2);
        let output = self.connection.output();
        for part in [size, trailers.as_bytes(), end] {
            output.extend_from_slice(part);
        }
    }

    /// The framing of a body whose length is not announced.
    fn unsized_framing(&self) -> Framing {
        match self.facts.version {
            Version::Http10 => Framing::UntilClose,
            Version::Http11 => Framing::Chunked,
        }
    }

    fn after(&self) -> After {
        if self.keep {
            return After::Request;
        }
        // A client that meant to go on, or has a body to send, may be sending by now.
        let client_goes_on = self.facts.persistent || self.body_left;
        if client_goes_on || !self.connection.filled().is_empty() {
            After::Linger
        } else {
            After::Close
        }
    }
}
