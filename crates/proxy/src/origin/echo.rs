//! `/echo`: a request as JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use baton_http1::{RequestHead, Version};
use serde::Serialize;

use super::body::{Body, Part};
use super::fault::Fault;

/// What was received, in the order and spelling it was received in.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    method: String,
    target: String,
    version: &'static str,
    /// Names and values.
    fields: Vec<(String, String)>,
    body: String,
    body_encoding: BodyEncoding,
    /// Names and values.
    trailers: Vec<(String, String)>,
}

/// How `body` stands for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum BodyEncoding {
    /// The body is UTF-8.
    Text,
    /// It is not.
    Base64,
}

impl Report {
    /// A report of a head; its body is still to come. `bytes`: those of the head.
    pub(super) fn new(head: &RequestHead<'_, '_>, bytes: &[u8]) -> Report {
        // The parsed target has lost the scheme and authority of an absolute-form.
        let target = bytes.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        Report {
            method: head.method.as_str().to_owned(),
            target: text(target),
            version: match head.version {
                Version::Http10 => "HTTP/1.0",
                Version::Http11 => "HTTP/1.1",
            },
            fields: head.fields().map(|field| (field.name.to_owned(), text(field.value))).collect(),
            body: String::new(),
            body_encoding: BodyEncoding::Text,
            trailers: Vec::new(),
        }
    }

    /// Reads the body into the report.
    pub(super) async fn take_body(&mut self, mut body: Body<'_>) -> Result<(), Fault> {
        let mut bytes = Vec::new();
        while let Some(part) = body.next().await? {
            match part {
                Part::Data(data) => bytes.extend_from_slice(data),
                Part::Trailers(section) => self.trailers = trailers(section),
            }
        }
        (self.body, self.body_encoding) = match String::from_utf8(bytes) {
            Ok(text) => (text, BodyEncoding::Text),
            Err(error) => (BASE64_STANDARD.encode(error.as_bytes()), BodyEncoding::Base64),
        };
        Ok(())
    }

    /// One line of JSON.
    pub(super) fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(self).expect("strings and lists have a JSON form");
        json.push(b'\n');
        json
    }
}

/// The field lines of a valid trailer section.
fn trailers(section: &[u8]) -> Vec<(String, String)> {
    let lines = section.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let fields = lines.filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((text(&line[..colon]), text(line[colon + 1..].trim_ascii())))
    });
    fields.collect()
}

/// Bytes as text: UTF-8 if they are that, else each byte as the character of its number, which
/// is ISO 8859-1.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}
