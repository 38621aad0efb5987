//! Writing of lines, and what becomes of them when it fails.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::sink::{Batch, Counts};

/// What is written to: a file, or what a test puts in its place.
pub(super) type Output = Box<dyn Write + Send>;

/// Pause before another try where a pipe or terminal takes nothing and does not block.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// Such tries without any progress. Then: the write has failed.
const RETRIES_MAX: u32 = 100;

/// Owned by the thread that writes.
///
/// A failed write loses whole lines: the rest of a line that was begun is kept, and goes out first
/// when it can. So every line in the file is whole, but one that the proxy was stopped in.
pub(super) struct Writer {
    /// What messages call the output.
    name: String,
    open: Box<dyn Fn() -> io::Result<Output> + Send>,
    output: Output,
    /// The rest of a line that was begun.
    rest: Vec<u8>,
    /// Lines lost since writing began to fail; `None`: it works.
    failing: Option<u64>,
}

impl Writer {
    pub(super) fn open(
        name: String,
        open: Box<dyn Fn() -> io::Result<Output> + Send>,
    ) -> io::Result<Writer> {
        let output = open()?;
        Ok(Writer { name, open, output, rest: Vec::new(), failing: None })
    }

    /// Writes the lines of `batch`, or loses what cannot be written.
    pub(super) fn write(&mut self, batch: &Batch, counts: &Counts) {
        if let Err(error) = self.write_rest(counts) {
            self.failed(&error, batch.lines, counts);
            return;
        }
        let Err((written, error)) = write_all(&mut self.output, &batch.bytes) else {
            counts.written.fetch_add(batch.lines, Ordering::Relaxed);
            self.works();
            return;
        };
        let (before, after) = batch.bytes.split_at(written);
        let whole = before.iter().filter(|byte| **byte == b'\n').count() as u64;
        counts.written.fetch_add(whole, Ordering::Relaxed);
        let mut lost = batch.lines - whole;
        if before.last().is_some_and(|byte| *byte != b'\n') {
            let end = after.iter().position(|byte| *byte == b'\n').map_or(after.len(), |at| at + 1);
            self.rest.extend_from_slice(&after[..end]);
            lost -= 1;
        }
        self.failed(&error, lost, counts);
    }

    /// Opens the output anew. With an error the old one stays.
    pub(super) fn reopen(&mut self, counts: &Counts) {
        let output = match (self.open)() {
            Ok(output) => output,
            Err(error) => {
                tracing::error!("{error}; the access log goes on where it was");
                return;
            }
        };
        self.end(counts);
        self.output = output;
        tracing::info!("the access log {} was opened anew", self.name);
    }

    /// Completes the line that was begun, or gives it up: nothing more goes to this output.
    pub(super) fn end(&mut self, counts: &Counts) {
        if let Err(error) = self.write_rest(counts) {
            self.rest.clear();
            self.failed(&error, 1, counts);
        }
    }

    fn write_rest(&mut self, counts: &Counts) -> io::Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let result = write_all(&mut self.output, &self.rest);
        let written = result.as_ref().map_or_else(|(written, _)| *written, |()| self.rest.len());
        self.rest.drain(..written);
        result.map_err(|(_, error)| error)?;
        counts.written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a failure; the first one of a row is told.
    fn failed(&mut self, error: &io::Error, lost: u64, counts: &Counts) {
        counts.errors.fetch_add(1, Ordering::Relaxed);
        counts.lost.fetch_add(lost, Ordering::Relaxed);
        if self.failing.is_none() {
            let name = &self.name;
            tracing::error!("cannot write the access log {name}: {error}; its lines are lost");
        }
        self.failing = Some(self.failing.unwrap_or(0) + lost);
    }

    fn works(&mut self) {
        if let Some(lost) = self.failing.take() {
            tracing::warn!(lost, "the access log {} is written again", self.name);
        }
    }
}

/// Writes all of `bytes`; or says how many were written, and what happened then.
fn write_all(output: &mut Output, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    let mut retries = 0;
    while written < bytes.len() {
        match output.write(&bytes[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(count) => {
                written += count;
                retries = 0;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && retries < RETRIES_MAX => {
                retries += 1;
                thread::park_timeout(RETRY_AFTER);
            }
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}
