use super::*;
use crate::connection::plan_response;
use crate::edits::{FieldBlock, FieldName, FieldNames};
use crate::error::HeadError;
use crate::fields::FieldSlots;
use crate::fuzzing::{DATE, Verdict, request_verdict};
use crate::limits::HeadLimits;
use crate::request::RequestFacts;

/// What goes upstream for `input`, which is also checked in every cut.
fn forwarded(input: &str) -> String {
    match request_verdict(input.as_bytes(), &HeadLimits::default()) {
        Verdict::Accepted { encoded, .. } => String::from_utf8(encoded).expect("rows are UTF-8"),
        other => panic!("{input:?} is {other:?}"),
    }
}

/// What goes upstream for a GET with `fields`, without the start line, Host, and what is added.
fn kept(fields: &str) -> String {
    let out = forwarded(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    let start = "GET / HTTP/1.1\r\nHost: a\r\n".len();
    let added = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\n\
                 Via: 1.1 baton\r\n";
    let (kept, behind) = out[start..].split_once(added).expect("our fields follow the others");
    format!("{kept}|{}", behind.strip_suffix("\r\n").expect("the head ends"))
}

fn facts_of(input: &str) -> RequestFacts {
    let mut slots = FieldSlots::new();
    RequestHead::parse(input.as_bytes(), &HeadLimits::default(), &mut slots)
        .expect("no fault")
        .expect("complete")
        .facts
}

/// What goes to the client, which asked with `request`, for the head `response`.
fn answered(request: &str, response: &str) -> Result<String, HeadError> {
    let facts = facts_of(request);
    let mut slots = FieldSlots::new();
    let head =
        ResponseHead::parse(response.as_bytes(), &HeadLimits::default(), &mut slots, facts.method)?
            .expect("complete");
    let plan = plan_response(&facts, &head, false)?;
    let mut out = Vec::new();
    encode_response(&head, &plan, DATE, &Edits::NONE, &mut out);
    Ok(String::from_utf8(out).expect("rows are UTF-8"))
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_1_0: &str = "GET / HTTP/1.0\r\n\r\n";
const GET_1_0_KEEP: &str = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_TRAILERS: &str = "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n";
const GET_UPGRADE: &str =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

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

/// What goes upstream for `input` in a context that `change` makes.
fn changed<'a>(input: &str, change: impl FnOnce(&mut RequestContext<'a>)) -> String {
    let mut context = RequestContext::new(b"192.0.2.7", "http", b"fallback.test", b"baton");
    change(&mut context);
    let mut slots = FieldSlots::new();
    let head = RequestHead::parse(input.as_bytes(), &HeadLimits::default(), &mut slots)
        .expect("no fault")
        .expect("complete");
    let mut out = Vec::new();
    encode_request(&head, &context, &mut out);
    String::from_utf8(out).expect("rows are ASCII")
}

/// The fields called `name` in `head`, with their values.
fn values<'s>(head: &'s str, name: &str) -> Vec<&'s str> {
    let lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
    lines.filter(|line| line.0.eq_ignore_ascii_case(name)).map(|line| line.1).collect()
}

const FORWARDED: &str = "GET / HTTP/1.1\r\nHost: a:80\r\nX-Forwarded-For: 6.6.6.6\r\n\
     x-forwarded-for: , 7.7.7.7\r\nX_Forwarded_For: 8\r\nX-Forwarded-For:\r\n\
     X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nForwarded: for=6.6.6.6;by=\"a,b\"\r\n\
     X-Real-IP: 6\r\nX-Forwarded-Port: 443\r\n\r\n";

#[test]
fn the_word_of_a_trusted_proxy_is_continued_and_that_of_others_dropped() {
    let client = |peer_trusted| ClientFields { x_forwarded: true, forwarded: true, peer_trusted };
    let ours = "for=192.0.2.7;host=\"a:80\";proto=http";
    for (trusted, list, proto, host, forwarded) in [
        (false, "192.0.2.7", "http", "a:80", ours.to_owned()),
        (
            true,
            "6.6.6.6, , 7.7.7.7, 192.0.2.7",
            "https",
            "b",
            format!("for=6.6.6.6;by=\"a,b\", {ours}"),
        ),
    ] {
        let out = changed(FORWARDED, |context| context.client = client(trusted));
        assert_eq!(values(&out, "X-Forwarded-For"), [list]);
        assert_eq!(values(&out, "X-Forwarded-Proto"), [proto]);
        assert_eq!(values(&out, "X-Forwarded-Host"), [host]);
        assert_eq!(values(&out, "Forwarded"), [forwarded]);
        for name in ["X-Real-IP", "X-Forwarded-Port", "X_Forwarded_For"] {
            assert_eq!(values(&out, name), [""; 0], "{name}");
        }
    }
    // A trusted proxy that says nothing leaves it to us.
    let out = changed(GET, |context| context.client = client(true));
    assert_eq!(values(&out, "X-Forwarded-For"), ["192.0.2.7"]);
    assert_eq!(values(&out, "X-Forwarded-Proto"), ["http"]);
    assert_eq!(values(&out, "X-Forwarded-Host"), ["a"]);
    assert_eq!(values(&out, "Forwarded"), ["for=192.0.2.7;host=a;proto=http"]);
}

#[test]
fn a_family_of_client_fields_that_is_off_is_not_sent_by_whomever_it_came() {
    for peer_trusted in [false, true] {
        let off = ClientFields { x_forwarded: false, forwarded: false, peer_trusted };
        let out = changed(FORWARDED, |context| context.client = off);
        assert_eq!(out, "GET / HTTP/1.1\r\nHost: a:80\r\nVia: 1.1 baton\r\n\r\n");
    }
}

#[test]
fn forwarded_quotes_what_is_no_token_and_continues_only_whole_strings() {
    let forwarded = |peer: &'static [u8], said: &str| {
        let input = format!("GET / HTTP/1.1\r\nHost: [::1]\r\nForwarded: {said}\r\n\r\n");
        let out = changed(&input, |context| {
            context.peer = peer;
            context.client =
                ClientFields { x_forwarded: false, forwarded: true, peer_trusted: true };
        });
        values(&out, "Forwarded")[0].to_owned()
    };
    let ours = "for=\"[2001:db8::1]\";host=\"[::1]\";proto=http";
    for open in ["for=\"a", "\"", "for=\"a\\\"", "for=\"a\\"] {
        assert_eq!(forwarded(b"2001:db8::1", open), ours, "{open}");
    }
    for whole in ["for=\"a\\\"\"", "for=a, for=\"_b\""] {
        assert_eq!(forwarded(b"2001:db8::1", whole), format!("{whole}, {ours}"));
    }
    assert_eq!(forwarded(b"unknown", ""), "for=unknown;host=\"[::1]\";proto=http");
}

#[test]
fn target_and_host_may_be_others() {
    let out = changed("GET /a?b HTTP/1.1\r\nX: y\r\nHost: a\r\n\r\n", |context| {
        context.target = OriginForm::new(b"/c?b");
        context.host = Authority::new(b"origin:81");
    });
    assert_eq!(
        out,
        "GET /c?b HTTP/1.1\r\nHost: origin:81\r\nX: y\r\nX-Forwarded-For: 192.0.2.7\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nVia: 1.1 baton\r\n\r\n"
    );
    // The authority of an absolute-form target is what the client asked for.
    let out = changed("GET http://b/a HTTP/1.1\r\nHost: a\r\n\r\n", |context| {
        context.host = Authority::new(b"origin");
    });
    assert_eq!(values(&out, "Host"), ["origin"]);
    assert_eq!(values(&out, "X-Forwarded-Host"), ["b"]);
    // A request about the server as a whole has no path to rewrite.
    let out = changed("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", |context| {
        context.target = OriginForm::new(b"/c");
    });
    assert!(out.starts_with("OPTIONS * HTTP/1.1\r\nHost: a\r\n"));
}

#[test]
fn fields_are_removed_in_any_case_and_added_behind_the_others() {
    let name = |name: &str| FieldName::new(name).expect("not reserved");
    let remove = FieldNames::new(["x-a", "X-FORWARDED-PROTO", "Cookie"].map(name));
    let mut append = FieldBlock::default();
    append.push(&name("X-A"), b"new");
    append.push(&name("X-Forwarded-Proto"), b"https");
    let fields = "X-A: 1\r\nB: 2\r\nX-a:3\r\nC:4\r\ncookie: s\r\n";
    let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: 1\r\nX_A: 5\r\n\r\n");
    let edits = Edits { remove: &remove, append: &append };
    assert_eq!(
        changed(&input, |context| context.edits = edits),
        "GET / HTTP/1.1\r\nHost: a\r\nB: 2\r\nC: 4\r\nX_A: 5\r\nX-A: new\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: a\r\n\
         Via: 1.1 baton\r\nContent-Length: 1\r\n\r\n"
    );
}

#[test]
fn the_fields_of_an_answer_are_edited_but_for_its_framing() {
    let name = |name: &str| FieldName::new(name).expect("not reserved");
    let remove = FieldNames::new([name("server"), name("X-Powered-By")]);
    let mut append = FieldBlock::default();
    append.push(&name("Server"), b"x");
    let head = "HTTP/1.1 200 OK\r\nserver: y\r\nDate: d\r\nX-powered-by: z\r\nA: b\r\n\
                Trailer: T\r\nTransfer-Encoding: chunked\r\n\r\n";
    let facts = facts_of(GET);
    let mut slots = FieldSlots::new();
    let head =
        ResponseHead::parse(head.as_bytes(), &HeadLimits::default(), &mut slots, facts.method)
            .expect("no fault")
            .expect("complete");
    let plan = plan_response(&facts, &head, false).expect("a final response");
    let mut out = Vec::new();
    let edits = Edits { remove: &remove, append: &append };
    encode_response(&head, &plan, DATE, &edits, &mut out);
    assert_eq!(
        String::from_utf8(out).as_deref(),
        Ok("HTTP/1.1 200 OK\r\nDate: d\r\nA: b\r\nServer: x\r\n\
            Transfer-Encoding: chunked\r\n\r\n")
    );
}

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
    encode_interim(&head, &mut out);
    assert_eq!(out, b"beforeHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n");
}
