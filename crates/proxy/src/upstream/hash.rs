//! What consistent hashing hashes. The functions are fixed: a key goes to the same endpoint after a
//! restart, and from another machine.

use std::net::IpAddr;

use crate::config::HashKey;

/// What a request offers to be hashed.
pub(crate) struct HashInput<'a, F> {
    pub(crate) client: IpAddr,
    /// Without the query.
    pub(crate) path: &'a [u8],
    /// Names and values of the fields.
    pub(crate) fields: F,
}

/// The hash of what `key` asks for; `None`: the request does not have it.
pub(crate) fn hash_request<'a, F>(key: &HashKey, input: HashInput<'a, F>) -> Option<u64>
where
    F: IntoIterator<Item = (&'a [u8], &'a [u8])>,
{
    let mut fields = input.fields.into_iter();
    match key {
        HashKey::ClientIp => Some(hash_ip(input.client)),
        HashKey::Path => Some(hash_bytes(input.path)),
        HashKey::Field(wanted) => fields
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()))
            .map(|(_, value)| hash_bytes(value)),
        HashKey::Cookie(wanted) => fields
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"cookie"))
            .find_map(|(_, value)| cookie(value, wanted.as_bytes()))
            .map(hash_bytes),
    }
}

/// The value of cookie `wanted` in a Cookie field (RFC 6265 §4.2.1).
fn cookie<'a>(field: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    field.split(|byte| *byte == b';').find_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        (&pair[..equals] == wanted).then(|| &pair[equals + 1..])
    })
}

fn hash_ip(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => hash_bytes(&address.octets()),
        IpAddr::V6(address) => hash_bytes(&address.octets()),
    }
}

/// FNV-1a, then mixed, so that the high bits depend on each byte too.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    mix(bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)))
}

/// The finalizer of splitmix64: a bijection in which each bit of the input turns half of the output.
pub(super) fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: &HashKey, fields: &[(&'static str, &'static str)]) -> Option<u64> {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let client = "192.0.2.1".parse().expect("an address");
        hash_request(key, HashInput { client, path: b"/a", fields })
    }

    #[test]
    fn a_request_without_the_field_or_the_cookie_has_no_hash() {
        let field = HashKey::Field("x-user".into());
        let cookie = HashKey::Cookie("id".into());
        for fields in [&[][..], &[("cookie", "")], &[("cookie", "id")], &[("cookie", "xid=1;;=")]] {
            assert_eq!(hash(&field, fields), None, "{fields:?}");
            assert_eq!(hash(&cookie, fields), None, "{fields:?}");
        }
    }

    #[test]
    fn the_hash_is_that_of_the_value_wherever_it_stands() {
        let seven = Some(hash_bytes(b"7"));
        assert_eq!(hash(&HashKey::Field("x-user".into()), &[("a", "1"), ("X-User", "7")]), seven);
        let cookie = HashKey::Cookie("id".into());
        assert_eq!(hash(&cookie, &[("Cookie", "a=b; id=7; id=8")]), seven);
        assert_eq!(hash(&cookie, &[("cookie", "a=b"), ("cookie", "id=7")]), seven);
        assert_eq!(hash(&HashKey::Path, &[]), Some(hash_bytes(b"/a")));
    }

    #[test]
    fn an_ipv4_address_mapped_into_ipv6_hashes_as_itself() {
        let (v4, v6) = ("192.0.2.1".parse(), "::ffff:192.0.2.1".parse());
        assert_eq!(hash_ip(v4.expect("an address")), hash_ip(v6.expect("an address")));
    }
}
