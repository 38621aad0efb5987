//! Bytes to [`RequestHead`].

use httparse::Status;

use crate::authority::is_authority;
use crate::connection::persists;
use crate::error::HeadError;
use crate::fields::{Field, FieldLines, FieldSlots, Findings, Sender};
use crate::framing::{self, Framing, FramingFields, Occurrence};
use crate::head::incomplete_or_fault;
use crate::limits::{HeadLimits, METHOD_BYTES_MAX};
use crate::method::{Method, MethodKind};
use crate::scan;
use crate::syntax::is_target;
use crate::target::{ParsedTarget, Target};
use crate::upgrade;
use crate::version::Version;

/// The head of a request that may be sent on (RFC 9112 §3).
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'h, 'b> {
    /// The method.
    pub method: Method<'b>,
    /// The target, in the form it is sent on.
    pub target: Target<'b>,
    /// The version of the client.
    pub version: Version,
    /// `host[:port]` that the request is for, valid (RFC 9112 §3.3): from an absolute-form
    /// target, else from Host. `None` only for HTTP/1.0.
    pub host: Option<&'b [u8]>,
    /// What the rest of the exchange needs.
    pub facts: RequestFacts,
    /// Bytes consumed, with a skipped empty line in front and the final CRLF.
    pub bytes: usize,
    pub(crate) lines: FieldLines<'h, 'b>,
    /// Whether the Host line of the client is among the lines to send on.
    pub(crate) host_in_place: bool,
    /// Whether the start line can be sent on as it is.
    pub(crate) start_line_in_place: bool,
}

/// What an exchange needs of its request once the bytes of the head are gone.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts {
    /// The version of the client.
    pub version: Version,
    /// How the body ends. Never `UntilClose`.
    pub framing: Framing,
    /// The method.
    pub method: MethodKind,
    /// Whether the client wants its connection to persist (RFC 9112 §9.3).
    pub persistent: bool,
    /// Whether the client holds its body back until it sees a 100 (RFC 9110 §10.1.1).
    pub expects_continue: bool,
    /// Whether the client accepts trailer fields (RFC 9110 §10.1.4).
    pub accepts_trailers: bool,
    /// Whether the client asks for another protocol and we pass that on: HTTP/1.1, named in
    /// Connection, not only HTTP itself, and no body.
    pub upgrade: bool,
    /// Max-Forwards of an OPTIONS request (RFC 9110 §7.6.2). At 0 the proxy must answer itself.
    pub max_forwards: Option<u32>,
}

impl RequestFacts {
    /// Whether the request may be sent again (RFC 9110 §9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method.is_idempotent()
    }

    /// Whether the answer has no body.
    pub fn is_head(&self) -> bool {
        self.method == MethodKind::Head
    }
}

impl<'h, 'b> RequestHead<'h, 'b> {
    /// Parses the head at the start of `input` (RFC 9112 §2 to §6).
    ///
    /// `input`: unread bytes of a client, cut anywhere. Returns `None` if the head is incomplete
    /// and may still become valid; `bytes <= input.len()` otherwise.
    /// Errors: the head is refused, the connection cannot be used again, and
    /// [`HeadError::status`] is the answer. Bad bytes are refused at the end of their line at the
    /// latest. Does not look past the final CRLF, allocate, or repair anything.
    pub fn parse(
        input: &'b [u8],
        limits: &HeadLimits,
        slots: &'h mut FieldSlots<'b>,
    ) -> Result<Option<Self>, HeadError> {
        let window = limits.window(input);
        // RFC 9112 §2.2: one empty line before a request line is skipped.
        let skipped = if window.starts_with(b"\r\n") { 2 } else { 0 };
        let head = &window[skipped..];
        let mut parser = httparse::Request::new(&mut []);
        let parsed = parser.parse_with_uninit_headers(head, slots.first(limits.fields()));
        if let (Ok(Status::Complete(bytes)), Some(method), Some(target), Some(minor)) =
            (parsed, parser.method, parser.path, parser.version)
        {
            // The parser takes a bare LF for a line end and any number of empty lines in front,
            // so the line must start with its method, and the first field exactly where a strict
            // request line ends. Either alone is not enough: an LF in front makes up for a CR
            // missing behind.
            let first_field = method.len() + target.len() + b"  HTTP/1.1\r\n".len();
            let strict = head.starts_with(method.as_bytes())
                && method.len() <= METHOD_BYTES_MAX
                && target.len() <= limits.target_bytes_max
                && is_target(target.as_bytes());
            let slots: &'h [httparse::Header<'b>] = parser.headers;
            if strict
                && let Some((lines, found)) =
                    FieldLines::read(&head[..bytes], first_field, slots, Sender::Client)
            {
                let line = RequestLine {
                    method: Method::new(method),
                    target,
                    version: Version::from_minor(minor),
                };
                return Self::judge(line, lines, found, skipped + bytes).map(Some);
            }
        }
        incomplete_or_fault(scan::request(window, limits), window, limits)
    }

    /// Judges a head that follows the grammar. `bytes`: its length with a skipped empty line.
    fn judge(
        line: RequestLine<'b>,
        mut lines: FieldLines<'h, 'b>,
        found: Findings,
        bytes: usize,
    ) -> Result<Self, HeadError> {
        let RequestLine { method, target: target_text, version } = line;
        match method.kind() {
            MethodKind::Connect => return Err(HeadError::MethodConnect),
            MethodKind::Trace => return Err(HeadError::MethodTrace),
            _ => {}
        }
        if found.has_look_alike {
            return Err(HeadError::FramingLookAlike);
        }
        let ParsedTarget { target, authority } = Target::parse(target_text, method.kind())?;
        let host = judge_host(&mut lines, &found, version, authority)?;
        let framing = framing::of_request(&FramingFields {
            version,
            transfer_encoding: lines.occurrence(found.transfer_encoding),
            content_length: lines.occurrence(found.content_length),
        })?;
        let options = lines.apply_connection(&found)?;
        let has_body = !matches!(framing, Framing::None | Framing::Length(0));
        let facts = RequestFacts {
            version,
            framing,
            method: method.kind(),
            persistent: persists(version, options),
            expects_continue: judge_expect(&mut lines, &found, version, has_body)?,
            accepts_trailers: found.accepts_trailers && version == Version::Http11,
            upgrade: version == Version::Http11
                && options.upgrade
                && !has_body
                && upgrade::protocols(&lines).next().is_some(),
            max_forwards: judge_max_forwards(&mut lines, &found, method.kind())?,
        };
        Ok(Self {
            method,
            target,
            version,
            host,
            facts,
            bytes,
            lines,
            host_in_place: authority.is_none() && host.is_some(),
            start_line_in_place: authority.is_none() && version == Version::Http11,
        })
    }

    /// The value of the first field called `name`, in any case.
    pub fn field(&self, name: &str) -> Option<&'b [u8]> {
        self.lines.first(name)
    }

    /// All fields as received, in order; also those that are not sent on.
    pub fn fields(&self) -> impl DoubleEndedIterator<Item = Field<'b>> + use<'h, 'b> {
        self.lines.all()
    }
}

/// A request line that follows the grammar.
struct RequestLine<'b> {
    method: Method<'b>,
    target: &'b str,
    version: Version,
}

/// The effective `host[:port]` (RFC 9112 §3.2, §3.3).
///
/// The authority of an absolute-form target replaces Host, which must be there and valid all the
/// same.
fn judge_host<'b>(
    lines: &mut FieldLines<'_, 'b>,
    found: &Findings,
    version: Version,
    authority: Option<&'b [u8]>,
) -> Result<Option<&'b [u8]>, HeadError> {
    let host = match lines.occurrence(found.host) {
        Occurrence::Absent if version == Version::Http10 => None,
        Occurrence::Once(host) if is_authority(host) => Some(host),
        Occurrence::Once(_) => return Err(HeadError::HostValue),
        Occurrence::Absent => return Err(HeadError::HostCount { count: 0 }),
        Occurrence::Repeated(count) => return Err(HeadError::HostCount { count }),
    };
    if authority.is_some() && host.is_some() {
        lines.remove_found(found.host);
    }
    Ok(authority.or(host))
}

/// Whether the client waits for a 100 (RFC 9110 §10.1.1).
///
/// An HTTP/1.0 client cannot, and without a body there is nothing to wait with: then the
/// expectation is not sent on. Errors: `Expectation` for anything but one `100-continue`.
fn judge_expect(
    lines: &mut FieldLines<'_, '_>,
    found: &Findings,
    version: Version,
    has_body: bool,
) -> Result<bool, HeadError> {
    match lines.occurrence(found.expect) {
        Occurrence::Absent => Ok(false),
        Occurrence::Once(value) if value.eq_ignore_ascii_case(b"100-continue") => {
            let expects = version == Version::Http11 && has_body;
            if !expects {
                lines.remove_found(found.expect);
            }
            Ok(expects)
        }
        Occurrence::Once(_) | Occurrence::Repeated(_) => Err(HeadError::Expectation),
    }
}

/// Max-Forwards of an OPTIONS request; the field is written anew when sent on (RFC 9110 §7.6.2).
/// Other methods ignore it. A number over `u32::MAX` counts as that, as the RFC permits.
fn judge_max_forwards(
    lines: &mut FieldLines<'_, '_>,
    found: &Findings,
    method: MethodKind,
) -> Result<Option<u32>, HeadError> {
    match lines.occurrence(found.max_forwards) {
        _ if method != MethodKind::Options => Ok(None),
        Occurrence::Absent => Ok(None),
        Occurrence::Once(value) if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
            lines.remove_found(found.max_forwards);
            Ok(Some(value.iter().fold(0u32, |hops, digit| {
                hops.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
            })))
        }
        Occurrence::Once(_) | Occurrence::Repeated(_) => Err(HeadError::MaxForwards),
    }
}

#[cfg(test)]
mod tests;
