//! What a client says of itself, and what the endpoint is told instead.

use crate::support::{OK, Proxy, Upstream, on_each_driver};

#[test]
fn what_a_client_forges_or_nominates_does_not_reach_the_endpoint() {
    // Goal: the fields that name the client are ours. Method: every way to send or strip them:
    // by name, in other case, with underscores, and nominated in Connection.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let answer = proxy.ask(
            "GET / HTTP/1.1\r\nHost: a.example\r\n\
             X-Forwarded-For: 6.6.6.6\r\nx-forwarded-for: 6.6.6.7\r\nX-Forwarded-Proto: https\r\n\
             X-Forwarded-Host: evil\r\nX-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n\
             X_Forwarded_For: 6.6.6.6\r\nX_Forwarded-Proto: https\r\n\
             Connection: X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Via, Host, X-Own\r\n\
             X-Own: private\r\nX-Kept: public\r\n\r\n",
        );
        assert_eq!(answer.status(), 200);
        let request = upstream.only_request();
        assert_eq!(request.fields("X-Forwarded-For"), ["127.0.0.1"]);
        assert_eq!(request.fields("X-Forwarded-Proto"), ["http"]);
        assert_eq!(request.fields("X-Forwarded-Host"), ["a.example"]);
        assert_eq!(request.fields("Via"), ["1.1 baton"]);
        assert_eq!(request.fields("Host"), ["a.example"]);
        assert_eq!(request.fields("X-Kept"), ["public"]);
        assert_eq!(request.field("X-Own"), None);
        assert!(!request.head.contains("6.6.6"), "{}", request.head);
        assert!(!request.head.contains("https"), "{}", request.head);
    });
}

#[test]
fn a_via_that_came_stays_in_front_of_ours() {
    // Goal: Via names every hop in order. Method: a request that came through another proxy.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        proxy.ask("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 other\r\n\r\n");
        assert_eq!(upstream.only_request().fields("Via"), ["1.1 other", "1.1 baton"]);
    });
}

#[test]
fn an_absolute_target_decides_the_host_and_is_sent_on_in_origin_form() {
    // Goal: absolute-form (RFC 9112 §3.2.2). Method: a Host that differs from the target.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        proxy.ask("GET http://b.example:81/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let request = upstream.only_request();
        assert!(request.head.starts_with("GET /x?y HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(request.fields("Host"), ["b.example:81"]);
        assert_eq!(request.fields("X-Forwarded-Host"), ["b.example:81"]);
    });
}

#[test]
fn options_with_no_hop_left_is_answered_here() {
    // Goal: Max-Forwards (RFC 9110 §7.6.2). Method: with 0, and with 1, which arrives as 0.
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        let options =
            |hops| format!("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: {hops}\r\n\r\n");
        let answer = client.ask(&options(0));
        assert_eq!(answer.status(), 200);
        assert!(answer.field("Allow").is_some());
        assert_eq!(upstream.connections(), 0);
        assert_eq!(client.ask(&options(1)).text(), "ok");
        assert_eq!(upstream.only_request().fields("Max-Forwards"), ["0"]);
    });
}
