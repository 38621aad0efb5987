//! The answers in what a client has received.

use super::{Body, Fields, Framing, Head, Violation, field, framing};

/// What the client asked, as far as it decides about the answer's framing (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Methods in order; GET beyond them.
    pub(crate) methods: &'a [String],
    /// Versions in order, such as `1.0`; the last beyond them, and 1.1 if there are none.
    pub(crate) versions: &'a [String],
}

impl Asked<'_> {
    /// Requests that are all GET and HTTP/1.1.
    pub(crate) const PLAIN: Asked<'static> = Asked { methods: &[], versions: &[] };

    fn method(&self, index: usize) -> &str {
        self.methods.get(index).map_or("GET", String::as_str)
    }

    fn is_http_10(&self, index: usize) -> bool {
        let version = self.versions.get(index).or(self.versions.last());
        version.is_some_and(|version| version == "1.0")
    }
}

/// A final response as far as it has come.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// `1.1`.
    pub(crate) version: String,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
    pub(crate) complete: bool,
    /// What came after a response that ends HTTP on this connection.
    pub(crate) tunnel: Vec<u8>,
}

/// What a client has received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Responses {
    pub(crate) finals: Vec<Response>,
    /// Statuses of the interim responses, in order.
    pub(crate) interim: Vec<u16>,
    pub(crate) violations: Vec<Violation>,
}

impl Responses {
    /// Final responses that are complete.
    pub(crate) fn complete(&self) -> usize {
        self.finals.iter().filter(|response| response.complete).count()
    }
}

/// Reads the responses to `asked` in `input`. `ended`: the proxy has ended the connection in order,
/// which completes a body without a length.
pub(crate) fn responses(input: &[u8], ended: bool, asked: Asked<'_>) -> Responses {
    let mut found = Responses::default();
    let mut at = 0;
    while at < input.len() {
        match found.next(&input[at..], ended, asked) {
            Some(used) => at += used,
            None => break,
        }
    }
    found
}

impl Responses {
    /// Takes one response. `None`: nothing can be read after it, or not yet.
    fn next(&mut self, input: &[u8], ended: bool, asked: Asked<'_>) -> Option<usize> {
        let start = b"HTTP/1.";
        let shown = input.len().min(start.len());
        if input[..shown] != start[..shown] {
            self.violations.push(Violation::Garbage);
            return None;
        }
        let head = Head::read(input)?;
        self.violations.extend(&head.violations);
        let index = self.finals.len();
        let Some((version, status)) = status_line(&head.line) else {
            self.violations.push(Violation::BadStatusLine);
            return None;
        };
        if version != "1.1" && version != "1.0" {
            self.violations.push(Violation::Version);
        }
        let http_10 = asked.is_http_10(index);
        if status / 100 == 1 && status != 101 {
            self.interim.push(status);
            if http_10 {
                self.violations.push(Violation::InterimTo10);
            }
            return Some(head.used);
        }
        if http_10 && field(&head.fields, "transfer-encoding").is_some() {
            self.violations.push(Violation::TeIn10);
        }
        let method = asked.method(index);
        let message_version = format!("HTTP/{version}");
        let mut response = Response {
            status,
            version: version.to_owned(),
            fields: head.fields,
            body: Vec::new(),
            trailers: Vec::new(),
            complete: true,
            tunnel: Vec::new(),
        };
        let rest = &input[head.used..];
        let mut used = None;
        if status == 101 || (method == "CONNECT" && status / 100 == 2) {
            response.tunnel = rest.to_vec();
        } else {
            let framing = framing(&response.fields, &message_version, &mut self.violations);
            if method == "HEAD" || status == 204 || status == 304 {
                used = Some(head.used);
            } else {
                used = self.body(&mut response, framing, rest, ended).map(|body| head.used + body);
            }
        }
        self.finals.push(response);
        used
    }

    /// Takes the body of `response`. Returns its bytes in `rest` if another response may follow.
    fn body(
        &mut self,
        response: &mut Response,
        framing: Framing,
        rest: &[u8],
        ended: bool,
    ) -> Option<usize> {
        let body = match framing {
            Framing::Length(length) => Body::of_length(rest, length),
            Framing::Chunked => Body::chunked(rest),
            Framing::Unsaid | Framing::Invalid => {
                response.body = rest.to_vec();
                response.complete = ended;
                return None;
            }
        };
        if body.invalid {
            self.violations.push(Violation::BadChunk);
        }
        response.body = body.data;
        response.trailers = body.trailers;
        response.complete = body.complete;
        body.complete.then_some(body.used)
    }
}

/// Version and status of a status line (RFC 9112 §4), whose reason may be empty but not its blank.
fn status_line(line: &str) -> Option<(&str, u16)> {
    let (version, rest) = line.strip_prefix("HTTP/")?.split_once(' ')?;
    let (status, reason) = rest.split_once(' ')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = version.split_once('.').is_some_and(|(major, minor)| {
        major.len() == 1 && minor.len() == 1 && digits(major) && digits(minor)
    });
    let valid = number && status.len() == 3 && digits(status) && !reason.contains('\r');
    valid.then_some((version, status.parse().ok()?))
}
