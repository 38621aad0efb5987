//! What parsing a request head and a response head have in common.

use memchr::memchr2;

use crate::error::HeadError;
use crate::limits::HeadLimits;
use crate::scan::Stop;

/// How far an incomplete head was looked at, so that a sender of single bytes costs one parse
/// for each line, not for each byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadProgress {
    /// Bytes already looked at.
    seen: usize,
}

impl HeadProgress {
    /// Whether `input`, all unread bytes, is worth a parse.
    ///
    /// It is if nothing was looked at before, if the bytes since the last call hold CR or LF (a
    /// head can neither end nor turn out faulty in a whole line without them), or if the head
    /// limit is reached.
    pub fn should_parse(&mut self, input: &[u8], limits: &HeadLimits) -> bool {
        let seen = std::mem::replace(&mut self.seen, input.len());
        match input.get(seen..) {
            Some(fresh) if seen > 0 => {
                input.len() >= limits.head_bytes_max || memchr2(b'\r', b'\n', fresh).is_some()
            }
            _ => true,
        }
    }

    /// Forgets the head; to be called when it is parsed and its bytes are consumed.
    pub fn reset(&mut self) {
        self.seen = 0;
    }
}

/// The verdict on a head that the fast parser did not accept.
#[cold]
pub(crate) fn incomplete_or_fault<T>(
    scanned: Result<usize, Stop>,
    window: &[u8],
    limits: &HeadLimits,
) -> Result<Option<T>, HeadError> {
    match scanned {
        Err(Stop::Incomplete) if window.len() < limits.head_bytes_max => Ok(None),
        Err(Stop::Incomplete) => Err(HeadError::HeadBytes { max: limits.head_bytes_max }),
        Err(Stop::Fault(error)) => Err(error),
        Ok(_) => Err(HeadError::Syntax),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_line_ends_are_worth_another_parse() {
        let limits = HeadLimits { head_bytes_max: 12, ..HeadLimits::default() };
        let mut progress = HeadProgress::default();
        assert!(progress.should_parse(b"G", &limits), "nothing was looked at before");
        assert!(!progress.should_parse(b"GE", &limits));
        assert!(!progress.should_parse(b"GE", &limits), "nothing is new");
        assert!(progress.should_parse(b"GE\r", &limits));
        assert!(progress.should_parse(b"GE\r\n", &limits));
        assert!(!progress.should_parse(b"GE\r\nT", &limits));
        assert!(progress.should_parse(b"GE\r\nT4567890", &limits), "the limit is reached");
        progress.reset();
        assert!(progress.should_parse(b"P", &limits));
    }

    #[test]
    fn fewer_bytes_than_before_are_another_head() {
        let mut progress = HeadProgress::default();
        assert!(progress.should_parse(b"GET / HTTP/1.1", &HeadLimits::default()));
        assert!(progress.should_parse(b"GET", &HeadLimits::default()));
    }
}
