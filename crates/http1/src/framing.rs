//! Where a message body ends: RFC 9112 §6.3, one `match` each for requests and responses.

use crate::error::HeadError;
use crate::limits::CONTENT_LENGTH_DIGITS_MAX;
use crate::method::MethodKind;
use crate::syntax::{decimal, is_token};
use crate::version::Version;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The body is in chunks (RFC 9112 §7.1).
    Chunked,
    /// The body ends with the connection. Responses only.
    UntilClose,
}

/// The values of the framing fields of one head, before they are judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramingFields<'b> {
    pub(crate) version: Version,
    pub(crate) transfer_encoding: Occurrence<'b>,
    pub(crate) content_length: Occurrence<'b>,
}

/// How often a field that must be single occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrence<'b> {
    Absent,
    Once(&'b [u8]),
    Repeated(usize),
}

/// The framing of a request.
pub(crate) fn of_request(fields: &FramingFields<'_>) -> Result<Framing, HeadError> {
    // §6.3 item 7: without either field a request has no body.
    Ok(declared(fields)?.unwrap_or(Framing::None))
}

/// The framing that the fields declare, if they do.
///
/// Stricter than RFC 9112 §6.3 where that leaves a choice: no Content-Length beside
/// Transfer-Encoding, no Transfer-Encoding in HTTP/1.0, no repeated Content-Length even with
/// equal values. Each of these is a message that two recipients may end at different places.
fn declared(fields: &FramingFields<'_>) -> Result<Option<Framing>, HeadError> {
    use Occurrence::{Absent, Once, Repeated};
    match (fields.transfer_encoding, fields.content_length) {
        // §6.3 item 3: both fields, "ought to be handled as an error".
        (Once(_) | Repeated(_), Once(_) | Repeated(_)) => Err(HeadError::FramingConflict),
        // §6.1: Transfer-Encoding in HTTP/1.0 means that the framing is faulty.
        (Once(_) | Repeated(_), Absent) if fields.version == Version::Http10 => {
            Err(HeadError::TransferEncodingVersion)
        }
        // §6.3 item 4: where the last coding is not chunked, the end is not reliable.
        (Repeated(count), Absent) => Err(HeadError::TransferEncodingCount { count }),
        (Once(value), Absent) => chunked(value).map(|()| Some(Framing::Chunked)),
        // §6.3 item 5: an invalid Content-Length cannot be recovered from.
        (Absent, Repeated(count)) => Err(HeadError::ContentLengthCount { count }),
        // §6.3 item 6.
        (Absent, Once(value)) => length(value).map(|length| Some(Framing::Length(length))),
        (Absent, Absent) => Ok(None),
    }
}

/// The framing of a response, and its Content-Length where that is information only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseFraming {
    pub(crate) framing: Framing,
    /// The length a response to GET would have (RFC 9110 §8.6), of an answer to HEAD or a 304.
    pub(crate) declared_length: Option<u64>,
}

/// The framing of a response with `status` to a request with `method`.
///
/// The framing fields are judged as in a request even where there is no body: an upstream that
/// sends faulty ones is not to be trusted with the end of this message.
pub(crate) fn of_response(
    status: u16,
    method: MethodKind,
    fields: &FramingFields<'_>,
) -> Result<ResponseFraming, HeadError> {
    // §6.3 item 8: without either field a response ends with the connection.
    let body = declared(fields)?.unwrap_or(Framing::UntilClose);
    Ok(match (status, method) {
        // §6.3 item 1: no body whatever the fields say, and no Content-Length in 1xx and 204
        // (RFC 9110 §8.6).
        (100..=199 | 204, _) => ResponseFraming { framing: Framing::None, declared_length: None },
        (304, _) | (_, MethodKind::Head) => ResponseFraming {
            framing: Framing::None,
            declared_length: match body {
                Framing::Length(length) => Some(length),
                Framing::None | Framing::Chunked | Framing::UntilClose => None,
            },
        },
        // §6.3 item 2 (CONNECT) does not arise: a CONNECT request is refused.
        _ => ResponseFraming { framing: body, declared_length: None },
    })
}

/// Requires that the only transfer coding is `chunked`, without parameters.
fn chunked(value: &[u8]) -> Result<(), HeadError> {
    if value.eq_ignore_ascii_case(b"chunked") {
        Ok(())
    } else if is_token(value) {
        Err(HeadError::TransferCodingUnknown)
    } else {
        Err(HeadError::TransferEncodingValue)
    }
}

fn length(value: &[u8]) -> Result<u64, HeadError> {
    decimal(value, CONTENT_LENGTH_DIGITS_MAX).ok_or(HeadError::ContentLengthValue)
}
