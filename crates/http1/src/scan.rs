//! Reads a head byte by byte, in order, and names its first fault.
//!
//! Called when the fast parser has not accepted a head: incomplete heads are searched for faults
//! early, refused ones get an exact reason. The verdict depends on the bytes alone, not on how
//! they were cut: a longer input never turns a fault into another one.

use crate::error::HeadError;
use crate::limits::{HeadLimits, METHOD_BYTES_MAX, VERSION_BYTES_MAX};
use crate::syntax::{FIELD_VALUE, TARGET, TOKEN, VISIBLE_BYTES, span};

/// Why a scan ended before the end of what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// No fault so far, more bytes are needed.
    Incomplete,
    /// No continuation of these bytes is acceptable.
    Fault(HeadError),
}

/// Scans a request head. Returns its length with leading empty line and final CRLF. Bytes.
pub(crate) fn request(head: &[u8], limits: &HeadLimits) -> Result<usize, Stop> {
    let mut at = 0;
    if matches!(head.first(), Some(b'\r' | b'\n')) {
        at = line_end(head, at, 1)?;
        if matches!(head.get(at), Some(b'\r' | b'\n')) {
            return Err(Stop::Fault(HeadError::LeadingLines));
        }
    }
    let end = at + span(&head[at..], &TOKEN);
    if end - at > METHOD_BYTES_MAX {
        return Err(Stop::Fault(HeadError::MethodBytes { max: METHOD_BYTES_MAX }));
    }
    at = space_after(head, at, end, HeadError::Method)?;
    let end = at + span(&head[at..], &TARGET);
    if end - at > limits.target_bytes_max {
        return Err(Stop::Fault(HeadError::TargetBytes { max: limits.target_bytes_max }));
    }
    at = space_after(head, at, end, HeadError::Target)?;
    at = version(head, at)?;
    at = line_end(head, at, 1)?;
    fields(head, at, FieldBounds { first_line: 2, max: limits.fields() })
}

/// Scans a response head. Returns its length with the final CRLF. Bytes.
pub(crate) fn response(head: &[u8], limits: &HeadLimits) -> Result<usize, Stop> {
    const FAULT: Stop = Stop::Fault(HeadError::Status);
    let mut at = version(head, 0)?;
    match head.get(at) {
        None => return Err(Stop::Incomplete),
        Some(b' ') => at += 1,
        Some(_) => return Err(FAULT),
    }
    for position in 0..3 {
        match head.get(at) {
            None => return Err(Stop::Incomplete),
            Some(b'0') if position == 0 => return Err(FAULT),
            Some(b'0'..=b'9') => at += 1,
            Some(_) => return Err(FAULT),
        }
    }
    match head.get(at) {
        None => return Err(Stop::Incomplete),
        Some(b' ') => at += span(&head[at..], &FIELD_VALUE),
        Some(b'\r' | b'\n') => {}
        Some(_) => return Err(FAULT),
    }
    match head.get(at) {
        None | Some(b'\r' | b'\n') => at = line_end(head, at, 1)?,
        Some(_) => return Err(FAULT),
    }
    fields(head, at, FieldBounds { first_line: 2, max: limits.fields() })
}

/// Where a field section starts in its message, and how many lines it may have.
#[derive(Clone, Copy)]
pub(crate) struct FieldBounds {
    /// Number of its first line, for messages.
    pub(crate) first_line: usize,
    /// Most field lines.
    pub(crate) max: usize,
}

/// Scans field lines from `at` to the empty line. Returns the offset behind its CRLF.
pub(crate) fn fields(bytes: &[u8], mut at: usize, bounds: FieldBounds) -> Result<usize, Stop> {
    let FieldBounds { first_line, max } = bounds;
    for line in first_line.. {
        match bytes.get(at) {
            None => return Err(Stop::Incomplete),
            Some(b'\r' | b'\n') => return line_end(bytes, at, line),
            Some(_) if line - first_line == max => {
                return Err(Stop::Fault(HeadError::FieldCount { max }));
            }
            Some(_) => {}
        }
        let name_end = at + span(&bytes[at..], &TOKEN);
        match bytes.get(name_end) {
            None => return Err(Stop::Incomplete),
            Some(b':') if name_end > at => {}
            Some(_) => return Err(Stop::Fault(HeadError::FieldName { line })),
        }
        let value = name_end + 1;
        let value_end = value + span(&bytes[value..], &FIELD_VALUE);
        match bytes.get(value_end) {
            None => return Err(Stop::Incomplete),
            Some(b'\r' | b'\n') => at = line_end(bytes, value_end, line)?,
            Some(_) => return Err(Stop::Fault(HeadError::FieldValue { line })),
        }
    }
    unreachable!("a slice has fewer lines than usize::MAX")
}

/// Requires CRLF at `at`. Returns the offset behind it.
fn line_end(bytes: &[u8], at: usize, line: usize) -> Result<usize, Stop> {
    match &bytes[at..] {
        [b'\r', b'\n', ..] => Ok(at + 2),
        [] | [b'\r'] => Err(Stop::Incomplete),
        _ => Err(Stop::Fault(HeadError::LineEnd { line })),
    }
}

/// Requires a non-empty element `start..end` and one space behind it. Returns the offset behind.
fn space_after(head: &[u8], start: usize, end: usize, fault: HeadError) -> Result<usize, Stop> {
    match head.get(end) {
        None => Err(Stop::Incomplete),
        Some(b' ') if end > start => Ok(end + 1),
        Some(_) => Err(Stop::Fault(fault)),
    }
}

/// Requires `HTTP/1.0` or `HTTP/1.1` at `at`. Returns the offset behind it.
fn version(head: &[u8], at: usize) -> Result<usize, Stop> {
    const NAME: &[u8] = b"HTTP/";
    let rest = &head[at..];
    let text = &rest[..span(rest, &VISIBLE_BYTES)];
    let name = &text[..text.len().min(NAME.len())];
    if text.len() > VERSION_BYTES_MAX || !NAME.starts_with(name) {
        return Err(Stop::Fault(HeadError::Protocol));
    }
    if text.len() == rest.len() {
        return Err(Stop::Incomplete);
    }
    match text.strip_prefix(NAME) {
        Some(b"1.0" | b"1.1") => Ok(at + text.len()),
        Some([b'0'..=b'9', rest @ ..]) if rest.iter().all(|b| matches!(b, b'0'..=b'9' | b'.')) => {
            Err(Stop::Fault(HeadError::Version))
        }
        _ => Err(Stop::Fault(HeadError::Protocol)),
    }
}
