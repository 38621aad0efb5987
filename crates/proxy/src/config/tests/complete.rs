//! A complete file: what it says, how it is printed, and that no damage to it makes a panic.

use std::collections::HashSet;

use super::*;
use crate::route::{HostPattern, PathPattern};

/// The reference with the upstream, the listener and the answers that its examples name.
fn complete() -> String {
    reference()
}

fn complete_config() -> Config {
    parse(&complete(), "b.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_reference_is_a_valid_file_that_says_what_it_shows() {
    let config = complete_config();
    let [listener] = config.listeners.as_slice() else { panic!("one listener") };
    assert_eq!(listener.name, "web");
    assert_eq!(listener.timeouts.head, Duration::from_secs(5));
    assert_eq!(listener.timeouts.keep_alive, config.timeouts.keep_alive);
    assert_eq!(listener.limits.head_bytes, 8 << 10);
    assert_eq!(listener.trusted_proxies.len(), 2);
    let [upstream] = config.upstreams.as_slice() else { panic!("one upstream") };
    let endpoints: Vec<(String, u32, bool)> = upstream
        .endpoints
        .iter()
        .map(|endpoint| (endpoint.address.to_string(), endpoint.weight, endpoint.backup))
        .collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        endpoints,
        [(text("10.0.0.1:9000"), 1, false), (text("b:9000"), 2, false), (text("c:9000"), 1, true)]
    );
    assert_eq!(upstream.max_conns, Some(500));
    assert_eq!(upstream.pool.idle, 64);
    assert_eq!(upstream.retry.on, [RetryOn::Connect, RetryOn::NoAnswer]);
    assert_eq!(upstream.retry.statuses, [502, 503]);
    assert_eq!(upstream.health.as_ref().unwrap().expect, [(200, 299)]);
    let [route] = config.routes.as_slice() else { panic!("one route") };
    assert_eq!(route.hosts[1], HostPattern::Below(".example.com".to_owned()));
    assert_eq!(route.path, PathPattern::Prefix("/v1".to_owned()));
    assert_eq!(route.fields[1], FieldMatch { name: "x-other".to_owned(), value: None });
    assert_eq!(route.action, Action::Proxy("api".to_owned()));
    assert_eq!(route.rewrite, Rewrite::Strip("/v1".to_owned()));
    assert_eq!(route.request_fields.remove, ["x-debug"]);
    assert_eq!(route.rate_limit.as_ref().unwrap().burst, 200);
    assert_eq!(&*route.error_pages[0].1, b"<h1>Back soon</h1>");
    assert!(!route.access_log);
    assert_eq!(route.timeouts.first_byte, Duration::from_secs(300));
    assert_eq!(route.limits.body_bytes, Some(10 << 20));
}

/// Everything that a route can do otherwise, and that files are made of.
const OTHERS: &str = r##"
[upstream."my.api"]
endpoints = ["[::1]:9000", { addr = "b:9000", weight = 3, backup = false }]
balance = "hash:cookie:session"
host = "api.internal:8443"
max_conns = 10
queue = { length = 0 }
retry = { attempts = 0 }
health = { path = "/healthz?x=1", host = "h", expect = [200, "300-399"] }
eject = { failures = 0 }
slow_start = "10s"

[upstream.unused]
endpoints = "127.0.0.1:1"
retry = { budget = "5%", on = "connect" }

[[listen]]
addr = [":0", ":0", "[::1]:8081"]
timeout = { keep_alive = "1s" }

[[listen]]
addr = ":0"
proxy_protocol = "fd00::/8"

[[route]]
redirect = "https://{host}{uri}"

[[route]]
host = "a.example"
redirect = { to = "/x\"\\{{}}é", status = 302 }

[[route]]
path = "~^/a\\d+[\"$]{1,2}$"
method = "GET"
respond = { status = 204 }

[[route]]
path = "~^/a\\d+[\"$]{1,2}$"
respond = { content_type = "image/gif", base64 = "/w==" }

[[route]]
path = "~^/a\\d+[\"$]{1,2}$"
method = "POST"
respond = { body = "two\nlines\t$${HOME} \u0001" }

[[route]]
path = "/exact"
header = { "X-B" = "$${x}", "x-a" = "*" }
to = "my.api"
replace_prefix = { from = "/exact", to = "" }
request_headers = { set = { "x.y" = "{client_ip}" }, remove = "X-Debug" }
response_headers = { add = { Set-Cookie = "a=b" } }
allow = ["10.0.0.1", "2001:db8::/32"]
rate_limit = { key = "header:X-Key", rate = "7/m" }
error_pages = { 404 = { body = "" }, 502 = { body = "é" } }

[[route]]
path = "/own/*"
listen = "1"
to = ["127.0.0.1:9000", "b:1"]
timeout = { connect = "1s" }

[[route]]
path = "/own/*"
to = ["127.0.0.1:9000", "b:1"]

[[listen]]
name = "1"
addr = ":1"

[timeout]
connect = "9s"
keep_alive = "9s"
[pool]
idle = 7
[log]
access = "/var/log/a b.log"
access_format = "json"
[admin]
listen = "unix:/run/baton.sock"
"##;

#[test]
fn whatever_a_file_says_is_printed_and_read_back() {
    for text in [complete(), OTHERS.to_owned(), SMALLEST.to_owned()] {
        let config = parse(&text, "b.toml").unwrap_or_else(|error| panic!("{error}"));
        let printed = print(&config);
        let again = parse(&printed, "printed").unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(again, config, "{printed}");
        assert_eq!(print(&again), printed);
    }
}

#[test]
fn settings_of_listeners_and_routes_go_before_those_of_the_file_wherever_they_stand() {
    let config = parse(OTHERS, "b.toml").unwrap();
    let connect: Vec<u64> =
        config.routes.iter().map(|route| route.timeouts.connect.as_secs()).collect();
    assert_eq!(connect, [9, 9, 9, 9, 9, 9, 1, 9]);
    let keep_alive: Vec<u64> =
        config.listeners.iter().map(|listener| listener.timeouts.keep_alive.as_secs()).collect();
    assert_eq!(keep_alive, [1, 9, 9]);
    assert!(config.upstreams.iter().all(|upstream| upstream.pool.idle == 7));
}

#[test]
fn what_has_no_name_is_called_by_what_it_is() {
    let config = parse(OTHERS, "b.toml").unwrap();
    let listeners: Vec<&str> =
        config.listeners.iter().map(|listener| listener.name.as_str()).collect();
    assert_eq!(listeners, [":0", ":0#2", "1"]);
    let routes: Vec<&str> = config.routes.iter().map(|route| route.name.as_str()).collect();
    let regex = "~^/a\\d+[\"$]{1,2}$";
    let (second, third) = (format!("{regex}#2"), format!("{regex}#3"));
    let expected = ["/*", "a.example/*", regex, &second, &third, "/exact", "/own/*", "/own/*#2"];
    assert_eq!(routes, expected);
    let upstreams: Vec<&str> =
        config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!(upstreams, ["my.api", "unused", "127.0.0.1:9000, b:1"]);
}

#[test]
fn texts_stay_as_they_are_meant() {
    let config = parse(OTHERS, "b.toml").unwrap();
    let body = |index: usize| match &config.routes[index].action {
        Action::Respond { body, .. } => body.to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(body(3), b"\xff");
    assert_eq!(body(4), b"two\nlines\t${HOME} \x01");
    assert_eq!(config.routes[5].fields[0].name, "x-b");
    assert_eq!(config.routes[5].fields[0].value.as_deref(), Some("${x}"));
    assert_eq!(config.routes[5].request_fields.remove, ["X-Debug"]);
}

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64 (Marsaglia 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// Goal: no file makes a panic. Method: pieces of complete files are cut out, doubled, exchanged,
/// and replaced by what TOML and our own texts give a meaning; what is still valid is printed and
/// read back, and formatted, which must not change what it says.
#[test]
fn no_damage_to_a_complete_file_makes_a_panic() {
    let damage = [
        "\"",
        "'",
        "\n",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        ".",
        ",",
        "#",
        "é",
        "\u{0}",
        "0",
        "-",
        "$",
        "${",
        "${A}",
        "*",
        "/",
        "~",
        "(",
        ":",
        "none",
        "\"\"\"",
        "\\",
        "99999999999999999999",
        "[]",
        "{}",
        "\r\n",
        "true",
        "1.5",
        "a.b.c",
        "include = \"*\"\n",
    ];
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut valid = 0;
    for whole in [complete(), OTHERS.to_owned()] {
        let bounds: Vec<usize> = whole.char_indices().map(|(at, _)| at).collect();
        for _ in 0..600 {
            let mut text = whole.clone();
            let (a, b) = (bounds[numbers.below(bounds.len())], bounds[numbers.below(bounds.len())]);
            let (start, near) = (a.min(b), a.min(b) + numbers.below(12));
            let end = bounds.iter().copied().find(|at| *at >= near).unwrap_or(whole.len());
            match numbers.below(4) {
                0 => text.replace_range(start..end, ""),
                1 => text.insert_str(start, &whole[start..end]),
                2 => text.replace_range(start..end, damage[numbers.below(damage.len())]),
                _ => text.insert_str(start, damage[numbers.below(damage.len())]),
            }
            match file::load_with(&text, "b.toml", Path::new("nowhere"), None, &file::OfProcess) {
                Ok(Loaded { config, .. }) => {
                    valid += 1;
                    assert_eq!(parse(&print(&config), "printed").unwrap(), config, "{text}");
                    let formatted = format(&text, "b.toml").unwrap();
                    assert_eq!(parse(&formatted, "formatted").unwrap(), config, "{text}");
                    assert_eq!(format(&formatted, "b.toml").unwrap(), formatted);
                }
                Err(error) => assert!(error.to_string().starts_with("b.toml"), "{error}"),
            }
        }
    }
    assert!(valid > 50, "only {valid} were valid");
}

/// The keys of each object of the schema that stands for a table.
fn objects(schema: &serde_json::Value, path: &str, out: &mut Vec<(String, HashSet<String>)>) {
    match schema {
        serde_json::Value::Object(map) => {
            if let Some(serde_json::Value::Object(properties)) = map.get("properties") {
                out.push((path.to_owned(), properties.keys().cloned().collect()));
                assert_eq!(map.get("additionalProperties"), Some(&false.into()), "{path}");
                for (name, property) in properties {
                    let text = property.get("description").and_then(|text| text.as_str());
                    assert!(text.is_some_and(|text| !text.is_empty()), "{path}.{name}");
                }
            }
            for (name, value) in map {
                objects(value, &format!("{path}/{name}"), out);
            }
        }
        serde_json::Value::Array(all) => {
            for (index, value) in all.iter().enumerate() {
                objects(value, &format!("{path}/{index}"), out);
            }
        }
        _ => {}
    }
}

#[test]
fn the_schema_has_every_table_with_every_key_and_its_meaning() {
    let schema = schema();
    let mut tables = Vec::new();
    objects(&schema, "", &mut tables);
    assert!(tables.len() >= 25, "{}", tables.len());
    let root = &tables[0].1;
    for table in ["include", "listen", "upstream", "route", "timeout", "admin"] {
        assert!(root.contains(table), "{table}");
    }
    let text = schema.to_string();
    for line in reference().lines() {
        let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ") else { continue };
        assert!(text.contains(&format!("\"{key}\":")), "{key}");
    }
    assert!(text.contains("\"default\":\"10s\""), "{text}");
}
