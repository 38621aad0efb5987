//! Why an exchange ended before its time: whose fault, which status, which counter.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use baton_http1::{BodyError, HeadError};
use baton_runtime::Counter;

use crate::config::RetryOn;
use crate::counters::Counters;
use crate::route::ProxyHeaderError;

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Downstream,
    Upstream,
    Proxy,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Downstream => "downstream",
            Side::Upstream => "upstream",
            Side::Proxy => "proxy",
        })
    }
}

/// Why an exchange failed. The client connection is closed after it, unless
/// [`ProxyError::spares_client`] says otherwise.
#[derive(Debug)]
pub(crate) enum ProxyError {
    /// The request head is refused.
    RequestHead(HeadError),
    /// The PROXY protocol header in front of a connection is refused.
    ProxyHeader(ProxyHeaderError),
    /// The request head did not arrive in time.
    RequestHeadTimeout(Duration),
    /// The request body is refused.
    RequestBody(BodyError),
    /// The next piece of the request body did not arrive in time.
    RequestBodyTimeout(Duration),
    /// The request body is longer than the limit, bytes.
    RequestBodyBytes(u64),
    /// The client ended or broke its connection within an exchange.
    ClientGone(io::Error),
    /// The client did not take its answer in time.
    ClientStalled(Duration),
    /// No connection to the endpoint.
    Connect(SocketAddr, io::Error),
    /// No connection to the endpoint in time.
    ConnectTimeout(SocketAddr, Duration),
    /// The endpoint broke its connection before the head of its answer was there.
    NoAnswer(SocketAddr, io::Error),
    /// The endpoint did not begin its answer in time.
    AnswerTimeout(SocketAddr, Duration),
    /// The head of the answer is refused.
    AnswerHead(SocketAddr, HeadError),
    /// More interim responses than the limit.
    AnswerInterims(SocketAddr, usize),
    /// The body of the answer is refused, or cut short.
    AnswerBody(SocketAddr, BodyError),
    /// The connection broke within the body of the answer.
    AnswerBroken(SocketAddr, io::Error),
    /// The next piece of the answer's body did not arrive in time.
    AnswerStalled(SocketAddr, Duration),
    /// An answer with a status after which the request is sent once more.
    AnswerStatus(SocketAddr, u16),
    /// The upstream of this name has no endpoint that can be used.
    NoEndpoint(Box<str>),
    /// As many requests as may wait for a connection to the endpoint.
    QueueFull(SocketAddr, usize),
    /// No connection to the endpoint became free in time.
    QueueTimeout(SocketAddr, Duration),
    /// No descriptor or memory for a connection to the endpoint.
    OutOfResources(io::Error),
}

impl ProxyError {
    pub(crate) fn side(&self) -> Side {
        use ProxyError as E;
        match self {
            E::RequestHead(_)
            | E::ProxyHeader(_)
            | E::RequestHeadTimeout(_)
            | E::RequestBody(_)
            | E::RequestBodyTimeout(_)
            | E::RequestBodyBytes(_)
            | E::ClientGone(_)
            | E::ClientStalled(_) => Side::Downstream,
            E::Connect(..)
            | E::ConnectTimeout(..)
            | E::NoAnswer(..)
            | E::AnswerTimeout(..)
            | E::AnswerHead(..)
            | E::AnswerInterims(..)
            | E::AnswerBody(..)
            | E::AnswerBroken(..)
            | E::AnswerStalled(..)
            | E::AnswerStatus(..)
            | E::NoEndpoint(_)
            | E::QueueFull(..)
            | E::QueueTimeout(..) => Side::Upstream,
            E::OutOfResources(_) => Side::Proxy,
        }
    }

    /// The status the client is owed if nothing was answered yet; `None`: it cannot be answered.
    pub(crate) fn status(&self) -> Option<u16> {
        use ProxyError as E;
        match self {
            E::RequestHead(error) => Some(error.status()),
            E::RequestBody(error) => Some(error.status()),
            E::RequestHeadTimeout(_) | E::RequestBodyTimeout(_) => Some(408),
            E::RequestBodyBytes(_) => Some(413),
            E::ProxyHeader(_) | E::ClientGone(_) | E::ClientStalled(_) => None,
            E::Connect(..)
            | E::NoAnswer(..)
            | E::AnswerHead(..)
            | E::AnswerInterims(..)
            | E::AnswerBody(..)
            | E::AnswerBroken(..)
            | E::AnswerStatus(..) => Some(502),
            E::NoEndpoint(_) | E::QueueFull(..) | E::QueueTimeout(..) | E::OutOfResources(_) => {
                Some(503)
            }
            E::ConnectTimeout(..) | E::AnswerTimeout(..) | E::AnswerStalled(..) => Some(504),
        }
    }

    /// What the client is told besides the status. Names no address.
    pub(crate) fn reason(&self) -> String {
        use ProxyError as E;
        match self {
            E::RequestHead(error) => error.to_string(),
            E::RequestBody(error) => error.to_string(),
            E::RequestHeadTimeout(_) => "the request head took too long".into(),
            E::RequestBodyTimeout(_) => "the request body took too long".into(),
            E::RequestBodyBytes(most) => format!("the request body is over {most} bytes"),
            E::ProxyHeader(_) | E::ClientGone(_) | E::ClientStalled(_) => String::new(),
            E::Connect(..) => "the upstream refused the connection".into(),
            E::ConnectTimeout(..) => "the upstream took too long to connect".into(),
            E::NoAnswer(..) => "the upstream closed the connection without an answer".into(),
            E::AnswerTimeout(..) => "the upstream took too long to answer".into(),
            E::AnswerHead(..) | E::AnswerInterims(..) | E::AnswerBody(..) => {
                "the upstream sent an invalid answer".into()
            }
            E::AnswerStatus(..) => "the upstream failed".into(),
            E::AnswerBroken(..) | E::AnswerStalled(..) => {
                "the upstream broke its answer off".into()
            }
            E::NoEndpoint(_) => "the upstream is not available".into(),
            E::QueueFull(..) | E::QueueTimeout(..) => "the upstream is busy".into(),
            E::OutOfResources(_) => "the proxy has no connection to spare".into(),
        }
    }

    /// What it is to the endpoint and to a retry; `None`: not the endpoint's doing.
    pub(crate) fn kind(&self) -> Option<RetryOn> {
        use ProxyError as E;
        match self {
            E::Connect(..) | E::ConnectTimeout(..) => Some(RetryOn::Connect),
            E::NoAnswer(..) | E::AnswerBroken(..) => Some(RetryOn::NoAnswer),
            E::AnswerTimeout(..) | E::AnswerStalled(..) => Some(RetryOn::Timeout),
            E::AnswerHead(..) | E::AnswerInterims(..) | E::AnswerBody(..) => Some(RetryOn::Invalid),
            E::RequestHead(_)
            | E::ProxyHeader(_)
            | E::RequestHeadTimeout(_)
            | E::RequestBody(_)
            | E::RequestBodyTimeout(_)
            | E::RequestBodyBytes(_)
            | E::ClientGone(_)
            | E::ClientStalled(_)
            | E::AnswerStatus(..)
            | E::NoEndpoint(_)
            | E::QueueFull(..)
            | E::QueueTimeout(..)
            | E::OutOfResources(_) => None,
        }
    }

    /// Whether the client connection can go on after the answer, its request being complete.
    pub(crate) fn spares_client(&self) -> bool {
        // Interim responses may have reached the client; it had better not wait for the rest.
        self.side() != Side::Downstream && !matches!(self, ProxyError::AnswerInterims(..))
    }

    /// What counts it.
    pub(crate) fn counter<'a>(&self, counters: &'a Counters) -> &'a Counter {
        use ProxyError as E;
        match self {
            E::RequestHead(error) => match error.status() {
                414 => &counters.request_target_over_limit,
                431 => &counters.request_head_over_limit,
                _ => &counters.request_head_refused,
            },
            E::ProxyHeader(_) => &counters.proxy_protocol_refused,
            E::RequestHeadTimeout(_) => &counters.request_head_timeout,
            E::RequestBody(_) => &counters.request_body_refused,
            E::RequestBodyTimeout(_) => &counters.request_body_timeout,
            E::RequestBodyBytes(_) => &counters.request_body_over_limit,
            E::ClientGone(_) => &counters.client_gone,
            E::ClientStalled(_) => &counters.client_stalled,
            E::Connect(..) => &counters.upstream_connect_failed,
            E::ConnectTimeout(..) => &counters.upstream_connect_timeout,
            E::NoAnswer(..) => &counters.upstream_no_answer,
            E::AnswerTimeout(..) => &counters.upstream_answer_timeout,
            E::AnswerHead(..) | E::AnswerInterims(..) | E::AnswerBody(..) => {
                &counters.upstream_answer_refused
            }
            E::AnswerBroken(..) => &counters.upstream_answer_broken,
            E::AnswerStalled(..) => &counters.upstream_answer_stalled,
            E::AnswerStatus(..) => &counters.upstream_answer_status,
            E::NoEndpoint(_) => &counters.upstream_no_endpoint,
            E::QueueFull(..) => &counters.upstream_queue_full,
            E::QueueTimeout(..) => &counters.upstream_queue_timeout,
            E::OutOfResources(_) => &counters.out_of_resources,
        }
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ProxyError as E;
        match self {
            E::RequestHead(error) => write!(f, "request refused: {error}"),
            E::ProxyHeader(error) => error.fmt(f),
            E::RequestHeadTimeout(bound) => write!(f, "request head took over {bound:?}"),
            E::RequestBody(error) => write!(f, "request body refused: {error}"),
            E::RequestBodyTimeout(bound) => write!(f, "no request body for {bound:?}"),
            E::RequestBodyBytes(most) => write!(f, "request body is over {most} bytes"),
            E::ClientGone(error) => write!(f, "client left: {error}"),
            E::ClientStalled(bound) => write!(f, "client took nothing for {bound:?}"),
            E::Connect(endpoint, error) => write!(f, "cannot connect to {endpoint}: {error}"),
            E::ConnectTimeout(endpoint, bound) => {
                write!(f, "cannot connect to {endpoint} within {bound:?}")
            }
            E::NoAnswer(endpoint, error) => write!(f, "no answer from {endpoint}: {error}"),
            E::AnswerTimeout(endpoint, bound) => {
                write!(f, "no answer from {endpoint} within {bound:?}")
            }
            E::AnswerHead(endpoint, error) => write!(f, "answer of {endpoint} refused: {error}"),
            E::AnswerInterims(endpoint, most) => {
                write!(f, "answer of {endpoint} refused: over {most} interim responses")
            }
            E::AnswerBody(endpoint, error) => {
                write!(f, "answer body of {endpoint} refused: {error}")
            }
            E::AnswerBroken(endpoint, error) => {
                write!(f, "answer of {endpoint} broke off: {error}")
            }
            E::AnswerStalled(endpoint, bound) => {
                write!(f, "answer of {endpoint} stalled for {bound:?}")
            }
            E::AnswerStatus(endpoint, status) => {
                write!(f, "answer of {endpoint} has status {status}")
            }
            E::NoEndpoint(upstream) => write!(f, "no endpoint of upstream {upstream} can be used"),
            E::QueueFull(endpoint, most) => {
                write!(f, "over {most} requests wait for a connection to {endpoint}")
            }
            E::QueueTimeout(endpoint, bound) => {
                write!(f, "no connection to {endpoint} became free within {bound:?}")
            }
            E::OutOfResources(error) => write!(f, "no connection to spare: {error}"),
        }
    }
}

/// Whether an error of a wait is our own deadline.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

impl From<ProxyHeaderError> for ProxyError {
    fn from(error: ProxyHeaderError) -> ProxyError {
        ProxyError::ProxyHeader(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each, with the status it leads to.
    fn all() -> Vec<(ProxyError, Option<u16>)> {
        use ProxyError as E;
        let (at, bound) = (SocketAddr::from(([192, 0, 2, 1], 9)), Duration::from_secs(1));
        let broken = || io::Error::from(io::ErrorKind::ConnectionReset);
        vec![
            (E::RequestHead(HeadError::HeadBytes { max: 1 }), Some(431)),
            (E::RequestHead(HeadError::TargetBytes { max: 1 }), Some(414)),
            (E::RequestHead(HeadError::Syntax), Some(400)),
            (E::ProxyHeader(ProxyHeaderError::Start), None),
            (E::RequestHeadTimeout(bound), Some(408)),
            (E::RequestBody(BodyError::ChunkSize), Some(400)),
            (E::RequestBodyTimeout(bound), Some(408)),
            (E::RequestBodyBytes(1), Some(413)),
            (E::ClientGone(broken()), None),
            (E::ClientStalled(bound), None),
            (E::Connect(at, broken()), Some(502)),
            (E::ConnectTimeout(at, bound), Some(504)),
            (E::NoAnswer(at, broken()), Some(502)),
            (E::AnswerTimeout(at, bound), Some(504)),
            (E::AnswerHead(at, HeadError::Syntax), Some(502)),
            (E::AnswerInterims(at, 1), Some(502)),
            (E::AnswerBody(at, BodyError::ChunkSize), Some(502)),
            (E::AnswerBroken(at, broken()), Some(502)),
            (E::AnswerStalled(at, bound), Some(504)),
            (E::AnswerStatus(at, 503), Some(502)),
            (E::NoEndpoint("api".into()), Some(503)),
            (E::QueueFull(at, 1), Some(503)),
            (E::QueueTimeout(at, bound), Some(503)),
            (E::OutOfResources(broken()), Some(503)),
        ]
    }

    #[test]
    fn a_failure_of_the_client_closes_its_connection_and_others_do_not() {
        for (error, _) in all() {
            let spares = error.side() != Side::Downstream;
            let spares = spares && !matches!(error, ProxyError::AnswerInterims(..));
            assert_eq!(error.spares_client(), spares, "{error}");
        }
    }

    #[test]
    fn each_failure_has_its_status_and_counts_once() {
        for (error, status) in all() {
            assert_eq!(error.status(), status, "{error}");
            let counters = Counters::default();
            error.counter(&counters).add(1);
            let sum: u64 = counters.read().iter().map(|(_, value)| value).sum();
            assert_eq!(sum, 1, "{error}");
        }
    }

    #[test]
    fn what_a_client_is_told_names_no_address() {
        for (error, status) in all() {
            let reason = error.reason();
            assert!(!reason.contains("192.0.2.1"), "{reason}");
            assert_eq!(reason.is_empty(), status.is_none(), "{error}");
        }
    }
}
