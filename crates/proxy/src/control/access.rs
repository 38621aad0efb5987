//! Who may ask the admin server, as far as a request can tell.
//!
//! It has no passwords: whoever reaches its address is an operator. That leaves one intruder, a page
//! from elsewhere in an operator's browser. It cannot read an answer, since none permits that
//! (no CORS), unless its own name is made to point here (DNS rebinding): then the Host is a name.
//! And it cannot cause a change, since a request with a field of ours is not sent across origins
//! without asking first, which we refuse.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::header::{HOST, HeaderMap};

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Tcp,
    /// No browser can use it.
    Unix,
}

/// The field that a request for a change must have, whatever its value.
pub(crate) const CHANGE_FIELD: &str = "x-baton";

/// Whether the Host is one that no page from elsewhere can have: an address, or this machine by
/// name. A request without one (HTTP/1.0) comes from no browser.
pub(super) fn is_own_host(way: Way, fields: &HeaderMap) -> bool {
    if way == Way::Unix {
        return true;
    }
    let mut hosts = fields.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return fields.get(HOST).is_none();
    };
    host.to_str().is_ok_and(is_address_or_loopback)
}

pub(super) fn may_change(fields: &HeaderMap) -> bool {
    fields.contains_key(CHANGE_FIELD)
}

fn is_address_or_loopback(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok() && is_port(port);
    }
    let end = host.find(':').unwrap_or(host.len());
    let (name, port) = host.split_at(end);
    is_port(port)
        && (name.parse::<Ipv4Addr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || name.to_ascii_lowercase().ends_with(".localhost"))
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(hosts: &[&str]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for host in hosts {
            fields.append(HOST, host.parse().expect("a field value"));
        }
        fields
    }

    #[test]
    fn a_name_that_may_point_anywhere_is_not_ours() {
        for host in [
            "evil.example",
            "evil.example:9100",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[::1].evil.example",
            "[::1",
            "[fe80::1%25x]:80",
            "127.0.0.1:80:80",
            "127.0.0.1:80x",
            "127.1",
            "0x7f.0.0.1",
            "",
            "user@127.0.0.1",
        ] {
            assert!(!is_own_host(Way::Tcp, &with(&[host])), "{host:?}");
        }
        assert!(!is_own_host(Way::Tcp, &with(&["127.0.0.1", "evil.example"])));
    }

    #[test]
    fn addresses_and_this_machine_by_name_are_ours() {
        for host in
            ["127.0.0.1", "10.1.2.3:9100", "[::1]", "[::1]:9100", "LocalHost:1", "a.localhost"]
        {
            assert!(is_own_host(Way::Tcp, &with(&[host])), "{host:?}");
        }
        assert!(is_own_host(Way::Tcp, &with(&[])));
        assert!(is_own_host(Way::Unix, &with(&["anything.example"])));
    }

    #[test]
    fn a_change_needs_the_field_that_no_form_can_send() {
        let mut fields = with(&["127.0.0.1"]);
        assert!(!may_change(&fields));
        fields.insert(CHANGE_FIELD, "1".parse().expect("a field value"));
        assert!(may_change(&fields));
    }
}
