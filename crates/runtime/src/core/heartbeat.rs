//! The heartbeat of a core: it moves the timers on, measures how late it comes, and gives memory back.

use std::time::Instant;

use baton_platform as platform;

use super::Core;
use crate::limits::{MEMORY_LOOK_TICKS, MEMORY_RETURN_BYTES, TASK_BYTES, TICK};

impl Core {
    pub(super) async fn heartbeat(&self) {
        let started = Instant::now();
        let mut due = started + TICK;
        loop {
            monoio::time::sleep_until(due.into()).await;
            let now = Instant::now();
            let lag = now.saturating_duration_since(due);
            self.counters().heartbeat(lag, platform::thread_cpu_time());
            let tick = (now - started).as_millis() / TICK.as_millis();
            self.state.wheel.advance(u64::try_from(tick).unwrap_or(u64::MAX));
            self.give_memory_back();
            // The next whole tick, so that a late heartbeat does not put off all later ones.
            while due <= now {
                due += TICK;
            }
        }
    }

    /// Frees what a burst has left behind.
    fn give_memory_back(&self) {
        if !self.tick().is_multiple_of(MEMORY_LOOK_TICKS) {
            return;
        }
        let tasks = self.state.tasks.count();
        let most = self.state.tasks_most.get().max(tasks);
        let freed = self.state.freed.get() + self.state.buffers.shrink();
        let returned = freed + (most - tasks) * TASK_BYTES >= MEMORY_RETURN_BYTES;
        self.state.tasks_most.set(if returned { tasks } else { most });
        self.state.freed.set(if returned { 0 } else { freed });
        if !returned {
            return;
        }
        // With its queue full the blocking pool has more important things to do.
        let _refused = self.shared().blocking().submit(Box::new(platform::release_free_memory));
    }
}
