//! The PROXY protocol, versions 1 and 2: who a balancer in front of us speaks for.
//!
//! Specification: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest header of version 1 with its CRLF. Bytes (§2.1). When exceeded: refused.
const V1_BYTES_MAX: usize = 107;

/// Longest header of either version, with what version 2 says beside addresses. Bytes. A header
/// may say 64 KiB; those of known balancers have less than 600. When exceeded: refused.
pub(crate) const HEADER_BYTES_MAX: usize = 2 * 1024;
const _: () = assert!(V1_BYTES_MAX <= HEADER_BYTES_MAX);

/// How a header of version 1 begins.
const V1_START: &[u8; 6] = b"PROXY ";

/// How a header of version 2 begins (§2.2).
const V2_START: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of version 2 before the addresses.
const V2_FIXED_BYTES: usize = 16;

/// A header that stood at the start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProxyHeader {
    /// Its length; what follows is the client's.
    pub(crate) bytes: usize,
    /// The client and the address it connected to. `None`: nobody but the peer itself (a health
    /// check of the balancer, or a client it cannot name); then the connection's own hold.
    pub(crate) addresses: Option<Addresses>,
}

/// Both ends of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) client: SocketAddr,
    pub(crate) destination: SocketAddr,
}

/// Why the start of a connection is no header. The connection cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyHeaderError {
    /// Neither version begins so: something else is spoken here.
    Start,
    /// Version 1: what is not `PROXY TCP4|TCP6|UNKNOWN source destination port port` and CRLF.
    Line,
    /// Version 1: no end within 107 bytes.
    LineLength,
    /// Version 2: a version or command of a later standard.
    Command(u8),
    /// Version 2: a family or transport that does not exist.
    Family(u8),
    /// Version 2: too short for its addresses.
    Short(usize),
    /// Version 2: over [`HEADER_BYTES_MAX`].
    Long(usize),
}

impl fmt::Display for ProxyHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str(
                "the connection does not begin with a PROXY protocol header; expected `PROXY ` or \
                 the signature of version 2",
            ),
            Self::Line => f.write_str(
                "the PROXY protocol line is malformed; expected `PROXY TCP4 source destination \
                 source-port destination-port`, TCP6 or UNKNOWN",
            ),
            Self::LineLength => write!(f, "the PROXY protocol line is over {V1_BYTES_MAX} bytes"),
            Self::Command(byte) => write!(
                f,
                "the PROXY protocol header has version and command {byte:#04x}; expected 0x20 \
                 (LOCAL) or 0x21 (PROXY)"
            ),
            Self::Family(byte) => write!(
                f,
                "the PROXY protocol header has family and transport {byte:#04x}; expected 0x11 \
                 (TCP over IPv4) or 0x21 (TCP over IPv6)"
            ),
            Self::Short(bytes) => write!(
                f,
                "the PROXY protocol header has {bytes} bytes of addresses; expected at least 12 for \
                 IPv4, 36 for IPv6"
            ),
            Self::Long(bytes) => write!(
                f,
                "the PROXY protocol header has {bytes} bytes; expected at most {HEADER_BYTES_MAX}"
            ),
        }
    }
}

impl std::error::Error for ProxyHeaderError {}

impl ProxyHeader {
    /// Reads the header at the start of `input`, all bytes of the connection so far, cut anywhere.
    /// `None`: more bytes are needed; never once there are [`HEADER_BYTES_MAX`].
    ///
    /// What version 2 says beside addresses is skipped. Does not look behind the header.
    pub(crate) fn parse(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
        if begins(input, V1_START) {
            v1(input)
        } else if begins(input, V2_START) {
            v2(input)
        } else {
            Err(ProxyHeaderError::Start)
        }
    }
}

/// Whether `input`, as far as it goes, begins with `start`.
fn begins(input: &[u8], start: &[u8]) -> bool {
    input.iter().zip(start).all(|(a, b)| a == b)
}

fn v1(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let window = &input[..input.len().min(V1_BYTES_MAX)];
    let Some(end) = window.iter().position(|b| *b == b'\n') else {
        return match window.len() {
            V1_BYTES_MAX => Err(ProxyHeaderError::LineLength),
            _ => Ok(None),
        };
    };
    let line = window[..end].strip_suffix(b"\r").ok_or(ProxyHeaderError::Line)?;
    let text = std::str::from_utf8(line).map_err(|_| ProxyHeaderError::Line)?;
    let addresses = v1_addresses(text).ok_or(ProxyHeaderError::Line)?;
    Ok(Some(ProxyHeader { bytes: end + 1, addresses }))
}

/// The addresses of a line without its end; the outer `None`: malformed.
fn v1_addresses(line: &str) -> Option<Option<Addresses>> {
    let mut words = line.strip_prefix("PROXY ")?.split(' ');
    let (client, destination): (IpAddr, IpAddr) = match words.next()? {
        // What follows is to be ignored (§2.1).
        "UNKNOWN" => return Some(None),
        "TCP4" => {
            let mut ip = || words.next()?.parse::<Ipv4Addr>().ok();
            (ip()?.into(), ip()?.into())
        }
        "TCP6" => {
            let mut ip = || words.next()?.parse::<Ipv6Addr>().ok();
            (ip()?.into(), ip()?.into())
        }
        _ => return None,
    };
    let mut port = || {
        let text = words.next()?;
        let canonical = text == "0" || !text.starts_with(['0', '+']);
        text.parse::<u16>().ok().filter(|_| canonical)
    };
    let (client_port, destination_port) = (port()?, port()?);
    words.next().is_none().then_some(Some(Addresses {
        client: SocketAddr::new(client, client_port),
        destination: SocketAddr::new(destination, destination_port),
    }))
}

fn v2(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let local = match input.get(12) {
        None => return Ok(None),
        Some(0x20) => true,
        Some(0x21) => false,
        Some(other) => return Err(ProxyHeaderError::Command(*other)),
    };
    let Some(family) = input.get(13) else { return Ok(None) };
    // A transport of 2 is UDP: a balancer that turns QUIC into TCP says so.
    let needed = match family {
        _ if local => 0,
        // Unspecified: the addresses are to be ignored, as those of Unix sockets.
        0x00 => 0,
        0x11 | 0x12 => 12,
        0x21 | 0x22 => 36,
        0x31 | 0x32 => 216,
        other => return Err(ProxyHeaderError::Family(*other)),
    };
    let Some(length) = input.get(14..V2_FIXED_BYTES) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    let bytes = V2_FIXED_BYTES + length;
    if length < needed {
        return Err(ProxyHeaderError::Short(length));
    }
    if bytes > HEADER_BYTES_MAX {
        return Err(ProxyHeaderError::Long(bytes));
    }
    let Some(rest) = input.get(V2_FIXED_BYTES..bytes) else { return Ok(None) };
    let addresses = match family {
        _ if local => None,
        0x11 | 0x12 => v2_addresses::<4>(rest),
        0x21 | 0x22 => v2_addresses::<16>(rest),
        _ => None,
    };
    Ok(Some(ProxyHeader { bytes, addresses }))
}

/// Two addresses of `N` bytes and two ports, in network order.
fn v2_addresses<const N: usize>(rest: &[u8]) -> Option<Addresses>
where
    [u8; N]: Into<IpAddr>,
{
    let (client, rest) = rest.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let (client_port, rest) = rest.split_first_chunk::<2>()?;
    let (destination_port, _) = rest.split_first_chunk::<2>()?;
    let address = |ip: [u8; N], port| SocketAddr::new(ip.into(), u16::from_be_bytes(port));
    Some(Addresses {
        client: address(*client, *client_port),
        destination: address(*destination, *destination_port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Random;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).expect("rows are short").to_be_bytes();
        [V2_START.as_slice(), &[command, family], &length, rest].concat()
    }

    fn v4() -> Vec<u8> {
        [[192, 0, 2, 7], [203, 0, 113, 9], [0xc3, 0x50, 0x01, 0xbb]].concat()
    }

    fn v6() -> Vec<u8> {
        let ip = |text: &str| text.parse::<Ipv6Addr>().expect("valid").octets();
        let ips = [ip("2001:db8::7"), ip("2001:db8::9")].concat();
        [ips.as_slice(), &[0xc3, 0x50, 0x01, 0xbb]].concat()
    }

    /// The verdict on `input`, which no cut may change.
    fn parse(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
        let whole = ProxyHeader::parse(input);
        for cut in 0..input.len() {
            match (ProxyHeader::parse(&input[..cut]), &whole) {
                (Ok(None), _) => {}
                (early, whole) => assert_eq!(early, *whole, "cut at {cut}"),
            }
        }
        if let Ok(Some(header)) = whole {
            assert_eq!(ProxyHeader::parse(&input[..header.bytes - 1]), Ok(None));
            let more = [input, b"GET / HTTP/1.1\r\n\r\n"].concat();
            assert_eq!(ProxyHeader::parse(&more), whole);
        }
        whole
    }

    fn addresses(client: &str, destination: &str) -> Option<Addresses> {
        let parse = |text: &str| text.parse().expect("valid");
        Some(Addresses { client: parse(client), destination: parse(destination) })
    }

    #[test]
    fn what_is_no_header_is_refused_at_its_first_byte() {
        for input in
            ["GET / HTTP/1.1\r\n", "proxy TCP4", "PROXYTCP4", "PROXY\t", "\r\n\r\nGET", "\n"]
        {
            assert_eq!(parse(input.as_bytes()), Err(ProxyHeaderError::Start), "{input:?}");
        }
        assert_eq!(parse(b""), Ok(None));
        let mut wrong = header(0x21, 0x11, &v4());
        wrong[11] = b'\r';
        assert_eq!(parse(&wrong), Err(ProxyHeaderError::Start));
    }

    #[test]
    fn a_malformed_line_is_refused() {
        for line in [
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 1\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 1 2 3\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 1 2 \r\n",
            "PROXY TCP4  192.0.2.7 203.0.113.9 1 2\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 1 2\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 01 2\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 +1 2\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 -1 2\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 65536 2\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9  2\r\n",
            "PROXY TCP4 192.0.2.07 203.0.113.9 1 2\r\n",
            "PROXY TCP4 192.0.2 203.0.113.9 1 2\r\n",
            "PROXY TCP4 ::1 ::2 1 2\r\n",
            "PROXY TCP6 192.0.2.7 203.0.113.9 1 2\r\n",
            "PROXY TCP6 [::1] ::2 1 2\r\n",
            "PROXY TCP5 ::1 ::2 1 2\r\n",
            "PROXY tcp4 192.0.2.7 203.0.113.9 1 2\r\n",
            "PROXY UNKNOWNX\r\n",
            "PROXY TCP4 192.0.2.7 203.0.113.9 1 2\r\r\n",
        ] {
            assert_eq!(parse(line.as_bytes()), Err(ProxyHeaderError::Line), "{line:?}");
        }
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_BYTES_MAX - 16));
        assert!(matches!(parse(long.as_bytes()), Ok(Some(_))));
        let long = long.replace("\r\n", "x\r\n");
        assert_eq!(parse(long.as_bytes()), Err(ProxyHeaderError::LineLength));
    }

    #[test]
    fn a_line_names_both_ends() {
        let read = |line: &str| {
            let header = parse(line.as_bytes()).expect("valid").expect("complete");
            assert_eq!(header.bytes, line.len());
            header.addresses
        };
        assert_eq!(
            read("PROXY TCP4 192.0.2.7 203.0.113.9 50000 443\r\n"),
            addresses("192.0.2.7:50000", "203.0.113.9:443")
        );
        assert_eq!(
            read("PROXY TCP6 2001:db8::7 ::ffff:1.2.3.4 0 65535\r\n"),
            addresses("[2001:db8::7]:0", "[::ffff:1.2.3.4]:65535")
        );
        assert_eq!(read("PROXY UNKNOWN\r\n"), None);
        assert_eq!(read("PROXY UNKNOWN ffff:: any thing\0 \r\n"), None);
    }

    #[test]
    fn a_malformed_header_of_version_2_is_refused() {
        for command in [0x00, 0x10, 0x11, 0x22, 0x31, 0xff] {
            let expected = Err(ProxyHeaderError::Command(command));
            assert_eq!(parse(&header(command, 0x11, &v4())), expected);
        }
        for family in [0x01, 0x10, 0x13, 0x20, 0x41, 0xff] {
            let expected = Err(ProxyHeaderError::Family(family));
            assert_eq!(parse(&header(0x21, family, &v6())), expected);
        }
        assert_eq!(parse(&header(0x21, 0x11, &v4()[..11])), Err(ProxyHeaderError::Short(11)));
        assert_eq!(parse(&header(0x21, 0x21, &v6()[..35])), Err(ProxyHeaderError::Short(35)));
        assert_eq!(parse(&header(0x21, 0x31, &v6())), Err(ProxyHeaderError::Short(36)));
        let most = HEADER_BYTES_MAX - V2_FIXED_BYTES;
        let long = [v4(), vec![0; most - 11]].concat();
        assert_eq!(
            parse(&header(0x21, 0x11, &long)),
            Err(ProxyHeaderError::Long(HEADER_BYTES_MAX + 1))
        );
    }

    #[test]
    fn a_header_of_version_2_names_both_ends_and_the_rest_is_skipped() {
        let read = |command, family, rest: &[u8]| {
            let input = header(command, family, rest);
            let header = parse(&input).expect("valid").expect("complete");
            assert_eq!(header.bytes, input.len());
            header.addresses
        };
        let expected = addresses("192.0.2.7:50000", "203.0.113.9:443");
        assert_eq!(read(0x21, 0x11, &v4()), expected);
        assert_eq!(read(0x21, 0x12, &[v4(), vec![0x20; 300]].concat()), expected);
        let expected = addresses("[2001:db8::7]:50000", "[2001:db8::9]:443");
        assert_eq!(read(0x21, 0x21, &[v6(), b"\x01\x00\x02h2".to_vec()].concat()), expected);
        assert_eq!(read(0x20, 0x00, b""), None);
        assert_eq!(read(0x20, 0xff, b"abc"), None, "of LOCAL nothing else is looked at");
        assert_eq!(read(0x21, 0x00, &v4()), None);
        assert_eq!(read(0x21, 0x31, &[0; 216]), None);
    }

    #[test]
    fn whatever_comes_is_read_within_its_bound_and_the_same_in_every_cut() {
        let lines: [&[u8]; 2] =
            [b"PROXY TCP4 192.0.2.7 203.0.113.9 50000 443\r\n", b"PROXY UNKNOWN\r\n"];
        let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
        seeds.extend([header(0x21, 0x11, &v4()), header(0x20, 0x00, b"ab")]);
        seeds.push(header(0x21, 0x21, &v6()));
        let mut random = Random::seeded(5);
        for _ in 0..4_000 {
            let mut input = seeds[random.below(seeds.len() as u64) as usize].clone();
            for _ in 0..=random.below(2) {
                let at = random.below(input.len() as u64) as usize;
                match random.below(3) {
                    0 => input[at] = random.next() as u8,
                    1 => input.insert(at, random.next() as u8),
                    _ => drop(input.remove(at)),
                }
            }
            if let Ok(Some(header)) = parse(&input) {
                assert!(header.bytes <= input.len() && header.bytes <= HEADER_BYTES_MAX);
            }
            input.resize(HEADER_BYTES_MAX, b'x');
            assert_ne!(ProxyHeader::parse(&input), Ok(None));
        }
    }
}
