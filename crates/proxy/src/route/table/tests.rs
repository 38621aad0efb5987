use std::collections::HashMap as Map;

use super::*;
use crate::config::{Action, FieldMatch, Route};
use crate::route::show::Question;
use crate::route::{FieldList, Random};

/// A route from `name host[,host] path [METHOD,…] [field[=value]] [@listener]`; `-` for any host.
fn route(text: &str) -> Route {
    let mut words = text.split(' ');
    let name = words.next().expect("a name");
    let mut route = Route::to(name.into(), Default::default(), Default::default());
    route.action = Action::Proxy("u".into());
    let hosts = words.next().expect("a host");
    if hosts != "-" {
        let parse = |host| HostPattern::parse(host).expect("the row is a host");
        route.hosts = hosts.split(',').map(parse).collect();
    }
    route.path = PathPattern::parse(words.next().expect("a path")).expect("the row is a path");
    for word in words {
        if let Some(listener) = word.strip_prefix('@') {
            route.listeners.push(listener.into());
        } else if word.bytes().all(|b| b.is_ascii_uppercase() || b == b',') {
            route.methods = word.split(',').map(String::from).collect();
        } else {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word, None),
            };
            route.fields.push(FieldMatch { name: name.into(), value });
        }
    }
    route
}

fn config_of(routes: &[&str]) -> Config {
    let mut config = Config::defaults();
    for port in [1, 2] {
        config.add_listener(([127, 0, 0, 1], port).into()).expect("within bounds");
    }
    let mut second = config.listeners[0].clone();
    second.name = "second".into();
    second.addresses = vec![config.listeners[0].addresses.pop().expect("two were added")];
    config.listeners.push(second);
    config.routes = routes.iter().map(|text| route(text)).collect();
    config
}

struct Ask<'a> {
    listener: usize,
    method: &'a str,
    host: Option<&'a str>,
    path: &'a str,
    fields: &'a [(&'a str, &'a str)],
}

const ASK: Ask<'static> =
    Ask { listener: 0, method: "GET", host: Some("a.example"), path: "/", fields: &[] };

/// What is found, as the name of the route, `405 Allow`, `404`, or `400`.
fn find(config: &Config, ask: &Ask<'_>) -> String {
    let table = RouteTable::new(config);
    let Ok(resolved) = table.resolve(ask.path.as_bytes()) else { return "400".into() };
    let query = Query {
        listener: ask.listener,
        method: ask.method,
        host: ask.host.map(str::as_bytes),
        path: resolved.normal(),
        fields: &FieldList::new(ask.fields),
    };
    match table.find(&query) {
        Found::Route(index) => config.routes[index].name.clone(),
        Found::MethodNotAllowed(allow) => format!("405 {allow}"),
        Found::None => "404".into(),
    }
}

#[test]
fn a_request_that_no_route_takes_is_not_found() {
    let config = config_of(&["a a.example /x/*"]);
    for (host, path) in [
        (Some("b.example"), "/x"),
        (Some("xa.example"), "/x"),
        (Some("a.example.b"), "/x"),
        (None, "/x"),
        (Some("a.example"), "/xy"),
        (Some("a.example"), "/"),
        (Some("a.example"), "*"),
    ] {
        assert_eq!(find(&config, &Ask { host, path, ..ASK }), "404", "{host:?} {path}");
    }
    let config = config_of(&[]);
    assert_eq!(find(&config, &ASK), "404");
}

#[test]
fn a_protected_path_cannot_be_walked_around() {
    let config = config_of(&["admin - /admin/*", "exact - /secret", "rest - /*"]);
    for path in [
        "/admin",
        "/admin/",
        "/admin/x",
        "//admin",
        "///admin//x",
        "/./admin",
        "/%61dmin",
        "/%61%64%6D%69%6e/x",
        "/public/../admin",
        "/public/%2e%2e/admin",
        "/public/.%2e/admin",
        "/public//..//admin",
        "/x/y/../../admin/z",
        "/admin/../admin",
        "/admin;x/../admin",
        "/admin/..%2f",
    ] {
        assert_eq!(find(&config, &Ask { path, ..ASK }), "admin", "{path}");
    }
    for path in ["//secret", "/%73ecret", "/a/../secret", "/./secret", "/secre%74"] {
        assert_eq!(find(&config, &Ask { path, ..ASK }), "exact", "{path}");
    }
    for path in ["/..", "/../admin", "/%2e%2e/admin", "/x/..;/admin", "/x/../../admin"] {
        assert_eq!(find(&config, &Ask { path, ..ASK }), "400", "{path}");
    }
    // These are other paths, whatever an endpoint makes of them.
    for path in [
        "/adminx",
        "/ADMIN",
        "/admin%2fx",
        "/%2fadmin",
        "/admin%00",
        "/admin\\x",
        "/%5cadmin",
        "/admin;x",
        "/%2561dmin",
        "/secret/",
        "/admi",
        "/a",
        "*",
    ] {
        assert_eq!(find(&config, &Ask { path, ..ASK }), "rest", "{path}");
    }
}

#[test]
fn the_most_specific_host_is_asked_first_and_the_others_behind_it() {
    let config = config_of(&[
        "any - /*",
        "wide *.example /*",
        "long *.b.example /*",
        "exact a.b.example /only/*",
        "six [2001:db8:0::1] /*",
        "four 192.0.2.1 /*",
    ]);
    for (host, path, expected) in [
        ("a.b.example", "/only", "exact"),
        ("A.B.EXAMPLE:8080", "/only", "exact"),
        ("a.b.example.", "/only", "exact"),
        ("a.b.example.:80", "/only", "exact"),
        ("a.b.example", "/", "long"),
        ("x.a.b.Example", "/", "long"),
        ("b.example", "/", "wide"),
        ("x.y.example", "/", "wide"),
        ("example", "/", "any"),
        (".example", "/", "any"),
        (".b.example", "/", "wide"),
        ("a.b.example..", "/", "any"),
        ("xexample", "/", "any"),
        ("a%2eb.example", "/only", "wide"),
        ("[2001:DB8::1]:443", "/", "six"),
        ("[2001:db8:0:0:0:0:0:1]", "/", "six"),
        ("[2001:db8::2]", "/", "any"),
        ("192.0.2.1:80", "/", "four"),
        ("192.0.2.1.", "/", "four"),
    ] {
        let ask = Ask { host: Some(host), path, ..ASK };
        assert_eq!(find(&config, &ask), expected, "{host} {path}");
    }
    assert_eq!(find(&config, &Ask { host: None, ..ASK }), "any");
    let long = format!("{}.example", "a.".repeat(200));
    assert_eq!(find(&config, &Ask { host: Some(&long), ..ASK }), "any");
}

#[test]
fn the_most_specific_path_is_asked_first() {
    let config = config_of(&[
        "every - /*",
        "regex1 - ~^/v[0-9]",
        "regex2 - ~^/v1",
        "short - /v1/*",
        "long - /v1/users/*",
        "other - /v1-a/*",
        "exact - /v1/users",
        "accent - /caf\u{e9}/*",
    ]);
    for (path, expected) in [
        ("/v1/users", "exact"),
        ("/v1/users/", "long"),
        ("/v1/users/1", "long"),
        ("/v1/usersx", "short"),
        ("/v1", "short"),
        ("/v1/", "short"),
        ("/v1-a/x", "other"),
        ("/v1beta", "regex1"),
        ("/v1.x", "regex1"),
        ("/v", "every"),
        ("/", "every"),
        ("*", "every"),
        ("/caf%C3%A9", "accent"),
        ("/caf%c3%a9/x", "accent"),
        ("/caf", "every"),
    ] {
        assert_eq!(find(&config, &Ask { path, ..ASK }), expected, "{path}");
    }
}

#[test]
fn more_conditions_go_before_fewer_and_then_the_order_of_the_file() {
    let config = config_of(&[
        "plain - /a/*",
        "late - /a/*",
        "beta - /a/* x-beta=1",
        "post - /a/* POST x-beta=1",
        "admin - /a/* @second",
        "any-field - /b/* x-any",
        "second-field - /b/* x-beta=1",
    ]);
    let both = [("X-Beta", "0"), ("x-BETA", "1"), ("X-Any", "")];
    for (ask, expected) in [
        (Ask { path: "/a", ..ASK }, "plain"),
        (Ask { path: "/a", fields: &both, ..ASK }, "beta"),
        (Ask { path: "/a", fields: &both, method: "POST", ..ASK }, "post"),
        (Ask { path: "/a", fields: &[("x-beta", "1 ")], ..ASK }, "plain"),
        (Ask { path: "/a", listener: 1, ..ASK }, "admin"),
        (Ask { path: "/a", listener: 1, fields: &both, ..ASK }, "beta"),
        (Ask { path: "/b", fields: &both, ..ASK }, "any-field"),
        (Ask { path: "/b", fields: &both[1..2], ..ASK }, "second-field"),
        (Ask { path: "/b", fields: &[("x-bet", "1")], ..ASK }, "404"),
    ] {
        assert_eq!(find(&config, &ask), expected);
    }
    let table = RouteTable::new(&config);
    assert_eq!(table.order(), [3, 2, 4, 0, 1, 5, 6]);
}

#[test]
fn a_method_that_no_route_has_is_told_those_there_are() {
    let config = config_of(&[
        "read a.example /x/* GET,HEAD",
        "write a.example /x/y/* PUT,GET",
        "field a.example /x/* DELETE x-admin",
        "listener a.example /x/* PATCH @second",
    ]);
    let ask = |path, method| Ask { path, method, ..ASK };
    assert_eq!(find(&config, &ask("/x", "POST")), "405 GET, HEAD");
    assert_eq!(find(&config, &ask("/x/y/z", "POST")), "405 PUT, GET, HEAD");
    assert_eq!(find(&config, &ask("/x", "get")), "405 GET, HEAD", "methods have a case");
    assert_eq!(find(&config, &ask("/x/y", "PUT")), "write");
    assert_eq!(find(&config, &ask("/z", "POST")), "404");
    let admin = Ask { fields: &[("X-Admin", "")], ..ask("/x", "POST") };
    assert_eq!(find(&config, &admin), "405 DELETE, GET, HEAD");
    // Another route that takes every method takes this one, too.
    let both = config_of(&["read - /x/* GET", "rest - /*"]);
    assert_eq!(find(&both, &ask("/x", "POST")), "rest");
}

#[test]
fn one_route_for_all_looks_at_nothing() {
    let config = config_of(&["all - /*"]);
    let table = RouteTable::new(&config);
    assert_eq!(table.only, Some(0));
    for path in ["/../..", "//x/../%00", "/..;/"] {
        assert_eq!(table.resolve(path.as_bytes()), Ok(Resolved::as_sent(path.as_bytes())));
        assert_eq!(find(&config, &Ask { path, host: None, ..ASK }), "all");
    }
    for other in ["all a /*", "all - /* GET", "all - /x/*", "all - ~."] {
        assert_eq!(RouteTable::new(&config_of(&[other])).only, None, "{other}");
    }
    // Where a path is changed, it is resolved before.
    let mut config = config;
    config.routes[0].rewrite = Rewrite::Strip("/a".into());
    assert_eq!(find(&config, &Ask { path: "/..", ..ASK }), "400");
}

/// What the lines say, one after the other.
fn naive(table: &RouteTable, query: &Query<'_, FieldList<'_>>) -> Option<usize> {
    let takes = |row: &&Row| {
        row.covers(query.host, query.path) == (true, true) && row.candidate.refusal(query).is_none()
    };
    table.rows().iter().find(takes).map(|row| row.route)
}

#[test]
fn the_search_finds_what_the_lines_say() {
    const HOSTS: [&str; 8] = [
        "-",
        "-",
        "a.example",
        "b.example",
        "*.example",
        "*.a.example",
        "a.example,*.b.example",
        "[::1]",
    ];
    const PATHS: [&str; 14] = [
        "/*",
        "/a",
        "/a/*",
        "/a/b/*",
        "/a/b",
        "/a-b/*",
        "/a!/*",
        "/ab/*",
        "/a/b/c/*",
        "~^/a/[bc]",
        "~c$",
        "/b/*",
        "/%61/c",
        "/a//b/c",
    ];
    const CONDITIONS: [&str; 6] = ["", "", " GET", " POST,PUT", " x-a", " x-a=1 @second"];
    const ASKED: [&str; 8] = [
        "a.example",
        "b.example:1",
        "x.a.example",
        "x.b.EXAMPLE",
        "c",
        "[0::1]",
        "example",
        ".a.example",
    ];
    const SEGMENTS: [&str; 10] = ["/a", "/b", "/c", "/a-b", "/a!", "/ab", "/", "/%61", "/..", "/x"];
    let mut random = Random::seeded(13);
    for _ in 0..200 {
        let mut pick = |from: &[&'static str]| from[random.below(from.len() as u64) as usize];
        let routes: Vec<String> = (0..12)
            .map(|at| format!("r{at} {} {}{}", pick(&HOSTS), pick(&PATHS), pick(&CONDITIONS)))
            .collect();
        let config = config_of(&routes.iter().map(String::as_str).collect::<Vec<_>>());
        let table = RouteTable::new(&config);
        for _ in 0..50 {
            let mut pick = |from: &[&'static str]| from[random.below(from.len() as u64) as usize];
            let path = [pick(&SEGMENTS), pick(&SEGMENTS), pick(&SEGMENTS)].concat();
            let host = pick(&ASKED);
            let (method, fields) = (pick(&["GET", "POST"]), [("X-A", pick(&["1", "2"]))]);
            let Ok(resolved) = table.resolve(path.as_bytes()) else { continue };
            let query = Query {
                listener: random.below(2) as usize,
                method,
                host: Some(host.as_bytes()),
                path: resolved.normal(),
                fields: &FieldList::new(&fields),
            };
            let expected = naive(&table, &query);
            let found = match table.find(&query) {
                Found::Route(route) => Some(route),
                Found::MethodNotAllowed(_) | Found::None => None,
            };
            assert_eq!(found, expected, "{host} {path} {method}\n{}", table.text(&config));
        }
    }
}

#[test]
fn a_large_table_is_searched_and_not_walked() {
    let mut texts = Vec::new();
    for at in 0..10_000 {
        texts.push(match at % 4 {
            0 => format!("r{at} h{at}.example /*"),
            1 => format!("r{at} *.w{at}.example /*"),
            2 => format!("r{at} - /p{at}/deep/*"),
            _ => format!("r{at} - /e{at}"),
        });
    }
    let config = config_of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let table = RouteTable::new(&config);
    let seen = |host: &str, path: &str| {
        let mut seen = Vec::new();
        table.candidates(Some(host.as_bytes()), path.as_bytes(), &mut |candidate| {
            seen.push(candidate.route);
            false
        });
        seen
    };
    assert_eq!(seen("h8000.example", "/"), [8000]);
    assert_eq!(seen("a.b.w8001.example", "/"), [8001]);
    assert_eq!(seen("x", "/p8002/deep/er"), [8002]);
    assert_eq!(seen("x", "/e8003"), [8003]);
    assert_eq!(seen("h8000.example", "/e8003"), [8000, 8003]);
    assert_eq!(seen("x", &"/p2".repeat(2_000)), [0; 0]);
    // One search in sorted paths for each kind; no way up is longer than the nesting of prefixes.
    let depths = table.any.prefixes.iter().map(|prefix| usize::from(prefix.parent.is_some()));
    assert_eq!(depths.sum::<usize>(), 0);
    assert!(table.any.exact.is_sorted_by_key(|known| &known.0) && table.hosts.len() == 2_500);
}

#[test]
fn prefixes_know_the_one_they_are_below() {
    let config = config_of(&["d - /a/b/c/*", "b - /a/b/*", "x - /a-b/*", "a - /a/*", "y - /ab/*"]);
    let table = RouteTable::new(&config);
    let parents: Map<String, Option<usize>> = (table.any.prefixes.iter())
        .map(|prefix| (String::from_utf8_lossy(&prefix.path).into_owned(), prefix.parent))
        .collect();
    let expected =
        [("/a", None), ("/a/b", Some(0)), ("/a/b/c", Some(1)), ("/a-b", None), ("/ab", None)];
    assert_eq!(parents, expected.map(|(path, parent)| (path.to_owned(), parent)).into());
}

#[test]
fn the_table_is_printed_in_its_order() {
    let mut config = config_of(&[
        "site - /*",
        "api api.example,*.api.example /v1/* GET,POST x-key",
        "old - /old/* @second",
    ]);
    config.routes[1].rewrite = Rewrite::Strip("/v1".into());
    config.routes[2].action = Action::Redirect {
        status: 301,
        to: crate::route::Template::parse("https://{host}/new").expect("valid"),
    };
    let expected = "\
#  route  host           path    conditions               action
1  api    api.example    /v1/*   GET, POST; x-key: any    upstream u, without /v1
2  api    *.api.example  /v1/*   GET, POST; x-key: any    upstream u, without /v1
3  old    *              /old/*  listener second          301 https://{host}/new
4  site   *              /*      -                        upstream u
";
    let text = RouteTable::new(&config).text(&config);
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeeze(&text), squeeze(expected), "{text}");
}

const QUESTION: Question<'static> = Question {
    listener: 0,
    method: "GET",
    scheme: "http",
    host: Some("api.example"),
    path: "/x/../v1//users",
    query: Some("q=1"),
    fields: &[("X-Key", "k"), ("Cookie", "c")],
    peer: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
};

#[test]
fn an_explanation_says_why_not_and_what_is_sent() {
    let mut config = config_of(&[
        "other b.example /*",
        "post api.example /v1/users POST",
        "keyed api.example /v1/* x-key=z",
        "listener api.example /v1/* @second",
        "api api.example /v1/*",
        "site - /*",
    ]);
    config.routes[4].rewrite = Rewrite::Strip("/v1".into());
    config.routes[4].request_fields.remove = vec!["cookie".into()];
    let template = crate::route::Template::parse("{client_ip} {route}").expect("valid");
    config.routes[4].request_fields.set = vec![("X-Client".into(), template)];
    let text = RouteTable::new(&config).explain(&config, &QUESTION);
    let expected = "\
GET http://api.example/x/../v1//users?q=1
routes see the path /v1/users

2  post      api.example  /v1/users  no: it is for POST, not GET
3  keyed     api.example  /v1/*      no: the field x-key is not z
4  listener  api.example  /v1/*      no: it is for other listeners
5  api       api.example  /v1/*      yes
1 are for other hosts

sent to the upstream u as
  GET /users?q=1 HTTP/1.1
  Host: api.example
  X-Key: k
- Cookie: c
+ X-Client: 127.0.0.1 api
";
    assert_eq!(text, expected, "{text}");
}

#[test]
fn an_explanation_says_what_is_answered_instead() {
    let mut config =
        config_of(&["a a.example /a/* PUT", "old - /old/*", "text - /text", "in - /in/*"]);
    config.routes[1].action = Action::Redirect {
        status: 308,
        to: crate::route::Template::parse("https://{host}{uri}").expect("valid"),
    };
    config.routes[2].action = Action::Respond {
        status: 200,
        content_type: "text/plain".into(),
        body: std::sync::Arc::from(&b"ok"[..]),
    };
    config.routes[3].deny = vec!["127.0.0.0/8".parse().expect("a net")];
    let table = RouteTable::new(&config);
    let last = |host, path| {
        let question = Question { host: Some(host), path, query: None, ..QUESTION };
        let text = table.explain(&config, &question);
        text.lines().last().expect("a last line").to_owned()
    };
    assert_eq!(last("a.example", "/.."), "answered with 400: the path leads above its root");
    assert_eq!(last("a.example", "/b"), "answered with 404: no route takes it");
    assert_eq!(last("a.example", "/a"), "answered with 405: allowed are PUT");
    assert_eq!(last("x:80", "/old/1"), "answered with 308, Location: https://x/old/1");
    assert_eq!(last("x", "/text"), "answered with 200: 2 bytes of text/plain");
    assert_eq!(last("x", "/in"), "answered with 403: 127.0.0.1 is not admitted");
}
