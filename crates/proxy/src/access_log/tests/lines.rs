//! What stands in a line, whatever clients send.

use super::*;

#[test]
fn what_a_client_says_never_makes_a_second_line_or_leaves_its_field() {
    let rows: [&[u8]; 7] = [
        b"GET /\" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /?a=\\x22\" HTTP/1.1\r\nHost: a\r\nUser-Agent: \"} {\"status\":\"1\"\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nUser-Agent: a\" 200 1 \"b\" \"c\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nReferer: \xff\xfe\xc3\xa9\xf0\x9f\x99\x82\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nReferer: \xc2\x85\xe2\x80\xa8x\tx\\\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nUser-Agent: ${jndi:ldap://x}\x80\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nUser-Agent: -\r\nUser-Agent: second\r\n\r\n",
    ];
    // Some of these heads are refused by the parser; they go the way of a refused line.
    let limits = HeadLimits::default();
    for format in [AccessLogFormat::Combined, AccessLogFormat::Json] {
        for head in rows {
            let (sink, memory) = memory(format);
            let log = log(&sink);
            let mut record = log.begin(Instant::now());
            let mut slots = FieldSlots::new();
            match RequestHead::parse(head, &limits, &mut slots) {
                Ok(Some(head)) => record.capture(&head),
                _ => record.capture_refused(head),
            }
            log.finish(record, &parties(Instant::now()));
            drop(log);
            assert!(sink.stop(SOON));
            let text = memory.text();
            let breaks = |char: char| char.is_control() || char == '\u{2028}';
            assert_eq!(text.find(breaks), Some(text.len() - 1), "{text:?}");
            match format {
                AccessLogFormat::Combined => drop(combined_fields(text.trim_end_matches('\n'))),
                AccessLogFormat::Json => assert!(!json_fields(&text).contains_key("}")),
            }
        }
    }
}

#[test]
fn the_first_line_of_a_refused_head_is_what_is_logged_of_it() {
    let rows: [(&[u8], &str); 7] = [
        (b"", "-"),
        (b"\r\n", "-"),
        (b"\x16\x03\x01\x02\x00\x01", "\\x16\\x03\\x01\\x02\\x00\\x01"),
        (b"GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1"),
        (b"\r\nGET  /  HTTP/1.1\nHost: a", "GET  /  HTTP/1.1"),
        (b"GET / HTTP/1.1 \r X\r\n", "GET / HTTP/1.1 \\x0D X"),
        (b"\"\" 200 1", "\\x22\\x22 200 1"),
    ];
    for (input, expected) in rows {
        for format in [AccessLogFormat::Combined, AccessLogFormat::Json] {
            let (sink, memory) = memory(format);
            let log = log(&sink);
            let mut record = log.begin(Instant::now());
            record.capture_refused(input);
            record.status = 400;
            log.finish(record, &parties(Instant::now()));
            drop(log);
            assert!(sink.stop(SOON));
            let text = memory.text();
            if format == AccessLogFormat::Combined {
                assert_eq!(combined_fields(text.trim_end())[4..6], [expected, "400"]);
                continue;
            }
            let fields = json_fields(&text);
            assert!(!fields.contains_key("method") && !fields.contains_key("target"));
            assert_eq!(fields.contains_key("refused_line"), expected != "-");
        }
    }
}

#[test]
fn long_texts_are_cut_visibly_and_the_line_stays_within_its_bound() {
    let long = "\u{e9}\"".repeat(20_000);
    let name = long.as_str();
    for format in [AccessLogFormat::Combined, AccessLogFormat::Json] {
        let (sink, memory) = memory(format);
        let log = log(&sink);
        for fill in ["a", "\"", "\\", "\u{e9}"] {
            let long = fill.repeat(20_000);
            let target =
                if fill == "\u{e9}" || fill == "\"" { "a".repeat(20_000) } else { long.clone() };
            let target = target.replace('\\', "%5C");
            let head = format!(
                "GET /{target} HTTP/1.1\r\nHost: a\r\nReferer: {long}\r\nUser-Agent: {long}\r\n\r\n"
            );
            let mut record = log.begin(Instant::now());
            capture(&mut record, head.as_bytes());
            record.set_request_id(long.as_bytes());
            record.body_out = u64::MAX;
            record.tunnel_out = u64::MAX;
            let error = ProxyError::Connect(address(1), io::Error::other(long.clone()));
            log.finish(
                record,
                &Parties {
                    client: long.as_bytes(),
                    peer: "[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:65535"
                        .parse()
                        .expect("an address"),
                    route: Some(name),
                    upstream: Some(name),
                    cause: Some(Cause::Failure(&error)),
                    ..parties(Instant::now())
                },
            );
        }
        drop(log);
        assert!(sink.stop(SOON));
        let text = memory.text();
        assert_eq!(text.lines().count(), 4);
        for line in text.lines() {
            assert!(line.len() < LINE_BYTES_MAX);
            match format {
                AccessLogFormat::Combined => {
                    let fields = combined_fields(line);
                    let request = fields[4].strip_suffix("... HTTP/1.1").expect("a cut target");
                    assert_eq!(request.len(), "GET ".len() + 4 * 1024);
                    assert!(fields[7].ends_with("...") && fields[8].ends_with("..."));
                }
                AccessLogFormat::Json => {
                    let fields = json_fields(line);
                    for name in
                        ["target", "referer", "user_agent", "request_id", "failure", "route"]
                    {
                        let text = fields[name].as_str().expect("a string");
                        assert!(text.ends_with("..."), "{name}: {text}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_combined_line_has_the_fields_that_readers_expect() {
    let (sink, memory) = memory(AccessLogFormat::Combined);
    let log = log(&sink);
    let started = Instant::now();
    log.state.borrow_mut().clock = WallClock::new(started, Duration::from_secs(971_186_136));
    let head = b"GET /apache_pb.gif?a=1 HTTP/1.0\r\nReferer: http://www.example.com/start.html\r\n\
        User-Agent: Mozilla/4.08 [en] (Win98; I ;Nav)\r\n\r\n";
    let mut record = log.begin(started);
    capture(&mut record, head);
    (record.status, record.body_out) = (200, 2_326);
    log.finish(record, &parties(started));
    let mut record = log.begin(started + Duration::from_secs(1));
    capture(&mut record, b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    log.finish(record, &parties(started));
    drop(log);
    assert!(sink.stop(SOON));
    assert_eq!(
        memory.text(),
        "203.0.113.9 - - [10/Oct/2000:13:55:36 +0000] \"GET /apache_pb.gif?a=1 HTTP/1.0\" 200 2326 \
         \"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"\n\
         203.0.113.9 - - [10/Oct/2000:13:55:37 +0000] \"OPTIONS * HTTP/1.1\" 000 0 \"-\" \"-\"\n"
    );
}

#[test]
fn a_json_line_has_named_fields_with_numbers_as_numbers() {
    let (sink, memory) = memory(AccessLogFormat::Json);
    let log = log(&sink);
    let started = Instant::now();
    let unix = Duration::new(971_186_136, 1_234_567);
    log.state.borrow_mut().clock = WallClock::new(started, unix);
    log.finish(full_record(&log, started), &full_parties(started, &reset()));
    let record = log.begin(started);
    let bare = Parties { route: None, upstream: None, endpoint: None, ..parties(started) };
    log.finish(record, &bare);
    drop(log);
    assert!(sink.stop(SOON));
    let text = memory.text();
    let found: Vec<_> = text.lines().map(json_fields).collect();
    let expected = serde_json::json!({
        "time": "2000-10-10T13:55:36.001234Z", "client": "203.0.113.9", "peer": "192.0.2.1:50000",
        "method": "POST", "target": "/a?b", "version": "HTTP/1.1", "host": "example.com",
        "referer": "r", "user_agent": AGENT, "request_id": "id-1",
        "status": 502, "bytes_in": 5, "bytes_out": 7, "tunnel_bytes_in": 1, "tunnel_bytes_out": 2,
        "duration_us": 10_000_001, "head_us": 100, "connect_us": 200, "first_byte_us": 300,
        "route": "api", "upstream": "servers", "endpoint": "[2001:db8::1]:443",
        "reused": true, "retries": 1, "core": 0, "fault": "upstream",
        "failure": "no answer from 192.0.2.1:8080: connection reset",
    });
    assert_eq!(serde_json::Value::Object(found[0].clone()), expected);
    let expected = serde_json::json!({
        "time": "2000-10-10T13:55:36.001234Z", "client": "203.0.113.9", "peer": "192.0.2.1:50000",
        "bytes_in": 0, "bytes_out": 0, "duration_us": 0, "core": 0,
    });
    assert_eq!(serde_json::Value::Object(found[1].clone()), expected);
}

fn reset() -> ProxyError {
    ProxyError::NoAnswer(address(8_080), io::ErrorKind::ConnectionReset.into())
}

/// A record with everything in it.
fn full_record(log: &AccessLog, started: Instant) -> Record {
    let mut record = log.begin(started);
    let head = format!(
        "POST /a?b HTTP/1.1\r\nHost: example.com\r\nReferer: r\r\nUser-Agent: {AGENT}\r\n\
         Content-Length: 5\r\n\r\n"
    );
    capture(&mut record, head.as_bytes());
    record.set_request_id(b"id-1");
    record.head_at = Some(started + Duration::from_micros(100));
    record.connected_at = Some(started + Duration::from_micros(300));
    record.first_byte_at = Some(started + Duration::from_micros(600));
    record.status = 502;
    (record.body_in, record.body_out) = (5, 7);
    (record.tunnel_in, record.tunnel_out) = (1, 2);
    (record.retries, record.reused) = (1, true);
    record
}

fn full_parties<'a>(started: Instant, error: &'a ProxyError) -> Parties<'a> {
    Parties {
        endpoint: Some("[2001:db8::1]:443".parse().expect("an address")),
        cause: Some(Cause::Failure(error)),
        ..parties(started + Duration::from_micros(10_000_001))
    }
}

#[test]
fn each_name_of_a_json_line_is_in_the_documentation_and_the_other_way_round() {
    let documentation = include_str!("../../../../../docs/operations-logs.md");
    let (_, table) = documentation.split_once("| name | ").expect("a table of the names");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut documented: Vec<&str> =
        rows.map(|row| row.split('`').nth(1).expect("a name in each row")).collect();
    let (sink, memory) = memory(AccessLogFormat::Json);
    let log = log(&sink);
    let now = Instant::now();
    log.finish(full_record(&log, now), &full_parties(now, &reset()));
    let mut refused = log.begin(now);
    refused.capture_refused(b"GET");
    log.finish(refused, &parties(now));
    drop(log);
    assert!(sink.stop(SOON));
    let text = memory.text();
    let lines: Vec<_> = text.lines().map(json_fields).collect();
    let mut written: Vec<&str> =
        lines.iter().flat_map(|line| line.keys().map(String::as_str)).collect();
    written.sort_unstable();
    written.dedup();
    documented.sort_unstable();
    assert_eq!(documented, written);
}
