//! The protocol version of a message.

/// An HTTP version this crate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunks, no interim responses, closes unless asked to keep alive.
    Http10,
    /// HTTP/1.1 (RFC 9112).
    Http11,
}

impl Version {
    /// From the digit behind `HTTP/1.`, which the parser has checked.
    pub(crate) fn from_minor(minor: u8) -> Self {
        if minor == 0 { Self::Http10 } else { Self::Http11 }
    }
}
