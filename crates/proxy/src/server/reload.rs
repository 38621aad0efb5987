//! Another configuration for a server that runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use baton_runtime::NewListener;

use super::{
    Listening, Running, ServerError, access_log_sink, connect_upstreams, connections_max,
    numbers_of,
};
use crate::config::Config;
use crate::limits::{ACCESS_LOG_STOP, ADOPT_BOUND, FULL_MAILBOX_PAUSE, NAMES_BOUND};
use crate::log;
use crate::plan::Plan;
use crate::proxy::Notice;

impl Running {
    /// Reads the configuration anew and puts it in force. A failure is told to whoever asked, and to
    /// the log.
    pub(super) fn reload_again(&self) -> Result<String, String> {
        let refused = |why: String| {
            self.live.reload_refused();
            why
        };
        let loaded = (self.load)().map_err(refused);
        let reloaded = loaded.and_then(|config| {
            self.reload(&config).map_err(|error| match error {
                ServerError::Stuck => error.to_string(),
                error => refused(format!("{error}; nothing has changed")),
            })
        });
        match reloaded {
            Ok(()) => Ok(format!("generation {} is in force\n", self.live.plan().generation)),
            Err(error) => {
                tracing::error!("the configuration is not reloaded: {error}");
                Err(error)
            }
        }
    }

    pub(super) fn reload(&self, config: &Config) -> Result<(), ServerError> {
        // One after the other.
        let mut listening = self.listening.lock().expect("no holder of this lock panics");
        if !self.ready.load(Ordering::Acquire) {
            return Err(ServerError::NotReady);
        }
        let before = self.live.plan();
        refuse_fixed(&before.config, config)?;
        let Moves { next, new, gone } = self.moves(config, &listening)?;
        let reception = self.reception.get().ok_or(ServerError::NotReady)?;
        let admin = reception.open(config.admin.as_ref()).map_err(ServerError::Admin)?;
        let cores = self.runtime.cores();
        let has_other_log = before.config.access_log != config.access_log;
        let sink = if has_other_log { access_log_sink(config, cores)? } else { None };
        // From here on nothing fails for what the configuration says.
        let numbers = numbers_of(config, &next);
        let plan = Arc::new(Plan::new(config.clone(), cores, &numbers, Some(&before)));
        connect_upstreams(&self.runtime, &plan);
        if let Some(probes) = &mut *self.probes() {
            probes.replace(&plan.upstreams);
            // New names are looked up before requests need them, within reason.
            probes.first_round(NAMES_BOUND);
        }
        let last_sink = if has_other_log { self.shared.sink.replace(sink) } else { None };
        let adopted = self.adopt(&plan);
        if let Some(sink) = last_sink {
            sink.stop(ACCESS_LOG_STOP);
        }
        for listener in new {
            self.runtime.accept_from(listener);
        }
        for number in gone {
            self.runtime.unlisten(number);
        }
        reception.move_to(admin);
        self.runtime.set_connections_max(connections_max(config.limits.connections));
        self.shared.clients.set_most(config.limits.connections_per_ip);
        log::set_level(config.log_level);
        *listening = next;
        tracing::info!(generation = plan.generation, "the configuration is in force");
        self.live.set_plan(plan);
        self.live.reload_taken();
        adopted
    }

    /// What becomes of the listeners. Opens those that are new.
    fn moves(&self, config: &Config, listening: &[Listening]) -> Result<Moves, ServerError> {
        let mut rest = listening.to_vec();
        let mut moves = Moves { next: Vec::new(), new: Vec::new(), gone: Vec::new() };
        for asked in config.addresses() {
            let known = rest.iter().position(|known| known.asked == asked);
            if let Some(known) = known {
                moves.next.push(rest.remove(known));
                continue;
            }
            let listener = self.runtime.open_listener(asked).map_err(ServerError::Start)?;
            moves.next.push(Listening { asked, number: listener.number() });
            moves.new.push(listener);
        }
        moves.gone = rest.into_iter().map(|known| known.number).collect();
        Ok(moves)
    }

    /// Hands the plan to every core and waits until it is in force there. A core that does not come
    /// to it in time takes it later.
    fn adopt(&self, plan: &Arc<Plan>) -> Result<(), ServerError> {
        let postbox = self.runtime.postbox::<Notice>();
        let (done, finished) = sync_channel(postbox.cores());
        let end = Instant::now() + ADOPT_BOUND;
        for core in 0..postbox.cores() {
            let mut notice = Notice::Adopt(plan.clone(), done.clone());
            while let Err(back) = postbox.post(core, notice) {
                if postbox.has_ended(core) {
                    return Err(ServerError::Stuck);
                }
                notice = back;
                std::thread::park_timeout(FULL_MAILBOX_PAUSE);
            }
        }
        for _ in 0..postbox.cores() {
            let left = end.saturating_duration_since(Instant::now());
            finished.recv_timeout(left).map_err(|_| ServerError::Stuck)?;
        }
        Ok(())
    }
}

/// What becomes of the listeners at a reload.
struct Moves {
    /// All there will be, in the order of the configuration.
    next: Vec<Listening>,
    new: Vec<NewListener>,
    gone: Vec<usize>,
}

/// Whether `next` asks for something that is decided once, at start.
fn refuse_fixed(before: &Config, next: &Config) -> Result<(), ServerError> {
    let (before, next) = (&before.runtime, &next.runtime);
    let fixed = [
        ("runtime.cores", before.cores == next.cores),
        ("runtime.driver", before.driver == next.driver),
        ("runtime.accept", before.accept == next.accept),
    ];
    match fixed.into_iter().find(|(_, same)| !same) {
        Some((setting, _)) => Err(ServerError::Fixed(setting)),
        None => Ok(()),
    }
}
