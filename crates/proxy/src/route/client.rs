//! Who the client is, behind proxies that are trusted, and whether a route admits it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use super::Fields;

/// Most hops of X-Forwarded-For or Forwarded that are looked at, from the last one on. When
/// reached: the client is the hop looked at last.
const HOPS_MAX: usize = 32;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    /// The client: the nearest hop that is no trusted proxy.
    pub(crate) ip: IpAddr,
    /// Whether the peer itself is trusted: what it says about the client is continued.
    pub(crate) peer_trusted: bool,
}

impl ClientAddress {
    /// The client of a request that came from `peer`.
    ///
    /// If `peer` is in `trusted`, X-Forwarded-For is read from its end, each hop that is in
    /// `trusted` being believed about the one before it; Forwarded is read where there is no
    /// X-Forwarded-For. What is no address ends the walk.
    pub(crate) fn of<'b>(
        peer: IpAddr,
        trusted: &[IpNet],
        fields: &impl Fields<'b>,
    ) -> ClientAddress {
        let peer = peer.to_canonical();
        if trusted.is_empty() || !contains(trusted, peer) {
            return ClientAddress { ip: peer, peer_trusted: false };
        }
        let mut walk = Walk { ip: peer, trusted, hops: 0 };
        let mut said = false;
        for line in fields.values("x-forwarded-for").rev() {
            said = true;
            if !line.rsplit(|b| *b == b',').all(|hop| walk.step(hop.trim_ascii(), address)) {
                return ClientAddress { ip: walk.ip, peer_trusted: true };
            }
        }
        if !said {
            for line in fields.values("forwarded").rev() {
                if !elements_from_end(line).all(|hop| walk.step(hop, forwarded_for)) {
                    break;
                }
            }
        }
        ClientAddress { ip: walk.ip, peer_trusted: true }
    }
}

/// A walk over hops, from the nearest on.
struct Walk<'t> {
    /// The last hop that somebody believed told of.
    ip: IpAddr,
    trusted: &'t [IpNet],
    hops: usize,
}

impl Walk<'_> {
    /// Takes the hop before; whether the walk goes on.
    fn step(&mut self, hop: &[u8], read: fn(&[u8]) -> Option<IpAddr>) -> bool {
        if self.hops == HOPS_MAX {
            return false;
        }
        self.hops += 1;
        if hop.is_empty() {
            // A recipient skips empty elements (RFC 9110 §5.6.1.2).
            return true;
        }
        let Some(ip) = read(hop) else { return false };
        self.ip = ip;
        contains(self.trusted, ip)
    }
}

/// An address with or without port, an IPv6 one with or without brackets.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let ip = text.parse::<IpAddr>().ok();
    let ip = ip.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    let ip = ip.or_else(|| bare().filter(IpAddr::is_ipv6))?;
    Some(ip.to_canonical())
}

/// The address of `for` in an element of Forwarded (RFC 7239 §4).
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    // No address needs an escape; with one, quotes could not be told apart from the end.
    if element.contains(&b'\\') {
        return None;
    }
    let mut quoted = false;
    let mut pairs = element.split(|b| {
        quoted ^= *b == b'"';
        *b == b';' && !quoted
    });
    let value = pairs.find_map(|pair| {
        let (name, value) = pair.trim_ascii().split_at_checked(4)?;
        name.eq_ignore_ascii_case(b"for=").then_some(value)
    })?;
    match value {
        [b'"', text @ .., b'"'] => address(text),
        // A colon or bracket stands in quotes only.
        [b'"', ..] => None,
        token => address(token).filter(IpAddr::is_ipv4),
    }
}

/// The elements of a list, last first, cut at commas outside of quotes.
fn elements_from_end(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let left = rest?;
        let mut quoted = false;
        let comma = left.iter().rposition(|b| {
            quoted ^= *b == b'"';
            *b == b',' && !quoted
        });
        let (before, element) = match comma {
            Some(at) => (Some(&left[..at]), &left[at + 1..]),
            None => (None, left),
        };
        rest = before;
        Some(element.trim_ascii())
    })
}

/// Bits that the IPv6 addresses which map IPv4 ones have in common (RFC 4291 §2.5.5.2).
const MAPPED_PREFIX_BITS: u8 = 96;

/// Whether `ip` is in one of `nets`. An IPv4 address and the IPv6 one that maps it are the same: a
/// network of mapped addresses is one of IPv4, and `::/0` is every IPv6 address and no other.
pub(crate) fn contains(nets: &[IpNet], ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    let mapped = |ip: Ipv4Addr| IpAddr::V6(ip.to_ipv6_mapped());
    nets.iter().any(|net| match (net, ip) {
        (IpNet::V6(v6), IpAddr::V4(v4)) => {
            v6.prefix_len() >= MAPPED_PREFIX_BITS && net.contains(&mapped(v4))
        }
        _ => net.contains(&ip),
    })
}

/// Whether a route admits `ip`: not if `deny` has it; else if `allow` has it or is empty.
pub(crate) fn admits(allow: &[IpNet], deny: &[IpNet], ip: IpAddr) -> bool {
    !contains(deny, ip) && (allow.is_empty() || contains(allow, ip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{FieldList, Random};

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().expect("the row is a net")).collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("the row is an address")
    }

    fn client(peer: &str, fields: &[(&str, &str)]) -> String {
        let trusted = nets(&["10.0.0.0/8", "2001:db8::/32"]);
        ClientAddress::of(ip(peer), &trusted, &FieldList::new(fields)).ip.to_string()
    }

    #[test]
    fn nobody_else_is_believed() {
        for peer in ["192.0.2.1", "::ffff:192.0.2.1", "11.0.0.1"] {
            let fields = [("X-Forwarded-For", "1.2.3.4"), ("Forwarded", "for=1.2.3.4")];
            assert_eq!(client(peer, &fields), ip(peer).to_canonical().to_string());
        }
        let address = ClientAddress::of(ip("10.0.0.1"), &[], &FieldList::default());
        assert!(!address.peer_trusted);
    }

    #[test]
    fn garbage_ends_the_walk_at_what_was_believed() {
        for (list, expected) in [
            ("", "10.0.0.1"),
            ("unknown", "10.0.0.1"),
            ("1.2.3.4, unknown", "10.0.0.1"),
            ("1.2.3.4, x, 10.0.0.2", "10.0.0.2"),
            ("1.2.3.4, 10.0.0.300", "10.0.0.1"),
            ("1.2.3.4, 010.0.0.2", "10.0.0.1"),
            ("1.2.3.4 10.0.0.2", "10.0.0.1"),
            ("1.2.3.4, \"10.0.0.2\"", "10.0.0.1"),
            ("1.2.3.4, [10.0.0.2]", "10.0.0.1"),
            ("1.2.3.4, 10.0.0.2:", "10.0.0.1"),
            ("1.2.3.4, 10.0.0.2:99999", "10.0.0.1"),
            ("1.2.3.4, [2001:db8::1", "10.0.0.1"),
            ("1.2.3.4, fe80::1%eth0", "10.0.0.1"),
            ("1.2.3.4, 10.0.0.2\u{e9}", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[("X-Forwarded-For", list)]), expected, "{list}");
        }
    }

    #[test]
    fn the_nearest_hop_that_is_not_trusted_is_the_client() {
        for (list, expected) in [
            ("1.2.3.4", "1.2.3.4"),
            ("6.6.6.6, 1.2.3.4", "1.2.3.4"),
            ("6.6.6.6,1.2.3.4,10.0.0.2", "1.2.3.4"),
            ("6.6.6.6, 1.2.3.4, , 10.0.0.2,", "1.2.3.4"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("1.2.3.4:567", "1.2.3.4"),
            ("[2001:db9::1]:567, 10.0.0.2", "2001:db9::1"),
            ("[2001:db9::1], [2001:db8::2]:1, 2001:db8::1", "2001:db9::1"),
            ("::ffff:1.2.3.4, ::ffff:10.0.0.2", "1.2.3.4"),
        ] {
            assert_eq!(client("10.0.0.1", &[("x-forwarded-for", list)]), expected, "{list}");
        }
        let lines = [("X-Forwarded-For", "6.6.6.6, 1.2.3.4"), ("X-Forwarded-For", "10.0.0.2")];
        assert_eq!(client("::ffff:10.0.0.1", &lines), "1.2.3.4");
        assert_eq!(client("2001:db8::9", &lines), "1.2.3.4");
        // The other field is not asked once the first is there.
        let both = [("Forwarded", "for=5.5.5.5"), ("X-Forwarded-For", "")];
        assert_eq!(client("10.0.0.1", &both), "10.0.0.1");
    }

    #[test]
    fn forwarded_is_read_where_there_is_no_other() {
        for (list, expected) in [
            ("", "10.0.0.1"),
            ("proto=http", "10.0.0.1"),
            ("for=_hidden", "10.0.0.1"),
            ("for=2001:db9::1", "10.0.0.1"),
            ("for=\"1.2.3.4", "10.0.0.1"),
            ("for=1.2.3.4, by=\"a\\\"\"", "10.0.0.1"),
            ("for=1.2.3.4", "1.2.3.4"),
            ("For=\"1.2.3.4:5\";by=\",;for=9.9.9.9\"", "1.2.3.4"),
            ("by=x;host=\"a,b\" ; FOR=\"[2001:db9::1]:80\", for=10.0.0.2", "2001:db9::1"),
            ("for=\"[2001:db9::1]\";proto=https,for=\"[2001:db8::7]\"", "2001:db9::1"),
            ("for=6.6.6.6, for=unknown, for=10.0.0.2", "10.0.0.2"),
        ] {
            assert_eq!(client("10.0.0.1", &[("Forwarded", list)]), expected, "{list}");
        }
    }

    #[test]
    fn a_long_chain_ends_after_so_many_hops() {
        let mut hops = vec!["1.2.3.4".to_owned()];
        hops.extend((0..HOPS_MAX).map(|hop| format!("10.0.1.{hop}")));
        assert_eq!(client("10.0.0.1", &[("X-Forwarded-For", &hops.join(","))]), "10.0.1.0");
        let empty = format!("1.2.3.4{}", ",".repeat(100_000));
        assert_eq!(client("10.0.0.1", &[("X-Forwarded-For", &empty)]), "10.0.0.1");
    }

    #[test]
    fn whatever_is_sent_the_client_is_an_address_somebody_trusted_told() {
        const PARTS: [&str; 16] = [
            "1.2.3.4",
            "10.0.0.2",
            "10.0.0.3",
            "[2001:db8::1]",
            "2001:db9::1",
            ",",
            ", ",
            ";",
            "\"",
            "for=",
            "For=\"",
            ":80",
            "\\",
            "unknown",
            " ",
            "\u{e9}",
        ];
        let trusted = nets(&["10.0.0.0/8", "2001:db8::/32"]);
        let mut random = Random::seeded(11);
        for _ in 0..20_000 {
            let mut line = || -> String {
                (0..random.below(10)).map(|_| PARTS[random.below(16) as usize]).collect()
            };
            let (first, second) = (line(), line());
            for name in ["X-Forwarded-For", "Forwarded"] {
                let fields = FieldList::new(&[(name, &first), (name, &second)]);
                let client = ClientAddress::of(ip("10.0.0.1"), &trusted, &fields).ip;
                let known = ["1.2.3.4", "10.0.0.2", "10.0.0.3", "2001:db8::1", "2001:db9::1"];
                let near =
                    known.iter().any(|known| client == ip(known)) || client == ip("10.0.0.1");
                // Parts may join to other addresses, which are in the lines then.
                let is_said = |line: &str| {
                    let cuts = |from: usize| from + 1..=line.len().min(from + 45);
                    (0..line.len()).any(|from| {
                        cuts(from).any(|to| {
                            line.get(from..to).and_then(|t| t.parse().ok()) == Some(client)
                        })
                    })
                };
                assert!(near || is_said(&first) || is_said(&second), "{client}: {first} {second}");
            }
        }
    }

    #[test]
    fn what_is_denied_is_denied_also_if_allowed() {
        let (allow, deny) = (nets(&["192.0.2.0/24", "::1/128"]), nets(&["192.0.2.9/32"]));
        for (address, admitted) in [
            ("192.0.2.9", false),
            ("::ffff:192.0.2.9", false),
            ("192.0.3.1", false),
            ("::2", false),
            ("192.0.2.8", true),
            ("::ffff:192.0.2.8", true),
            ("::1", true),
        ] {
            assert_eq!(admits(&allow, &deny, ip(address)), admitted, "{address}");
        }
        assert!(admits(&[], &deny, ip("8.8.8.8")) && !admits(&[], &deny, ip("192.0.2.9")));
        let mapped = nets(&["::ffff:192.0.2.0/120"]);
        assert!(contains(&mapped, ip("192.0.2.1")) && !contains(&mapped, ip("192.0.3.1")));
        assert!(!contains(&nets(&["0.0.0.0/0"]), ip("2001:db8::1")));
        let every = nets(&["::/0", "::/64"]);
        assert!(contains(&every, ip("2001:db8::1")) && !contains(&every, ip("192.0.2.1")));
        assert!(contains(&nets(&["::ffff:0:0/96"]), ip("192.0.2.1")));
    }
}
