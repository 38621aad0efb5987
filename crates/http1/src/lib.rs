//! HTTP/1.x for an intermediary, without I/O: bytes in, decisions out.
//!
//! The way of one exchange:
//!
//! ```text
//! client bytes ─► RequestHead::parse ─► encode_request ─► upstream bytes
//!                      └─ RequestFacts ─┐
//! client bytes ◄─ encode_response ◄─ plan_response ◄─ ResponseHead::parse ◄─ upstream bytes
//!                      bodies, both ways: BodyDecoder, chunk_header, encode_trailers
//! ```
//!
//! What is ambiguous is refused, never repaired and sent on: a message that two recipients may
//! end at different places would let a client smuggle requests past the first of them. So what
//! is sent on always is one message, in the strictest form of RFC 9112.
//!
//! No function here reads a clock, a socket or a file, waits, or keeps state between calls that
//! its caller does not hold. Heads and bodies are parsed without allocation; encoders append to
//! the caller's buffer. What an operator changes of a head ([`Edits`]) is compiled beforehand.

#![forbid(unsafe_code)]

mod authority;
mod body;
mod chunk;
mod client;
mod connection;
mod edits;
mod encode;
mod error;
mod fields;
mod forward;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod head;
mod limits;
mod method;
mod name;
mod request;
mod response;
mod scan;
mod syntax;
mod target;
mod upgrade;
mod version;

pub use body::{BodyDecoder, Piece, PieceKind};
pub use client::ClientFields;
pub use connection::{ResponsePlan, plan_response};
pub use edits::{Edits, FieldBlock, FieldName, FieldNameError, FieldNames};
pub use encode::{
    CHUNK_END, CHUNK_HEADER_BYTES_MAX, LAST_CHUNK, LocalResponse, chunk_header, encode_trailers,
    reason_phrase,
};
pub use error::{BodyError, HeadError};
pub use fields::{Field, FieldSlots};
pub use forward::{RequestContext, encode_interim, encode_request, encode_response};
pub use framing::Framing;
pub use head::HeadProgress;
pub use limits::{
    CHUNK_LINE_BYTES_MAX, FIELDS_MAX, HeadLimits, METHOD_BYTES_MAX, TRAILER_BYTES_MAX,
};
pub use method::{Method, MethodKind};
pub use request::{RequestFacts, RequestHead};
pub use response::ResponseHead;
pub use target::{Authority, OriginForm, Target};
pub use version::Version;
