//! The table `[[listen]]`.

use ipnet::IpNet;

use crate::config::settings::{LIMIT, Limits, TIMEOUT, Timeouts};
use crate::config::shapes::{Each, Many, Overrides, Subset};
use crate::config::table::{At, Rule, table};
use crate::config::texts::{LABEL, LISTEN as ADDR, ListenAddr, NETWORK};

/// Settings of `[timeout]` that a listener may change.
pub(crate) const TIMEOUTS_OF_LISTENER: &[&str] = &["head", "keep_alive", "linger"];
/// Settings of `[limit]` that a listener may change.
pub(crate) const LIMITS_OF_LISTENER: &[&str] =
    &["head_bytes", "fields", "target_bytes", "pipelined_bytes", "requests_per_connection"];

table! {
    /// Where clients come in.
    ListenTable as LISTEN: "[[listen]]", [Rule::Required(&["addr"])];

    /// Addresses to accept on: one, or an array. `:8080` is every IPv4 interface.
    addr: Vec<At<ListenAddr>> = Each(ADDR), r#"":8080""#;

    /// What routes and logs call it. By default the text of its first address.
    name: String = LABEL, r#""web""#;

    /// Peers whose connections begin with a PROXY protocol header (v1 or v2), which must be there.
    proxy_protocol: Vec<At<IpNet>> = Many(NETWORK), r#"["10.0.0.0/8"]"#;

    /// Peers whose X-Forwarded-For or Forwarded fields are believed.
    trusted_proxies: Vec<At<IpNet>> = Many(NETWORK), r#"["10.0.0.0/8", "127.0.0.1"]"#;

    /// What is other than in [timeout] here: head, keep_alive, linger.
    timeout: Overrides<Timeouts> = Subset {
        table: &TIMEOUT,
        only: Some(TIMEOUTS_OF_LISTENER),
        label: "[listen.timeout]",
    }, r#"{ head = "5s" }"#;

    /// What is other than in [limit] here: head_bytes, fields, target_bytes, pipelined_bytes,
    /// requests_per_connection.
    limit: Overrides<Limits> = Subset {
        table: &LIMIT,
        only: Some(LIMITS_OF_LISTENER),
        label: "[listen.limit]",
    }, r#"{ head_bytes = "8KiB" }"#;
}
