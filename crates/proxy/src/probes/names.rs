//! The task of one name: looks it up again whenever its answer is too old, for as long as it lives.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;

use super::Untried;
use super::limits::{LOOKUP_BOUND, RETRY_MAX, RETRY_MIN};
use super::resolve::{Answer, Resolver, Unresolved};
use crate::upstream::UpstreamState;

/// An endpoint that was configured as a name.
pub(super) struct Name {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) upstream: Arc<UpstreamState>,
    /// Which of the upstream's configured endpoints it is.
    pub(super) entry: usize,
    /// Told when the upstream's list may have changed.
    pub(super) listed: Arc<Notify>,
}

impl Name {
    /// Keeps the upstream's endpoints those that the name stands for. A new resolver has it looked
    /// up at once. Ends when there is none any more.
    pub(super) async fn keep(
        self,
        mut resolver: watch::Receiver<Arc<Resolver>>,
        lookups: Arc<Semaphore>,
        untried: Untried,
    ) {
        let mut untried = Some(untried);
        let mut known = Known::default();
        loop {
            let now = resolver.borrow_and_update().clone();
            let found = {
                let Ok(_turn) = lookups.acquire().await else { return };
                let found = timeout(LOOKUP_BOUND, now.look_up(&self.host, &known.addresses)).await;
                found.unwrap_or(Err(Unresolved::Timeout))
            };
            let pause = self.take(&mut known, found);
            drop(untried.take());
            // Over the time is the ordinary way here: the answer is too old, or it is tried again.
            if let Ok(Err(_gone)) = timeout(pause, resolver.changed()).await {
                return;
            }
        }
    }

    /// Puts the outcome in force and says what changed; how long until the next look-up.
    fn take(&self, known: &mut Known, found: Result<Answer, Unresolved>) -> Duration {
        let (host, upstream) = (&self.host, &self.upstream.config().name);
        let next = known.take(found);
        match next.news {
            None => {}
            Some(News::Stands(addresses)) => {
                tracing::info!("name {host} of upstream {upstream} stands for {addresses}");
            }
            Some(News::Lost(why)) if known.addresses.is_empty() => {
                tracing::warn!("cannot resolve {host} of upstream {upstream}: {why}; retrying");
            }
            Some(News::Lost(why)) => {
                tracing::warn!(
                    "cannot resolve {host} of upstream {upstream}: {why}; \
                     it still stands for the last addresses"
                );
            }
        }
        if next.has_changed {
            let sockets = known.addresses.iter().map(|ip| SocketAddr::new(*ip, self.port));
            self.upstream.resolved(self.entry, &sockets.collect::<Vec<_>>());
            self.listed.notify_one();
        }
        next.pause
    }
}

/// What is known of a name.
#[derive(Default)]
struct Known {
    /// Those of the last look-up that went well.
    addresses: Vec<IpAddr>,
    /// Look-ups since then.
    failures_in_a_row: u32,
}

/// What follows from a look-up.
#[derive(Debug, PartialEq, Eq)]
struct Next {
    has_changed: bool,
    news: Option<News>,
    pause: Duration,
}

/// What an operator is told.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// For these, in words.
    Stands(String),
    /// It could be resolved before, or was not tried.
    Lost(Unresolved),
}

impl Known {
    fn take(&mut self, found: Result<Answer, Unresolved>) -> Next {
        match found {
            Ok(answer) => {
                let has_changed = self.addresses != answer.addresses;
                let news = (has_changed || self.failures_in_a_row > 0)
                    .then(|| News::Stands(in_words(&answer)));
                self.failures_in_a_row = 0;
                self.addresses = answer.addresses;
                Next { has_changed, news, pause: answer.ttl }
            }
            Err(why) => {
                let news = (self.failures_in_a_row == 0).then_some(News::Lost(why));
                let pause = pause_after(self.failures_in_a_row);
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
                Next { has_changed: false, news, pause }
            }
        }
    }
}

/// The pause after a failure that `before` others preceded.
fn pause_after(before: u32) -> Duration {
    RETRY_MIN.saturating_mul(1_u32.checked_shl(before).unwrap_or(u32::MAX)).min(RETRY_MAX)
}

/// `192.0.2.1, 192.0.2.2`.
fn in_words(answer: &Answer) -> String {
    let mut text = String::new();
    for address in &answer.addresses {
        let comma = if text.is_empty() { "" } else { ", " };
        let _written = write!(text, "{comma}{address}");
    }
    if answer.found > answer.addresses.len() {
        let _written = write!(text, ", the first of {}", answer.found);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::limits::{ADDRESSES_MAX, TTL_MIN};

    fn answer(last: &[u8]) -> Result<Answer, Unresolved> {
        let addresses: Vec<_> = last.iter().map(|last| IpAddr::from([192, 0, 2, *last])).collect();
        Ok(Answer { found: addresses.len(), addresses, ttl: TTL_MIN })
    }

    fn lost() -> Result<Answer, Unresolved> {
        Err(Unresolved::NoName)
    }

    #[test]
    fn a_failure_keeps_the_addresses_and_is_told_once() {
        let mut known = Known::default();
        assert_eq!(known.take(lost()).news, Some(News::Lost(Unresolved::NoName)));
        assert_eq!(known.take(lost()).news, None);
        let next = known.take(answer(&[1, 2]));
        let words = News::Stands("192.0.2.1, 192.0.2.2".into());
        assert_eq!(next, Next { has_changed: true, news: Some(words), pause: TTL_MIN });
        let next = known.take(lost());
        assert!(next.news.is_some() && !next.has_changed);
        assert_eq!(known.addresses.len(), 2);
        assert!(known.take(answer(&[1, 2])).news.is_some(), "that it is back is told");
        assert_eq!(known.take(answer(&[1, 2])).news, None);
    }

    #[test]
    fn pauses_double_up_to_their_bound_and_begin_anew() {
        let mut known = Known::default();
        let seconds = |known: &mut Known| known.take(lost()).pause.as_secs();
        let pauses: Vec<_> = (0..7).map(|_| seconds(&mut known)).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause_after(u32::MAX), RETRY_MAX);
        assert_eq!(known.take(answer(&[1])).pause, TTL_MIN);
        assert_eq!(seconds(&mut known), 1);
    }

    #[test]
    fn addresses_over_the_bound_are_told() {
        let cut = Answer { found: ADDRESSES_MAX + 1, ..answer(&[9]).unwrap() };
        assert_eq!(in_words(&cut), "192.0.2.9, the first of 65");
    }
}
