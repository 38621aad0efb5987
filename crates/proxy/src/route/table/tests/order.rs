//! Which route takes a request.

use super::*;

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
    assert_eq!(find(&config, &Ask { host: Some(&long), ..ASK }), "wide");
    let long = format!("{}.other", "a.".repeat(200));
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
