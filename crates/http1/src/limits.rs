//! Every bound of this crate, with its unit, its reason and what happens when it is reached.

/// Bounds of one request or response head, chosen by the caller.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Longest head, from its first byte to the final CRLF. Bytes. When exceeded: 431.
    /// HTTP sets no bound (RFC 9112 §3 asks for 8,000 octets of request line).
    pub head_bytes_max: usize,
    /// Most field lines in a head, at most [`FIELDS_MAX`]; a larger value counts as that.
    /// When exceeded: 431 (RFC 6585 §5).
    pub fields_max: usize,
    /// Longest request target. Bytes. When exceeded: 414 (RFC 9110 §15.5.15).
    pub target_bytes_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { head_bytes_max: 16 * 1024, fields_max: 100, target_bytes_max: 8 * 1024 }
    }
}

impl HeadLimits {
    /// The part of `input` a head may occupy.
    pub(crate) fn window<'b>(&self, input: &'b [u8]) -> &'b [u8] {
        &input[..input.len().min(self.head_bytes_max)]
    }

    /// `fields_max` under the hard bound of the slots.
    pub(crate) fn fields(&self) -> usize {
        self.fields_max.min(FIELDS_MAX)
    }
}

/// Field slots of one head: the hard bound of [`HeadLimits::fields_max`].
/// 128 slots are 4 KiB of stack, and the set of forwarded fields is one `u128`.
pub const FIELDS_MAX: usize = 128;
const _: () = assert!(FIELDS_MAX == u128::BITS as usize);

/// Longest request method. Bytes. The longest registered one, UPDATEREDIRECTREF, has 17.
/// When exceeded: 501, as RFC 9112 §3 asks for a method longer than any implemented one.
pub const METHOD_BYTES_MAX: usize = 32;

/// Longest protocol version text looked at before the start line is refused. Bytes.
/// `HTTP/1.1` has 8; the rest is room to recognise other versions and answer 505.
pub(crate) const VERSION_BYTES_MAX: usize = 16;

/// Most options in all Connection fields of one head. Each may be compared with every field, so
/// the work is at most this times [`FIELDS_MAX`] comparisons. When exceeded: 400.
pub(crate) const CONNECTION_OPTIONS_MAX: usize = 32;

/// Most digits of Content-Length. 18 digits always fit a signed 64-bit integer.
/// When exceeded: 400.
pub(crate) const CONTENT_LENGTH_DIGITS_MAX: usize = 18;

/// Longest chunk line: size, extensions and CRLF. Bytes (RFC 9112 §7.1.1 asks for a limit).
/// The caller keeps at most this much of an incomplete line. When exceeded: the body is refused.
pub const CHUNK_LINE_BYTES_MAX: usize = 256;

/// Most hex digits of a chunk size, leading zeros included: 64 bits (RFC 9112 §7.1).
pub(crate) const CHUNK_SIZE_DIGITS_MAX: usize = 16;
const _: () = assert!(CHUNK_SIZE_DIGITS_MAX + 2 < CHUNK_LINE_BYTES_MAX);

/// Largest chunk accepted. Bytes. Recipients behind us may hold the size in a signed integer.
pub(crate) const CHUNK_SIZE_MAX: u64 = i64::MAX as u64;

/// Most bytes of chunk extensions in one body. Extensions are dropped, so a body made of them
/// costs work and moves nothing. When exceeded: the body is refused.
pub(crate) const CHUNK_EXTENSIONS_BYTES_MAX: usize = 16 * 1024;

/// Longest trailer section with its final CRLF. Bytes. The caller keeps it until it is complete.
/// When exceeded: the body is refused.
pub const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// Most field lines in a trailer section. When exceeded: the body is refused.
pub(crate) const TRAILER_FIELDS_MAX: usize = 64;
