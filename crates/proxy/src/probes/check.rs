//! One health check: a connection, a `GET`, the head of the answer.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use baton_http1::{FieldSlots, HeadError, HeadLimits, HeadProgress, MethodKind, ResponseHead};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::limits::{CHECK_HEAD_BYTES_MAX, CHECK_REST_BOUND, CHECK_REST_BYTES_MAX};
use crate::config::HealthConfig;

/// The head of a check's answer.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    head_bytes_max: CHECK_HEAD_BYTES_MAX,
    fields_max: baton_http1::FIELDS_MAX,
    // No target is parsed.
    target_bytes_max: 0,
};

/// Why a check failed.
#[derive(Debug)]
pub(super) enum Bad {
    /// No connection.
    Connect(io::Error),
    /// The connection broke.
    Broke(io::Error),
    /// It ended before the answer.
    Closed,
    /// The answer is not HTTP.
    Head(HeadError),
    /// Another status than expected.
    Status(u16),
    /// No answer within this time.
    Timeout(Duration),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "cannot connect: {error}"),
            Self::Broke(error) => write!(f, "the connection broke: {error}"),
            Self::Closed => f.write_str("the connection was closed without an answer"),
            Self::Head(error) => write!(f, "the answer is not HTTP: {error}"),
            Self::Status(status) => write!(f, "the status is {status}"),
            Self::Timeout(bound) => write!(f, "no answer within {bound:?}"),
        }
    }
}

/// The request of all checks of `address`. Path and host of `config` are valid in a head.
pub(super) fn request(config: &HealthConfig, address: SocketAddr) -> Vec<u8> {
    let address = address.to_string();
    let (path, host) = (&config.path, config.host.as_ref().unwrap_or(&address));
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "GET {path} HTTP/1.1\r\n\
         Host: {host}\r\n\
         User-Agent: baton-health/{version}\r\n\
         Connection: close\r\n\
         \r\n"
    )
    .into_bytes()
}

/// Checks `address` once; the status if it is an expected one. Takes `config.timeout` and
/// `CHECK_REST_BOUND` at most.
pub(super) async fn check(
    config: &HealthConfig,
    address: SocketAddr,
    request: &[u8],
) -> Result<u16, Bad> {
    let mut buffer = Vec::new();
    let exchange = timeout(config.timeout, exchange(address, request, &mut buffer)).await;
    let (stream, status) = exchange.unwrap_or(Err(Bad::Timeout(config.timeout)))?;
    // The verdict stands, whatever becomes of the rest.
    let _read = timeout(CHECK_REST_BOUND, read_rest(&stream, &mut buffer)).await;
    let is_expected = config.expect.iter().any(|(from, to)| (*from..=*to).contains(&status));
    if is_expected { Ok(status) } else { Err(Bad::Status(status)) }
}

async fn exchange(
    address: SocketAddr,
    request: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<(TcpStream, u16), Bad> {
    let stream = TcpStream::connect(address).await.map_err(Bad::Connect)?;
    let mut unsent = request;
    while !unsent.is_empty() {
        stream.writable().await.map_err(Bad::Broke)?;
        match stream.try_write(unsent) {
            Ok(count) => unsent = &unsent[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(Bad::Broke(error)),
        }
    }
    let mut filled = 0;
    let mut progress = HeadProgress::default();
    buffer.resize(CHECK_HEAD_BYTES_MAX, 0);
    while filled < buffer.len() {
        let count = read(&stream, &mut buffer[filled..]).await.map_err(Bad::Broke)?;
        if count == 0 {
            return Err(Bad::Closed);
        }
        filled += count;
        let input = &buffer[..filled];
        if progress.should_parse(input, &HEAD_LIMITS)
            && let Some(status) = final_status(input).map_err(Bad::Head)?
        {
            return Ok((stream, status));
        }
    }
    Err(Bad::Head(HeadError::HeadBytes { max: CHECK_HEAD_BYTES_MAX }))
}

/// The status of the first answer in `input` that is not an interim one. `None`: it is incomplete.
fn final_status(mut input: &[u8]) -> Result<Option<u16>, HeadError> {
    loop {
        let mut slots = FieldSlots::new();
        match ResponseHead::parse(input, &HEAD_LIMITS, &mut slots, MethodKind::Get)? {
            None => return Ok(None),
            Some(head) if head.is_interim() => input = &input[head.bytes..],
            Some(head) => return Ok(Some(head.status)),
        }
    }
}

/// Reads to the end of the stream, or as much as is read at most.
async fn read_rest(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let mut left = CHECK_REST_BYTES_MAX;
    while left > 0 {
        match read(stream, buffer).await? {
            0 => break,
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}

/// Bytes read into `buffer`; none: the stream has ended.
async fn read(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}
