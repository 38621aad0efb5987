//! When a request is sent once more. Pure: what the budget leaves is asked of the upstream.

use crate::config::{RetryConfig, RetryOn};

/// What an attempt ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Failed(RetryOn),
    /// An answer with this status, of which the client has seen nothing.
    Status(u16),
}

/// What is known of the request, and of the answer's way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replay {
    /// Its method is idempotent (RFC 9110 §9.2.2).
    pub(crate) idempotent: bool,
    /// It is still there from its first to its last byte, and the client has seen nothing of an
    /// answer.
    pub(crate) replayable: bool,
    /// Attempts made so far.
    pub(crate) attempts: usize,
}

/// Whether the request may be sent once more.
///
/// A connection that could not be made has taken no byte, so that any request may go elsewhere,
/// whatever its method; everything else may have had its effect at the endpoint.
pub(crate) fn may_retry(config: &RetryConfig, after: After, request: Replay) -> bool {
    if request.attempts > config.attempts || !request.replayable {
        return false;
    }
    match after {
        After::Failed(RetryOn::Connect) => config.on.contains(&RetryOn::Connect),
        After::Failed(kind) => request.idempotent && config.on.contains(&kind),
        After::Status(status) => request.idempotent && config.statuses.contains(&status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILURES: [RetryOn; 4] =
        [RetryOn::Connect, RetryOn::NoAnswer, RetryOn::Timeout, RetryOn::Invalid];

    fn replay(idempotent: bool, replayable: bool, attempts: usize) -> Replay {
        Replay { idempotent, replayable, attempts }
    }

    #[test]
    fn nothing_is_retried_that_is_gone_or_was_tried_often_enough() {
        let config = RetryConfig { statuses: vec![503], ..RetryConfig::default() };
        for after in FAILURES.map(After::Failed).into_iter().chain([After::Status(503)]) {
            assert!(!may_retry(&config, after, replay(true, false, 1)), "{after:?}");
            assert!(!may_retry(&config, after, replay(true, true, 2)), "{after:?}");
            assert!(may_retry(&config, after, replay(true, true, 1)), "{after:?}");
        }
        let never = RetryConfig { attempts: 0, ..config };
        assert!(!may_retry(&never, After::Failed(RetryOn::Connect), replay(true, true, 1)));
    }

    #[test]
    fn what_is_not_idempotent_is_retried_only_where_no_connection_took_it() {
        let config = RetryConfig { statuses: vec![503], ..RetryConfig::default() };
        for kind in FAILURES {
            let may = may_retry(&config, After::Failed(kind), replay(false, true, 1));
            assert_eq!(may, kind == RetryOn::Connect, "{kind:?}");
        }
        assert!(!may_retry(&config, After::Status(503), replay(false, true, 1)));
    }

    #[test]
    fn only_what_is_configured_is_retried() {
        let config = RetryConfig { on: Vec::new(), ..RetryConfig::default() };
        for after in FAILURES.map(After::Failed).into_iter().chain([After::Status(503)]) {
            assert!(!may_retry(&config, after, replay(true, true, 1)), "{after:?}");
        }
    }
}
