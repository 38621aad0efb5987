//! What the proxy does to its peers, over loopback, on every driver that this system has.
//!
//! Clients and endpoints are plain sockets with scripts; the proxy runs in this process, or as the
//! binary where its descriptors, memory, signals or exit status are looked at.

mod binary;
mod draining;
mod early_answers;
mod exchanges;
mod faults;
mod forwarding;
mod garbage;
mod introductions;
mod limits;
mod outages;
mod reloading;
mod replies;
mod retries;
mod routing;
mod rules;
mod site;
mod support;
mod timeouts;
mod tunnels;
