//! Heads of answers to bytes.

use baton_http1::{Framing, reason_phrase};

use super::date::DATE_BYTES;

/// Tells the client that its connection ends behind this answer (RFC 9112 §9.6).
pub(super) const CLOSE: &str = "Connection: close\r\n";

/// Tells an HTTP/1.0 client that its connection goes on (RFC 9112 §9.3).
pub(super) const KEEP_ALIVE: &str = "Connection: keep-alive\r\n";

/// The methods that are not refused by the parser (RFC 9110 §10.2.1).
pub(super) const ALLOW: &str = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n";

/// The head of an answer. None of its text is a client's, so none needs checking.
pub(super) struct Head<'a> {
    /// 100 to 999.
    pub(super) status: u16,
    /// Value of Content-Type; empty for none.
    pub(super) content_type: &'a str,
    /// `None` writes no framing field.
    pub(super) framing: Framing,
    /// Further field lines, each with its CRLF.
    pub(super) fields: &'a str,
}

impl Head<'_> {
    /// Appends the head. `connection`: a Connection line, or nothing.
    pub(super) fn encode(&self, connection: &str, date: &[u8; DATE_BYTES], out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        append_decimal(u64::from(self.status), out);
        out.push(b' ');
        out.extend_from_slice(reason_phrase(self.status).as_bytes());
        out.extend_from_slice(b"\r\nServer: baton-origin\r\nDate: ");
        out.extend_from_slice(date);
        if !self.content_type.is_empty() {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(self.content_type.as_bytes());
        }
        match self.framing {
            Framing::None | Framing::UntilClose => {}
            Framing::Chunked => out.extend_from_slice(b"\r\nTransfer-Encoding: chunked"),
            Framing::Length(length) => {
                out.extend_from_slice(b"\r\nContent-Length: ");
                append_decimal(length, out);
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.fields.as_bytes());
        out.extend_from_slice(connection.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

fn append_decimal(number: u64, out: &mut Vec<u8>) {
    const DIGITS_MAX: usize = u64::MAX.ilog10() as usize + 1;
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    let mut left = number;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_lines_of_its_framing_and_no_others() {
        let rows = [
            (Framing::None, "\r\n"),
            (Framing::UntilClose, "\r\n"),
            (Framing::Chunked, "\r\nTransfer-Encoding: chunked\r\n"),
            (Framing::Length(0), "\r\nContent-Length: 0\r\n"),
            (Framing::Length(u64::MAX), "\r\nContent-Length: 18446744073709551615\r\n"),
        ];
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        for (framing, lines) in rows {
            let mut out = Vec::new();
            let head = Head { status: 404, content_type: "", framing, fields: "A: b\r\n" };
            head.encode(CLOSE, date, &mut out);
            let text = String::from_utf8(out).expect("a head is text");
            let expected = format!(
                "HTTP/1.1 404 Not Found\r\nServer: baton-origin\r\n\
                 Date: Sun, 06 Nov 1994 08:49:37 GMT{lines}A: b\r\nConnection: close\r\n\r\n"
            );
            assert_eq!(text, expected);
        }
    }
}
