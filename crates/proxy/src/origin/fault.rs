//! Why a request is not answered as asked: whose fault, and with which status.

use std::fmt;
use std::io;
use std::time::Duration;

use baton_http1::{BodyError, HeadError};

/// Why an exchange ends before its time. The connection ends with it.
#[derive(Debug)]
pub(super) enum Fault {
    /// The connection broke, or its client did not take an answer in time.
    Connection(io::Error),
    /// The request head is refused.
    Head(HeadError),
    /// The request head did not arrive in time.
    HeadTimeout(Duration),
    /// The request body is refused.
    Body(BodyError),
    /// More of the request body did not arrive in time.
    BodyTimeout(Duration),
    /// The request body is longer than its page takes, bytes.
    BodyBytes(u64),
}

impl Fault {
    /// The status the client is owed; `None`: it cannot be answered.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Fault::Connection(_) => None,
            Fault::Head(error) => Some(error.status()),
            Fault::Body(error) => Some(error.status()),
            Fault::HeadTimeout(_) | Fault::BodyTimeout(_) => Some(408),
            Fault::BodyBytes(_) => Some(413),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Connection(error) => write!(f, "connection broke: {error}"),
            Fault::Head(error) => write!(f, "request refused: {error}"),
            Fault::HeadTimeout(bound) => write!(f, "request head took over {bound:?}"),
            Fault::Body(error) => write!(f, "request body refused: {error}"),
            Fault::BodyTimeout(bound) => write!(f, "no request body for {bound:?}"),
            Fault::BodyBytes(most) => write!(f, "request body is over {most} bytes"),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Connection(error)
    }
}

impl From<HeadError> for Fault {
    fn from(error: HeadError) -> Fault {
        Fault::Head(error)
    }
}

impl From<BodyError> for Fault {
    fn from(error: BodyError) -> Fault {
        Fault::Body(error)
    }
}
