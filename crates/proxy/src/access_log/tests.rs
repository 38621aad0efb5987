use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, SyncSender};

use baton_http1::{FieldSlots, HeadLimits, RequestHead};

use super::*;
use crate::config::{AccessLogConfig, AccessLogTarget};
use crate::error::ProxyError;
use writer::Output;

/// A bound for what comes at once unless something is broken.
const SOON: Duration = Duration::from_secs(20);

const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

/// A directory that is gone with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("baton-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Directory(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

/// An output that everybody can look at.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("unpoisoned").clone();
        String::from_utf8(bytes).expect("what is written is UTF-8")
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sink into memory.
fn memory(format: AccessLogFormat) -> (Arc<Sink>, Memory) {
    let memory = Memory::default();
    let output = memory.clone();
    let open = Box::new(move || Ok(Box::new(output.clone()) as Output));
    let sink = Sink::start_with(format, 8, "memory".to_owned(), open).expect("a thread starts");
    (sink, memory)
}

fn log(sink: &Arc<Sink>) -> AccessLog {
    AccessLog::new(0, vec![Lines::default()].into(), Some(sink.clone()))
}

fn file_config(path: &Path) -> AccessLogConfig {
    AccessLogConfig {
        to: AccessLogTarget::File(path.to_owned()),
        format: AccessLogFormat::Combined,
    }
}

/// The address of a documentation network.
fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn parties(ended: Instant) -> Parties<'static> {
    Parties {
        ended,
        client: b"203.0.113.9",
        peer: address(50_000),
        route: Some("api"),
        upstream: Some("servers"),
        endpoint: Some(address(8_080)),
        cause: None,
    }
}

fn capture(record: &mut Record, head: &[u8]) {
    let limits =
        HeadLimits { head_bytes_max: 1 << 20, target_bytes_max: 1 << 19, ..HeadLimits::default() };
    let mut slots = FieldSlots::new();
    let head = RequestHead::parse(head, &limits, &mut slots);
    record.capture(&head.expect("a valid head").expect("a complete head"));
}

/// The lines of `heads`, written by one core.
fn lines(format: AccessLogFormat, heads: &[&[u8]]) -> Vec<String> {
    let (sink, memory) = memory(format);
    let log = log(&sink);
    for head in heads {
        let now = Instant::now();
        let mut record = log.begin(now);
        capture(&mut record, head);
        record.status = 200;
        log.finish(record, &parties(now));
    }
    drop(log);
    assert!(sink.stop(SOON));
    let text = memory.text();
    assert!(text.ends_with('\n'));
    text.lines().map(str::to_owned).collect()
}

/// A line read back as a reader of the Combined Log Format does.
fn combined_fields(line: &str) -> Vec<String> {
    let format = regex::Regex::new(concat!(
        r#"^(\S+) (\S+) (\S+) \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000)\] "#,
        r#""([^"]*)" (\d{3}) (\d+) "([^"]*)" "([^"]*)"$"#
    ));
    let format = format.expect("a regular expression");
    let fields = format.captures(line).unwrap_or_else(|| panic!("{line} is not of the format"));
    fields.iter().skip(1).map(|field| field.expect("a group").as_str().to_owned()).collect()
}

fn json_fields(line: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

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
    let documentation = include_str!("../../../../docs/operations-logs.md");
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

/// An output whose writes wait for a word, and say that they wait.
struct Blocked {
    entered: SyncSender<()>,
    go_on: Receiver<()>,
    memory: Memory,
}

impl Write for Blocked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _test_is_over = self.entered.try_send(());
        // An error is the end of the test: then all goes on.
        let _go_on = self.go_on.recv();
        self.memory.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn finish_one(log: &AccessLog) {
    let now = Instant::now();
    let mut record = log.begin(now);
    capture(
        &mut record,
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(4_000)).as_bytes(),
    );
    log.finish(record, &parties(now));
}

#[test]
fn a_disk_that_hangs_costs_lines_which_are_counted_and_never_blocks_a_core() {
    let (entered, is_entered) = mpsc::sync_channel(1);
    let (go_on, wait) = mpsc::sync_channel(1);
    let memory = Memory::default();
    let output = Mutex::new(Some(Blocked { entered, go_on: wait, memory: memory.clone() }));
    let open = Box::new(move || {
        let output = output.lock().expect("unpoisoned").take();
        Ok(Box::new(output.expect("it is opened once")) as Output)
    });
    let sink = Sink::start_with(AccessLogFormat::Combined, 4, "blocked".to_owned(), open);
    let sink = sink.expect("a thread starts");
    let counts: Arc<[Lines]> = vec![Lines::default()].into();
    let log = AccessLog::new(0, counts.clone(), Some(sink.clone()));
    finish_one(&log);
    log.flush(Instant::now());
    is_entered.recv_timeout(SOON).expect("the thread writes");
    for _ in 0..1_000 {
        finish_one(&log);
    }
    let (queued, dropped) = (counts[0].queued.read(), counts[0].dropped.read());
    // 12 or 13 lines fill a buffer, and the queue takes 4 of them.
    assert!((40..60).contains(&queued), "{queued} queued");
    assert!(dropped > 900, "{dropped} dropped");
    assert_eq!(sink.queued(), 4);
    // The rest waits for its turn instead of being dropped.
    log.flush(Instant::now());
    assert_eq!(counts[0].dropped.read(), dropped);
    assert!(!sink.stop(Duration::from_millis(1)), "the thread still waits for the disk");
    // What a core still has when the queue is full is dropped, too.
    drop(log);
    drop(go_on);
    assert!(sink.stop(SOON));
    assert_eq!(counts[0].queued.read() + counts[0].dropped.read(), 1_001);
    let written = sink.counts().written.load(Ordering::Relaxed);
    assert_eq!(memory.text().lines().count() as u64, written);
    assert_eq!(written, counts[0].queued.read());
}

#[test]
fn a_full_disk_is_counted_and_does_not_end_the_log() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let sink = Sink::start(&file_config(full), 1).expect("a device to write to");
    let log = log(&sink);
    (0..3).for_each(|_| finish_one(&log));
    drop(log);
    assert!(sink.stop(SOON));
    let counts = sink.counts();
    assert_eq!(counts.lost.load(Ordering::Relaxed), 3);
    assert_eq!(counts.written.load(Ordering::Relaxed), 0);
    assert!(counts.errors.load(Ordering::Relaxed) > 0);
}

/// An output that takes so many bytes and then none, until it gets more.
#[derive(Clone)]
struct Limited {
    left: Arc<Mutex<usize>>,
    memory: Memory,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut left = self.left.lock().expect("unpoisoned");
        if *left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // Never more than three bytes at once.
        let count = bytes.len().min(*left).min(3);
        *left -= count;
        self.memory.write(&bytes[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_that_a_full_disk_cut_is_completed_when_there_is_room_again() {
    for room in 0..20 {
        let memory = Memory::default();
        let left = Arc::new(Mutex::new(room));
        let output = Limited { left: left.clone(), memory: memory.clone() };
        let open = Box::new(move || Ok(Box::new(output.clone()) as Output));
        let mut writer = writer::Writer::open("limited".to_owned(), open).expect("it opens");
        let counts = sink::Counts::default();
        let batch = |text: &str| Batch { bytes: text.as_bytes().to_vec(), lines: 2 };
        writer.write(&batch("one-a\none-b\n"), &counts);
        writer.write(&batch("two-a\ntwo-b\n"), &counts);
        *left.lock().expect("unpoisoned") = usize::MAX;
        writer.write(&batch("six-a\nsix-b\n"), &counts);
        let text = memory.text();
        for line in text.lines() {
            assert_eq!(line.len(), 5, "{text:?} with room for {room}");
        }
        assert!(text.ends_with("six-a\nsix-b\n"));
        let (written, lost) = (counts.written.into_inner(), counts.lost.into_inner());
        assert_eq!(written, text.lines().count() as u64, "{text:?}");
        assert_eq!(written + lost, 6);
    }
}

#[test]
fn a_line_that_was_cut_is_given_up_with_its_file() {
    let memory = Memory::default();
    let left = Arc::new(Mutex::new(3));
    let output = Limited { left: left.clone(), memory: memory.clone() };
    let open = Box::new(move || Ok(Box::new(output.clone()) as Output));
    let mut writer = writer::Writer::open("limited".to_owned(), open).expect("it opens");
    let counts = sink::Counts::default();
    writer.write(&Batch { bytes: b"one-a\n".to_vec(), lines: 1 }, &counts);
    writer.reopen(&counts);
    assert_eq!((counts.written.into_inner(), counts.lost.into_inner()), (0, 1));
}

#[test]
fn a_target_that_cannot_be_opened_is_named_with_the_reason() {
    let directory = Directory::new("open");
    let missing = directory.file("none/access.log");
    let error =
        Sink::start(&file_config(&missing), 1).err().expect("no such directory").to_string();
    assert!(
        error.contains(&format!("cannot open the access log {}", missing.display())),
        "{error}"
    );
    let parent = directory.file("none");
    assert!(error.ends_with(&format!("; the directory {} does not exist", parent.display())));
    let error = Sink::start(&file_config(&directory.0), 1).err().expect("a directory").to_string();
    assert!(error.contains("directory"), "{error}");
}

#[test]
fn a_file_is_made_for_owner_and_group_and_appended_to() {
    let directory = Directory::new("append");
    let path = directory.file("access.log");
    for expected in [1, 2] {
        let sink = Sink::start(&file_config(&path), 1).expect("a file");
        let log = log(&sink);
        finish_one(&log);
        drop(log);
        assert!(sink.stop(SOON));
        assert_eq!(fs::read_to_string(&path).expect("the log").lines().count(), expected);
    }
    let mode = fs::metadata(&path).expect("the log").permissions().mode();
    // The umask may take more away.
    assert_eq!(mode & 0o777 & !0o640, 0);
}

#[test]
fn after_a_rotation_lines_go_to_the_new_file() {
    let directory = Directory::new("rotate");
    let (path, moved) = (directory.file("access.log"), directory.file("access.log.1"));
    let sink = Sink::start(&file_config(&path), 1).expect("a file");
    let log = log(&sink);
    finish_one(&log);
    log.flush(Instant::now());
    wait_until(|| sink.counts().written.load(Ordering::Relaxed) == 1);
    fs::rename(&path, &moved).expect("rotated");
    sink.reopen();
    wait_until(|| path.exists());
    finish_one(&log);
    finish_one(&log);
    drop(log);
    assert!(sink.stop(SOON));
    assert_eq!(fs::read_to_string(&moved).expect("the old log").lines().count(), 1);
    assert_eq!(fs::read_to_string(&path).expect("the new log").lines().count(), 2);
}

#[test]
fn with_a_new_file_that_cannot_be_opened_the_old_one_is_kept() {
    let memory = Memory::default();
    let (output, first) = (memory.clone(), Mutex::new(true));
    let open = Box::new(move || {
        let first = std::mem::replace(&mut *first.lock().expect("unpoisoned"), false);
        first.then(|| Box::new(output.clone()) as Output).ok_or(io::ErrorKind::NotFound.into())
    });
    let sink = Sink::start_with(AccessLogFormat::Combined, 4, "once".to_owned(), open);
    let sink = sink.expect("a thread starts");
    sink.reopen();
    let log = log(&sink);
    finish_one(&log);
    drop(log);
    assert!(sink.stop(SOON));
    assert_eq!(memory.text().lines().count(), 1);
}

#[test]
fn a_new_target_takes_over_between_two_lines() {
    let (old, old_text) = memory(AccessLogFormat::Combined);
    let (new, new_text) = memory(AccessLogFormat::Json);
    let log = log(&old);
    finish_one(&log);
    log.set_sink(Some(new.clone()));
    finish_one(&log);
    log.set_sink(None);
    assert!(!log.is_on());
    finish_one(&log);
    drop(log);
    assert!(old.stop(SOON) && new.stop(SOON));
    assert_eq!(old_text.text().lines().count(), 1);
    combined_fields(old_text.text().trim_end());
    assert_eq!(new_text.text().lines().count(), 1);
    json_fields(&new_text.text());
}

#[test]
fn each_of_many_lines_is_written_once_and_in_order() {
    let heads: Vec<String> = (0..5_000)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\nUser-Agent: {AGENT}\r\n\r\n"))
        .collect();
    let heads: Vec<&[u8]> = heads.iter().map(|head| head.as_bytes()).collect();
    // More than one buffer, less than the queue.
    let lines = lines(AccessLogFormat::Combined, &heads);
    assert_eq!(lines.len(), heads.len());
    for (n, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("\"GET /{n} HTTP/1.1\" 200 0 \"-\" \"{AGENT}\"")), "{line}");
    }
}

/// Waits for what another thread does soon.
fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < SOON, "it does not come");
        std::thread::yield_now();
    }
}

/// `cargo test --release -- --ignored --nocapture cost_of_a_line`
#[test]
#[ignore = "measures; for release builds"]
fn cost_of_a_line() {
    const RUNS: usize = 2_000;
    const RUN_LINES: u32 = 200;
    let head = format!(
        "GET /api/v1/users/12345/orders?limit=50&after=abcdef HTTP/1.1\r\nHost: www.example.com\r\n\
         Accept: */*\r\nAccept-Language: en\r\nAccept-Encoding: gzip, br\r\nUser-Agent: {AGENT}\r\n\
         Referer: https://www.example.com/users/12345\r\nCookie: a=b\r\nConnection: keep-alive\r\n\r\n"
    );
    let mut slots = FieldSlots::new();
    let head = RequestHead::parse(head.as_bytes(), &HeadLimits::default(), &mut slots);
    let head = head.expect("valid").expect("complete");
    for format in [AccessLogFormat::Combined, AccessLogFormat::Json] {
        let config = AccessLogConfig { to: AccessLogTarget::File("/dev/null".into()), format };
        let sink = Sink::start(&config, 1).expect("a device");
        let counts: Arc<[Lines]> = vec![Lines::default()].into();
        let log = AccessLog::new(0, counts.clone(), Some(sink.clone()));
        // Of many short runs, the fastest ones are those that nothing else interrupted.
        let mut runs: Vec<(Duration, Duration)> = (0..RUNS)
            .map(|_| {
                let started = Instant::now();
                for _ in 0..RUN_LINES {
                    let mut record = log.begin(started);
                    record.capture(std::hint::black_box(&head));
                    log.state.borrow_mut().texts.push({
                        let mut text = std::hint::black_box(record).into_text();
                        text.clear();
                        text
                    });
                }
                let captured = started.elapsed();
                let started = Instant::now();
                for _ in 0..RUN_LINES {
                    let mut record = log.begin(started);
                    record.capture(std::hint::black_box(&head));
                    record.head_at = Some(started);
                    record.connected_at = Some(started);
                    record.first_byte_at = Some(started);
                    (record.status, record.body_out, record.reused) = (200, 12_345, true);
                    log.finish(record, &parties(started));
                }
                (captured, started.elapsed())
            })
            .collect();
        runs.sort_by_key(|(_, whole)| *whole);
        let (captured, whole) = runs[RUNS / 4];
        let each = |time: Duration| time.as_nanos() / u128::from(RUN_LINES);
        let (queued, dropped) = (counts[0].queued.read(), counts[0].dropped.read());
        println!(
            "{format:?}: {} ns a line, {} of them to capture; {queued} queued, {dropped} dropped",
            each(whole),
            each(captured)
        );
        drop(log);
        assert!(sink.stop(SOON));
    }
}
