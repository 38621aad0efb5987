//! `[upstream.NAME]` to `Upstream`.

use super::{Builder, over, values};
use crate::config::file::upstream::{HealthTable, QueueTable, RetryTable, UpstreamTable};
use crate::config::settings::POOL;
use crate::config::shapes::Entries;
use crate::config::table::{At, Place};
use crate::config::{
    EjectConfig, Endpoint, HealthConfig, QueueConfig, RetryConfig, UPSTREAMS_MAX, Upstream,
};
use crate::units::format_duration;

/// What was said, or `default`.
fn said<T: Clone>(said: &Option<At<T>>, default: T) -> T {
    said.as_ref().map_or(default, |said| said.value.clone())
}

impl Builder<'_, '_> {
    pub(super) fn upstreams(&mut self, tables: &Entries<String, UpstreamTable>) {
        if let Some((first_over, _)) = tables.get(UPSTREAMS_MAX) {
            let problem = format!("there are more than {UPSTREAMS_MAX} upstreams");
            self.reader.refuse_at(&first_over.place, problem, "", "fewer upstreams");
            return;
        }
        for (index, (name, table)) in tables.iter().enumerate() {
            let other = tables[..index].iter().find(|(other, _)| other.value == name.value);
            if let Some((other, _)) = other {
                let whereabouts = self.whereabouts(&other.place);
                let problem = format!(
                    "two upstreams are called `{}`; the other is {whereabouts}",
                    name.value
                );
                self.reader.refuse_at(&name.place, problem, "", "a name for each");
                continue;
            }
            let mut upstream =
                Upstream::new(name.value.clone(), Vec::new(), self.config.pool.clone());
            self.endpoints(&mut upstream, name, &table.value);
            self.rest_of_upstream(&mut upstream, &table.value);
            self.config.upstreams.push(upstream);
        }
    }

    fn endpoints(&mut self, upstream: &mut Upstream, name: &At<String>, table: &UpstreamTable) {
        for at in table.endpoints.iter().flat_map(|endpoints| &endpoints.value) {
            let Some(addr) = &at.value.addr else { continue };
            if upstream.endpoints.iter().any(|known| known.address == addr.value) {
                let problem = format!("the endpoint {} is listed twice", addr.value);
                let expected = "each endpoint once; `weight` gives one a larger share";
                self.reader.refuse_at(&addr.place, problem, "", expected);
                continue;
            }
            if !self.has_room_for_endpoint(upstream.endpoints.len(), &addr.place) {
                return;
            }
            upstream.endpoints.push(Endpoint {
                address: addr.value.clone(),
                weight: said(&at.value.weight, 1),
                backup: said(&at.value.backup, false),
            });
        }
        let all_backup = upstream.endpoints.iter().all(|endpoint| endpoint.backup);
        if let Some(endpoints) = &table.endpoints
            && self.reader.is_sound(&name.place)
            && all_backup
        {
            let problem =
                format!("every endpoint of `{}` is a backup, and of nothing", upstream.name);
            self.reader.refuse_at(&endpoints.place, problem, "", "one without `backup`");
        }
    }

    /// `more`: endpoints not yet in the configuration.
    pub(super) fn has_room_for_endpoint(&mut self, more: usize, place: &Place) -> bool {
        let has_room = self.config.endpoints().count() + more < UPSTREAMS_MAX;
        if !has_room {
            let problem = format!("there are more than {UPSTREAMS_MAX} endpoints");
            self.reader.refuse_at(place, problem, "", "fewer endpoints");
        }
        has_room
    }

    fn rest_of_upstream(&mut self, upstream: &mut Upstream, table: &UpstreamTable) {
        upstream.balance = said(&table.balance, upstream.balance.clone());
        upstream.host = table.host.as_ref().map(|host| host.value.clone());
        upstream.max_conns = said(&table.max_conns, None);
        upstream.pool = over(&POOL, &table.pool, &self.config.pool);
        upstream.slow_start = said(&table.slow_start, upstream.slow_start);
        if let Some(queue) = &table.queue {
            let QueueTable { length, timeout } = &queue.value;
            let default = QueueConfig::default();
            upstream.queue = QueueConfig {
                length: said(length, default.length),
                timeout: said(timeout, default.timeout),
            };
            if let Some(at) = table.max_conns.as_ref().filter(|at| at.value.is_none()) {
                let problem = "`queue` with `max_conns` of \"none\": nothing waits where connections have no bound";
                self.reader.refuse_at(&at.place, problem.to_owned(), "", "a number, or no `queue`");
            }
        }
        if let Some(retry) = &table.retry {
            upstream.retry = self.retry(&retry.value);
        }
        if let Some(health) = &table.health {
            upstream.health = Some(self.health(&health.value));
        }
        if let Some(eject) = &table.eject {
            let default = EjectConfig::default();
            upstream.eject = EjectConfig {
                failures: said(&eject.value.failures, default.failures),
                period: said(&eject.value.period, default.period),
                max_percent: said(&eject.value.max_percent, default.max_percent),
            };
        }
    }

    fn retry(&mut self, table: &RetryTable) -> RetryConfig {
        let default = RetryConfig::default();
        let attempts = said(&table.attempts, default.attempts);
        let after =
            [table.on.as_ref().map(|on| &on.place), table.statuses.as_ref().map(|on| &on.place)];
        if attempts == 0
            && let Some(place) = after.into_iter().flatten().next()
        {
            let problem = "it says after what a request is sent once more, but `attempts` is 0";
            self.reader.refuse_at(
                place,
                problem.to_owned(),
                "",
                "attempts = 1 or more, or neither `on` nor `statuses`",
            );
        }
        let on = values(&table.on);
        RetryConfig {
            attempts,
            budget_percent: said(&table.budget, default.budget_percent),
            budget_min: said(&table.budget_min, default.budget_min),
            on: if on.is_empty() { default.on } else { on },
            statuses: values(&table.statuses),
        }
    }

    fn health(&mut self, table: &HealthTable) -> HealthConfig {
        // A path that was refused has its finding; what else is wrong is found all the same.
        let default = HealthConfig::new(said(&table.path, String::new()));
        let expect = values(&table.expect);
        let health = HealthConfig {
            host: table.host.as_ref().map(|host| host.value.clone()),
            interval: said(&table.interval, default.interval),
            timeout: said(&table.timeout, default.timeout),
            rise: said(&table.rise, default.rise),
            fall: said(&table.fall, default.fall),
            expect: if expect.is_empty() { default.expect } else { expect },
            path: default.path,
        };
        let place = table.timeout.as_ref().or(table.interval.as_ref()).map(|at| &at.place);
        if let Some(place) = place
            && health.timeout > health.interval
        {
            let problem = format!(
                "a check may take {}, but the next one comes after {}",
                format_duration(health.timeout),
                format_duration(health.interval)
            );
            self.reader.refuse_at(place, problem, "", "a `timeout` of at most `interval`");
        }
        health
    }
}
