//! Bytes to [`ResponseHead`].

use httparse::{Header, ParserConfig, Status};

use crate::connection::persists;
use crate::error::HeadError;
use crate::fields::{Field, FieldLines, FieldSlots, Findings, Sender, first_line_bytes};
use crate::framing::{self, Framing, FramingFields};
use crate::head::incomplete_or_fault;
use crate::limits::HeadLimits;
use crate::method::MethodKind;
use crate::scan;
use crate::upgrade;
use crate::version::Version;

/// The head of a response that may be sent on (RFC 9112 §4).
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'h, 'b> {
    /// The status. 100 to 999.
    pub status: u16,
    /// The version of the upstream.
    pub version: Version,
    /// The reason phrase; may be empty.
    pub reason: &'b [u8],
    /// How the body ends, given the request's method. `None` for 1xx.
    pub framing: Framing,
    /// Whether the upstream lets its connection persist (RFC 9112 §9.3).
    pub persistent: bool,
    /// Bytes consumed, with the final CRLF.
    pub bytes: usize,
    /// Content-Length of an answer to HEAD or of a 304.
    pub(crate) declared_length: Option<u64>,
    pub(crate) has_date: bool,
    pub(crate) lines: FieldLines<'h, 'b>,
}

impl<'h, 'b> ResponseHead<'h, 'b> {
    /// Parses the head at the start of `input` (RFC 9112 §2 to §6).
    ///
    /// `input`: unread bytes of an upstream, cut anywhere. `request`: method of the request that
    /// this answers. Returns `None` if the head is incomplete and may still become valid;
    /// `bytes <= input.len()` otherwise.
    /// Errors: the upstream's connection cannot be used again; the client gets a 502. Does not
    /// look past the final CRLF, allocate, or repair anything.
    pub fn parse(
        input: &'b [u8],
        limits: &HeadLimits,
        slots: &'h mut FieldSlots<'b>,
        request: MethodKind,
    ) -> Result<Option<Self>, HeadError> {
        let window = limits.window(input);
        let mut parser = httparse::Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(
            &mut parser,
            window,
            slots.first(limits.fields()),
        );
        if let (Ok(Status::Complete(bytes)), Some(status), Some(minor)) =
            (parsed, parser.code, parser.version)
        {
            let head = &window[..bytes];
            let slots: &'h [Header<'b>] = parser.headers;
            if let Some(line) = StatusLine::read(head, slots, status, minor)
                && let Some((lines, found)) =
                    FieldLines::read(head, line.bytes, slots, Sender::Upstream)
            {
                return Self::judge(line, lines, found, request).map(Some);
            }
        }
        incomplete_or_fault(scan::response(window, limits), window, limits)
    }

    /// Judges a head that follows the grammar.
    fn judge(
        line: StatusLine<'b>,
        mut lines: FieldLines<'h, 'b>,
        found: Findings,
        request: MethodKind,
    ) -> Result<Self, HeadError> {
        if found.has_look_alike {
            return Err(HeadError::FramingLookAlike);
        }
        let StatusLine { status, version, reason, .. } = line;
        let framing = framing::of_response(
            status,
            request,
            &FramingFields {
                version,
                transfer_encoding: lines.occurrence(found.transfer_encoding),
                content_length: lines.occurrence(found.content_length),
            },
        )?;
        let options = lines.apply_connection(&found)?;
        Ok(Self {
            status,
            version,
            reason,
            framing: framing.framing,
            persistent: persists(version, options),
            bytes: lines.head_bytes(),
            declared_length: framing.declared_length,
            has_date: found.has_date,
            lines,
        })
    }

    /// Whether another response follows: 1xx other than 101 (RFC 9110 §15.2).
    pub fn is_interim(&self) -> bool {
        (100..=199).contains(&self.status) && self.status != 101
    }

    /// Whether a protocol is named that a 101 may switch to.
    pub(crate) fn switches_protocol(&self) -> bool {
        upgrade::protocols(&self.lines).next().is_some()
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

/// A status line that follows the grammar.
struct StatusLine<'b> {
    status: u16,
    version: Version,
    reason: &'b [u8],
    /// Its length with CRLF.
    bytes: usize,
}

impl<'b> StatusLine<'b> {
    /// The status line of `head`, which the parser has read as `status` and `minor`. `None` if
    /// the line is not at the very start, does not end with CRLF, or the status is below 100.
    fn read(head: &'b [u8], slots: &[Header<'b>], status: u16, minor: u8) -> Option<Self> {
        const REASON: usize = b"HTTP/1.1 200 ".len();
        let bytes = first_line_bytes(head, slots);
        let line = head[..bytes].strip_suffix(b"\r\n")?;
        (status >= 100 && line.starts_with(b"HTTP/")).then_some(Self {
            status,
            version: Version::from_minor(minor),
            // The space before an empty reason may be missing.
            reason: line.get(REASON..).unwrap_or_default(),
            bytes,
        })
    }
}

#[cfg(test)]
mod tests;
