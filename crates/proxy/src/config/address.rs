//! Addresses as the file and the flags take them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// An endpoint as configured: its address, or a name that is resolved once at start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamAddr {
    /// Ready to connect to. The port is not 0.
    Ip(SocketAddr),
    /// To be resolved off the cores.
    Name {
        /// A host name (RFC 1123 §2.1; underscores allowed), as written.
        host: String,
        /// Not 0.
        port: u16,
    },
}

/// The form that [`parse_upstream`] reads.
impl fmt::Display for UpstreamAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// Why a text is no address. The text is not repeated in the message: the caller shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// Nothing at all.
    Empty,
    /// A URL's scheme stands before the address.
    Scheme {
        /// The scheme, without `://`.
        scheme: String,
    },
    /// Something follows the port.
    Path,
    /// No colon before a port; `host` is all there is.
    NoPort,
    /// Digits alone, a port without its colon.
    PortAlone {
        /// The digits.
        port: String,
    },
    /// The port is no number from 0 to 65535.
    Port {
        /// What stands where the port belongs.
        port: String,
    },
    /// Port 0, which cannot be connected to.
    PortZero,
    /// An IPv6 address without brackets, whose port cannot be told from its last group.
    Brackets,
    /// What is in the brackets is no IPv6 address.
    Ipv6,
    /// Four numbers with dots that are no IPv4 address.
    Ipv4,
    /// A listener was given a name.
    ListenName {
        /// The name.
        host: String,
    },
    /// An endpoint without a host.
    NoHost {
        /// The port given.
        port: u16,
    },
    /// Not a host name.
    HostName {
        /// What stands where the host belongs.
        host: String,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the address is empty"),
            Self::Scheme { scheme } => {
                write!(f, "an address has no scheme; leave out `{scheme}://`")
            }
            Self::Path => f.write_str("an address ends with its port; leave out the path"),
            Self::NoPort => f.write_str("the port is missing"),
            Self::PortAlone { port } => write!(f, "a port alone is written `:{port}`"),
            Self::Port { port } => write!(f, "`{port}` is no port from 1 to 65535"),
            Self::PortZero => f.write_str("port 0 cannot be connected to"),
            Self::Brackets => f.write_str("an IPv6 address stands in brackets, as in `[::1]:8080`"),
            Self::Ipv6 => f.write_str("there is no IPv6 address in the brackets"),
            Self::Ipv4 => f.write_str("this is no IPv4 address"),
            Self::ListenName { host } => {
                write!(f, "a listener takes an IP address, not the name `{host}`")
            }
            Self::NoHost { port } => write!(f, "the host is missing, as in `127.0.0.1:{port}`"),
            Self::HostName { host } => write!(f, "`{host}` is no host name"),
        }
    }
}

impl std::error::Error for AddressError {}

/// Parses the address of a listener: `127.0.0.1:8080`, `[::1]:8080`, or `:8080` for every IPv4
/// interface. Port 0 is accepted: the system chooses.
pub fn parse_listen(text: &str) -> Result<SocketAddr, AddressError> {
    match split(text)? {
        Host::Ip(address) => Ok(address),
        Host::Missing(port) => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        Host::Name(host, _) => Err(AddressError::ListenName { host: host.to_owned() }),
    }
}

/// Parses the address of an endpoint: `127.0.0.1:9000`, `[::1]:9000` or `name:9000`.
pub fn parse_upstream(text: &str) -> Result<UpstreamAddr, AddressError> {
    let (address, port) = match split(text)? {
        Host::Ip(address) => (UpstreamAddr::Ip(address), address.port()),
        Host::Missing(port) => return Err(AddressError::NoHost { port }),
        Host::Name(host, port) if is_host_name(host) => {
            (UpstreamAddr::Name { host: host.to_owned(), port }, port)
        }
        Host::Name(host, _) => return Err(AddressError::HostName { host: host.to_owned() }),
    };
    if port == 0 {
        return Err(AddressError::PortZero);
    }
    Ok(address)
}

enum Host<'a> {
    Missing(u16),
    /// With its port, as both are in one type of the standard library.
    Ip(SocketAddr),
    /// Not checked.
    Name(&'a str, u16),
}

/// Tells the forms of an address apart. What is not one gets the error nearest to what was meant.
fn split(text: &str) -> Result<Host<'_>, AddressError> {
    if let Ok(address) = text.parse() {
        return Ok(Host::Ip(address));
    }
    if text.is_empty() {
        return Err(AddressError::Empty);
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(AddressError::Scheme { scheme: scheme.to_owned() });
    }
    if text.contains(['/', '?', '#']) {
        return Err(AddressError::Path);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AddressError::PortAlone { port: text.to_owned() });
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err(AddressError::Brackets);
    }
    if text.ends_with(']') {
        return Err(AddressError::NoPort);
    }
    let (host, port) = text.rsplit_once(':').ok_or(AddressError::NoPort)?;
    let port = parse_port(port)?;
    if host.is_empty() {
        return Ok(Host::Missing(port));
    }
    if host.starts_with('[') {
        return Err(AddressError::Ipv6);
    }
    if host.contains(':') {
        return Err(AddressError::Brackets);
    }
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(AddressError::Ipv4);
    }
    Ok(Host::Name(host, port))
}

/// `u16::from_str` alone would accept a plus sign.
fn parse_port(text: &str) -> Result<u16, AddressError> {
    let wrong = || AddressError::Port { port: text.to_owned() };
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    text.parse().map_err(|_| wrong())
}

/// RFC 1123 §2.1: labels of letters, digits and inner hyphens, 63 characters each, 253 in all.
/// Underscores are not in the RFC, but in names that container networks give.
fn is_host_name(host: &str) -> bool {
    let host_without_root = host.strip_suffix('.').unwrap_or(host);
    host_without_root.len() <= 253
        && host_without_root.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: &str) -> AddressError {
        AddressError::Port { port: port.to_owned() }
    }

    fn listen_name(host: &str) -> AddressError {
        AddressError::ListenName { host: host.to_owned() }
    }

    fn host_name(host: &str) -> AddressError {
        AddressError::HostName { host: host.to_owned() }
    }

    fn scheme(scheme: &str) -> AddressError {
        AddressError::Scheme { scheme: scheme.to_owned() }
    }

    #[test]
    fn what_is_no_address_is_refused_by_listeners_and_endpoints_alike() {
        let rows = [
            ("", AddressError::Empty),
            ("8080", AddressError::PortAlone { port: "8080".to_owned() }),
            ("http://127.0.0.1:80", scheme("http")),
            ("unix:///run/x", scheme("unix")),
            ("127.0.0.1:80/", AddressError::Path),
            ("/run/x.sock", AddressError::Path),
            ("127.0.0.1", AddressError::NoPort),
            ("localhost", AddressError::NoPort),
            ("[::1]", AddressError::NoPort),
            ("::1", AddressError::Brackets),
            ("::1:8080", AddressError::Brackets),
            ("fe80::1%eth0:80", AddressError::Brackets),
            ("a:b:80", AddressError::Brackets),
            ("[::1:80", AddressError::Ipv6),
            ("[127.0.0.1]:80", AddressError::Ipv6),
            ("[]:80", AddressError::Ipv6),
            ("[::1]x:80", AddressError::Ipv6),
            ("127.0.0:80", AddressError::Ipv4),
            ("127.0.0.256:80", AddressError::Ipv4),
            ("127.0.0.1.:80", AddressError::Ipv4),
            ("1:80", AddressError::Ipv4),
            ("127.0.0.1:", port("")),
            ("127.0.0.1:65536", port("65536")),
            ("127.0.0.1:+80", port("+80")),
            ("127.0.0.1:-1", port("-1")),
            ("127.0.0.1: 80", port(" 80")),
            ("127.0.0.1:80 ", port("80 ")),
            ("127.0.0.1:http", port("http")),
            (":", port("")),
            ("[::1]:99999", port("99999")),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_listen(text), Err(expected.clone()), "listen {text:?}");
            assert_eq!(parse_upstream(text), Err(expected), "upstream {text:?}");
        }
    }

    #[test]
    fn a_listener_takes_no_name() {
        for host in ["localhost", "*", "a b", " 127.0.0.1"] {
            assert_eq!(parse_listen(&format!("{host}:80")), Err(listen_name(host)));
        }
    }

    #[test]
    fn an_endpoint_needs_a_host_and_a_port_that_can_be_connected_to() {
        let long_label = "a".repeat(64);
        let long_name = format!("{}b", "a.".repeat(127));
        assert_eq!(long_name.len(), 255);
        let rows = [
            (":9000".to_owned(), AddressError::NoHost { port: 9000 }),
            ("127.0.0.1:0".to_owned(), AddressError::PortZero),
            ("[::1]:0".to_owned(), AddressError::PortZero),
            ("name:0".to_owned(), AddressError::PortZero),
            ("*:80".to_owned(), host_name("*")),
            ("a..b:80".to_owned(), host_name("a..b")),
            (".a:80".to_owned(), host_name(".a")),
            ("-a:80".to_owned(), host_name("-a")),
            ("a-:80".to_owned(), host_name("a-")),
            ("a b:80".to_owned(), host_name("a b")),
            ("user@host:80".to_owned(), host_name("user@host")),
            ("bücher.example:80".to_owned(), host_name("bücher.example")),
            ("a\"b:80".to_owned(), host_name("a\"b")),
            (format!("{long_label}:80"), host_name(&long_label)),
            (format!("{long_name}:80"), host_name(&long_name)),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_upstream(&text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_port_alone_listens_on_every_ipv4_interface() {
        let rows = [
            (":8080", "0.0.0.0:8080"),
            (":0", "0.0.0.0:0"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("[::1]:8080", "[::1]:8080"),
            ("[::]:443", "[::]:443"),
            ("[fe80::1%2]:80", "[fe80::1%2]:80"),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_listen(text).map(|address| address.to_string()), Ok(expected.into()));
        }
    }

    #[test]
    fn an_endpoint_is_an_ip_address_or_a_name_and_is_written_as_it_is_read() {
        let long_label = "a".repeat(63);
        for text in ["127.0.0.1:9000", "[::1]:9000", "[fe80::1%2]:80"] {
            let address = parse_upstream(text).unwrap();
            assert_eq!(address, UpstreamAddr::Ip(text.parse().unwrap()));
            assert_eq!(address.to_string(), text);
        }
        for host in ["localhost", "app_1", "api.Example.com.", "a-b.c", "3com", &long_label] {
            let text = format!("{host}:65535");
            let address = parse_upstream(&text).unwrap();
            assert_eq!(address, UpstreamAddr::Name { host: host.to_owned(), port: 65_535 });
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn each_error_says_what_to_change() {
        let rows = [
            ("8080", "a port alone is written `:8080`"),
            ("https://a:1", "an address has no scheme; leave out `https://`"),
            ("a:1/x", "an address ends with its port; leave out the path"),
            ("a", "the port is missing"),
            ("a:x", "`x` is no port from 1 to 65535"),
            ("a:0", "port 0 cannot be connected to"),
            ("::1:1", "an IPv6 address stands in brackets, as in `[::1]:8080`"),
            (":9000", "the host is missing, as in `127.0.0.1:9000`"),
            ("a@b:1", "`a@b` is no host name"),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_upstream(text).unwrap_err().to_string(), expected);
        }
        let name = parse_listen("localhost:1").unwrap_err().to_string();
        assert_eq!(name, "a listener takes an IP address, not the name `localhost`");
    }
}
