//! Why a head or a body is refused. Each error knows the status a client is owed.

use std::fmt;

/// Why a head is refused. The connection it came on cannot be used again.
///
/// [`HeadError::status`] is the answer to a client; a faulty response head is a 502 whatever the
/// variant. `line` counts from 1, the start line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadError {
    /// The head is longer than the limit. Bytes.
    HeadBytes {
        /// The limit.
        max: usize,
    },
    /// The request target is longer than the limit. Bytes.
    TargetBytes {
        /// The limit.
        max: usize,
    },
    /// The method is longer than any method in use. Bytes.
    MethodBytes {
        /// The limit.
        max: usize,
    },
    /// There are more field lines than the limit.
    FieldCount {
        /// The limit.
        max: usize,
    },
    /// The Connection fields hold more options than the limit.
    ConnectionOptionCount {
        /// The limit.
        max: usize,
    },
    /// More than one empty line stands before the request line (RFC 9112 §2.2).
    LeadingLines,
    /// A line does not end with CRLF.
    LineEnd {
        /// The line.
        line: usize,
    },
    /// The method is not a token followed by one space.
    Method,
    /// The target holds a byte no target may hold, or is not followed by one space.
    Target,
    /// The target has none of the forms its method allows (RFC 9112 §3.2).
    TargetForm,
    /// The authority in the target is not `host[:port]`.
    TargetAuthority,
    /// The start line does not name an HTTP version.
    Protocol,
    /// The HTTP version is neither 1.0 nor 1.1.
    Version,
    /// The status is not three digits from 100 to 999, or the reason holds a control byte.
    Status,
    /// A line has no field name that is a token followed by a colon; folded lines are among these.
    FieldName {
        /// The line.
        line: usize,
    },
    /// A field value holds a control byte.
    FieldValue {
        /// The line.
        line: usize,
    },
    /// The head breaks the grammar in a way that no other variant names.
    Syntax,
    /// A request must have one Host field (RFC 9112 §3.2).
    HostCount {
        /// How many it has.
        count: usize,
    },
    /// The value of Host is not `host[:port]`.
    HostValue,
    /// A Connection option is not a token.
    ConnectionOption,
    /// Content-Length and Transfer-Encoding stand side by side.
    FramingConflict,
    /// A name would be read as a framing field by a recipient that ignores punctuation.
    FramingLookAlike,
    /// There is more than one Content-Length.
    ContentLengthCount {
        /// How many there are.
        count: usize,
    },
    /// Content-Length is not a decimal number of at most 18 digits.
    ContentLengthValue,
    /// There is more than one Transfer-Encoding.
    TransferEncodingCount {
        /// How many there are.
        count: usize,
    },
    /// Transfer-Encoding is a list, malformed, or ends with something else than `chunked`.
    TransferEncodingValue,
    /// Transfer-Encoding names one coding, which we do not implement.
    TransferCodingUnknown,
    /// Transfer-Encoding stands in an HTTP/1.0 message (RFC 9112 §6.1).
    TransferEncodingVersion,
    /// Expect asks for something else than `100-continue`.
    Expectation,
    /// Max-Forwards is not one decimal number.
    MaxForwards,
    /// CONNECT asks for a tunnel, which a reverse proxy does not give.
    MethodConnect,
    /// TRACE would show a client the fields added on its way.
    MethodTrace,
    /// The response switches protocols although the request did not ask for it.
    UpgradeNotAsked,
}

impl HeadError {
    /// The status to answer a client with. 400 to 505.
    pub fn status(&self) -> u16 {
        match self {
            Self::TargetBytes { .. } => 414,
            Self::HeadBytes { .. } | Self::FieldCount { .. } => 431,
            Self::Expectation => 417,
            Self::MethodTrace => 405,
            Self::MethodBytes { .. } | Self::MethodConnect | Self::TransferCodingUnknown => 501,
            Self::Version => 505,
            Self::ConnectionOptionCount { .. }
            | Self::LeadingLines
            | Self::LineEnd { .. }
            | Self::Method
            | Self::Target
            | Self::TargetForm
            | Self::TargetAuthority
            | Self::Protocol
            | Self::Status
            | Self::FieldName { .. }
            | Self::FieldValue { .. }
            | Self::Syntax
            | Self::HostCount { .. }
            | Self::HostValue
            | Self::ConnectionOption
            | Self::FramingConflict
            | Self::FramingLookAlike
            | Self::ContentLengthCount { .. }
            | Self::ContentLengthValue
            | Self::TransferEncodingCount { .. }
            | Self::TransferEncodingValue
            | Self::TransferEncodingVersion
            | Self::MaxForwards
            | Self::UpgradeNotAsked => 400,
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::HeadBytes { max } => return write!(f, "head is over {max} bytes"),
            Self::TargetBytes { max } => return write!(f, "request target is over {max} bytes"),
            Self::MethodBytes { max } => return write!(f, "method is over {max} bytes"),
            Self::FieldCount { max } => return write!(f, "head has over {max} fields"),
            Self::ConnectionOptionCount { max } => {
                return write!(f, "connection field has over {max} options");
            }
            Self::LineEnd { line } => return write!(f, "line {line} of the head lacks its CRLF"),
            Self::FieldName { line } => {
                return write!(f, "line {line} of the head has no valid field name");
            }
            Self::FieldValue { line } => {
                return write!(f, "line {line} of the head has a control byte in its value");
            }
            Self::HostCount { count } => return write!(f, "request has {count} host fields"),
            Self::ContentLengthCount { count } => {
                return write!(f, "head has {count} content-length fields");
            }
            Self::TransferEncodingCount { count } => {
                return write!(f, "head has {count} transfer-encoding fields");
            }
            Self::LeadingLines => "over 1 empty line before the request line",
            Self::Method => "method is not a token",
            Self::Target => "request target holds an invalid byte",
            Self::TargetForm => "request target has no form its method allows",
            Self::TargetAuthority => "authority in the request target is invalid",
            Self::Protocol => "start line does not name an HTTP version",
            Self::Version => "HTTP version is neither 1.0 nor 1.1",
            Self::Status => "status line is invalid",
            Self::Syntax => "head does not follow the grammar",
            Self::HostValue => "value of the host field is invalid",
            Self::ConnectionOption => "connection option is not a token",
            Self::FramingConflict => "both content-length and transfer-encoding are present",
            Self::FramingLookAlike => "field name resembles a framing field",
            Self::ContentLengthValue => "content-length is not a number of at most 18 digits",
            Self::TransferEncodingValue => "transfer-encoding is not exactly chunked",
            Self::TransferCodingUnknown => "transfer coding is not implemented",
            Self::TransferEncodingVersion => "transfer-encoding in an HTTP/1.0 message",
            Self::Expectation => "expectation is not 100-continue",
            Self::MaxForwards => "max-forwards is not one number",
            Self::MethodConnect => "method CONNECT is not implemented",
            Self::MethodTrace => "method TRACE is not allowed",
            Self::UpgradeNotAsked => "response switches protocols unasked",
        };
        f.write_str(text)
    }
}

impl std::error::Error for HeadError {}

/// Why a body is refused. The connection it came on cannot be used again, and the message it
/// belongs to must not be completed on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// A chunk line does not start with hex digits.
    ChunkSize,
    /// A chunk size has more digits than the limit.
    ChunkSizeDigits {
        /// The limit.
        max: usize,
    },
    /// A chunk is larger than the limit. Bytes.
    ChunkBytes {
        /// The limit.
        max: u64,
    },
    /// What follows a chunk size is neither an extension nor CRLF (RFC 9112 §7.1.1).
    ChunkExtension,
    /// A chunk line is longer than the limit. Bytes.
    ChunkLineBytes {
        /// The limit.
        max: usize,
    },
    /// The chunk extensions of one body are longer than the limit. Bytes.
    ChunkExtensionsBytes {
        /// The limit.
        max: usize,
    },
    /// The data of a chunk is not followed by CRLF.
    ChunkDataEnd,
    /// The trailer section is longer than the limit. Bytes.
    TrailerBytes {
        /// The limit.
        max: usize,
    },
    /// The trailer section has more field lines than the limit.
    TrailerCount {
        /// The limit.
        max: usize,
    },
    /// A line of the trailer section is not a field line ended by CRLF. Lines count from 1.
    TrailerLine {
        /// The line.
        line: usize,
    },
    /// The connection ended before the body did.
    Truncated,
}

impl BodyError {
    /// The status to answer a client with, if nothing was answered yet.
    pub fn status(&self) -> u16 {
        match self {
            Self::TrailerBytes { .. } | Self::TrailerCount { .. } => 431,
            Self::ChunkSize
            | Self::ChunkSizeDigits { .. }
            | Self::ChunkBytes { .. }
            | Self::ChunkExtension
            | Self::ChunkLineBytes { .. }
            | Self::ChunkExtensionsBytes { .. }
            | Self::ChunkDataEnd
            | Self::TrailerLine { .. }
            | Self::Truncated => 400,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkSize => f.write_str("chunk size is not a hex number"),
            Self::ChunkSizeDigits { max } => write!(f, "chunk size is over {max} digits"),
            Self::ChunkBytes { max } => write!(f, "chunk is over {max} bytes"),
            Self::ChunkExtension => f.write_str("chunk extension is invalid"),
            Self::ChunkLineBytes { max } => write!(f, "chunk line is over {max} bytes"),
            Self::ChunkExtensionsBytes { max } => {
                write!(f, "chunk extensions of the body are over {max} bytes")
            }
            Self::ChunkDataEnd => f.write_str("chunk data is not followed by CRLF"),
            Self::TrailerBytes { max } => write!(f, "trailer section is over {max} bytes"),
            Self::TrailerCount { max } => write!(f, "trailer section has over {max} fields"),
            Self::TrailerLine { line } => {
                write!(f, "line {line} of the trailer section is not a field")
            }
            Self::Truncated => f.write_str("connection ended within the body"),
        }
    }
}

impl std::error::Error for BodyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_limit_and_unit() {
        let rows = [
            (HeadError::HeadBytes { max: 16384 }.to_string(), "head is over 16384 bytes"),
            (HeadError::FieldCount { max: 100 }.to_string(), "head has over 100 fields"),
            (HeadError::LineEnd { line: 3 }.to_string(), "line 3 of the head lacks its CRLF"),
            (BodyError::ChunkBytes { max: 7 }.to_string(), "chunk is over 7 bytes"),
            (BodyError::TrailerCount { max: 64 }.to_string(), "trailer section has over 64 fields"),
        ];
        for (message, expected) in rows {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn limits_have_statuses_of_their_own() {
        assert_eq!(HeadError::TargetBytes { max: 1 }.status(), 414);
        assert_eq!(HeadError::HeadBytes { max: 1 }.status(), 431);
        assert_eq!(HeadError::FieldCount { max: 1 }.status(), 431);
        assert_eq!(HeadError::MethodBytes { max: 1 }.status(), 501);
        assert_eq!(BodyError::TrailerBytes { max: 1 }.status(), 431);
        assert_eq!(BodyError::Truncated.status(), 400);
    }
}
