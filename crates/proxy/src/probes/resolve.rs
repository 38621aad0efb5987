//! One look-up of a name: the hosts file, then the name servers of the system.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
    ServerOrderingStrategy,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver, system_conf};

use super::limits::{ADDRESSES_MAX, TTL_MAX, TTL_MIN};

/// The system's configuration of names, as read at one time.
pub(super) struct Resolver {
    hosts: Hosts,
    /// `Err`: why there is none.
    servers: Result<TokioResolver, String>,
}

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// In order, none twice, at least one, at most `ADDRESSES_MAX`.
    pub(super) addresses: Vec<IpAddr>,
    /// How many there were before the bound.
    pub(super) found: usize,
    /// How long it is taken for good: `TTL_MIN` to `TTL_MAX`.
    pub(super) ttl: Duration,
}

/// Why a look-up failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// Not a name that can be asked for.
    Name,
    /// There is no such name.
    NoName,
    /// The name has no address.
    NoAddress,
    /// The name has only addresses that no endpoint can have.
    NoUsable,
    /// No answer in time.
    Timeout,
    /// A name server refused or failed.
    Server(ResponseCode),
    /// Anything else, in the resolver's words.
    Failed(String),
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("it is no name that can be asked for"),
            Self::NoName => f.write_str("there is no such name"),
            Self::NoAddress => f.write_str("it has no address"),
            Self::NoUsable => f.write_str("it has no address that can be connected to"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Server(code) => {
                let code = code.to_str().to_lowercase();
                write!(f, "the name server answers `{code}`")
            }
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<NetError> for Unresolved {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
                ResponseCode::NXDomain => Self::NoName,
                ResponseCode::NoError => Self::NoAddress,
                code => Self::Server(code),
            },
            NetError::Dns(DnsError::ResponseCode(code)) => Self::Server(code),
            NetError::Timeout => Self::Timeout,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl Resolver {
    /// Reads `/etc/hosts` and `/etc/resolv.conf`. What cannot be read is reported and left out:
    /// without the second, a name server on this machine is asked.
    pub(super) fn of_system() -> Resolver {
        let hosts = Hosts::from_system().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the hosts file; only name servers are asked");
            Hosts::default()
        });
        let (config, options) = system_conf::read_system_conf().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read resolv.conf; names are asked of 127.0.0.1");
            let local = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
            (ResolverConfig::from_name_servers(vec![local]), ResolverOpts::default())
        });
        Resolver::new(hosts, config, options)
    }

    /// Asks the servers of `config`, in their order, for what is not in `hosts`.
    pub(super) fn new(hosts: Hosts, config: ResolverConfig, options: ResolverOpts) -> Resolver {
        let provider = TokioRuntimeProvider::default();
        let mut builder = TokioResolver::builder_with_config(config, provider);
        let set = builder.options_mut();
        *set = options;
        set.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        set.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
        // We look at the hosts first by ourselves, and ask only when an answer is too old.
        set.use_hosts_file = ResolveHosts::Never;
        set.cache_size = 0;
        set.positive_max_ttl = Some(TTL_MAX);
        set.negative_max_ttl = Some(Duration::ZERO);
        Resolver { hosts, servers: builder.build().map_err(|error| error.to_string()) }
    }

    /// Asks for `host`. `known`: the addresses it had so far.
    ///
    /// Errors: it has no address, or nobody knows: also when only one of its two kinds of addresses
    /// could be asked for, and it had addresses of the other kind so far.
    pub(super) async fn look_up(&self, host: &str, known: &[IpAddr]) -> Result<Answer, Unresolved> {
        let name = Name::from_ascii(host).map_err(|_| Unresolved::Name)?;
        let static_ones = self.static_addresses(&name);
        if !static_ones.is_empty() {
            return Answer::new(static_ones, TTL_MAX);
        }
        let servers = self.servers.as_ref().map_err(|why| Unresolved::Failed(why.clone()))?;
        let found = servers.lookup_ip(name).await?;
        let mut addresses: Vec<IpAddr> = found.iter().collect();
        let mut until = found.valid_until();
        let is_lost =
            |kind: fn(&IpAddr) -> bool| known.iter().any(kind) && !addresses.iter().any(kind);
        let lost = [
            is_lost(IpAddr::is_ipv4).then_some(RecordType::A),
            is_lost(IpAddr::is_ipv6).then_some(RecordType::AAAA),
        ];
        for kind in lost.into_iter().flatten() {
            // The resolver does not tell "none" from "no answer" when the other kind was answered.
            match servers.lookup(found.query().name().clone(), kind).await {
                Ok(more) => {
                    addresses.extend(ip_addresses(&more));
                    until = until.min(more.valid_until());
                }
                Err(error) if error.is_no_records_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Answer::new(addresses, until.saturating_duration_since(Instant::now()))
    }

    /// As in other resolvers, a name in the hosts file has the addresses there and no others.
    fn static_addresses(&self, name: &Name) -> Vec<IpAddr> {
        let kinds = [RecordType::A, RecordType::AAAA];
        let queries = kinds.map(|kind| Query::query(name.clone(), kind));
        let lookups = queries.iter().filter_map(|query| self.hosts.lookup_static_host(query));
        lookups.flat_map(|lookup| ip_addresses(&lookup).collect::<Vec<_>>()).collect()
    }
}

fn ip_addresses(lookup: &Lookup) -> impl Iterator<Item = IpAddr> + '_ {
    lookup.answers().iter().filter_map(|record| record.data.ip_addr())
}

impl Answer {
    /// Orders and bounds `addresses`. The unspecified address, which filtering name servers answer
    /// with, would connect to this machine: it and multicast addresses are left out.
    fn new(mut addresses: Vec<IpAddr>, ttl: Duration) -> Result<Answer, Unresolved> {
        if addresses.is_empty() {
            return Err(Unresolved::NoAddress);
        }
        addresses.retain(|address| !address.is_unspecified() && !address.is_multicast());
        if addresses.is_empty() {
            return Err(Unresolved::NoUsable);
        }
        addresses.sort_unstable();
        addresses.dedup();
        let found = addresses.len();
        addresses.truncate(ADDRESSES_MAX);
        Ok(Answer { addresses, found, ttl: ttl.clamp(TTL_MIN, TTL_MAX) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn resolver(hosts: &str) -> Resolver {
        let mut parsed = Hosts::default();
        parsed.read_hosts_conf(hosts.as_bytes()).expect("well formed");
        Resolver::new(parsed, ResolverConfig::from_name_servers(vec![]), ResolverOpts::default())
    }

    #[test]
    fn addresses_no_endpoint_can_have_are_left_out() {
        let none = vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED), "ff02::1".parse().unwrap()];
        assert_eq!(Answer::new(none, TTL_MIN).unwrap_err(), Unresolved::NoUsable);
        assert_eq!(Answer::new(vec![], TTL_MIN).unwrap_err(), Unresolved::NoAddress);
    }

    #[test]
    fn addresses_are_ordered_unique_and_bounded_and_the_ttl_is_clamped() {
        let many = (0..200).map(|last| v4(199 - last)).chain([v4(7)]).collect();
        let answer = Answer::new(many, Duration::ZERO).unwrap();
        assert_eq!(answer.found, 200);
        assert_eq!(answer.ttl, TTL_MIN);
        assert_eq!(answer.addresses.len(), ADDRESSES_MAX);
        assert_eq!(answer.addresses[..2], [v4(0), v4(1)]);
        assert_eq!(Answer::new(vec![v4(1)], TTL_MAX * 2).unwrap().ttl, TTL_MAX);
    }

    #[test]
    fn a_name_in_the_hosts_file_is_asked_of_nobody() {
        let resolver = resolver("192.0.2.2 b.test other\n192.0.2.1 my_b.test b.test # two\n");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answer = runtime.block_on(resolver.look_up("b.test", &[])).unwrap();
        assert_eq!(answer, Answer { addresses: vec![v4(1), v4(2)], found: 2, ttl: TTL_MAX });
        let answer = runtime.block_on(resolver.look_up("my_b.test", &[])).unwrap();
        assert_eq!(answer.addresses, [v4(1)]);
        let too_long = "a".repeat(64);
        let refused = runtime.block_on(resolver.look_up(&too_long, &[]));
        assert_eq!(refused.unwrap_err(), Unresolved::Name);
        assert!(runtime.block_on(resolver.look_up("nobody.test", &[])).is_err());
    }
}
