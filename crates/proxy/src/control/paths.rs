//! The paths of the admin server. Pure.

use std::net::SocketAddr;

use hyper::Method;

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Page,
    Status,
    Metrics,
    Healthz,
    Readyz,
    Config,
    Routes,
    Reload,
    Endpoint { upstream: String, endpoint: SocketAddr, drained: bool },
}

/// Method, path and meaning of everything there is: the answer to a path that is not.
pub(super) const PATHS: [(&str, &str, &str); 10] = [
    ("GET", "/", "the live page"),
    ("GET", "/status", "all numbers, as JSON"),
    ("GET", "/metrics", "all numbers, for Prometheus and OpenMetrics"),
    ("GET", "/healthz", "200 while every core runs"),
    ("GET", "/readyz", "200 while new requests are welcome, 503 while draining"),
    ("GET", "/config", "the configuration in force, as TOML"),
    ("GET", "/routes", "the routes in force, in the order in which they are looked at"),
    ("POST", "/reload", "reads the configuration anew"),
    ("POST", "/upstreams/NAME/endpoints/ADDRESS/drain", "no new request goes to the endpoint"),
    ("POST", "/upstreams/NAME/endpoints/ADDRESS/enable", "requests go to it again"),
];

impl Target {
    pub(super) fn of(path: &str) -> Option<Target> {
        Some(match path {
            "/" => Target::Page,
            "/status" => Target::Status,
            "/metrics" => Target::Metrics,
            "/healthz" => Target::Healthz,
            "/readyz" => Target::Readyz,
            "/config" => Target::Config,
            "/routes" => Target::Routes,
            "/reload" => Target::Reload,
            _ => return endpoint(path),
        })
    }

    /// Whether it changes something, and so takes POST alone; all others take GET and HEAD.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Target::Reload | Target::Endpoint { .. })
    }

    /// Whether it is asked for by monitoring, which may know this machine by name. It tells numbers
    /// and changes nothing.
    pub(super) fn is_monitoring(&self) -> bool {
        matches!(self, Target::Metrics | Target::Healthz | Target::Readyz)
    }

    pub(super) fn allows(&self, method: &Method) -> bool {
        match self.is_change() {
            true => *method == Method::POST,
            false => *method == Method::GET || *method == Method::HEAD,
        }
    }

    /// The value of Allow.
    pub(super) fn methods(&self) -> &'static str {
        if self.is_change() { "POST" } else { "GET, HEAD" }
    }
}

fn endpoint(path: &str) -> Option<Target> {
    let rest = path.strip_prefix("/upstreams/")?;
    let mut segments = rest.split('/');
    let upstream = decode(segments.next()?)?;
    if segments.next()? != "endpoints" {
        return None;
    }
    let endpoint = decode(segments.next()?)?.parse().ok()?;
    let drained = match segments.next()? {
        "drain" => true,
        "enable" => false,
        _ => return None,
    };
    segments.next().is_none().then_some(Target::Endpoint { upstream, endpoint, drained })
}

/// Percent-decodes a segment (RFC 3986 §2.1). `None`: it is no text in this coding.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// The path of `segment` in a request: everything but unreserved characters is encoded.
#[cfg(test)]
pub(super) fn encode(segment: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let encoded = segment.as_bytes().iter().map(|byte| match is_plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_almost_right_are_unknown() {
        for path in [
            "",
            "//",
            "/metrics/",
            "/Metrics",
            "/upstreams",
            "/upstreams/api",
            "/upstreams/api/endpoints/10.0.0.1:80",
            "/upstreams/api/endpoints/10.0.0.1:80/drain/",
            "/upstreams/api/endpoints/10.0.0.1:80/stop",
            "/upstreams/api/endpoints/10.0.0.1/drain",
            "/upstreams/api/endpoints/name:80/drain",
            "/upstreams/api/endpoint/10.0.0.1:80/drain",
            "/upstreams/%/endpoints/10.0.0.1:80/drain",
            "/upstreams/%4/endpoints/10.0.0.1:80/drain",
            "/upstreams/%+4/endpoints/10.0.0.1:80/drain",
            "/upstreams/%ff/endpoints/10.0.0.1:80/drain",
        ] {
            assert_eq!(Target::of(path), None, "{path:?}");
        }
    }

    #[test]
    fn an_endpoint_is_found_whatever_its_upstream_is_called() {
        for name in ["api", "10.0.0.1:80, [::1]:80", "a/b %", "é"] {
            let path = format!("/upstreams/{}/endpoints/%5B::1%5D:80/drain", encode(name));
            let Some(Target::Endpoint { upstream, endpoint, drained: true }) = Target::of(&path)
            else {
                panic!("{path} names an endpoint");
            };
            assert_eq!(upstream, name);
            assert_eq!(endpoint, "[::1]:80".parse().expect("an address"));
        }
        let enable = Target::of("/upstreams/api/endpoints/[::1]:80/enable");
        assert!(matches!(enable, Some(Target::Endpoint { drained: false, .. })));
    }

    #[test]
    fn what_changes_something_takes_post_alone() {
        let reload = Target::of("/reload").expect("known");
        assert!(reload.allows(&Method::POST) && !reload.allows(&Method::GET));
        let status = Target::of("/status").expect("known");
        assert!(status.allows(&Method::HEAD) && !status.allows(&Method::POST));
    }

    #[test]
    fn every_path_that_is_listed_is_there() {
        for (method, path, _) in PATHS {
            let path = path.replace("NAME", "api").replace("ADDRESS", "10.0.0.1:80");
            let target = Target::of(&path).unwrap_or_else(|| panic!("{path} is there"));
            assert!(target.methods().starts_with(method));
        }
    }
}
