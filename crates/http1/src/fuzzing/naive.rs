//! A second reader of HTTP/1, as plain and as strict as possible, sharing no code with the first.

use crate::Framing;

/// A head that follows the grammar.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The start line without CRLF.
    pub(crate) start: String,
    /// Names in lower case, and values without surrounding whitespace.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    /// Length with the final CRLF.
    pub(crate) bytes: usize,
}

/// A message with its body.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<u8>,
    pub(crate) bytes: usize,
}

/// A chunked body.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    pub(crate) data: Vec<u8>,
    /// The trailer section with its final CRLF, or nothing.
    pub(crate) trailers: Vec<u8>,
    pub(crate) bytes: usize,
}

/// Fields that concern one connection or frame the message, and are written anew.
const WRITTEN_ANEW: [&str; 6] =
    ["connection", "content-length", "te", "transfer-encoding", "upgrade", "date"];

/// Fields by which the proxy tells what it knows.
const OURS: [&str; 5] =
    ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "via"];

/// The head at the start of `input`, if it is complete and strict.
pub(crate) fn head(input: &[u8]) -> Option<Head> {
    let input_start = if input.starts_with(b"\r\n") { 2 } else { 0 };
    let input = &input[input_start..];
    let end = input.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let mut lines = split_lines(&input[..end - 2])?;
    let start = String::from_utf8_lossy(lines.remove(0)).into_owned();
    let mut fields = Vec::new();
    for line in lines {
        fields.push(field(line)?);
    }
    Some(Head { start, fields, bytes: input_start + end })
}

/// The message at the start of `input`, whose body is framed as `framing`, if it is complete.
pub(crate) fn message(input: &[u8], framing: Framing) -> Option<Message> {
    let head = head(input)?;
    let body = &input[head.bytes..];
    let (data, trailers, bytes) = match framing {
        Framing::None => (Vec::new(), Vec::new(), 0),
        Framing::Length(length) => {
            let length = usize::try_from(length).ok()?;
            (body.get(..length)?.to_vec(), Vec::new(), length)
        }
        Framing::Chunked => {
            let chunked = chunked(body)?;
            (chunked.data, chunked.trailers, chunked.bytes)
        }
        Framing::UntilClose => (body.to_vec(), Vec::new(), body.len()),
    };
    Some(Message { bytes: head.bytes + bytes, head, body: data, trailers })
}

/// The chunked body at the start of `input`, if it is complete and strict.
pub(crate) fn chunked(input: &[u8]) -> Option<Chunked> {
    let mut data = Vec::new();
    let mut at = 0;
    loop {
        let line_end = at + input[at..].windows(2).position(|window| window == b"\r\n")?;
        let line = &input[at..line_end];
        at = line_end + 2;
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let size = usize::from_str_radix(std::str::from_utf8(&line[..digits]).ok()?, 16).ok()?;
        if line.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return None;
        }
        if size == 0 {
            break;
        }
        data.extend_from_slice(input.get(at..at.checked_add(size)?)?);
        at += size;
        if input.get(at..at + 2)? != b"\r\n" {
            return None;
        }
        at += 2;
    }
    if input[at..].starts_with(b"\r\n") {
        return Some(Chunked { data, trailers: Vec::new(), bytes: at + 2 });
    }
    let end = at + input[at..].windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    for line in split_lines(&input[at..end - 2])? {
        field(line)?;
    }
    Some(Chunked { data, trailers: input[at..end].to_vec(), bytes: end })
}

/// Lines that all end with CRLF and hold no other CR, LF or NUL.
fn split_lines(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lines: Vec<&[u8]> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        if rest[..end].iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return None;
        }
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    Some(lines)
}

fn field(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|&b| b == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    let is_tchar = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_tchar) {
        return None;
    }
    let value = &line[colon + 1..];
    if value.iter().any(|&b| (b < b' ' && b != b'\t') || b == 0x7f) {
        return None;
    }
    let is_space = |b: &&u8| matches!(**b, b' ' | b'\t');
    let before = value.iter().take_while(is_space).count();
    let behind = value[before..].iter().rev().take_while(is_space).count();
    Some((name.to_ascii_lowercase(), value[before..value.len() - behind].to_vec()))
}

impl Head {
    fn values(&self, name: &str) -> Vec<&[u8]> {
        let same = |field: &&(String, Vec<u8>)| field.0.replace('_', "-") == name;
        self.fields.iter().filter(same).map(|field| field.1.as_slice()).collect()
    }

    fn words(&self) -> Vec<&str> {
        self.start.split(' ').collect()
    }

    /// Length of the request target.
    pub(crate) fn target_bytes(&self) -> usize {
        self.words()[1].len()
    }
}

/// The framing that a request head declares; panics if it could be read in two ways.
pub(crate) fn framing(head: &Head) -> Framing {
    let codings = head.values("transfer-encoding");
    let lengths = head.values("content-length");
    match (codings.as_slice(), lengths.as_slice()) {
        ([], []) => Framing::None,
        ([b"chunked"], []) => Framing::Chunked,
        ([], [length]) => {
            let text = std::str::from_utf8(length).expect("a length is ASCII");
            let value: u64 = text.parse().expect("a length is a number");
            assert_eq!(value.to_string(), text, "a length is canonical");
            Framing::Length(value)
        }
        _ => panic!("ambiguous framing: {head:?}"),
    }
}

/// Checks what an upstream gets (`ours`) against what the client sent (`theirs`).
pub(crate) fn assert_forwarded_request(theirs: &Head, ours: &Head) {
    let (words, sent) = (theirs.words(), ours.words());
    assert!(words.len() == 3 && sent.len() == 3 && sent[2] == "HTTP/1.1");
    if words[0] == "OPTIONS" && ours.values("host") == [b"proxy"] {
        return;
    }
    assert_eq!(sent[0], words[0], "the method stays");
    assert!(sent[1].starts_with('/') || sent[1] == "*", "origin-form or `*`: {}", sent[1]);
    let tail = sent[1].trim_start_matches(['/', '*']);
    assert!(words[1].ends_with(tail), "the target stays");
    assert_eq!(ours.values("host").len(), 1);
    assert!(!ours.values("host")[0].is_empty());
    framing(ours);
    for name in ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"] {
        assert_eq!(ours.values(name).len(), 1, "{name} is ours alone");
    }
    let no_trace = ["forwarded", "x-real-ip", "x-forwarded-port", "x-forwarded-server", "proxy"];
    for name in no_trace.iter().chain(&["keep-alive", "proxy-connection", "http2-settings"]) {
        assert!(ours.values(name).is_empty(), "{name} is removed");
    }
    assert!(matches!(ours.values("te").as_slice(), [] | [b"trailers"]));
    for protocol in ours.values("upgrade").iter().flat_map(|value| value.split(|b| *b == b',')) {
        assert!(!protocol.trim_ascii().eq_ignore_ascii_case(b"h2c"));
    }
    assert_is_subsequence(theirs, ours, &["host", "max-forwards"]);
}

/// Checks what a client gets (`ours`) against what the upstream sent (`theirs`).
pub(crate) fn assert_forwarded_response(theirs: &Head, ours: &Head) {
    let (words, sent) = (theirs.words(), ours.words());
    assert_eq!(sent[0], "HTTP/1.1");
    assert_eq!(sent[1], words[1], "the status stays");
    assert_eq!(sent[1].len(), 3);
    assert!(sent.len() > 2, "a space stands before the reason");
    framing(ours);
    assert!(ours.values("keep-alive").is_empty());
    assert_is_subsequence(theirs, ours, &[]);
}

/// Checks that there is one Host, and that it is `host`.
pub(crate) fn assert_host(ours: &Head, host: &[u8]) {
    assert_eq!(ours.values("host"), [host]);
}

/// Checks what is sent on with edits that add fields called `appended`: nothing of one connection
/// travels on, and nothing is made up or out of order but those and what the proxy writes.
pub(crate) fn assert_edited(theirs: &Head, ours: &Head, appended: &[String]) {
    for name in ["keep-alive", "proxy-connection", "http2-settings", "proxy"] {
        assert!(ours.values(name).is_empty(), "{name} is removed");
    }
    let added: Vec<&str> = appended.iter().map(String::as_str).collect();
    assert_is_subsequence(theirs, ours, &[&["host", "max-forwards"], &added[..]].concat());
}

/// Checks the trailer section that is sent on against the one received.
pub(crate) fn assert_forwarded_trailers(theirs: &[u8], ours: &[u8]) {
    let fields = |section: &[u8]| -> Vec<(String, Vec<u8>)> {
        let lines = split_lines(section).expect("a trailer section is strict");
        lines.into_iter().filter_map(field).collect()
    };
    let forbidden = ["content-length", "transfer-encoding", "host", "authorization", "te"];
    let theirs = fields(theirs);
    for field in fields(ours) {
        assert!(theirs.contains(&field), "no trailer field is made up");
        assert!(!forbidden.contains(&field.0.as_str()), "{} is no trailer field", field.0);
    }
}

/// Every field sent on, apart from those written anew, was received, and in this order.
fn assert_is_subsequence(theirs: &Head, ours: &Head, also_anew: &[&str]) {
    let mut received = theirs.fields.iter();
    for sent in &ours.fields {
        let name = sent.0.as_str();
        let anew = WRITTEN_ANEW.contains(&name) || also_anew.contains(&name);
        if !anew && !OURS.contains(&name) {
            assert!(received.any(|field| field == sent), "{name} is made up or out of order");
        }
    }
}
