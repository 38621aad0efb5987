//! Where lines go: files, full disks, rotation.

use super::*;

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
