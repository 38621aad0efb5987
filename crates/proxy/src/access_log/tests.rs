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

mod lines;
mod sinks;

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
