//! `[[route]]` to `Route`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::{Builder, Names, over, values};
use crate::config::file::include::read_bytes;
use crate::config::file::route::{EditsTable, PageTable, RespondTable, RouteTable};
use crate::config::file::upstream::UpstreamTable;
use crate::config::settings::{LIMIT, TIMEOUT};
use crate::config::shapes::Entries;
use crate::config::table::{At, Place};
use crate::config::texts::{LABEL_BYTES_MAX, To};
use crate::config::{
    Action, BODY_BYTES_MAX, Endpoint, FieldEdits, FieldMatch, ROUTES_MAX, RateLimit, Rewrite,
    Route, Upstream, UpstreamAddr,
};
use crate::route::{HostPattern, PathPattern};

/// What a route without a name is called: its first host and its path.
pub(in crate::config) fn route_name(hosts: &[HostPattern], path: &PathPattern) -> String {
    let host = hosts.first().map_or_else(String::new, HostPattern::to_string);
    let name = format!("{host}{path}");
    // An expression may be long, and has what no name has.
    let room = LABEL_BYTES_MAX - "#1024".len();
    let mut short = String::new();
    for c in name.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if short.len() + c.len_utf8() > room {
            break;
        }
        short.push(c);
    }
    short
}

impl Builder<'_, '_> {
    pub(super) fn routes(
        &mut self,
        tables: &[At<RouteTable>],
        upstreams: &Entries<String, UpstreamTable>,
    ) {
        if let Some(first_over) = tables.get(ROUTES_MAX) {
            let problem = format!("there are more than {ROUTES_MAX} routes");
            self.reader.refuse_at(&first_over.place, problem, "", "fewer routes");
            return;
        }
        let mut names = Names::default();
        for name in tables.iter().filter_map(|table| table.value.name.as_ref()) {
            if let Some(other) = names.add(name) {
                let whereabouts = self.whereabouts(&other);
                let problem =
                    format!("two routes are called `{}`; the other is {whereabouts}", name.value);
                self.reader.refuse_at(&name.place, problem, "", "a name for each");
            }
        }
        let upstreams: Vec<String> = upstreams.iter().map(|(name, _)| name.value.clone()).collect();
        let listeners: Vec<String> =
            self.config.listeners.iter().map(|listener| listener.name.clone()).collect();
        let mut known = HashMap::new();
        for at in tables {
            let table = &at.value;
            for name in table.listen.iter().flat_map(|listen| &listen.value) {
                if !listeners.contains(&name.value) {
                    self.unknown_name(&name.place, "listener", &name.value, &listeners, "");
                }
            }
            let action = self.action(table, &upstreams);
            let mut route = self.conditions(table, &mut names);
            if self.reader.is_sound(&at.place) {
                self.check_differs(&route, at, &mut known);
            }
            self.rest_of_route(&mut route, table);
            // Without one there is a finding.
            if let Some(action) = action {
                route.action = action;
                self.config.routes.push(route);
            }
        }
    }

    /// What becomes of the requests; `None`: that was refused.
    fn action(&mut self, table: &RouteTable, upstreams: &[String]) -> Option<Action> {
        if let Some(redirect) = &table.redirect {
            let redirect = &redirect.value;
            let status = redirect.status.as_ref().map_or(308, |status| status.value);
            return Some(Action::Redirect { status, to: redirect.to.as_ref()?.value.clone() });
        }
        if let Some(respond) = &table.respond {
            return self.respond(&respond.value);
        }
        let to = &table.to.as_ref()?.value;
        if let [At { value: To::Name(name), place }] = to.as_slice() {
            if upstreams.contains(name) {
                return Some(Action::Proxy(name.clone()));
            }
            let address = format!("an address with its port, such as \"{name}:9000\"");
            let or = match upstreams {
                [] => format!("{address}, or a table [upstream.{name}] with endpoints"),
                _ => address,
            };
            self.unknown_name(place, "upstream", name, upstreams, &or);
            return None;
        }
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for at in to {
            match &at.value {
                To::Address(address) => {
                    let address = address.clone();
                    endpoints.push(Endpoint { address, weight: 1, backup: false });
                }
                To::Name(name) => {
                    let problem =
                        format!("`{name}` has no port, and an array holds addresses alone");
                    let expected = format!(
                        "addresses such as \"{name}:9000\", or the name of one upstream alone"
                    );
                    self.reader.refuse_at(&at.place, problem, "", expected);
                }
            }
        }
        let name = own_name(endpoints.iter().map(|endpoint| &endpoint.address));
        if self.config.upstreams.iter().all(|known| known.name != name) {
            for (count, at) in to.iter().enumerate() {
                if !self.has_room_for_endpoint(count, &at.place) {
                    return None;
                }
            }
            let pool = self.config.pool.clone();
            self.config.upstreams.push(Upstream::new(name.clone(), endpoints, pool));
        }
        Some(Action::Proxy(name))
    }

    fn respond(&mut self, table: &RespondTable) -> Option<Action> {
        let status = table.status.as_ref().map_or(200, |status| status.value);
        let (body, place): (Arc<[u8]>, Option<&Place>) =
            match (&table.body, &table.file, &table.base64) {
                (Some(body), _, _) => (body.value.as_bytes().into(), Some(&body.place)),
                (_, Some(file), _) => {
                    (self.body_file(&file.value, &file.place)?, Some(&file.place))
                }
                (_, _, Some(base64)) => (base64.value.as_slice().into(), Some(&base64.place)),
                (None, None, None) => (Arc::default(), None),
            };
        if let Some(place) = place
            && matches!(status, 204 | 205 | 304)
        {
            let problem = format!("an answer of status {status} has no body");
            self.reader.refuse_at(place, problem, "", "another status, or no body");
        }
        let default = || "text/plain; charset=utf-8".to_owned();
        let content_type = table.content_type.as_ref();
        let content_type =
            content_type.map_or_else(default, |content_type| content_type.value.clone());
        Some(Action::Respond { status, content_type, body })
    }

    /// A body that stands in a file of its own.
    fn body_file(&mut self, path: &Path, place: &Place) -> Option<Arc<[u8]>> {
        let path = self.path(place, path);
        match read_bytes(&path, BODY_BYTES_MAX) {
            Ok(bytes) => {
                if !self.files.contains(&path) {
                    self.files.push(path);
                }
                Some(bytes.into())
            }
            Err(error) => {
                let problem = format!("{}: {error}", path.display());
                self.reader.refuse_at(place, problem, "", "a file that can be read, at most 1MiB");
                None
            }
        }
    }

    fn conditions(&mut self, table: &RouteTable, names: &mut Names) -> Route {
        let (timeouts, limits) = (&self.config.timeouts, &self.config.limits);
        let mut route = Route::to(String::new(), timeouts.clone(), limits.clone());
        route.listeners = values(&table.listen);
        route.hosts = values(&table.host);
        if let Some(path) = &table.path {
            route.path = path.value.clone();
        }
        route.methods = values(&table.method);
        let fields = table.header.iter().flat_map(|header| &header.value);
        route.fields = fields
            .map(|(name, value)| FieldMatch {
                name: name.value.clone(),
                value: (value.value != "*").then(|| value.value.clone()),
            })
            .collect();
        route.name = match &table.name {
            Some(name) => name.value.clone(),
            None => names.free(&route_name(&route.hosts, &route.path)),
        };
        route
    }

    /// Refuses a route that no request would take, because an earlier one has its conditions.
    fn check_differs(
        &mut self,
        route: &Route,
        at: &At<RouteTable>,
        known: &mut HashMap<String, (String, Place)>,
    ) {
        let sorted = |mut texts: Vec<String>| {
            texts.sort_unstable();
            format!("{texts:?}")
        };
        let fields = route.fields.iter().map(|field| format!("{field:?}")).collect();
        let rest = [
            sorted(route.listeners.clone()),
            route.path.to_string(),
            sorted(route.methods.clone()),
            sorted(fields),
        ];
        let hosts: Vec<String> = match route.hosts.as_slice() {
            [] => vec![String::new()],
            hosts => hosts.iter().map(HostPattern::to_string).collect(),
        };
        for host in hosts {
            let key = format!("{host}\n{}", rest.join("\n"));
            let Some((name, place)) = known.get(&key) else {
                known.insert(key, (route.name.clone(), at.place.clone()));
                continue;
            };
            let whereabouts = self.whereabouts(place);
            let whose = if host.is_empty() { String::new() } else { format!(" for {host}") };
            let problem = format!(
                "the route `{name}` {whereabouts} has the same conditions{whose} and takes the requests"
            );
            let place = at.value.host.as_ref().map_or(&at.place, |host| &host.place).clone();
            self.reader.refuse_at(
                &place,
                problem,
                "",
                "another host, path, method, header or listener",
            );
            return;
        }
    }

    fn rest_of_route(&mut self, route: &mut Route, table: &RouteTable) {
        if let Some(prefix) = &table.strip_prefix {
            route.rewrite = Rewrite::Strip(prefix.value.clone());
        }
        if let Some(replace) = &table.replace_prefix
            && let (Some(from), Some(to)) = (&replace.value.from, &replace.value.to)
        {
            route.rewrite = Rewrite::Replace { from: from.value.clone(), to: to.value.clone() };
        }
        route.request_fields = edits(&table.request_headers);
        route.response_fields = edits(&table.response_headers);
        route.allow = values(&table.allow);
        route.deny = values(&table.deny);
        for denied in table.deny.iter().flat_map(|deny| &deny.value) {
            if route.allow.contains(&denied.value) {
                let problem = format!("{} is both admitted and refused", denied.value);
                self.reader.refuse_at(&denied.place, problem, "", "it in `allow` or in `deny`");
            }
        }
        if let Some(limit) = &table.rate_limit
            && let (Some(key), Some(rate)) = (&limit.value.key, &limit.value.rate)
        {
            let (requests, per) = rate.value;
            let burst = limit.value.burst.as_ref().map_or(requests, |burst| burst.value);
            route.rate_limit = Some(RateLimit { key: key.value.clone(), requests, per, burst });
        }
        route.concurrency = table.concurrency.as_ref().map(|concurrency| concurrency.value);
        for (status, page) in table.error_pages.iter().flat_map(|pages| &pages.value) {
            if let Some(body) = self.page(&page.value) {
                route.error_pages.push((status.value, body));
            }
        }
        route.access_log = table.access_log.as_ref().is_none_or(|log| log.value);
        route.timeouts = over(&TIMEOUT, &table.timeout, &self.config.timeouts);
        route.limits = over(&LIMIT, &table.limit, &self.config.limits);
    }

    fn page(&mut self, page: &PageTable) -> Option<Arc<[u8]>> {
        if let Some(body) = &page.body {
            return Some(body.value.as_bytes().into());
        }
        let file = page.file.as_ref()?;
        let body = self.body_file(&file.value, &file.place)?;
        if std::str::from_utf8(&body).is_err() {
            let problem = format!("{} is not UTF-8", file.value.display());
            self.reader.refuse_at(&file.place, problem, "", "a page of HTML in UTF-8");
            return None;
        }
        Some(body)
    }
}

/// What the upstream of a route that names addresses is called.
pub(in crate::config) fn own_name<'a>(addresses: impl Iterator<Item = &'a UpstreamAddr>) -> String {
    addresses.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn edits(table: &Option<At<EditsTable>>) -> FieldEdits {
    let Some(table) = table else { return FieldEdits::default() };
    let pairs = |said: &Option<At<Entries<String, _>>>| {
        let entries = said.iter().flat_map(|said| &said.value);
        entries
            .map(|(name, value): &(At<String>, At<crate::route::Template>)| {
                (name.value.clone(), value.value.clone())
            })
            .collect()
    };
    FieldEdits {
        remove: values(&table.value.remove),
        set: pairs(&table.value.set),
        add: pairs(&table.value.add),
    }
}
