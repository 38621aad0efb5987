//! Bodies of requests: echoed, counted, invited, dropped, refused.

use super::{Client, on_each_driver};

fn post(target: &str, fields: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

fn upload_answer(body: &[u8]) -> String {
    format!("{{\"bytes\":{},\"crc32\":\"{:08x}\"}}\n", body.len(), crc32fast::hash(body))
}

#[test]
fn a_body_that_breaks_its_framing_gets_400_and_the_end_of_the_connection() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    for target in ["/echo", "/upload", "/bytes/1"] {
        on_each_driver(|origin| {
            for body in ["x\r\n", "3\r\nabcd\r\n", "3\nabc", "1\r\na\r\n0\r\nbad trailer\r\n\r\n"] {
                let mut client = Client::connect(origin);
                client.send(post(target, chunked) + body);
                let answer = client.answer("POST");
                assert_eq!((answer.status, client.rest()), (400, vec![]), "{target} {body:?}");
            }
        });
    }
}

#[test]
fn a_body_that_is_cut_short_gets_400() {
    on_each_driver(|origin| {
        for (fields, body) in
            [("Content-Length: 5\r\n", "abcd"), ("Transfer-Encoding: chunked\r\n", "4\r\nabcd\r\n")]
        {
            let mut client = Client::connect(origin);
            client.send(post("/upload", fields) + body);
            client.end_sending();
            assert_eq!(client.answer("POST").status, 400, "{fields}");
            assert_eq!(client.rest(), b"");
        }
    });
}

#[test]
fn a_body_over_the_limit_of_its_page_gets_413() {
    on_each_driver(|origin| {
        for (target, length) in [("/echo", 1_048_577_u64), ("/upload", 10_737_418_241)] {
            let mut client = Client::connect(origin);
            client.send(post(target, &format!("Content-Length: {length}\r\n")));
            assert_eq!(client.answer("POST").status, 413, "{target}");
            assert_eq!(client.rest(), b"");
        }
        let mut client = Client::connect(origin);
        client.send(post("/echo", "Transfer-Encoding: chunked\r\n"));
        client.send("80000\r\n".to_owned() + &"a".repeat(0x8_0000) + "\r\n");
        client.send("80001\r\n".to_owned() + &"a".repeat(0x8_0001));
        assert_eq!(client.answer("POST").status, 413);
        assert_eq!(client.rest(), b"");
    });
}

#[test]
fn echo_gives_the_request_back_as_it_was_sent() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send(
            "pAtCh http://Other:81/echo/a%20b?c=%22\" HTTP/1.1\r\nhOST: h\r\nX-A:  1 \r\n\
             x-a: 2\r\nEmpty:\r\nBytes: \u{e9}\\\"\r\nContent-Length: 5\r\n\r\nbody\n",
        );
        let answer = client.answer("pAtCh");
        assert_eq!(answer.field("content-type"), Some("application/json"));
        assert_eq!(
            answer.text(),
            "{\"method\":\"pAtCh\",\"target\":\"http://Other:81/echo/a%20b?c=%22\\\"\",\
             \"version\":\"HTTP/1.1\",\"fields\":[[\"hOST\",\"h\"],[\"X-A\",\"1\"],[\"x-a\",\"2\"],\
             [\"Empty\",\"\"],[\"Bytes\",\"\u{e9}\\\\\\\"\"],[\"Content-Length\",\"5\"]],\
             \"body\":\"body\\n\",\"body_encoding\":\"text\",\"trailers\":[]}\n"
        );
    });
}

#[test]
fn echo_gives_bytes_that_are_not_text_in_a_form_that_is() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client
            .send(b"PUT /echo HTTP/1.1\r\nHost: h\r\nX: \xe9\r\nContent-Length: 2\r\n\r\n\xff\x00");
        let text = client.answer("PUT").text().to_owned();
        assert!(text.contains("[\"X\",\"\u{e9}\"]"), "{text}");
        assert!(text.contains("\"body\":\"/wA=\",\"body_encoding\":\"base64\""), "{text}");
    });
}

#[test]
fn echo_gives_trailers_back() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send(post("/echo", "Transfer-Encoding: chunked\r\n"));
        client.send("2;ext=1\r\nab\r\n1\r\nc\r\n0\r\nOne:  1 \r\nTwo:\r\n\r\n");
        let text = client.answer("POST").text().to_owned();
        assert!(text.contains("\"body\":\"abc\""), "{text}");
        assert!(text.contains("\"trailers\":[[\"One\",\"1\"],[\"Two\",\"\"]]"), "{text}");
    });
}

#[test]
fn echo_answers_every_method() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "x"] {
            let answer = client.ask(method, "/echo");
            let expected = format!("{{\"method\":\"{method}\",\"target\":\"/echo\"");
            assert!(answer.text().starts_with(&expected), "{method}");
        }
    });
}

#[test]
fn the_largest_body_echo_takes_comes_back_whole() {
    let body = "line of text\n".repeat(100_000)[..1_048_576].to_owned();
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send(post("/echo", "Content-Length: 1048576\r\n") + &body);
        let answer = client.answer("POST");
        let expected = format!("\"body\":\"{}\"", body.replace('\n', "\\n"));
        assert!(answer.text().contains(&expected));
    });
}

#[test]
fn upload_tells_length_and_checksum_whatever_the_framing() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        for length in [0, 1, 16_000, 65_536, 3_000_000] {
            let body: Vec<u8> = (0..length).map(|at: u32| (at % 251) as u8).collect();
            let fields = format!("Content-Length: {length}\r\n");
            client.send([post("/upload", &fields).as_bytes(), &body].concat());
            assert_eq!(client.answer("POST").text(), upload_answer(&body));

            client.send(post("/upload", "Transfer-Encoding: chunked\r\n"));
            for piece in body.chunks(70_000) {
                client.send(format!("{:X}\r\n", piece.len()));
                client.send([piece, b"\r\n"].concat());
            }
            client.send("0\r\nX-Trailer: 1\r\n\r\n");
            assert_eq!(client.answer("POST").text(), upload_answer(&body));
        }
        assert_eq!(client.ask("GET", "/upload").text(), "{\"bytes\":0,\"crc32\":\"00000000\"}\n");
    });
}

#[test]
fn a_client_that_holds_its_body_back_is_invited_to_send_it() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        for (target, framing, body) in [
            ("/echo", "Content-Length: 3\r\n", "abc"),
            ("/upload", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        ] {
            client.send(post(target, &format!("{framing}Expect: 100-continue\r\n")));
            assert_eq!(client.answer("POST").status, 100, "{target}");
            client.send(body);
            assert_eq!(client.answer("POST").status, 200, "{target}");
        }
    });
}

#[test]
fn a_client_that_does_not_wait_is_not_invited() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        let expecting = "Content-Length: 3\r\nExpect: 100-continue\r\n";
        client.send(post("/upload", expecting) + "abc" + &post("/bytes/1", expecting) + "abc");
        assert_eq!(client.answer("POST").text(), upload_answer(b"abc"));
        assert_eq!(client.answer("POST").body, b"a");
        client
            .send("POST /upload HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc");
        assert_eq!(client.answer("POST").text(), upload_answer(b"abc"));
    });
}

#[test]
fn a_page_that_wants_no_body_answers_a_client_that_holds_it_back_at_once() {
    on_each_driver(|origin| {
        for target in ["/bytes/1", "/none", "/early"] {
            let mut client = Client::connect(origin);
            client.send(post(target, "Content-Length: 3\r\nExpect: 100-continue\r\n"));
            let answer = client.answer("POST");
            assert!(matches!(answer.status, 200 | 404 | 413), "{target}");
            assert_eq!(answer.field("connection"), Some("close"), "{target}");
            assert_eq!(client.rest(), b"");
        }
    });
}

#[test]
fn a_body_that_is_too_long_is_refused_uninvited() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        client.send(post("/echo", "Content-Length: 1048577\r\nExpect: 100-continue\r\n"));
        assert_eq!(client.answer("POST").status, 413);
    });
}

#[test]
fn a_body_that_no_page_wants_is_read_away_before_the_next_request() {
    on_each_driver(|origin| {
        let mut client = Client::connect(origin);
        let body = "GET /bytes/9 HTTP/1.1\r\n\r\n".repeat(8_000);
        client.send(post("/bytes/1", &format!("Content-Length: {}\r\n", body.len())) + &body);
        client.request("GET", "/bytes/2");
        assert_eq!(client.answer("POST").body, b"a");
        assert_eq!(client.answer("GET").body, b"ab");
    });
}
