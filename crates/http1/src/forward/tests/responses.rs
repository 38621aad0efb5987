//! What goes to the client.

use super::*;

#[test]
fn a_response_loses_what_concerns_one_connection() {
    assert_eq!(
        answered(
            GET,
            "HTTP/1.1 200 Fine\r\nServer: x\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n\
             Keep-Alive: 5\r\nDate: then\r\nUpgrade: h2c\r\nContent-Length: 02\r\n\
             X-Forwarded-For: kept\r\n\r\n"
        )
        .as_deref(),
        Ok("HTTP/1.1 200 Fine\r\nServer: x\r\nDate: then\r\nX-Forwarded-For: kept\r\n\
            Content-Length: 2\r\n\r\n")
    );
}

#[test]
fn a_response_without_date_gets_one() {
    assert_eq!(
        answered(GET, "HTTP/1.0 200\r\nContent-Length: 2\r\n\r\n").as_deref(),
        Ok("HTTP/1.1 200 \r\nDate: Tue, 11 Jun 2024 09:12:45 GMT\r\nContent-Length: 2\r\n\r\n")
    );
}

#[test]
fn a_response_without_length_is_sent_in_chunks_or_until_close() {
    let chunked = "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let until_close = "HTTP/1.1 200 OK\r\nDate: x\r\n\r\n";
    for response in [chunked, until_close] {
        assert_eq!(answered(GET, response).as_deref(), Ok(chunked));
        for request in [GET_1_0, GET_1_0_KEEP] {
            assert_eq!(
                answered(request, response).as_deref(),
                Ok("HTTP/1.1 200 OK\r\nDate: x\r\nConnection: close\r\n\r\n")
            );
        }
    }
}

#[test]
fn the_client_is_told_whether_its_connection_persists() {
    let response = "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\n";
    let connection = |request: &str| {
        let out = answered(request, response).expect("the row is valid");
        let behind = out.split_once("Content-Length: 2\r\n").expect("the length stays").1;
        behind.to_owned()
    };
    assert_eq!(connection(GET), "\r\n");
    assert_eq!(connection(GET_1_0), "Connection: close\r\n\r\n");
    assert_eq!(connection(GET_1_0_KEEP), "Connection: keep-alive\r\n\r\n");
    assert_eq!(connection("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), {
        "Connection: close\r\n\r\n"
    });
}

#[test]
fn content_length_stays_on_answers_to_head_and_304_and_goes_from_204() {
    let length = |request: &str, status: &str| {
        let head = format!("HTTP/1.1 {status}\r\nDate: x\r\nContent-Length: 10\r\n\r\n");
        let out = answered(request, &head).expect("the row is valid");
        out.contains("Content-Length: 10\r\n")
    };
    assert!(length(HEAD, "200 OK"));
    assert!(length(GET, "304 Not Modified"));
    assert!(!length(GET, "204 No Content"));
    assert!(!length(HEAD, "204 No Content"));
    // Neither is made up where there was none.
    let chunked = "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(answered(HEAD, chunked).as_deref(), Ok("HTTP/1.1 200 OK\r\nDate: x\r\n\r\n"));
    let bare = "HTTP/1.1 304 Not Modified\r\nDate: x\r\n\r\n";
    assert_eq!(answered(GET, bare).as_deref(), Ok(bare));
}

#[test]
fn trailer_is_announced_only_where_trailers_are_sent() {
    let head = "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let sent = |request: &str| {
        answered(request, head).expect("the row is valid").contains("Trailer: X-T\r\n")
    };
    assert!(sent(GET_TRAILERS));
    assert!(!sent(GET));
}

#[test]
fn a_switch_of_protocols_is_passed_on_if_it_was_asked_for() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nDate: x\r\nConnection: Upgrade\r\n\
                  Upgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n";
    assert_eq!(answered(GET, switch), Err(HeadError::UpgradeNotAsked));
    let nothing = "HTTP/1.1 101 Switching Protocols\r\nDate: x\r\n\r\n";
    assert_eq!(answered(GET_UPGRADE, nothing), Err(HeadError::UpgradeNotAsked));
    let http = "HTTP/1.1 101 Switching Protocols\r\nDate: x\r\nUpgrade: h2c\r\n\r\n";
    assert_eq!(answered(GET_UPGRADE, http), Err(HeadError::UpgradeNotAsked));
    assert_eq!(
        answered(GET_UPGRADE, switch).as_deref(),
        Ok("HTTP/1.1 101 Switching Protocols\r\nDate: x\r\nSec-WebSocket-Accept: y\r\n\
            Upgrade: websocket\r\nConnection: upgrade\r\n\r\n")
    );
}

#[test]
fn a_demand_to_upgrade_keeps_its_protocols() {
    let head = "HTTP/1.1 426 Upgrade Required\r\nDate: x\r\nUpgrade: h2c, foo\r\n\
                Connection: upgrade\r\nContent-Length: 0\r\n\r\n";
    let line = "HTTP/1.1 426 Upgrade Required\r\nDate: x\r\nContent-Length: 0\r\nUpgrade: foo\r\n";
    assert_eq!(answered(GET, head), Ok(format!("{line}Connection: upgrade\r\n\r\n")));
    assert_eq!(answered(GET_1_0, head), Ok(format!("{line}Connection: upgrade, close\r\n\r\n")));
}

#[test]
fn an_interim_response_has_no_framing() {
    let interim = "HTTP/1.0 103 Early\r\nLink: </a>\r\nConnection: X\r\nX: y\r\n\
                   Content-Length: 5\r\n\r\n";
    let mut slots = FieldSlots::new();
    let limits = HeadLimits::default();
    let method = crate::MethodKind::Get;
    let head = ResponseHead::parse(interim.as_bytes(), &limits, &mut slots, method)
        .expect("no fault")
        .expect("complete");
    let mut out = b"before".to_vec();
    encode_interim(&head, Edits::NONE.remove, &mut out);
    assert_eq!(out, b"beforeHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n");
    out.clear();
    let remove = FieldNames::new([FieldName::new("link").expect("valid")]);
    encode_interim(&head, &remove, &mut out);
    assert_eq!(out, b"HTTP/1.1 103 Early\r\n\r\n");
}
