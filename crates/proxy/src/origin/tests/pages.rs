//! What each page answers.

use std::time::{Duration, Instant, SystemTime};

use super::{Client, on_each_driver};

/// The bytes of `/bytes` and `/chunked`: lines of 64.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |at: usize| if at % 64 == 63 { b'\n' } else { b'a' + (at % 65_536 % 26) as u8 };
    (0..length).map(byte).collect()
}

/// Below, at and above the sizes of an inline body and of a piece.
const LENGTHS: [usize; 9] = [0, 1, 100, 4_095, 4_096, 4_097, 65_536, 65_537, 1_000_003];

#[test]
fn an_unknown_path_gets_404_and_the_connection_goes_on() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        assert_eq!(client.ask("GET", "/no/such/page").status, 404);
        assert_eq!(client.ask("POST", "/wsx").status, 404);
        assert_eq!(client.ask("GET", "/bytes/1").status, 200);
    });
}

#[test]
fn a_bad_number_gets_400_with_the_range_and_the_connection_goes_on() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        let answer = client.ask("GET", "/status/99");
        assert_eq!(answer.status, 400);
        assert_eq!(answer.text(), "400 Bad Request: expected a number from 200 to 599\n");
        assert_eq!(client.ask("GET", "/bytes/1").status, 200);
    });
}

#[test]
fn the_index_names_every_page() {
    on_each_driver(|origin| {
        let answer = Client::connect(origin).ask("GET", "/");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("content-type"), Some("text/html; charset=utf-8"));
        for path in [
            "/bytes/",
            "/chunked/",
            "/delay/",
            "/spin?us=",
            "/status/",
            "/echo",
            "/upload",
            "/ws",
            "/early",
            "/hints",
            "/trailers",
        ] {
            assert!(answer.text().contains(path), "{path}");
        }
    });
}

#[test]
fn bytes_are_as_many_as_asked_for_and_announced() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        for length in LENGTHS {
            let answer = client.ask("GET", &format!("/bytes/{length}"));
            assert_eq!(answer.status, 200);
            assert_eq!(answer.field("content-length"), Some(length.to_string().as_str()));
            assert_eq!(answer.field("transfer-encoding"), None);
            assert!(answer.body == pattern(length), "{length} bytes");
        }
    });
}

#[test]
fn chunked_bytes_are_as_many_as_asked_for() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        for length in LENGTHS {
            let answer = client.ask("GET", &format!("/chunked/{length}"));
            assert_eq!(answer.status, 200);
            assert_eq!(answer.field("content-length"), None);
            assert!(answer.body == pattern(length), "{length} bytes");
            assert_eq!(answer.trailers, []);
        }
    });
}

#[test]
fn an_http_1_0_client_gets_chunked_bytes_up_to_the_end_of_its_connection() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send("GET /chunked/100000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let answer = client.answer("GET");
        assert_eq!(answer.field("transfer-encoding"), None);
        assert_eq!(answer.field("connection"), Some("close"));
        assert!(answer.body == pattern(100_000));
    });
}

#[test]
fn a_delayed_answer_comes_no_earlier_and_earlier_answers_do_not_wait_for_it() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        let start = Instant::now();
        client.request("GET", "/bytes/1");
        client.request("GET", "/delay/300");
        assert_eq!(client.answer("GET").body, b"a");
        assert!(start.elapsed() < Duration::from_millis(300), "the first answer was held back");
        assert_eq!(client.answer("GET").text(), "delayed\n");
        assert!(start.elapsed() >= Duration::from_millis(300));
    });
}

#[test]
fn spinning_takes_at_least_the_time_asked_for() {
    on_each_driver(|origin| {
        let start = Instant::now();
        assert_eq!(Client::connect(origin).ask("GET", "/spin?us=20000").text(), "spun\n");
        assert!(start.elapsed() >= Duration::from_micros(20_000));
    });
}

#[test]
fn a_status_comes_with_a_body_only_where_it_may_have_one() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        let rows = [
            (200, Some("7"), "200 OK\n"),
            (204, None, ""),
            (205, Some("0"), ""),
            (304, None, ""),
            (404, Some("14"), "404 Not Found\n"),
            (503, Some("24"), "503 Service Unavailable\n"),
            (599, Some("5"), "599 \n"),
        ];
        for (status, length, body) in rows {
            let answer = client.ask("GET", &format!("/status/{status}"));
            assert_eq!(answer.status, status);
            assert_eq!(answer.field("content-length"), length, "{status}");
            assert_eq!(answer.text(), body);
        }
    });
}

#[test]
fn early_refuses_the_body_unread_and_closes() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send("POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nfirst");
        let answer = client.answer("POST");
        assert_eq!(answer.status, 413);
        assert_eq!(answer.field("connection"), Some("close"));
        assert_eq!(client.rest(), b"");
    });
}

#[test]
fn hints_come_before_the_answer_but_not_to_an_http_1_0_client() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        let hints = client.ask("GET", "/hints");
        assert_eq!(hints.status, 103);
        assert_eq!(hints.field("link"), Some("</style.css>; rel=preload"));
        assert_eq!(client.answer("GET").status, 200);
        client.send("GET /hints HTTP/1.0\r\n\r\n");
        assert_eq!(client.answer("GET").status, 200);
    });
}

#[test]
fn the_trailer_holds_the_checksum_of_the_body() {
    on_each_driver(|origin| {
        let answer = Client::connect(origin).ask("GET", "/trailers");
        assert_eq!(answer.field("trailer"), Some("X-Checksum"));
        assert_eq!(answer.text(), "see the trailer\n");
        // CRC-32 of the body, by another implementation.
        assert_eq!(answer.trailers, [("X-Checksum".to_owned(), "6e9fb9b7".to_owned())]);
        let mut old = Client::connect(origin);
        old.send("GET /trailers HTTP/1.0\r\n\r\n");
        let answer = old.answer("GET");
        assert_eq!((answer.field("trailer"), answer.text()), (None, "see the trailer\n"));
    });
}

#[test]
fn an_options_request_about_the_server_gets_the_methods() {
    on_each_driver(|origin| {
        let answer = Client::connect(origin).ask("OPTIONS", "*");
        assert_eq!(answer.status, 204);
        assert_eq!(answer.field("allow"), Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    });
}

#[test]
fn head_gets_the_head_that_get_would_get_and_no_body() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        for target in [
            "/",
            "/bytes/100",
            "/bytes/1000000",
            "/chunked/100000",
            "/delay/1",
            "/spin?us=1",
            "/status/204",
            "/status/500",
            "/upload",
            "/trailers",
            "/none",
            "/bytes/x",
        ] {
            let [head, get] = ["HEAD", "GET"].map(|method| {
                let mut answer = client.ask(method, target);
                answer.fields.retain(|(name, _)| name != "Date");
                (answer.status, answer.fields)
            });
            assert_eq!(head, get, "{target}");
        }
        assert_eq!(client.ask("HEAD", "/echo").field("content-type"), Some("application/json"));
        assert_eq!(client.ask("HEAD", "/hints").status, 103);
        assert_eq!(client.answer("HEAD").status, 200);
        assert_eq!(client.ask("HEAD", "/ws").status, 405);
        assert_eq!(client.ask("HEAD", "/early").status, 413);
        assert_eq!(client.rest(), b"");
    });
}

#[test]
fn every_answer_tells_the_date() {
    on_each_driver(|origin| {
        let answer = Client::connect(origin).ask("GET", "/bytes/1");
        let date = answer.field("date").expect("there is a date");
        let date = httpdate::parse_http_date(date).expect("it is an HTTP date");
        let away = SystemTime::now().duration_since(date).expect("it is not in the future");
        assert!(away < Duration::from_secs(10), "{away:?}");
    });
}
