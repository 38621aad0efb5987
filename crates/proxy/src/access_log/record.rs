//! What is noted of a request while it is served.

use std::time::Instant;

use baton_http1::{METHOD_BYTES_MAX, RequestHead, Version};

/// Longest request target, or refused request line, in a line. Bytes, as written; so are the next
/// ones. A longer text is cut.
pub(super) const TARGET_BYTES_MAX: usize = 4 * 1024;

/// Longest Referer, and longest User-Agent.
pub(super) const FIELD_BYTES_MAX: usize = 1024;

/// Longest host.
pub(super) const HOST_BYTES_MAX: usize = 256;

/// Longest request ID.
pub(super) const ID_BYTES_MAX: usize = 128;

/// What is noted of a request while it is served. The proxy fills the public fields.
pub(crate) struct Record {
    /// When its first byte was there.
    pub(crate) started: Instant,
    /// When its head was complete.
    pub(crate) head_at: Option<Instant>,
    /// When there was a connection to the endpoint that answered, or was tried last.
    pub(crate) connected_at: Option<Instant>,
    /// When the head of the answer was there.
    pub(crate) first_byte_at: Option<Instant>,
    /// The status of the final answer; 0: none was sent.
    pub(crate) status: u16,
    /// Bytes of the request's body, without its framing.
    pub(crate) body_in: u64,
    /// Bytes of the answer's body sent, without its framing.
    pub(crate) body_out: u64,
    /// Bytes from the client through a tunnel.
    pub(crate) tunnel_in: u64,
    /// Bytes to the client through a tunnel.
    pub(crate) tunnel_out: u64,
    /// Times it was sent again.
    pub(crate) retries: u32,
    /// Whether the connection to the endpoint had been used before.
    pub(crate) reused: bool,
    version: Option<Version>,
    text: Text,
}

/// Copies of parts of a request's head, one behind the other; each ends where the array says. What
/// is absent is empty.
struct Text {
    bytes: Vec<u8>,
    ends: [u16; PARTS],
}

/// Parts of a head, in their order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Method,
    /// The target; or the request line of a head that was refused.
    Target,
    Host,
    Referer,
    UserAgent,
    RequestId,
}

const PARTS: usize = Part::RequestId as usize + 1;

/// Bytes copied at most: each part one byte longer than it is written, which shows that it is cut.
const TEXT_BYTES_MAX: usize = METHOD_BYTES_MAX
    + TARGET_BYTES_MAX
    + HOST_BYTES_MAX
    + 2 * FIELD_BYTES_MAX
    + ID_BYTES_MAX
    + PARTS;
const _: () = assert!(TEXT_BYTES_MAX <= u16::MAX as usize);

impl Part {
    /// Most bytes of it that are written.
    pub(super) fn bytes_max(self) -> usize {
        match self {
            Part::Method => METHOD_BYTES_MAX,
            Part::Target => TARGET_BYTES_MAX,
            Part::Host => HOST_BYTES_MAX,
            Part::Referer | Part::UserAgent => FIELD_BYTES_MAX,
            Part::RequestId => ID_BYTES_MAX,
        }
    }
}

impl Text {
    /// Appends to `part`, which is the last one that is there, what fits.
    fn push(&mut self, part: Part, bytes: &[u8]) {
        let start = (part as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        let room = (part.bytes_max() + 1).saturating_sub(self.bytes.len() - usize::from(start));
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // Later parts are empty, and end where this one does.
        self.ends[part as usize..].fill(self.bytes.len() as u16);
    }
}

impl Record {
    /// `text`: an empty vector, with its memory.
    pub(super) fn new(started: Instant, text: Vec<u8>) -> Record {
        debug_assert!(text.is_empty());
        Record {
            started,
            head_at: None,
            connected_at: None,
            first_byte_at: None,
            status: 0,
            body_in: 0,
            body_out: 0,
            tunnel_in: 0,
            tunnel_out: 0,
            retries: 0,
            reused: false,
            version: None,
            text: Text { bytes: text, ends: [0; PARTS] },
        }
    }

    /// Copies what the line says of the head. Called once, where the head was read.
    pub(crate) fn capture(&mut self, head: &RequestHead<'_, '_>) {
        let (mut referer, mut agent) = (None, None);
        for field in head.fields() {
            match field.name.len() {
                7 if referer.is_none() && field.name.eq_ignore_ascii_case("referer") => {
                    referer = Some(field.value);
                }
                10 if agent.is_none() && field.name.eq_ignore_ascii_case("user-agent") => {
                    agent = Some(field.value);
                }
                _ => {}
            }
        }
        self.version = Some(head.version);
        self.text.push(Part::Method, head.method.as_str().as_bytes());
        self.text.push(Part::Target, head.target.path().as_bytes());
        if let Some(query) = head.target.query() {
            self.text.push(Part::Target, b"?");
            self.text.push(Part::Target, query.as_bytes());
        }
        self.text.push(Part::Host, head.host.unwrap_or_default());
        self.text.push(Part::Referer, referer.unwrap_or_default());
        self.text.push(Part::UserAgent, agent.unwrap_or_default());
    }

    /// Copies the first line of a head that was refused: `input` is what the client sent.
    pub(crate) fn capture_refused(&mut self, input: &[u8]) {
        let input = input.strip_prefix(b"\r\n").unwrap_or(input);
        let input = &input[..input.len().min(TARGET_BYTES_MAX + 1)];
        let line = input.split(|byte| *byte == b'\n').next().unwrap_or_default();
        self.text.push(Part::Target, line.strip_suffix(b"\r").unwrap_or(line));
    }

    /// The ID the request goes by. Called once, after the capture.
    pub(crate) fn set_request_id(&mut self, id: &[u8]) {
        self.text.push(Part::RequestId, id);
    }

    pub(super) fn version(&self) -> Option<Version> {
        self.version
    }

    pub(super) fn part(&self, part: Part) -> &[u8] {
        let start = (part as usize).checked_sub(1).map_or(0, |before| self.text.ends[before]);
        &self.text.bytes[usize::from(start)..usize::from(self.text.ends[part as usize])]
    }

    pub(super) fn into_text(self) -> Vec<u8> {
        self.text.bytes
    }
}
