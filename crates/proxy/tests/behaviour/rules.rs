//! What a route makes of a request and of its answer.

use crate::support::{GET, OK, Proxy, Upstream, on_each_driver};

/// One route to `upstream` with these further lines.
fn route(upstream: &Upstream, lines: &str) -> String {
    format!(
        "[[listen]]\naddr = \"$LISTEN\"\ntrusted_proxies = \"127.0.0.0/8\"\n[[route]]\nto = \"{}\"\n{lines}",
        upstream.address
    )
}

#[test]
fn the_path_is_stripped_or_replaced_by_whole_segments_and_the_query_stays() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &route(&upstream, "strip_prefix = \"/v1\"\n"));
        let mut client = proxy.connect();
        for path in ["/v1/a?b=/v1", "/v1", "/v1beta", "/other/v1"] {
            client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        let seen: Vec<String> = upstream.requests().iter().map(first_line).collect();
        assert_eq!(seen, ["/a?b=/v1", "/", "/v1beta", "/other/v1"]);

        let upstream = Upstream::answering(OK);
        let replace = "replace_prefix = { from = \"/old\", to = \"/new/place\" }\n";
        let proxy = Proxy::with(driver, &route(&upstream, replace));
        proxy.ask("GET /old/x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(first_line(&upstream.only_request()), "/new/place/x");
    });
}

/// The target of a request.
fn first_line(request: &crate::support::Message) -> String {
    request.head.split(' ').nth(1).expect("a target").to_owned()
}

#[test]
fn fields_are_taken_away_set_and_added_on_both_sides() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer: secret\r\nX-Same: 1\r\n\r\nok",
        );
        let lines = r#"
            request_headers = { set = { x-env = "prod", x-who = "{client_ip} {method} {path}" }, add = { x-more = "2" }, remove = ["X-Debug"] }
            response_headers = { set = { x-same = "2" }, remove = ["server"], add = { x-host = "{host}" } }
        "#;
        let proxy = Proxy::with(driver, &route(&upstream, lines));
        let answer = proxy.ask(
            "GET /p?q HTTP/1.1\r\nHost: a.test:81\r\nX-Env: forged\r\nx-debug: 1\r\nX-More: 1\r\n\r\n",
        );
        let request = upstream.only_request();
        assert_eq!(request.fields("x-env"), ["prod"]);
        assert_eq!(request.fields("x-who"), ["127.0.0.1 GET /p"]);
        assert_eq!(request.fields("x-more"), ["1", "2"]);
        assert!(request.field("x-debug").is_none());
        assert_eq!(answer.fields("x-same"), ["2"]);
        assert_eq!(answer.field("x-host"), Some("a.test"));
        assert!(answer.field("server").is_none());
    });
}

#[test]
fn what_a_route_takes_away_comes_neither_in_trailers_nor_with_an_interim_answer() {
    on_each_driver(|driver| {
        let (heads, began) = std::sync::mpsc::sync_channel(2);
        let (requests, ended) = std::sync::mpsc::sync_channel(2);
        let upstream = Upstream::start(move |mut link| {
            while let Ok(head) = link.head() {
                heads.send(()).expect("the test listens");
                requests.send(link.body(head).expect("a whole request")).expect("it listens");
                link.send(
                    "HTTP/1.1 103 Early\r\nServer: secret\r\nLink: </a>\r\n\r\n\
                     HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                     2\r\nok\r\n0\r\nServer: secret\r\nX-Sum: 1\r\n\r\n",
                );
            }
        });
        let lines = r#"
            request_headers = { set = { x-user = "nobody" } }
            response_headers = { remove = ["server"] }
        "#;
        let proxy = Proxy::with(driver, &route(&upstream, lines));
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\
                    Transfer-Encoding: chunked\r\nX_User: root\r\n\r\n2\r\nhi\r\n";
        let end = "0\r\nX-User: root\r\nx_user: root\r\nX-Sum: 2\r\n\r\n";
        let mut client = proxy.connect();
        // First in one piece, then with a wait before the trailers.
        for parts in [&[&*format!("{head}{end}")][..], &[head, end]] {
            client.send(parts[0]);
            began.recv().expect("the head comes first");
            parts[1..].iter().for_each(|part| client.send(part));
            let request = ended.recv().expect("then the rest");
            assert_eq!(request.fields("x-user"), ["nobody"]);
            assert_eq!((request.field("x_user"), &*request.trailers), (None, "X-Sum: 2\r\n\r\n"));
            let interim = client.head().expect("an interim answer");
            assert!(interim.starts_with("HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n"), "{interim}");
            assert_eq!(client.answer().trailers, "X-Sum: 1\r\n\r\n");
        }
    });
}

#[test]
fn a_redirect_names_the_same_place_elsewhere_and_no_endpoint_is_asked() {
    on_each_driver(|driver| {
        let text =
            "[[listen]]\naddr = \"$LISTEN\"\n[[route]]\nredirect = \"https://{host}{uri}\"\n";
        let proxy = Proxy::with(driver, text);
        let answer = proxy.ask("GET /x?y=1 HTTP/1.1\r\nHost: a.test:80\r\n\r\n");
        assert_eq!(answer.status(), 308);
        assert_eq!(answer.field("Location"), Some("https://a.test/x?y=1"));
    });
}

#[test]
fn a_trusted_proxy_is_believed_about_its_client_and_only_as_far_as_trust_goes() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let lines = "deny = \"203.0.113.0/24\"\n";
        let proxy = Proxy::with(driver, &route(&upstream, lines));
        let from =
            |chain: &str| format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {chain}\r\n\r\n");
        let mut client = proxy.connect();
        assert_eq!(client.ask(&from("203.0.113.7")).status(), 403);
        // What stands left of the first untrusted address is hearsay.
        assert_eq!(client.ask(&from("203.0.113.7, 198.51.100.1")).status(), 200);
        assert_eq!(client.ask(&from("198.51.100.1, 203.0.113.7, 127.0.0.9")).status(), 403);
        let request = upstream.only_request();
        let chain = request.fields("x-forwarded-for").join(", ");
        assert_eq!(chain, "203.0.113.7, 198.51.100.1, 127.0.0.1");
    });
}

#[test]
fn over_its_rate_a_client_gets_429_with_the_time_to_wait() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let lines = "rate_limit = { key = \"client-ip\", rate = \"1/h\", burst = 2 }\n";
        let proxy = Proxy::with(driver, &route(&upstream, lines));
        let mut client = proxy.connect();
        let statuses: Vec<u16> = (0..4).map(|_| client.ask(GET).status()).collect();
        assert_eq!(statuses, [200, 200, 429, 429]);
        let answer = client.ask(GET);
        let wait: u64 = answer.field("Retry-After").expect("a time").parse().expect("seconds");
        assert!((1..=3_600).contains(&wait), "{wait}");
        assert!(answer.field("RateLimit").is_some());
        // Another client is counted by itself.
        let other = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.9\r\n\r\n";
        assert_eq!(client.ask(other).status(), 200);
        assert_eq!(upstream.requests().len(), 3);
    });
}

#[test]
fn over_its_concurrency_a_route_answers_503_until_a_request_ends() {
    on_each_driver(|driver| {
        let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
        let released = std::sync::Mutex::new(released);
        let upstream = Upstream::start(move |mut link| {
            while link.request().is_some() {
                released.lock().expect("unpoisoned").recv().expect("the test releases");
                link.send(OK);
            }
        });
        let proxy = Proxy::with(driver, &route(&upstream, "concurrency = 1\n"));
        let mut first = proxy.connect();
        first.send(GET);
        crate::support::wait_until("it is under way", || upstream.requests().len() == 1);
        assert_eq!(proxy.ask(GET).status(), 503);
        release.send(()).expect("the endpoint waits");
        assert_eq!(first.answer().status(), 200);
        release.send(()).expect("there is room");
        assert_eq!(proxy.ask(GET).status(), 200);
    });
}

#[test]
fn an_error_has_the_page_of_its_route() {
    on_each_driver(|driver| {
        let page = std::env::temp_dir().join(format!("baton-502-{}.html", std::process::id()));
        std::fs::write(&page, "<p>soon").expect("a temporary file");
        let lines = format!("error_pages = {{ 502 = \"{}\" }}\n", page.display());
        let nobody = crate::support::upstream::nobody();
        let text = format!("[[listen]]\naddr = \"$LISTEN\"\n[[route]]\nto = \"{nobody}\"\n{lines}");
        let answer = Proxy::with(driver, &text).ask(GET);
        assert_eq!((answer.status(), answer.text()), (502, "<p>soon"));
        assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
    });
}
