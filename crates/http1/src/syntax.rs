//! The lexical rules shared by all parts: byte classes, tokens, lists, numbers (RFC 9110 §5.6).

/// One flag per byte value.
pub(crate) type ByteSet = [bool; 256];

/// `tchar` of RFC 9110 §5.6.2: names of fields, methods, options.
pub(crate) static TOKEN: ByteSet = byte_set(b"!#$%&'*+-.^_`|~", ALPHANUMERIC);
/// Bytes of a field value: HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5).
pub(crate) static FIELD_VALUE: ByteSet = byte_set(b"\t ", VISIBLE_OR_HIGH);
/// Bytes of a request target: VCHAR without `#`, because a fragment is never sent (RFC 9112 §3.2).
pub(crate) static TARGET: ByteSet = without(byte_set(b"", VISIBLE), b'#');
/// VCHAR (RFC 5234 appendix B.1).
pub(crate) static VISIBLE_BYTES: ByteSet = byte_set(b"", VISIBLE);
/// Bytes of a registered name: unreserved, sub-delims without the comma, and the percent sign of
/// a triplet (RFC 3986 §3.2.2). A comma would let two joined Host fields pass for one.
pub(crate) static HOST: ByteSet = byte_set(b"-._~!$&'()*+;=%", ALPHANUMERIC);

const ALPHANUMERIC: u8 = 1;
const VISIBLE: u8 = 2;
const VISIBLE_OR_HIGH: u8 = 3;

const fn byte_set(extra: &[u8], class: u8) -> ByteSet {
    let mut set = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        set[byte] = match class {
            ALPHANUMERIC => b.is_ascii_alphanumeric(),
            VISIBLE => b.is_ascii_graphic(),
            _ => b.is_ascii_graphic() || b >= 0x80,
        };
        byte += 1;
    }
    let mut i = 0;
    while i < extra.len() {
        set[extra[i] as usize] = true;
        i += 1;
    }
    set
}

const fn without(mut set: ByteSet, byte: u8) -> ByteSet {
    set[byte as usize] = false;
    set
}

/// Length of the longest start of `bytes` whose bytes are all in `set`.
pub(crate) fn span(bytes: &[u8], set: &ByteSet) -> usize {
    bytes.iter().position(|&b| !set[usize::from(b)]).unwrap_or(bytes.len())
}

/// Whether `bytes` is a token: not empty and `tchar` only (RFC 9110 §5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && span(bytes, &TOKEN) == bytes.len()
}

/// Whether every byte may stand in a request target. Written without branches, so that the
/// compiler compares many bytes at once.
pub(crate) fn is_target(bytes: &[u8]) -> bool {
    let bad = bytes
        .iter()
        .fold(false, |bad, &b| bad | (b == b'#') | (b.wrapping_sub(0x21) > 0x7e - 0x21));
    !bad
}

/// `bytes` without optional whitespace (SP, HTAB) at both ends (RFC 9110 §5.6.3).
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The elements of a comma-separated list, trimmed; empty elements are skipped, as a recipient
/// must (RFC 9110 §5.6.1.2).
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(trim).filter(|element| !element.is_empty())
}

/// Reads `1*DIGIT` of at most `digits_max` (≤ 19) digits; anything else is `None`.
pub(crate) fn decimal(bytes: &[u8], digits_max: usize) -> Option<u64> {
    debug_assert!(digits_max <= 19, "20 digits may overflow");
    if bytes.is_empty() || bytes.len() > digits_max {
        return None;
    }
    bytes
        .iter()
        .try_fold(0u64, |value, b| b.is_ascii_digit().then(|| value * 10 + u64::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_digits_alone_and_bounded() {
        for text in ["", " 1", "1 ", "+1", "-1", "0x1", "1.0", "1e1", "a"] {
            assert_eq!(decimal(text.as_bytes(), 18), None, "{text}");
        }
        assert_eq!(decimal(b"1234", 3), None);
        assert_eq!(decimal(b"123", 3), Some(123));
        assert_eq!(decimal(b"000", 3), Some(0));
        assert_eq!(decimal(&[b'9'; 19], 19), Some(9_999_999_999_999_999_999));
    }

    #[test]
    fn a_list_skips_empty_elements_and_whitespace() {
        let elements = |value: &'static str| list(value.as_bytes()).collect::<Vec<_>>();
        assert_eq!(elements(""), [b""; 0]);
        assert_eq!(elements(" ,\t, "), [b""; 0]);
        assert_eq!(elements(",a , b c,\td\t,"), [b"a".as_slice(), b"b c", b"d"]);
    }

    #[test]
    fn the_wide_test_of_targets_agrees_with_the_byte_set() {
        for byte in 0..=u8::MAX {
            let text = [b'/', byte, b'a'];
            assert_eq!(is_target(&text), TARGET[usize::from(byte)], "{byte:#x}");
        }
    }

    #[test]
    fn byte_sets_hold_what_the_rfc_lists() {
        let count = |set: &ByteSet| set.iter().filter(|member| **member).count();
        // 62 letters and digits and 15 others; VCHAR is 94 bytes.
        assert_eq!(count(&TOKEN), 77);
        assert_eq!(count(&FIELD_VALUE), 94 + 2 + 128);
        assert_eq!(count(&TARGET), 93);
        assert_eq!(count(&VISIBLE_BYTES), 94);
        assert!([b',', b'@', b'/', b'?', b'#', b'\\', b' '].iter().all(|b| !HOST[usize::from(*b)]));
        assert!(!is_token(b"") && !is_token(b"a b") && !is_token(b"a\x80") && is_token(b"a-~"));
    }
}
