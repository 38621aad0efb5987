//! A `baton` process, its lines, and what the system says about it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::{Wire, wait_until};

/// A process that is killed when dropped.
pub(crate) struct Process {
    child: Child,
    /// What it has written to standard error.
    log: Arc<Mutex<String>>,
    /// Reads that until its end; none once it was waited for.
    reader: Option<JoinHandle<()>>,
}

/// A command that has ended.
pub(crate) struct Ended {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `baton` with `args` to its end, which is expected to come soon.
pub(crate) fn run(args: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_baton")).args(args).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    let exit = output.status.code().expect("no signal ended it");
    Ended { exit, stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Process {
    /// Starts `baton` with `args`.
    pub(crate) fn start(args: &[&str]) -> Process {
        Process::spawn(Command::new(env!("CARGO_BIN_EXE_baton")).args(args))
    }

    /// As [`Process::start`], with at most `descriptors` open files.
    pub(crate) fn start_with_descriptors(descriptors: u32, args: &[&str]) -> Process {
        let script = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
        let program = env!("CARGO_BIN_EXE_baton");
        Process::spawn(Command::new("sh").args(["-c", &script, program]).args(args))
    }

    fn spawn(command: &mut Command) -> Process {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let reader = thread::spawn({
            let log = log.clone();
            move || {
                for line in stderr.lines() {
                    let Ok(line) = line else { return };
                    let mut log = log.lock().expect("nobody panics with it");
                    log.push_str(&line);
                    log.push('\n');
                }
            }
        });
        Process { child, log, reader: Some(reader) }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("nobody panics with it").clone()
    }

    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_until(&format!("the log says {text:?}"), || self.log().contains(text));
    }

    /// The address it says that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.wait_for_log("listen=[");
        let log = self.log();
        let rest = log.split("listen=[").nth(1).expect("it was waited for");
        rest.split([']', ',']).next().and_then(|text| text.parse().ok()).expect("an address")
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address())
    }

    /// Sends the signal called `name`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &pid]).status();
        assert!(status.expect("sh starts").success(), "it is alive");
    }

    /// Waits for its end; all it has written to its log is there then.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("it ends", || {
            status = self.child.try_wait().expect("it is our child");
            status.is_some()
        });
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader does not panic");
        }
        status.expect("it was waited for")
    }

    /// What it wrote to standard output; to be read once, when it has ended.
    pub(crate) fn stdout(&mut self) -> String {
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().expect("it is piped");
        stdout.read_to_string(&mut text).expect("it writes text");
        text
    }

    /// The first bytes of its standard output, up to `end`, while it runs.
    pub(crate) fn stdout_until(&mut self, end: &str) -> String {
        let stdout = self.child.stdout.as_mut().expect("it is piped");
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(end.as_bytes()) {
            assert_eq!(stdout.read(&mut byte).expect("it is readable"), 1, "it ended");
            text.push(byte[0]);
        }
        String::from_utf8(text).expect("it writes text")
    }

    /// Its open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(directory).expect("it is alive").count()
    }

    /// Its resident memory, bytes.
    pub(crate) fn resident(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it is alive");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
        let kib = line.split_whitespace().nth(1).and_then(|text| text.parse::<usize>().ok());
        kib.expect("a number") * 1024
    }

    /// The CPU time it has used, to a clock tick of the system (10 ms).
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.expect("it is alive");
        // The name, which may hold anything, ends with the last parenthesis.
        let fields = stat.rsplit(") ").next().expect("fields");
        let ticks =
            fields.split(' ').skip(11).take(2).map(|text| text.parse::<u64>().expect("ticks"));
        Duration::from_millis(10 * ticks.sum::<u64>())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the log of the process:\n{}", self.log());
        }
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}
