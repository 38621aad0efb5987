//! What peers say, made harmless: no line end, no quote, no byte that moves a terminal's cursor.

use std::fmt;

/// What stands behind a text that was cut.
pub(super) const CUT: &[u8] = b"...";

/// Longest text that one character becomes. Bytes.
pub(super) const ESCAPE_BYTES_MAX: usize = 6;

/// How a character that cannot be written as it is is written. Appends the first of `text`, which is
/// not empty; returns how many bytes it has.
pub(super) type Escape = fn(text: &[u8], out: &mut Vec<u8>) -> usize;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether a byte is written as it is, inside of quotes, in both formats.
fn is_plain(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\'
}

/// Appends `text`, escaped, and cut where it would take more than `max` bytes. Appends at most
/// `max + ESCAPE_BYTES_MAX + CUT.len()` bytes.
#[inline]
pub(super) fn append(text: &[u8], max: usize, escape: Escape, out: &mut Vec<u8>) {
    // No early end: the compiler makes vector code of it.
    let plain = text.iter().fold(true, |plain, byte| plain & is_plain(*byte));
    if plain && text.len() <= max {
        out.extend_from_slice(text);
    } else {
        append_slowly(text, max, escape, out);
    }
}

#[cold]
fn append_slowly(text: &[u8], max: usize, escape: Escape, out: &mut Vec<u8>) {
    let end = out.len() + max;
    let mut rest = text;
    while let Some(first) = rest.first() {
        if out.len() >= end {
            out.extend_from_slice(CUT);
            return;
        }
        let used = if is_plain(*first) {
            out.push(*first);
            1
        } else {
            escape(rest, out)
        };
        rest = &rest[used..];
    }
}

/// As nginx and Apache do: `\xHH` for each byte.
pub(super) fn combined(text: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(b"\\x");
    hex_byte(text[0], out);
    1
}

/// As JSON has it (RFC 8259 §7). UTF-8 stays, but for what ends a line or turns its direction in
/// some viewer; a byte that is no UTF-8 becomes the text `\xHH`.
pub(super) fn json(text: &[u8], out: &mut Vec<u8>) -> usize {
    let head = &text[..text.len().min(4)];
    let char = head.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    let Some(char) = char else {
        out.extend_from_slice(b"\\\\x");
        hex_byte(text[0], out);
        return 1;
    };
    match char {
        '"' | '\\' => out.extend_from_slice(&[b'\\', text[0]]),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            hex_char(char, out);
        }
        char if char.is_control() => hex_char(char, out),
        _ => out.extend_from_slice(&text[..char.len_utf8()]),
    }
    char.len_utf8()
}

fn hex_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// `\uHHHH` of a character of the basic plane.
fn hex_char(char: char, out: &mut Vec<u8>) {
    let code = u32::from(char) as u16;
    out.extend_from_slice(b"\\u");
    code.to_be_bytes().into_iter().for_each(|byte| hex_byte(byte, out));
}

/// Takes formatted text, escaped, `left` bytes at most.
pub(super) struct Escaped<'a> {
    out: &'a mut Vec<u8>,
    left: usize,
    escape: Escape,
}

impl Escaped<'_> {
    /// Appends what `value` displays, as [`append`] does.
    pub(super) fn display(value: &dyn fmt::Display, max: usize, escape: Escape, out: &mut Vec<u8>) {
        use fmt::Write as _;
        // An error is the end of the room, and the text is cut by then.
        let _cut = write!(Escaped { out, left: max, escape }, "{value}");
    }
}

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let before = self.out.len();
        append(text.as_bytes(), self.left, self.escape, self.out);
        let used = self.out.len() - before;
        // What was cut is longer than the room; what fits exactly may be followed by more.
        if used > self.left {
            return Err(fmt::Error);
        }
        self.left -= used;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &[u8], max: usize, escape: Escape) -> String {
        let mut out = Vec::new();
        append(text, max, escape, &mut out);
        assert!(out.len() <= max + ESCAPE_BYTES_MAX + CUT.len());
        String::from_utf8(out).expect("what is written is UTF-8")
    }

    #[test]
    fn combined_escapes_each_byte_that_is_not_printable_ascii() {
        let rows: [(&[u8], &str); 5] = [
            (b"a\r\nb", "a\\x0D\\x0Ab"),
            (b"\" \"", "\\x22 \\x22"),
            (b"\\x41", "\\x5Cx41"),
            (b"\x00\x1b[2J\x7f", "\\x00\\x1B[2J\\x7F"),
            ("é".as_bytes(), "\\xC3\\xA9"),
        ];
        for (text, expected) in rows {
            assert_eq!(escaped(text, 100, combined), expected);
        }
    }

    #[test]
    fn json_reads_back_as_what_was_said() {
        let rows: [(&[u8], &str); 7] = [
            (b"a\r\n\tb", "a\r\n\tb"),
            (b"\"}\\", "\"}\\"),
            (b"\x00\x1b\x7f", "\u{0}\u{1b}\u{7f}"),
            ("é🙂".as_bytes(), "é🙂"),
            ("\u{85}\u{2028}\u{202e}\u{2066}".as_bytes(), "\u{85}\u{2028}\u{202e}\u{2066}"),
            (b"a\xffb\xc3", "a\\xFFb\\xC3"),
            (b"\xf0\x9f\x99", "\\xF0\\x9F\\x99"),
        ];
        for (text, expected) in rows {
            let written = escaped(text, 100, json);
            let breaks =
                |char: char| char.is_control() || ('\u{2028}'..='\u{202e}').contains(&char);
            assert!(!written.contains(breaks), "{written:?}");
            let read: String = serde_json::from_str(&format!("\"{written}\"")).expect(&written);
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_text_over_its_bound_is_cut_visibly_and_never_within_an_escape() {
        assert_eq!(escaped(b"abcd", 4, json), "abcd");
        assert_eq!(escaped(b"abcde", 4, json), "abcd...");
        assert_eq!(escaped(b"abc\ndef", 4, combined), "abc\\x0A...");
        for max in 0..20 {
            let text = "a\n🙂\u{1}\"\u{2028}é\\".repeat(3);
            let written = escaped(text.as_bytes(), max, json);
            assert!(serde_json::from_str::<String>(&format!("\"{written}\"")).is_ok(), "{written}");
            assert!(written.ends_with("..."));
        }
    }

    #[test]
    fn displayed_text_is_cut_once() {
        let mut out = Vec::new();
        Escaped::display(&format_args!("{}{}{}", "ab\"", "cdefgh", "ij"), 8, json, &mut out);
        assert_eq!(out, b"ab\\\"cdef...");
        out.clear();
        Escaped::display(&format_args!("{}{}", "abcd", "efgh"), 8, json, &mut out);
        assert_eq!(out, b"abcdefgh");
        out.clear();
        Escaped::display(&format_args!("{}{}{}", "abcd", "efgh", "i"), 8, json, &mut out);
        assert_eq!(out, b"abcdefgh...");
    }
}
