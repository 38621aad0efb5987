//! Requests as such: refused, pipelined, cut into pieces, old.

use super::{Client, on_each_driver};

#[test]
fn a_request_that_is_refused_gets_its_status_and_the_end_of_the_connection() {
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(9_000));
    let long_head = format!("GET / HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n", "a".repeat(20_000));
    let endless_head = format!("GET / HTTP/1.1\r\nHost: h\r\nA: {}", "a".repeat(16_384));
    let rows = [
        ("HELLO\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: h\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nBad name: x\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\
             Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 1\r\n\r\nx", 417),
        ("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 501),
        ("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        (&long_target, 414),
        (&long_head, 431),
        (&endless_head, 431),
    ];
    on_each_driver(|origin| {
        for (request, status) in rows {
            let mut client = Client::connect(origin);
            client.send(request);
            let answer = client.answer("GET");
            let start = &request[..request.len().min(60)];
            assert_eq!(answer.status, status, "{start:?}");
            assert_eq!(answer.field("connection"), Some("close"), "{start:?}");
            assert_eq!(answer.field("allow").is_some(), status == 405, "{start:?}");
            assert!(answer.text().starts_with(&status.to_string()), "{start:?}");
            assert_eq!(client.rest(), b"", "{start:?}");
        }
    });
}

#[test]
fn the_requests_before_a_refused_one_are_answered_and_those_after_it_are_not() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send(
            "GET /bytes/1 HTTP/1.1\r\nHost: h\r\n\r\nGET /bytes/2 HTTP/1.1\r\nHost: h\r\n\r\n\
             GET /bytes/3 HTTP/1.1\r\n\r\nGET /bytes/4 HTTP/1.1\r\nHost: h\r\n\r\n",
        );
        assert_eq!(client.answer("GET").body, b"a");
        assert_eq!(client.answer("GET").body, b"ab");
        assert_eq!(client.answer("GET").status, 400);
        assert_eq!(client.rest(), b"");
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    const REQUESTS: usize = 2_000;
    let length = |number: usize| number * 37 % 5_000;
    let path = |number: usize| if number.is_multiple_of(3) { "chunked" } else { "bytes" };
    let request =
        |number| format!("GET /{}/{} HTTP/1.1\r\nHost: h\r\n\r\n", path(number), length(number));
    let requests: String = (0..REQUESTS).map(request).collect();
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        let mut writer = client.stream.try_clone().expect("a second handle");
        std::thread::scope(|scope| {
            // Apart from the reader, so that neither side waits for the other to read.
            scope.spawn(|| {
                std::io::Write::write_all(&mut writer, requests.as_bytes()).expect("all is read");
            });
            for number in 0..REQUESTS {
                assert_eq!(client.answer("GET").body.len(), length(number), "request {number}");
            }
        });
    });
}

#[test]
fn a_request_that_comes_byte_by_byte_is_answered_like_a_whole_one() {
    let request =
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send(request);
        let whole = client.answer("POST").body;
        for byte in request.bytes() {
            client.send([byte]);
        }
        assert_eq!(client.answer("POST").body, whole);
    });
}

#[test]
fn a_connection_lasts_as_long_as_its_client_wants() {
    let rows = [
        ("HTTP/1.0", "", Some("close")),
        ("HTTP/1.0", "Connection: keep-alive\r\n", Some("keep-alive")),
        ("HTTP/1.1", "", None),
        ("HTTP/1.1", "Connection: close\r\n", Some("close")),
    ];
    on_each_driver(|origin| {
        for (version, field, expected) in rows {
            let mut client = Client::connect(origin);
            client.send(format!("GET /bytes/1 {version}\r\nHost: h\r\n{field}\r\n"));
            let answer = client.answer("GET");
            assert_eq!(answer.field("connection"), expected, "{version} {field}");
            if expected == Some("close") {
                assert_eq!(client.rest(), b"");
            } else {
                assert_eq!(client.ask("GET", "/bytes/2").body, b"ab");
            }
        }
    });
}

#[test]
fn a_client_that_ends_its_sending_still_gets_its_answers() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.request("GET", "/bytes/1");
        client.request("GET", "/delay/50");
        client.end_sending();
        assert_eq!(client.answer("GET").body, b"a");
        assert_eq!(client.answer("GET").text(), "delayed\n");
        assert_eq!(client.rest(), b"");
    });
}

#[test]
fn a_client_that_ends_within_a_head_gets_the_end() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send("GET /bytes/1 HTTP/1.1\r\nHo");
        client.end_sending();
        assert_eq!(client.rest(), b"");
    });
}
