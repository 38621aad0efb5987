//! Arguments to a validated plan.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

use baton_http1::{FieldSlots, HeadError, HeadLimits, MethodKind, RequestHead};
use baton_runtime::DriverChoice;
use clap::Parser;

/// Body bytes of one request. They are in memory once per process.
const BODY_BYTES_MAX: u64 = 1 << 30;

/// The command line of `baton-load`.
#[derive(Clone, Debug, Parser)]
#[command(name = "baton-load", version, about = "Loads one URL and tells the latencies")]
pub struct Args {
    /// What to ask for: http://HOST:PORT/PATH
    #[arg(long)]
    pub url: String,
    /// Connections open at once
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub connections: u32,
    /// How long to go on
    #[arg(long, default_value_t = 5.0, value_parser = positive)]
    pub seconds: f64,
    /// Requests per second, sent when they are due whatever the answers do (open loop)
    #[arg(long, value_parser = positive)]
    pub rate: Option<f64>,
    /// Open a new connection for each request
    #[arg(long)]
    pub new_connections: bool,
    /// Cores to run the clients on
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cores: u32,
    /// Kernel interface: auto, io_uring or poll
    #[arg(long, default_value = "auto", value_parser = driver)]
    pub driver: DriverChoice,
    /// Request method
    #[arg(long, default_value = "GET")]
    pub method: String,
    /// Bytes of each request's body
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=BODY_BYTES_MAX))]
    pub body_bytes: u64,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (1e-3..=1e9).contains(&number) => Ok(number),
        _ => Err("expected a number from 0.001 to 1000000000".into()),
    }
}

fn driver(text: &str) -> Result<DriverChoice, String> {
    match text {
        "auto" => Ok(DriverChoice::Auto),
        "io_uring" => Ok(DriverChoice::IoUring),
        "poll" => Ok(DriverChoice::Poll),
        _ => Err("expected auto, io_uring or poll".into()),
    }
}

/// A load that can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) args: Args,
    pub(super) address: SocketAddr,
    /// The request with its body.
    pub(super) request: Vec<u8>,
    pub(super) method: MethodKind,
}

/// Why arguments make no plan.
#[derive(Debug)]
pub enum PlanError {
    /// The URL does not begin with `http://`.
    Scheme,
    /// The URL's host has no address.
    Address(std::io::Error),
    /// The method or the URL makes no valid request.
    Request(HeadError),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Scheme => f.write_str("the url does not begin with http://"),
            PlanError::Address(error) => write!(f, "the url's host has no address: {error}"),
            PlanError::Request(error) => write!(f, "method and url make no request: {error}"),
        }
    }
}

impl std::error::Error for PlanError {}

impl Args {
    /// Checks the arguments. May block: a host name is looked up.
    pub fn plan(self) -> Result<Plan, PlanError> {
        let rest = self.url.strip_prefix("http://").ok_or(PlanError::Scheme)?;
        let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let slash = if target.starts_with('/') { "" } else { "/" };
        let mut request = format!("{} {slash}{target} HTTP/1.1\r\nHost: {host}\r\n", self.method);
        if self.body_bytes > 0 {
            request += &format!("Content-Length: {}\r\n", self.body_bytes);
        }
        if self.new_connections {
            request += "Connection: close\r\n";
        }
        let mut request = (request + "\r\n").into_bytes();
        let method = method_of(&request).map_err(PlanError::Request)?;
        let address = resolve(host).map_err(PlanError::Address)?;
        // Bounded by `BODY_BYTES_MAX`.
        request.resize(request.len() + self.body_bytes as usize, b'x');
        Ok(Plan { args: self, address, request, method })
    }
}

fn method_of(request: &[u8]) -> Result<MethodKind, HeadError> {
    let mut slots = FieldSlots::new();
    let head = RequestHead::parse(request, &HeadLimits::default(), &mut slots)?;
    head.map(|head| head.facts.method).ok_or(HeadError::Syntax)
}

#[expect(clippy::disallowed_methods, reason = "no core runs yet that it could block")]
fn resolve(host: &str) -> std::io::Result<SocketAddr> {
    const HTTP_PORT: u16 = 80;
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let address = if has_port {
        host.to_socket_addrs()?.next()
    } else {
        (host.trim_matches(['[', ']']), HTTP_PORT).to_socket_addrs()?.next()
    };
    address.ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Args { url, method, connections, seconds, rate, cores, new_connections, .. } =
            &self.args;
        let renewed = if *new_connections { ", a new one for each request" } else { "" };
        write!(f, "{method} {url} for {seconds} s\n{connections} connections{renewed}, ")?;
        match rate {
            Some(rate) => write!(f, "open loop at {rate} requests/s, ")?,
            None => f.write_str("closed loop, ")?,
        }
        write!(f, "cores: {cores}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Result<Plan, PlanError> {
        let all = ["baton-load"].iter().chain(arguments);
        Args::try_parse_from(all).expect("the arguments are well-formed").plan()
    }

    #[test]
    fn arguments_out_of_range_are_refused() {
        for arguments in [
            &["--connections", "0"][..],
            &["--cores", "0"],
            &["--seconds", "0"],
            &["--seconds", "NaN"],
            &["--rate", "-1"],
            &["--rate", "1e10"],
            &["--driver", "kqueue"],
            &["--body-bytes", "1073741825"],
        ] {
            let all = ["baton-load", "--url", "http://127.0.0.1"].iter().chain(arguments);
            assert!(Args::try_parse_from(all).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn what_makes_no_request_is_refused() {
        let scheme = plan(&["--url", "https://127.0.0.1/"]);
        assert!(matches!(scheme, Err(PlanError::Scheme)));
        for (url, method) in [
            ("http:///x", "GET"),
            ("http://127.0.0.1/a b", "GET"),
            ("http://user@127.0.0.1/", "GET"),
            ("http://127.0.0.1/", "BAD METHOD"),
            ("http://127.0.0.1/", "CONNECT"),
        ] {
            let refused = plan(&["--url", url, "--method", method]);
            assert!(matches!(refused, Err(PlanError::Request(_))), "{url} {method}");
        }
    }

    #[test]
    fn the_request_is_what_url_method_and_body_say() {
        let rows = [
            ("http://127.0.0.1", "127.0.0.1:80", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"),
            ("http://[::1]?q", "[::1]:80", "GET /?q HTTP/1.1\r\nHost: [::1]\r\n"),
            ("http://[::1]:81/a?b", "[::1]:81", "GET /a?b HTTP/1.1\r\nHost: [::1]:81\r\n"),
        ];
        for (url, address, head) in rows {
            let plan = plan(&["--url", url]).expect("it is a plan");
            assert_eq!(plan.address.to_string(), address);
            assert_eq!(plan.request, format!("{head}\r\n").as_bytes());
        }
        let options = ["--method", "POST", "--body-bytes", "3", "--new-connections"];
        let plan = plan(&[&["--url", "http://127.0.0.1:1/"][..], &options].concat());
        let expected = "POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 3\r\n\
                        Connection: close\r\n\r\nxxx";
        assert_eq!(plan.expect("it is a plan").request, expected.as_bytes());
    }
}
