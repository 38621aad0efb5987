//! Answers that begin before their request has ended.

use crate::support::{End, OK, Proxy, Upstream, on_each_driver};

const LONG_POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n";
const REFUSAL: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nfull";

#[test]
fn a_refusal_sent_before_the_body_reaches_the_client_that_still_sends() {
    // Goal: the client reads the answer although its upload breaks. Method: the endpoint answers
    // at the head and closes; with body bytes unread that is a reset, without it is in order.
    on_each_driver(|driver| {
        for unread in [false, true] {
            let upstream = Upstream::start(move |mut link| {
                link.head().expect("a request");
                if unread {
                    // So many that they cannot have come with the head.
                    link.bytes(1 << 20).expect("some of the body");
                }
                link.send(REFUSAL);
            });
            let proxy = Proxy::start(driver, &[upstream.address], "");
            let mut client = proxy.connect();
            client.send(LONG_POST);
            for _ in 0..64 {
                if unread && client.try_send([b'x'; 64 * 1024]).is_err() {
                    break;
                }
            }
            let answer = client.answer();
            assert_eq!(answer.status(), 413, "unread: {unread}");
            assert_eq!(answer.text(), "full");
            assert!(answer.closes());
        }
    });
}

#[test]
fn a_client_whose_body_follows_an_early_answer_is_not_reset() {
    // Goal: the connection ends only when the client knows its answer. Method: the body, which was
    // not there yet when the answer went out, is sent after it; then both sides end in order.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.head().expect("a request");
            link.send(REFUSAL);
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n");
        proxy.wait_for_count("answers_4xx", 1);
        let head = client.head().expect("the answer");
        client.send([b'x'; 30_000]);
        assert_eq!(client.body(head).expect("its body").text(), "full");
        client.finish_sending();
        assert_eq!(client.rest(), (Vec::new(), End::Orderly));
    });
}

#[test]
fn an_answer_of_an_endpoint_that_goes_on_reading_comes_before_the_request_has_ended() {
    // Goal: both directions at once. Method: the client sends the next piece of its body only when
    // it has read the answer to the last one.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.head().expect("a request");
            link.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            while let Ok(Some(chunk)) = link.chunk() {
                let mut echo = format!("{:x}\r\n", chunk.len()).into_bytes();
                echo.extend(chunk);
                echo.extend(b"\r\n");
                link.send(echo);
            }
            link.send("0\r\n\r\n");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let head = client.head().expect("the head of the answer");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        for piece in ["one", "two", "three"] {
            client.send(format!("{:x}\r\n{piece}\r\n", piece.len()));
            assert_eq!(client.chunk().expect("an echo"), Some(piece.as_bytes().to_vec()));
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.chunk().expect("the last chunk"), None);
    });
}

#[test]
fn the_endpoint_of_an_early_answer_is_not_used_again_before_its_request_has_ended() {
    // Goal: no request is sent into the body of another. Method: a whole answer at the head of a
    // request whose body never ends, then a second client.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            while link.head().is_ok() {
                if link.try_send(OK).is_err() {
                    return;
                }
            }
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        let answer = client.ask(LONG_POST);
        assert_eq!(answer.status(), 200);
        assert!(answer.closes());
        assert_eq!(proxy.ask(crate::support::GET).status(), 200);
        assert_eq!(upstream.connections(), 2);
        assert_eq!(proxy.count("upstream_reuses"), 0);
    });
}

#[test]
fn an_endpoint_that_stops_reading_and_says_nothing_is_a_502() {
    // Goal: an upload into a closed connection ends. Method: the endpoint closes within the body.
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.head().expect("a request");
        });
        let proxy = Proxy::start(driver, &[upstream.address], "");
        let mut client = proxy.connect();
        client.send(LONG_POST);
        while client.try_send([b'x'; 64 * 1024]).is_ok() && proxy.count("upstream_no_answer") == 0 {
        }
        let answer = client.answer();
        assert_eq!(answer.status(), 502);
        assert!(answer.closes());
        assert_eq!(upstream.connections(), 1);
    });
}
