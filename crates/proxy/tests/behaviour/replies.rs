//! Answers that the proxy makes by itself.

use crate::support::{Proxy, on_each_driver, wait_until};

/// A listener that trusts its peers, and one route with these lines.
fn route(lines: &str) -> String {
    format!("[[listen]]\naddr = \"$LISTEN\"\ntrusted_proxies = \"127.0.0.0/8\"\n[[route]]\n{lines}")
}

#[test]
fn a_redirect_that_needs_a_host_is_refused_to_a_request_without_one() {
    on_each_driver(|driver| {
        let proxy = Proxy::with(driver, &route("redirect = \"https://{host}{uri}\"\n"));
        let answer = proxy.ask("GET /evil.example HTTP/1.0\r\n\r\n");
        assert_eq!((answer.status(), answer.field("Location")), (400, None));
        let answer = proxy.ask("GET /evil.example HTTP/1.1\r\nHost: .\r\n\r\n");
        assert_eq!((answer.status(), answer.field("Location")), (400, None));
    });
}

#[test]
fn a_refusal_by_address_has_the_fields_of_its_route() {
    on_each_driver(|driver| {
        let lines = r#"
            respond = { body = "ok" }
            deny = "127.0.0.0/8"
            response_headers = { set = { x-fixed = "1", x-host = "{host}" } }
        "#;
        let answer = Proxy::with(driver, &route(lines)).ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(answer.status(), 403);
        assert_eq!(answer.fields("x-host"), ["a"]);
        assert_eq!(answer.fields("x-fixed"), ["1"]);
    });
}

#[test]
fn an_answer_that_has_no_content_is_sent_without_any() {
    on_each_driver(|driver| {
        for (status, length) in [(204, None), (304, None), (205, Some("0"))] {
            let respond = format!("respond = {{ status = {status} }}\n");
            let proxy = Proxy::with(driver, &route(&respond));
            let mut client = proxy.connect();
            for method in ["GET", "HEAD", "GET"] {
                client.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
                let head = client.head().expect("an answer");
                assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
                assert_eq!(crate::support::wire::field(&head, "Content-Length"), length);
                assert_eq!(crate::support::wire::field(&head, "Content-Type"), None);
            }
            client.finish_sending();
            client.assert_closed();
        }
    });
}

#[test]
fn a_request_with_an_empty_body_leaves_its_connection_open() {
    on_each_driver(|driver| {
        let proxy = Proxy::with(driver, &route("respond = { body = \"ok\" }\n"));
        let mut client = proxy.connect();
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
        for _ in 0..2 {
            let answer = client.ask(post);
            assert_eq!((answer.text(), answer.closes()), ("ok", false));
        }
    });
}

#[test]
fn a_request_is_logged_under_its_own_client_and_not_that_of_the_one_before() {
    on_each_driver(|driver| {
        let log = std::env::temp_dir()
            .join(format!("baton-clients-{driver:?}-{}.log", std::process::id()));
        // What an earlier run left; there is most often nothing.
        let _result = std::fs::remove_file(&log);
        let text = format!(
            "{}[log]\naccess = \"{}\"\n",
            route("respond = { body = \"ok\" }\n"),
            log.display()
        );
        let proxy = Proxy::with(driver, &text);
        let mut client = proxy.connect();
        let first = "GET /1 HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n";
        assert_eq!(client.ask(first).status(), 200);
        assert_eq!(client.ask("GET /2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").status(), 400);
        let lines = || std::fs::read_to_string(&log).unwrap_or_default();
        wait_until("both are logged", || lines().lines().count() == 2);
        let text = lines();
        let clients: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(clients, ["198.51.100.1", "127.0.0.1"]);
        std::fs::remove_file(&log).expect("it was written");
    });
}
