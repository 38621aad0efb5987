//! Chunks, trailers and the proxy's own answers to bytes.

use crate::edits::{Edits, FieldNames};
use crate::fields::encode_field;
use crate::name::may_be_trailer;
use crate::syntax::{TOKEN, span, trim};
use crate::version::Version;

/// What follows the data of a chunk (RFC 9112 §7.1).
pub const CHUNK_END: &[u8] = b"\r\n";

/// The end of a chunked body without trailer fields (RFC 9112 §7.1).
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Longest result of [`chunk_header`]. Bytes: 16 digits and CRLF.
pub const CHUNK_HEADER_BYTES_MAX: usize = 18;

/// The line in front of a chunk of `length > 0` bytes (RFC 9112 §7.1), written into `buffer`.
///
/// A length of 0 would end the body; that is [`LAST_CHUNK`].
pub fn chunk_header(length: usize, buffer: &mut [u8; CHUNK_HEADER_BYTES_MAX]) -> &[u8] {
    debug_assert!(length > 0, "a chunk of no data ends the body");
    let mut start = CHUNK_HEADER_BYTES_MAX - 2;
    buffer[start..].copy_from_slice(b"\r\n");
    let mut left = length;
    while left > 0 {
        start -= 1;
        buffer[start] = b"0123456789abcdef"[left & 0xf];
        left >>= 4;
    }
    &buffer[start..]
}

/// Appends the last chunk with the fields of `section` that may stand in a trailer section
/// (RFC 9110 §6.5.1), and the final CRLF.
///
/// `section`: a trailer section as [`PieceKind::Trailers`](crate::PieceKind) delivers it. Left
/// out are fields that frame, route, authenticate, modify the request, steer caches, describe
/// the content, or concern one connection; and those in `remove`, as a recipient may read a trailer
/// field as it would read one of the head.
pub fn encode_trailers(section: &[u8], remove: &FieldNames, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for line in section.split(|&b| b == b'\n') {
        let name = &line[..span(line, &TOKEN)];
        if let Some(value) = line[name.len()..].strip_prefix(b":")
            && !name.is_empty()
            && may_be_trailer(name)
            && !remove.contains(name)
        {
            encode_field(name, trim(value.strip_suffix(b"\r").unwrap_or(value)), out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// A response that the proxy makes itself.
#[derive(Clone, Copy, Debug)]
pub struct LocalResponse<'a> {
    /// The status. 200 to 599.
    pub status: u16,
    /// Further fields: names are tokens, values hold no control bytes, none frames the message.
    pub extra: &'a [(&'a str, &'a str)],
    /// What the operator changes of the fields, those of `extra` included.
    pub edits: Edits<'a>,
    /// Value of Date, an IMF-fixdate (RFC 9110 §5.6.7).
    pub date: &'a [u8],
    /// The body, or what it would be for HEAD.
    pub body: &'a [u8],
    /// Whether the request was HEAD: the body is announced and not sent.
    pub head_only: bool,
    /// Whether the connection ends behind this response.
    pub close: bool,
    /// Version of the client.
    pub version: Version,
}

impl LocalResponse<'_> {
    /// Appends the response to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!((200..=599).contains(&self.status), "a local response is a final one");
        encode_status_line(self.status, reason_phrase(self.status).as_bytes(), out);
        encode_field(b"Date", self.date, out);
        for (name, value) in self.extra {
            if !self.edits.remove.contains(name.as_bytes()) {
                encode_field(name.as_bytes(), value.as_bytes(), out);
            }
        }
        out.extend_from_slice(self.edits.append.as_bytes());
        let has_body = !matches!(self.status, 204 | 304);
        if has_body {
            encode_content_length(self.body.len() as u64, out);
        }
        encode_persistence(!self.close, self.version, out);
        out.extend_from_slice(b"\r\n");
        if has_body && !self.head_only {
            out.extend_from_slice(self.body);
        }
    }
}

pub(crate) fn encode_status_line(status: u16, reason: &[u8], out: &mut Vec<u8>) {
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status), b' ']);
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// Appends the Connection field that tells a client whether its connection persists, where that
/// is not what its version means anyway (RFC 9112 §9.3, §9.6).
pub(crate) fn encode_persistence(keep: bool, client: Version, out: &mut Vec<u8>) {
    match (keep, client) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, Version::Http11) => {}
    }
}

pub(crate) fn encode_content_length(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    encode_decimal(length, out);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn encode_decimal(value: u64, out: &mut Vec<u8>) {
    const DIGITS_MAX: usize = u64::MAX.ilog10() as usize + 1;
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    let mut left = value;
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// The reason phrase of a status (RFC 9110 §15); empty for one that is not listed.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edits::{FieldBlock, FieldName};

    #[test]
    fn a_chunk_header_is_the_length_in_hex() {
        let mut buffer = [0xff; CHUNK_HEADER_BYTES_MAX];
        assert_eq!(chunk_header(1, &mut buffer), b"1\r\n");
        assert_eq!(chunk_header(0x10, &mut buffer), b"10\r\n");
        assert_eq!(chunk_header(0xabcdef, &mut buffer), b"abcdef\r\n");
        assert_eq!(chunk_header(usize::MAX, &mut buffer).len(), 2 * size_of::<usize>() + 2);
    }

    #[test]
    fn a_decimal_has_no_leading_zeros() {
        for value in [0, 1, 9, 10, 101, u64::MAX] {
            let mut out = Vec::new();
            encode_decimal(value, &mut out);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }

    #[test]
    fn trailers_are_sent_without_fields_that_do_not_belong_there() {
        let remove = FieldNames::new([FieldName::new("X-User").expect("valid")]);
        let encode = |section: &[u8]| {
            let mut out = Vec::new();
            encode_trailers(section, &remove, &mut out);
            String::from_utf8(out).expect("rows are ASCII")
        };
        assert_eq!(encode(b"\r\n"), "0\r\n\r\n");
        assert_eq!(
            encode(b"Host: evil\r\nDigest:  x \r\nContent-Length: 9\r\ngrpc-status:0\r\n\r\n"),
            "0\r\nDigest: x\r\ngrpc-status: 0\r\n\r\n"
        );
        assert_eq!(encode(b"x-user: a\r\nX_USER: b\r\nX-Users: c\r\n\r\n"), {
            "0\r\nX-Users: c\r\n\r\n"
        });
        // Not a section that a decoder delivers; it must not end in a panic or a broken line.
        assert_eq!(encode(b"Digest\r\n x: y\r\n: z\r\n"), "0\r\n\r\n");
    }

    fn response(status: u16) -> LocalResponse<'static> {
        LocalResponse {
            status,
            extra: &[("Content-Type", "text/plain")],
            edits: Edits::NONE,
            date: b"now",
            body: b"hello",
            head_only: false,
            close: false,
            version: Version::Http11,
        }
    }

    fn encoded(response: LocalResponse<'_>) -> String {
        let mut out = Vec::new();
        response.encode(&mut out);
        String::from_utf8(out).expect("rows are ASCII")
    }

    #[test]
    fn a_local_response_is_framed_by_its_length() {
        let start = "HTTP/1.1 404 Not Found\r\nDate: now\r\nContent-Type: text/plain\r\n\
                     Content-Length: 5\r\n";
        assert_eq!(encoded(response(404)), format!("{start}\r\nhello"));
        let head_only = LocalResponse { head_only: true, ..response(404) };
        assert_eq!(encoded(head_only), format!("{start}\r\n"));
        let close = LocalResponse { close: true, ..response(404) };
        assert_eq!(encoded(close), format!("{start}Connection: close\r\n\r\nhello"));
        let http10 = LocalResponse { version: Version::Http10, ..response(404) };
        assert_eq!(encoded(http10), format!("{start}Connection: keep-alive\r\n\r\nhello"));
    }

    #[test]
    fn a_local_response_is_edited_as_any_other() {
        let name = |name| FieldName::new(name).expect("valid");
        let mut append = FieldBlock::default();
        append.push(&name("content-type"), b"text/html");
        let remove = FieldNames::new([name("Content-Type")]);
        let edits = Edits { remove: &remove, append: &append };
        assert_eq!(
            encoded(LocalResponse { edits, ..response(404) }),
            "HTTP/1.1 404 Not Found\r\nDate: now\r\ncontent-type: text/html\r\n\
             Content-Length: 5\r\n\r\nhello"
        );
    }

    #[test]
    fn a_local_response_without_content_has_no_length() {
        for status in [204, 304] {
            let out = encoded(response(status));
            assert!(out.ends_with("text/plain\r\n\r\n"), "{out}");
        }
        assert!(encoded(response(599)).starts_with("HTTP/1.1 599 \r\n"));
    }
}
