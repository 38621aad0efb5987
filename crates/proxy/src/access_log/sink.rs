//! Where lines go: a bounded queue of buffers, and the thread that writes them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, Thread};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;

use super::BUFFER_BYTES;
use super::writer::{Output, Writer};
use crate::config::{AccessLogConfig, AccessLogFormat, AccessLogTarget};

/// Buffers that wait to be written, for each core: 4 MiB, some tenths of a second of what a busy core
/// writes. When full: lines are dropped and counted.
const QUEUED_PER_CORE: usize = 64;

/// How long the thread sleeps at most when nobody wakes it.
const POLL: Duration = Duration::from_millis(100);

/// Who may read a log that is made: its owner and group, since it tells who asked for what.
const FILE_MODE: u32 = 0o640;

/// Lines as they go through the queue.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Whole lines.
    pub(super) bytes: Vec<u8>,
    pub(super) lines: u64,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.lines = 0;
    }
}

/// Where the lines of all cores go. Its thread ends, after it wrote what is queued, when the last
/// handle is dropped.
pub(crate) struct Sink {
    shared: Arc<Shared>,
    thread: Thread,
    format: AccessLogFormat,
}

/// What cores and the thread share.
pub(super) struct Shared {
    full: ArrayQueue<Batch>,
    empty: ArrayQueue<Vec<u8>>,
    reopen: AtomicBool,
    stop: AtomicBool,
    ended: Mutex<bool>,
    on_end: Condvar,
    pub(super) counts: Counts,
}

/// What the thread counts. Written by it alone, read from anywhere.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Lines written.
    pub(crate) written: AtomicU64,
    /// Lines lost to errors of writing.
    pub(crate) lost: AtomicU64,
    /// Writes that failed.
    pub(crate) errors: AtomicU64,
}

impl Sink {
    /// Opens the target and starts the thread. Blocks on the file: not to be called on a core.
    ///
    /// Error: its text says what cannot be opened, and why.
    pub(crate) fn start(config: &AccessLogConfig, cores: usize) -> io::Result<Arc<Sink>> {
        let target = config.to.clone();
        let name = match &target {
            AccessLogTarget::Stdout => "standard output".to_owned(),
            AccessLogTarget::File(path) => path.display().to_string(),
        };
        let open = move || open(&target).map(|file| Box::new(file) as Output);
        Self::start_with(config.format, cores * QUEUED_PER_CORE, name, Box::new(open))
    }

    /// As `start`, with room for `queued` buffers before whatever `open` opens.
    pub(super) fn start_with(
        format: AccessLogFormat,
        queued: usize,
        name: String,
        open: Box<dyn Fn() -> io::Result<Output> + Send>,
    ) -> io::Result<Arc<Sink>> {
        let writer = Writer::open(name, open)?;
        let shared = Arc::new(Shared::new(queued));
        let ended = Ended(shared.clone());
        let run = move || ended.0.run(writer);
        let thread = thread::Builder::new().name("access-log".to_owned()).spawn(run)?;
        let thread = thread.thread().clone();
        Ok(Arc::new(Sink { shared, thread, format }))
    }

    pub(crate) fn format(&self) -> AccessLogFormat {
        self.format
    }

    /// What its thread counts, from its start on.
    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Buffers that wait to be written.
    #[cfg(test)]
    pub(crate) fn queued(&self) -> usize {
        self.shared.full.len()
    }

    /// Opens the file anew, soon: it was moved away by whoever rotates it. Does not wait.
    pub(crate) fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Writes what the cores have handed over, for `bound` at most; `false`: it took longer.
    /// What they hand over from here on may be lost. Blocks: not to be called on a core.
    pub(crate) fn stop(&self, bound: Duration) -> bool {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.unpark();
        let ended = self.shared.ended.lock().expect("no holder of this lock panics");
        let wait = self.shared.on_end.wait_timeout_while(ended, bound, |ended| !*ended);
        *wait.expect("no holder of this lock panics").0
    }

    /// Whether buffers that are not full are welcome.
    pub(super) fn has_room(&self) -> bool {
        self.shared.full.len() < self.shared.full.capacity() / 2
    }

    /// Hands lines over and wakes the thread; gives them back if the queue is full.
    pub(super) fn send(&self, batch: Batch) -> Result<(), Batch> {
        self.shared.full.push(batch)?;
        // A system call only where the thread sleeps.
        self.thread.unpark();
        Ok(())
    }

    /// A buffer with room for `BUFFER_BYTES`, one that was used before if there is one.
    pub(super) fn empty_buffer(&self) -> Vec<u8> {
        let used = self.shared.empty.pop();
        used.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Shared {
    fn new(queued: usize) -> Shared {
        let queued = queued.max(2);
        Shared {
            full: ArrayQueue::new(queued),
            empty: ArrayQueue::new(queued),
            reopen: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            ended: Mutex::new(false),
            on_end: Condvar::new(),
            counts: Counts::default(),
        }
    }

    /// The thread: writes until it is told to stop and nothing is queued.
    fn run(&self, mut writer: Writer) {
        loop {
            // Read before the queue: what was handed over before the stop is written.
            let stopping = self.stop.load(Ordering::Acquire);
            if self.reopen.swap(false, Ordering::AcqRel) {
                writer.reopen(&self.counts);
            }
            // One queue of buffers at most, then a look at what else is asked for.
            let wrote = (0..self.full.capacity()).take_while(|_| self.write_one(&mut writer));
            if wrote.count() > 0 {
                continue;
            }
            if stopping {
                writer.end(&self.counts);
                return;
            }
            thread::park_timeout(POLL);
        }
    }

    /// Writes one buffer and gives it back; `false` if none is queued.
    fn write_one(&self, writer: &mut Writer) -> bool {
        let Some(batch) = self.full.pop() else { return false };
        writer.write(&batch, &self.counts);
        let mut bytes = batch.bytes;
        bytes.clear();
        // With enough empty ones about, it is freed.
        let _enough = self.empty.push(bytes);
        true
    }
}

/// Says that the thread has ended, also by a panic.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = true;
        self.0.on_end.notify_all();
    }
}

/// Opens the target for appending, unbuffered.
fn open(target: &AccessLogTarget) -> io::Result<File> {
    match target {
        AccessLogTarget::Stdout => {
            let own = io::stdout().as_fd().try_clone_to_owned();
            own.map(File::from).map_err(|error| explain(error, "standard output", ""))
        }
        AccessLogTarget::File(path) => open_file(path),
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    let name = path.display().to_string();
    let hint = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            format!("; the directory {} does not exist", parent.display())
        }
        _ => String::new(),
    };
    // The open of a pipe waits until somebody reads it.
    if fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is a named pipe");
        return Err(explain(error, &name, "; write to standard output and pipe that"));
    }
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(FILE_MODE).open(path);
    opened.map_err(|error| explain(error, &name, &hint))
}

fn explain(error: io::Error, name: &str, hint: &str) -> io::Error {
    io::Error::new(error.kind(), format!("cannot open the access log {name}: {error}{hint}"))
}
