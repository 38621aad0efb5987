//! What goes upstream.

use super::*;

#[test]
fn what_connection_names_is_removed_but_for_fields_of_every_recipient() {
    assert_eq!(kept("x-HOP: 1\r\nA: b\r\nConnection: keep-alive\r\nConnection: X-hop\r\n"), {
        "A: b\r\n|"
    });
    assert_eq!(kept("Connection: a, ,b\r\nB: 1\r\nA: 2\r\nb: 3\r\nC: 4\r\n"), "C: 4\r\n|");
    let protected = "Authorization: x\r\nCookie: s=1\r\nCache-Control: no-store\r\n\
                     Content-Type: a/b\r\nVia: 1.1 x\r\n";
    let nominated = format!(
        "{protected}Connection: Authorization, Cookie, Cache-Control, Content-Type, Via, Host\r\n"
    );
    assert_eq!(kept(&nominated), format!("{protected}|"));
    let ours = "Connection: X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, close\r\n";
    assert_eq!(kept(ours), "|");
}

#[test]
fn fields_of_one_connection_are_removed() {
    let fields = "A: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\n\
                  Upgrade: websocket\r\nHTTP2-Settings: AAA\r\nProxy: http://x\r\nB: 2\r\n";
    assert_eq!(kept(fields), "A: 1\r\nB: 2\r\n|");
}

#[test]
fn what_a_client_says_about_itself_is_removed() {
    let fields = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7\r\nForwarded: for=6\r\n\
                  x-forwarded-proto: https\r\nX-Forwarded-Host: evil\r\nX-Real-IP: 6\r\n\
                  X-Forwarded-Port: 1\r\nX-Forwarded-Server: x\r\nX_Forwarded_For: 6\r\n\
                  X-Real_IP: 6\r\nX-Forwarded-Fo: kept\r\n";
    assert_eq!(kept(fields), "X-Forwarded-Fo: kept\r\n|");
}

#[test]
fn order_names_and_values_stay_and_whitespace_becomes_one_space() {
    assert_eq!(
        kept("x-A:1\r\nB:  2\r\nC: 3 \t\r\nD:\t4\r\nE:\r\nF: \r\ng: a\tb \"c\"\r\nh: i\r\n"),
        "x-A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: \r\nF: \r\ng: a\tb \"c\"\r\nh: i\r\n|"
    );
}

#[test]
fn the_framing_field_is_written_anew() {
    assert_eq!(kept("A: 1\r\ncontent-length:  007\r\nB: 2\r\n"), {
        "A: 1\r\nB: 2\r\n|Content-Length: 7\r\n"
    });
    assert_eq!(kept("Content-Length: 0\r\n"), "|Content-Length: 0\r\n");
    assert_eq!(kept("transfer-encoding: CHUNKED\r\nTrailer: Digest\r\n"), {
        "Trailer: Digest\r\n|Transfer-Encoding: chunked\r\n"
    });
}

#[test]
fn options_that_hold_for_the_next_hop_are_renewed() {
    assert_eq!(kept("TE: gzip, trailers\r\nConnection: TE\r\n"), {
        "|TE: trailers\r\nConnection: TE\r\n"
    });
    assert_eq!(kept("Connection: Upgrade\r\nUpgrade: foo, h2c\r\nUpgrade: bar/1\r\n"), {
        "|Upgrade: foo, bar/1\r\nConnection: upgrade\r\n"
    });
    assert_eq!(kept("TE: trailers\r\nConnection: Upgrade, TE\r\nUpgrade: websocket\r\n"), {
        "|Upgrade: websocket\r\nTE: trailers\r\nConnection: upgrade, TE\r\n"
    });
    assert_eq!(
        kept("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"),
        "|"
    );
}

#[test]
fn an_expectation_travels_only_with_a_body_to_wait_for() {
    assert_eq!(kept("Expect: 100-continue\r\nContent-Length: 5\r\n"), {
        "Expect: 100-continue\r\n|Content-Length: 5\r\n"
    });
    assert_eq!(kept("Expect: 100-continue\r\n"), "|");
}

#[test]
fn max_forwards_is_lowered_by_one() {
    let out = forwarded("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 10\r\nA: b\r\n\r\n");
    assert!(
        out.contains("Host: a\r\nA: b\r\nX-Forwarded-For")
            && out.contains("\r\nMax-Forwards: 9\r\n")
    );
    assert_eq!(kept("Max-Forwards: 10\r\n"), "Max-Forwards: 10\r\n|");
}

#[test]
fn the_target_is_sent_in_origin_form() {
    let start = |line: &str| {
        let out = forwarded(&format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut lines = out.split("\r\n");
        let line = lines.next().expect("a start line");
        (line.to_owned(), lines.next().expect("a first field").to_owned())
    };
    let sent = |line: &str, host: &str| (format!("{line} HTTP/1.1"), format!("Host: {host}"));
    assert_eq!(start("GET /x?y"), sent("GET /x?y", "a"));
    assert_eq!(start("GET //x/../%00"), sent("GET //x/../%00", "a"));
    assert_eq!(start("GET http://b/x?y"), sent("GET /x?y", "b"));
    assert_eq!(start("GET HTTPS://B:1"), sent("GET /", "B:1"));
    assert_eq!(start("GET http://b?y"), sent("GET /?y", "b"));
    assert_eq!(start("OPTIONS *"), sent("OPTIONS *", "a"));
    assert_eq!(start("OPTIONS http://b"), sent("OPTIONS *", "b"));
    assert_eq!(start("OPTIONS http://b/"), sent("OPTIONS /", "b"));
}

#[test]
fn an_http_1_0_request_is_sent_on_as_http_1_1() {
    assert_eq!(
        forwarded("GET / HTTP/1.0\r\nA: b\r\nConnection: keep-alive\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: fallback.test\r\nA: b\r\nX-Forwarded-For: 192.0.2.7\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Host: fallback.test\r\nVia: 1.0 baton\r\n\r\n"
    );
    let out = forwarded("GET / HTTP/1.0\r\nHost: b\r\n\r\n");
    assert!(out.starts_with("GET / HTTP/1.1\r\nHost: b\r\nX-Forwarded-For"));
}

#[test]
fn via_of_others_stays_in_front_of_ours() {
    let out = forwarded("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 x, 1.0 y\r\n\r\n");
    assert!(out.contains("Via: 1.1 x, 1.0 y\r\n") && out.contains("Via: 1.1 baton\r\n"));
    assert!(out.find("Via: 1.1 x") < out.find("Via: 1.1 baton"));
}
