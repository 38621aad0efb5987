//! What goes on with edits, another target or host, and the word of trusted proxies.

use super::*;

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
        "GET / HTTP/1.1\r\nHost: a\r\nB: 2\r\nC: 4\r\nX-A: new\r\n\
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
