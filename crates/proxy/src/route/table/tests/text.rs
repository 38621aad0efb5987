//! The table and its answers as text.

use super::*;
use crate::route::show::Question;

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
    let host_refused = last("a b", "/");
    assert!(host_refused.starts_with("answered with 400: "), "{host_refused}");
    assert_eq!(last(".", "/old/1"), "answered with 400: the request names no host to be sent to");
    let ask = |method, path, fields| {
        let question = Question { method, path, fields, query: None, ..QUESTION };
        let text = table.explain(&config, &question);
        text.lines().last().expect("a last line").to_owned()
    };
    for (method, path, fields, status) in [
        ("TRACE", "/", &[][..], 405),
        ("CONNECT", "/", &[], 501),
        ("G(T", "/", &[], 400),
        ("GET", "*", &[], 400),
        ("GET", "/", &[("Content-Length", "1"), ("Content-Length", "2")], 400),
        ("GET", "/", &[("Expect", "x")], 417),
        ("OPTIONS", "*", &[], 404),
    ] {
        let text = ask(method, path, fields);
        assert!(text.starts_with(&format!("answered with {status}: ")), "{method} {path}: {text}");
    }
    assert_eq!(last("a.example", "/.."), "answered with 400: the path leads above its root");
    assert_eq!(last("a.example", "/b"), "answered with 404: no route takes it");
    assert_eq!(last("a.example", "/a"), "answered with 405: allowed are PUT");
    assert_eq!(last("x:80", "/old/1"), "answered with 308, Location: https://x/old/1");
    assert_eq!(last("x", "/text"), "answered with 200: 2 bytes of text/plain");
    assert_eq!(last("x", "/in"), "answered with 403: 127.0.0.1 is not admitted");
}
