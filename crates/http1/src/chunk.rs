//! The line in front of each chunk: `chunk-size [ chunk-ext ] CRLF` (RFC 9112 §7.1).

use crate::error::BodyError;
use crate::limits::{CHUNK_LINE_BYTES_MAX, CHUNK_SIZE_DIGITS_MAX, CHUNK_SIZE_MAX};
use crate::syntax::{FIELD_VALUE, TOKEN, span};

/// A chunk line that follows the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkLine {
    /// Bytes of data behind the line; 0 ends the chunks.
    pub(crate) size: u64,
    /// Bytes of extensions in the line. `extensions + 3 <= bytes`.
    pub(crate) extensions: usize,
    /// Bytes of the line with its CRLF.
    pub(crate) bytes: usize,
}

impl ChunkLine {
    /// Parses the line at the start of `input`; `None` if it is incomplete.
    ///
    /// Extensions must follow the grammar (RFC 9112 §7.1.1). Errors: all of [`BodyError`] that
    /// name the chunk line, and `ChunkBytes`.
    pub(crate) fn parse(input: &[u8]) -> Result<Option<Self>, BodyError> {
        let window = &input[..input.len().min(CHUNK_LINE_BYTES_MAX)];
        let (size, digits) = parse_size(window)?;
        let rest = &window[digits..];
        match rest {
            [b'\r', b'\n', ..] => {
                return Ok(Some(Self { size, extensions: 0, bytes: digits + 2 }));
            }
            [] | [b'\r'] => return Ok(None),
            _ if digits == 0 => return Err(BodyError::ChunkSize),
            [b';' | b' ' | b'\t', ..] => {}
            _ => return Err(BodyError::ChunkExtension),
        }
        let Some(end) = memchr::memchr(b'\n', rest) else {
            if window.len() == CHUNK_LINE_BYTES_MAX {
                return Err(BodyError::ChunkLineBytes { max: CHUNK_LINE_BYTES_MAX });
            }
            return Ok(None);
        };
        match rest[..end].strip_suffix(b"\r") {
            Some(extensions) if are_extensions(extensions) => {
                Ok(Some(Self { size, extensions: extensions.len(), bytes: digits + end + 1 }))
            }
            _ => Err(BodyError::ChunkExtension),
        }
    }
}

/// The number at the start of `line`, and how many digits it has. 0 digits if the line is empty.
fn parse_size(line: &[u8]) -> Result<(u64, usize), BodyError> {
    let mut size: u64 = 0;
    for (digits, byte) in line.iter().enumerate() {
        let Some(digit) = char::from(*byte).to_digit(16) else {
            return if digits == 0 { Err(BodyError::ChunkSize) } else { Ok((size, digits)) };
        };
        if digits == CHUNK_SIZE_DIGITS_MAX {
            return Err(BodyError::ChunkSizeDigits { max: CHUNK_SIZE_DIGITS_MAX });
        }
        // At most 16 digits, so at most 64 bits.
        size = size << 4 | u64::from(digit);
        if size > CHUNK_SIZE_MAX {
            return Err(BodyError::ChunkBytes { max: CHUNK_SIZE_MAX });
        }
    }
    Ok((size, line.len()))
}

/// Whether `text` is `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`.
fn are_extensions(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let Some(name) = skip_whitespace(rest).strip_prefix(b";") else { return false };
        let name = skip_whitespace(name);
        let length = span(name, &TOKEN);
        if length == 0 {
            return false;
        }
        rest = &name[length..];
        let Some(value) = skip_whitespace(rest).strip_prefix(b"=") else { continue };
        let value = skip_whitespace(value);
        let length = match value {
            [b'"', ..] => quoted_string(value),
            _ => span(value, &TOKEN),
        };
        if length == 0 {
            return false;
        }
        rest = &value[length..];
    }
    true
}

/// Length of the quoted string that `text`, which starts with `"`, starts with; 0 if it has no
/// end or holds a byte it may not hold (RFC 9110 §5.6.4).
fn quoted_string(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' if text.get(at + 1).is_some_and(|&b| FIELD_VALUE[usize::from(b)]) => at += 2,
            b'\\' => return 0,
            _ if FIELD_VALUE[usize::from(byte)] => at += 1,
            _ => return 0,
        }
    }
    0
}

/// `text` without the "bad" whitespace in front, which a recipient must tolerate between the
/// parts of an extension (RFC 9110 §5.6.3).
fn skip_whitespace(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(text.len());
    &text[start..]
}
