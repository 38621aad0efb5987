//! Strict HTTP/1.x: what a message would have to look like, independent of the proxy's own parser.
//!
//! The parsers read on after a finding where they can, so that the target of a smuggled request is
//! still seen. They take bytes and return values; they never wait.

mod response;
#[cfg(test)]
mod tests;

use serde::Deserialize;

pub(crate) use response::{Asked, Responses, responses};

/// A fault of a message, by the side it was sent to.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Finding {
    /// In what reached the upstream.
    Request(Violation),
    /// In what reached the client.
    Answer(Violation),
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Violation {
    Nul,
    BareCr,
    BareLf,
    /// A folded field line (RFC 9112 §5.2).
    ObsFold,
    NoColon,
    BadName,
    BadRequestLine,
    BadStatusLine,
    Version,
    /// An empty line before a request.
    StrayCrlf,
    NoHost,
    TwoHosts,
    ClTeBoth,
    MultiCl,
    BadCl,
    BadTe,
    /// Transfer-Encoding in a message of HTTP/1.0, or to a client of it.
    TeIn10,
    /// An interim response to a client of HTTP/1.0 (RFC 9110 §15.2).
    InterimTo10,
    BadChunk,
    /// Bytes that belong to no message.
    Garbage,
    /// A request that was meant to be seen as a body.
    Canary,
}

/// Field names in lower case and values without the white space around them, in order. Characters
/// are bytes (Latin-1).
pub(crate) type Fields = Vec<(String, String)>;

/// The combined value of a field (RFC 9110 §5.3); `None` if there is none.
pub(crate) fn field(fields: &Fields, name: &str) -> Option<String> {
    let lines: Vec<&str> = values(fields, name).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

fn values<'a>(fields: &'a Fields, name: &'a str) -> impl Iterator<Item = &'a str> {
    fields.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// A request as far as it has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
    pub(crate) complete: bool,
    /// Bytes of the input that it takes, if it is complete.
    pub(crate) used: usize,
    pub(crate) violations: Vec<Violation>,
}

/// Reads the request at the start of `input`; `None` while its head is incomplete.
pub(crate) fn request(input: &[u8]) -> Option<Request> {
    let head = Head::read(input)?;
    let mut violations = head.violations;
    let (method, target, version) = match request_line(&head.line) {
        Some(parts) => parts,
        None => {
            violations.push(Violation::BadRequestLine);
            let mut words = head.line.split(' ');
            let mut word = || words.next().unwrap_or_default();
            (word(), word(), word())
        }
    };
    if target.starts_with("/smuggled") {
        violations.push(Violation::Canary);
    }
    if version == "HTTP/1.1" {
        match values(&head.fields, "host").count() {
            0 => violations.push(Violation::NoHost),
            1 => {}
            _ => violations.push(Violation::TwoHosts),
        }
    }
    let framing = framing(&head.fields, version, &mut violations);
    let rest = &input[head.used..];
    let body = match framing {
        Framing::Unsaid => Body { complete: true, ..Body::default() },
        Framing::Length(length) => Body::of_length(rest, length),
        Framing::Chunked => Body::chunked(rest),
        Framing::Invalid => Body::default(),
    };
    if body.invalid {
        violations.push(Violation::BadChunk);
    }
    let (method, target) = (method.to_owned(), target.to_owned());
    Some(Request {
        method,
        target,
        fields: head.fields,
        used: head.used + body.used,
        body: body.data,
        trailers: body.trailers,
        complete: body.complete,
        violations,
    })
}

/// Method, target and version of a request line (RFC 9112 §3).
fn request_line(line: &str) -> Option<(&str, &str, &str)> {
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let visible = |c: char| c > ' ' && c != '\x7f';
    let valid = words.next().is_none()
        && is_token(method)
        && !target.is_empty()
        && target.chars().all(visible)
        && matches!(version, "HTTP/1.0" | "HTTP/1.1");
    valid.then_some((method, target, version))
}

/// Start line and fields of a message.
struct Head {
    line: String,
    fields: Fields,
    violations: Vec<Violation>,
    /// Bytes with the empty line at the end.
    used: usize,
}

impl Head {
    /// The head at the start of `input`; `None` while it has no end. An end with bare LFs counts
    /// as one, and as a finding.
    fn read(input: &[u8]) -> Option<Head> {
        let mut violations = Vec::new();
        let mut lines = Vec::new();
        let mut used = 0;
        loop {
            let length = input[used..].iter().position(|byte| *byte == b'\n')?;
            let line = &input[used..used + length];
            used += length + 1;
            let line = line.strip_suffix(b"\r").unwrap_or_else(|| {
                violations.push(Violation::BareLf);
                line
            });
            if line.is_empty() && !lines.is_empty() {
                break;
            }
            lines.push(text(line));
        }
        let mut lines = lines.into_iter();
        let line = lines.next().unwrap_or_default();
        let mut head = Head { line, fields: Vec::new(), violations, used };
        head.control_characters(&input[..used]);
        for line in lines {
            head.field_line(&line);
        }
        Some(head)
    }

    fn control_characters(&mut self, bytes: &[u8]) {
        if bytes.contains(&0) {
            self.violations.push(Violation::Nul);
        }
        if bytes.windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\n') {
            self.violations.push(Violation::BareCr);
        }
    }

    fn field_line(&mut self, line: &str) {
        if line.starts_with([' ', '\t']) {
            self.violations.push(Violation::ObsFold);
            if let Some((_, value)) = self.fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim_matches([' ', '\t']));
            }
            return;
        }
        match field_line(line) {
            Some((name, value)) => {
                if !is_token(&name) {
                    self.violations.push(Violation::BadName);
                }
                self.fields.push((name, value));
            }
            None => self.violations.push(Violation::NoColon),
        }
    }
}

/// Name and value of a field line; `None` without a colon.
fn field_line(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()))
}

/// What the fields say about the body (RFC 9112 §6).
enum Framing {
    /// Nothing: a request has no body, an answer lasts until the close.
    Unsaid,
    Length(usize),
    Chunked,
    /// Nobody can tell where it ends.
    Invalid,
}

fn framing(fields: &Fields, version: &str, violations: &mut Vec<Violation>) -> Framing {
    let lengths: Vec<&str> = values(fields, "content-length").collect();
    let codings: Vec<&str> = values(fields, "transfer-encoding").collect();
    if !lengths.is_empty() && !codings.is_empty() {
        violations.push(Violation::ClTeBoth);
    }
    if lengths.len() > 1 {
        violations.push(Violation::MultiCl);
    }
    if !codings.is_empty() {
        if version == "HTTP/1.0" {
            violations.push(Violation::TeIn10);
        }
        let joined = codings.join(",").to_ascii_lowercase();
        let names: Vec<&str> =
            joined.split(',').map(|name| name.trim_matches([' ', '\t'])).collect();
        let chunked = names.iter().filter(|name| **name == "chunked").count();
        let last = names.last() == Some(&"chunked");
        if codings.len() > 1 || !last || chunked != 1 || !names.iter().all(|name| is_token(name)) {
            violations.push(Violation::BadTe);
        }
        return if last { Framing::Chunked } else { Framing::Invalid };
    }
    let Some(length) = lengths.first() else {
        return Framing::Unsaid;
    };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    match length.parse() {
        Ok(length) if digits => Framing::Length(length),
        _ => {
            violations.push(Violation::BadCl);
            Framing::Invalid
        }
    }
}

/// A body as far as it has come.
#[derive(Default)]
struct Body {
    data: Vec<u8>,
    trailers: Fields,
    complete: bool,
    /// Not chunks as RFC 9112 §7.1 has them.
    invalid: bool,
    /// Bytes of the input read, framing included.
    used: usize,
}

impl Body {
    fn of_length(input: &[u8], length: usize) -> Body {
        let used = length.min(input.len());
        let data = input[..used].to_vec();
        Body { data, complete: used == length, used, ..Body::default() }
    }

    fn chunked(input: &[u8]) -> Body {
        let mut body = Body::default();
        body.invalid = body.chunks(input).is_err();
        body
    }

    /// Reads chunks and trailers. Error: they are not valid.
    fn chunks(&mut self, input: &[u8]) -> Result<(), ()> {
        while let Some(line) = line(&input[self.used..])? {
            let size = chunk_size(line).ok_or(())?;
            let start = self.used + line.len() + 2;
            if size == 0 {
                self.used = start;
                return self.trailer_lines(input);
            }
            let end = start.checked_add(size).ok_or(())?;
            if input.len() < end.saturating_add(2) {
                return Ok(());
            }
            if &input[end..end + 2] != b"\r\n" {
                return Err(());
            }
            self.data.extend_from_slice(&input[start..end]);
            self.used = end + 2;
        }
        Ok(())
    }

    fn trailer_lines(&mut self, input: &[u8]) -> Result<(), ()> {
        while let Some(line) = line(&input[self.used..])? {
            self.used += line.len() + 2;
            if line.is_empty() {
                self.complete = true;
                return Ok(());
            }
            let (name, value) = field_line(&text(line)).ok_or(())?;
            if !is_token(&name) || line.contains(&b'\r') || line.contains(&0) {
                return Err(());
            }
            self.trailers.push((name, value));
        }
        Ok(())
    }
}

/// The line at the start of `input` without its CRLF; `None` while it has no end. Error: it ends
/// with a bare LF.
fn line(input: &[u8]) -> Result<Option<&[u8]>, ()> {
    let Some(length) = input.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    input[..length].strip_suffix(b"\r").map(Some).ok_or(())
}

/// The size of a chunk from its line, of which extensions are allowed (RFC 9112 §7.1.1).
fn chunk_size(line: &[u8]) -> Option<usize> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extensions) = line.split_at(digits);
    let blanks = extensions.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let extensions = &extensions[blanks..];
    let printable = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    let valid = match extensions.first() {
        None => blanks == 0,
        Some(first) => *first == b';' && extensions.iter().all(printable),
    };
    if !valid {
        return None;
    }
    usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

/// A token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(token)
}

/// Bytes as text, one character each (Latin-1).
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}
