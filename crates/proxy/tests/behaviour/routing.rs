//! Which request goes where.

use crate::support::{OK, Proxy, Upstream, on_each_driver};

/// Answers with its own name.
fn named(name: &str) -> Upstream {
    Upstream::answering(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len()))
}

fn get(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn a_request_that_no_route_takes_is_a_404_and_its_client_may_go_on() {
    on_each_driver(|driver| {
        let one = named("one");
        let proxy = Proxy::with(
            driver,
            &format!(
                "[[listen]]\naddr = \"$LISTEN\"\n[[route]]\nhost = \"a.test\"\nto = \"{}\"\n",
                one.address
            ),
        );
        let mut client = proxy.connect();
        let answer = client.ask(&get("b.test", "/"));
        assert_eq!(answer.status(), 404);
        assert!(!answer.closes());
        assert_eq!(client.ask(&get("a.test", "/")).text(), "one");
        assert!(one.requests().len() == 1);
    });
}

#[test]
fn the_most_specific_route_takes_a_request_whatever_their_order() {
    on_each_driver(|driver| {
        let ups = ["any", "host", "below", "path", "exact", "regex"].map(named);
        let at = |index: usize| ups[index].address;
        let proxy = Proxy::with(
            driver,
            &format!(
                r#"
                [[listen]]
                addr = "$LISTEN"
                [[route]]
                to = "{}"
                [[route]]
                host = "a.test"
                to = "{}"
                [[route]]
                host = "*.test"
                to = "{}"
                [[route]]
                host = "a.test"
                path = "/v1/*"
                to = "{}"
                [[route]]
                host = "a.test"
                path = "/v1/exact"
                to = "{}"
                [[route]]
                host = "a.test"
                path = "~^/x[0-9]+$"
                to = "{}"
                "#,
                at(0),
                at(1),
                at(2),
                at(3),
                at(4),
                at(5)
            ),
        );
        let mut client = proxy.connect();
        for (host, path, name) in [
            ("other", "/", "any"),
            ("a.test", "/", "host"),
            ("A.TEST:80", "/v1beta", "host"),
            ("b.test", "/v1/x", "below"),
            ("c.b.test", "/", "below"),
            ("a.test", "/v1", "path"),
            ("a.test", "/v1/y?z", "path"),
            ("a.test", "/v1/exact", "exact"),
            ("a.test", "/x17", "regex"),
            ("a.test", "/x17/", "host"),
        ] {
            assert_eq!(client.ask(&get(host, path)).text(), name, "{host} {path}");
        }
    });
}

#[test]
fn a_path_cannot_be_spelled_around_a_route() {
    // Goal: what a route guards stays guarded. Method: spellings that an endpoint may resolve.
    on_each_driver(|driver| {
        let open = named("open");
        let proxy = Proxy::with(
            driver,
            &format!(
                r#"
                [[listen]]
                addr = "$LISTEN"
                [[route]]
                to = "{}"
                [[route]]
                path = "/admin/*"
                respond = {{ status = 403, body = "no" }}
                "#,
                open.address
            ),
        );
        let mut client = proxy.connect();
        for path in [
            "/admin",
            "/admin/x",
            "/public/../admin/x",
            "/public/%2e%2e/admin",
            "//admin/x",
            "/./admin",
            "/%61dmin/",
        ] {
            assert_eq!(client.ask(&get("a", path)).status(), 403, "{path}");
        }
        assert_eq!(client.ask(&get("a", "/administration")).text(), "open");
        assert_eq!(proxy.ask(&get("a", "/../admin")).status(), 400);
    });
}

#[test]
fn a_method_that_no_route_of_the_path_takes_is_a_405_that_names_those() {
    on_each_driver(|driver| {
        let one = Upstream::answering(OK);
        let proxy = Proxy::with(
            driver,
            &format!(
                "[[listen]]\naddr = \"$LISTEN\"\n[[route]]\nmethod = [\"GET\", \"PUT\"]\nto = \"{}\"\n",
                one.address
            ),
        );
        let mut client = proxy.connect();
        let answer = client.ask("DELETE /x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(answer.status(), 405);
        let allow = answer.field("Allow").expect("Allow");
        assert!(allow.contains("GET") && allow.contains("PUT"), "{allow}");
        assert_eq!(client.ask(&get("a", "/x")).status(), 200);
    });
}

#[test]
fn a_route_may_ask_for_a_field_and_for_a_listener() {
    on_each_driver(|driver| {
        let ups = ["field", "inner", "rest"].map(named);
        let proxy = Proxy::with(
            driver,
            &format!(
                r#"
                [[listen]]
                name = "outer"
                addr = "$LISTEN"
                [[listen]]
                name = "inner"
                addr = "$LISTEN"
                [[route]]
                header = {{ x-canary = "1", x-any = "*" }}
                to = "{}"
                [[route]]
                listen = "inner"
                to = "{}"
                [[route]]
                to = "{}"
                "#,
                ups[0].address, ups[1].address, ups[2].address
            ),
        );
        let canary = "GET / HTTP/1.1\r\nHost: a\r\nX-Canary: 1\r\nx-any: q\r\n\r\n";
        let no_canary = "GET / HTTP/1.1\r\nHost: a\r\nX-Canary: 2\r\nx-any: q\r\n\r\n";
        let mut outer = proxy.connect();
        assert_eq!(outer.ask(canary).text(), "field");
        assert_eq!(outer.ask(no_canary).text(), "rest");
        assert_eq!(outer.ask(&get("a", "/")).text(), "rest");
        let mut inner = crate::support::Wire::connect(proxy.server().addresses()[1]);
        assert_eq!(inner.ask(&get("a", "/")).text(), "inner");
    });
}
