//! Random numbers, request IDs and trace contexts.

use std::hash::{BuildHasher, RandomState};

use super::Fields;

/// xoshiro256++ (Blackman and Vigna, 2018), one for each core. For IDs and for choices among
/// equals, never for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    /// Seeded by the system.
    pub(crate) fn new() -> Random {
        // The keys of a hasher are the standard library's way to the system's random numbers.
        Random(std::array::from_fn(|word| RandomState::new().hash_one(word)))
    }

    /// The same numbers for the same seed, for tests.
    #[cfg(test)]
    pub(crate) fn seeded(seed: u64) -> Random {
        Random([seed, 0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb])
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let next = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        next
    }

    /// A number below `bound`, which is not 0, as evenly as 64 bits allow.
    #[cfg(test)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Digits of a request ID of ours: 128 bits.
const REQUEST_ID_DIGITS: usize = 32;

/// Longest request ID taken over from a trusted proxy. Bytes. Over it: a new one.
pub(crate) const REQUEST_ID_BYTES_MAX: usize = 128;

/// Bytes of a traceparent of version 00: `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const TRACEPARENT_BYTES: usize = 55;

/// Longest traceparent passed on; later versions may have more parts. Bytes. Over it: a new one.
const TRACEPARENT_BYTES_MAX: usize = 256;

/// What names a request in logs and to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestId<'b> {
    /// A trusted proxy's.
    Given(&'b str),
    /// Ours.
    New([u8; REQUEST_ID_DIGITS]),
}

/// A request's place in a distributed trace (W3C Trace Context).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trace<'b> {
    /// What the client sent, which goes on as it is.
    Given(&'b str),
    /// Started here; a tracestate that came without it means nothing.
    New([u8; TRACEPARENT_BYTES]),
}

impl RequestId<'_> {
    /// The ID of a request: of X-Request-Id if a trusted proxy sent one that is fit, else a new one.
    pub(crate) fn of<'b>(
        fields: &impl Fields<'b>,
        peer_trusted: bool,
        random: &mut Random,
    ) -> RequestId<'b> {
        let given = if peer_trusted { single(fields, "x-request-id") } else { None };
        let fit = |text: &&str| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_id_byte)
        };
        match given.filter(fit) {
            Some(text) => RequestId::Given(text),
            None => {
                let mut digits = [0; REQUEST_ID_DIGITS];
                hex(random.next(), &mut digits[..16]);
                hex(random.next(), &mut digits[16..]);
                RequestId::New(digits)
            }
        }
    }

    /// The ID as text.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            RequestId::Given(text) => text,
            RequestId::New(digits) => std::str::from_utf8(digits).expect("hex digits are ASCII"),
        }
    }
}

impl Trace<'_> {
    /// The trace of a request: of its traceparent if it is valid, else a new one, not sampled.
    pub(crate) fn of<'b>(fields: &impl Fields<'b>, random: &mut Random) -> Trace<'b> {
        match single(fields, "traceparent").filter(|text| is_traceparent(text.as_bytes())) {
            Some(text) => Trace::Given(text),
            None => {
                let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
                hex(random.next(), &mut text[3..19]);
                // An ID of zeros is none.
                hex(random.next() | 1, &mut text[19..35]);
                hex(random.next() | 1, &mut text[36..52]);
                Trace::New(text)
            }
        }
    }

    /// The value of traceparent.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Trace::Given(text) => text,
            Trace::New(text) => std::str::from_utf8(text).expect("it is made of ASCII"),
        }
    }
}

/// The value of a field that is there once, as text.
fn single<'b>(fields: &impl Fields<'b>, name: &str) -> Option<&'b str> {
    let mut values = fields.values(name);
    let value = values.next()?;
    match values.next() {
        Some(_) => None,
        None => std::str::from_utf8(value).ok(),
    }
}

/// Visible bytes that need no quoting in a field, a log line or a shell: those of a token and the
/// separators of base64 and URNs.
fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/=@".contains(&byte)
}

/// Whether `text` is a traceparent that may be passed on (W3C Trace Context, §3.2).
fn is_traceparent(text: &[u8]) -> bool {
    let is_hex = |part: &[u8]| part.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    let is_zero = |part: &[u8]| part.iter().all(|b| *b == b'0');
    let Some(start) = text.get(..TRACEPARENT_BYTES) else { return false };
    let parts = [&start[..2], &start[3..35], &start[36..52], &start[53..]];
    let dashes = [2, 35, 52].iter().all(|at| start[*at] == b'-');
    let rest = &text[TRACEPARENT_BYTES..];
    let rest_fits = match parts[0] {
        b"00" => rest.is_empty(),
        b"ff" => false,
        _ => rest.is_empty() || rest[0] == b'-',
    };
    dashes
        && parts.iter().all(|part| is_hex(part))
        && !is_zero(parts[1])
        && !is_zero(parts[2])
        && rest_fits
        && text.len() <= TRACEPARENT_BYTES_MAX
}

/// Writes `value` as 16 digits.
fn hex(value: u64, digits: &mut [u8]) {
    for (at, digit) in digits.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(value >> (4 * at) & 15) as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::FieldList as Sent;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_request_id_is_believed_only_if_it_is_fit_and_of_a_trusted_proxy() {
        let mut random = Random::seeded(1);
        let mut given = |fields: &[(&str, &str)], trusted| {
            let sent = Sent::new(fields);
            let id = RequestId::of(&sent, trusted, &mut random);
            matches!(id, RequestId::Given(_)).then(|| id.as_str().to_owned())
        };
        let name = "X-Request-ID";
        let most = "a".repeat(REQUEST_ID_BYTES_MAX);
        for bad in ["", "a b", "a\tb", "a\"b", "a,b", "a;b", "\u{e9}", &format!("{most}a")] {
            assert_eq!(given(&[(name, bad)], true), None, "{bad:?}");
        }
        assert_eq!(given(&[], true), None);
        assert_eq!(given(&[(name, "a"), (name, "b")], true), None);
        assert_eq!(given(&[(name, "a")], false), None);
        for good in ["a", "018f-A_b.c~", "req/1:2+3==", &most] {
            assert_eq!(given(&[(name, good)], true).as_deref(), Some(good));
        }
    }

    #[test]
    fn a_new_request_id_is_128_bits_in_hex_and_another_each_time() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..4 {
            // Each core has its own; none repeats what another said.
            let mut random = Random::new();
            for _ in 0..500 {
                let id = RequestId::of(&Sent::new(&[]), true, &mut random);
                let text = id.as_str();
                assert!(text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit()));
                assert!(seen.insert(text.to_owned()), "{text}");
            }
        }
    }

    #[test]
    fn an_invalid_trace_is_started_anew() {
        let mut random = Random::seeded(2);
        let mut given = |fields: &[(&str, &str)]| {
            let sent = Sent::new(fields);
            let trace = Trace::of(&sent, &mut random);
            assert!(is_traceparent(trace.as_str().as_bytes()));
            matches!(trace, Trace::Given(_))
        };
        let parent = |text: &str| [("traceparent", text.to_owned())];
        let mut row = |text: &str| {
            let fields = parent(text);
            given(&[(fields[0].0, &fields[0].1)])
        };
        assert!(row(PARENT));
        assert!(row(&PARENT.replacen("00", "01", 1)));
        assert!(row(&format!("{}-more", PARENT.replacen("00", "cc", 1))));
        for bad in [
            "",
            "00",
            &PARENT[..54],
            &format!("{PARENT}-more"),
            &format!("{PARENT}0"),
            &format!("{}0", PARENT.replacen("00", "cc", 1)),
            &PARENT.replacen("00", "ff", 1),
            &PARENT.replacen("00", "0g", 1),
            &PARENT.to_uppercase(),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            &PARENT.replace('-', "_"),
            &PARENT.replace("-01", "-0 "),
            &format!("{}-{}", PARENT.replacen("00", "cc", 1), "a".repeat(300)),
        ] {
            assert!(!row(bad), "{bad:?}");
        }
        assert!(!given(&[]));
        assert!(!given(&[("traceparent", PARENT), ("Traceparent", PARENT)]));
    }

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut random = Random::seeded(3);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}
