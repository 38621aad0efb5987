//! What an operator changes of a head: fields taken away, lines added.
//!
//! Names are checked when they are compiled, values when they are appended, so that no edit can
//! break or change the framing of a message, its host, or what holds for one connection only.

use std::fmt;

use crate::fields::encode_field;
use crate::name::{Name, classify};
use crate::syntax::{FIELD_VALUE, is_token, span};

/// The name of a field that an edit may touch: a token, and none that this crate writes or judges
/// by itself (framing, Host, Date, Expect, Max-Forwards, and what RFC 9110 §7.6.1 lists).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName(Box<str>);

/// Why an edit may not touch a field of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldNameError {
    /// It is no token (RFC 9110 §5.6.2), or longer than [`FieldName::BYTES_MAX`].
    NotAName,
    /// The proxy writes it, or it decides where a message ends or a connection leads.
    Reserved,
}

impl fmt::Display for FieldNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAName => "it is no field name: letters, digits and hyphens are expected",
            Self::Reserved => "the proxy writes this field by itself",
        })
    }
}

impl FieldName {
    /// Longest name of an edit. Bytes. When exceeded: refused.
    pub const BYTES_MAX: usize = 255;

    /// Checks a name. Its spelling is kept.
    pub fn new(name: &str) -> Result<FieldName, FieldNameError> {
        if !is_token(name.as_bytes()) || name.len() > Self::BYTES_MAX {
            return Err(FieldNameError::NotAName);
        }
        match classify(name.as_bytes()) {
            Name::Other | Name::ClientIdentity => Ok(FieldName(name.into())),
            Name::Connection
            | Name::ContentLength
            | Name::Date
            | Name::Expect
            | Name::Host
            | Name::MaxForwards
            | Name::Te
            | Name::Trailer
            | Name::TransferEncoding
            | Name::Upgrade
            | Name::HopByHop
            | Name::FramingLookAlike => Err(FieldNameError::Reserved),
        }
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names of fields to take away, in any case, and with `_` for `-`: CGI and WSGI fold both into one
/// variable, so that a client's `X_User` would pass there for the `X-User` that an edit sets.
#[derive(Clone, Debug, Default)]
pub struct FieldNames {
    /// In lower case, with `-` for `_`.
    names: Vec<Box<[u8]>>,
    /// A bit for each length of a name, those over 63 together: most fields are told apart by it.
    lengths: u64,
}

impl FieldNames {
    /// No name.
    pub const NONE: FieldNames = FieldNames { names: Vec::new(), lengths: 0 };

    /// The set of `names`.
    pub fn new(names: impl IntoIterator<Item = FieldName>) -> FieldNames {
        let mut set = FieldNames::NONE;
        for FieldName(name) in names {
            let name: Box<[u8]> = name.bytes().map(folded).collect();
            if !set.contains(&name) {
                set.lengths |= length_bit(&name);
                set.names.push(name);
            }
        }
        set
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether `name` is one of them.
    #[inline]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.lengths & length_bit(name) != 0
            && self.names.iter().any(|known| {
                known.len() == name.len() && known.iter().zip(name).all(|(a, b)| *a == folded(*b))
            })
    }
}

fn folded(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }
}

fn length_bit(name: &[u8]) -> u64 {
    1 << name.len().min(63)
}

/// Field lines to add, encoded: each `name: value CRLF`.
#[derive(Clone, Debug, Default)]
pub struct FieldBlock {
    lines: Vec<u8>,
    /// A value while it is made.
    value: Vec<u8>,
}

impl FieldBlock {
    /// No line.
    pub const NONE: FieldBlock = FieldBlock { lines: Vec::new(), value: Vec::new() };

    /// Appends a line. Bytes that no field value has (CR, LF, NUL and other controls) become
    /// spaces, so that a value stays one value whatever it was made of.
    pub fn push(&mut self, name: &FieldName, value: &[u8]) {
        let start = self.lines.len() + name.0.len() + b": ".len();
        encode_field(name.0.as_bytes(), value, &mut self.lines);
        let end = start + value.len();
        if span(&self.lines[start..end], &FIELD_VALUE) != value.len() {
            for byte in &mut self.lines[start..end] {
                if !FIELD_VALUE[usize::from(*byte)] {
                    *byte = b' ';
                }
            }
        }
    }

    /// As [`FieldBlock::push`] with the value that `make` appends to an empty buffer.
    pub fn push_with(&mut self, name: &FieldName, make: impl FnOnce(&mut Vec<u8>)) {
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        make(&mut value);
        self.push(name, &value);
        self.value = value;
    }

    /// Appends the lines of `other`.
    pub fn extend(&mut self, other: &FieldBlock) {
        self.lines.extend_from_slice(&other.lines);
    }

    /// Removes all lines and keeps the memory.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines as they are sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.lines
    }
}

/// What is changed of a head while it is sent on.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'a> {
    /// Fields of the sender that are not sent on. Also taken away is what the proxy would say
    /// under such a name (X-Forwarded-*, Forwarded, Via).
    pub remove: &'a FieldNames,
    /// Lines added behind those of the sender.
    pub append: &'a FieldBlock,
}

static NO_NAMES: FieldNames = FieldNames::NONE;
static NO_LINES: FieldBlock = FieldBlock::NONE;

impl Edits<'static> {
    /// Nothing is changed.
    pub const NONE: Edits<'static> = Edits { remove: &NO_NAMES, append: &NO_LINES };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_frame_or_route_cannot_be_edited() {
        let reserved = [
            "Connection",
            "keep-alive",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "transfer_encoding",
            "Content-Length",
            "Content_Length",
            "Upgrade",
            "HTTP2-Settings",
            "Proxy",
            "Host",
            "Date",
            "Expect",
            "Max-Forwards",
        ];
        for name in reserved {
            assert_eq!(FieldName::new(name), Err(FieldNameError::Reserved), "{name}");
        }
        let long = "a".repeat(FieldName::BYTES_MAX + 1);
        for name in ["", "a b", "a:", "a\r\nb", "\u{e9}", "a\0", &long] {
            assert_eq!(FieldName::new(name), Err(FieldNameError::NotAName), "{name:?}");
        }
        for name in ["Server", "X-Forwarded-Proto", "X-Real-IP", "Via", "Content-Type", "a"] {
            assert_eq!(FieldName::new(name).as_ref().map(FieldName::as_str), Ok(name));
        }
    }

    #[test]
    fn a_value_never_ends_its_line() {
        let mut block = FieldBlock::default();
        let name = FieldName::new("X-A").expect("valid");
        block.push(&name, b"a\r\nHost: evil\r\n\r\n\0\x7f\tb\xff");
        block.push(&name, b"");
        assert_eq!(block.as_bytes(), b"X-A: a  Host: evil      \tb\xff\r\nX-A: \r\n");
        block.clear();
        assert!(block.is_empty());
    }

    #[test]
    fn a_set_of_names_knows_them_in_any_case_and_with_underscores() {
        let long = "x".repeat(70);
        let names = ["Server", "X-A", "x-a", &long].map(|name| FieldName::new(name).expect("ok"));
        let set = FieldNames::new(names);
        assert!(set.contains(b"SERVER") && set.contains(b"x-A") && set.contains(long.as_bytes()));
        let longer = "x".repeat(71);
        assert!(
            set.contains(b"X_a") && FieldNames::new([FieldName("x_b".into())]).contains(b"X-B")
        );
        for name in [b"server2".as_slice(), b"X-B", b"XA", b"", longer.as_bytes()] {
            assert!(!set.contains(name));
        }
        assert!(FieldNames::NONE.is_empty() && !FieldNames::NONE.contains(b""));
    }
}
