//! What the file says, made into what it means: names resolved, settings completed, and all that
//! concerns more than one value checked.

mod routes;
mod upstreams;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::listen::ListenTable;
use super::root::Root;
use crate::config::groups::{put_admin, put_log};
use crate::config::problem::{Source, nearest};
use crate::config::reader::{ADVISED_MAX, Reader};
use crate::config::settings::{
    ADMIN_TABLE, AdminSettings, FORWARD, LIMIT, LOG, Limits, LogSettings, POOL, RUNTIME, TIMEOUT,
};
use crate::config::shapes::Overrides;
use crate::config::table::{At, Place, Setting, Table};
use crate::config::{Config, LISTENERS_MAX, Listener};

pub(in crate::config) use routes::{own_name, route_name};

/// Builds a `Config`. Problems go to `reader`; with any, `config` is of no use.
pub(super) struct Builder<'b, 'e> {
    pub(super) reader: &'b mut Reader<'e>,
    pub(super) sources: &'b [Source],
    /// Where relative paths of each source begin.
    pub(super) folders: &'b [PathBuf],
    /// Every file that was read.
    pub(super) files: &'b mut Vec<PathBuf>,
    pub(super) config: &'b mut Config,
}

/// What a table of settings says over the defaults.
fn settings<C: Default + Clone>(
    table: &Table<dyn Setting<C>>,
    said: &Option<At<Overrides<C>>>,
) -> C {
    over(table, said, &C::default())
}

fn over<C: Clone>(table: &Table<dyn Setting<C>>, said: &Option<At<Overrides<C>>>, base: &C) -> C {
    said.as_ref().map_or_else(|| base.clone(), |said| said.value.over(table, base))
}

/// The values of an array, or none.
fn values<T: Clone>(said: &Option<At<Vec<At<T>>>>) -> Vec<T> {
    said.iter().flat_map(|said| &said.value).map(|at| at.value.clone()).collect()
}

impl Builder<'_, '_> {
    pub(super) fn build(mut self, root: Root) {
        self.config.runtime = settings(&RUNTIME, &root.runtime);
        self.config.timeouts = settings(&TIMEOUT, &root.timeout);
        self.config.limits = settings(&LIMIT, &root.limit);
        self.config.pool = settings(&POOL, &root.pool);
        self.config.forward = settings(&FORWARD, &root.forward);
        let log: LogSettings = settings(&LOG, &root.log);
        put_log(self.config, log);
        self.admin(&root.admin);
        let limits = self.config.limits.clone();
        self.check_limits(&limits, &[&root.limit]);
        self.listeners(root.listen.iter().flat_map(|listen| &listen.value), &root.limit);
        let upstreams = root.upstream.map(|upstream| upstream.value).unwrap_or_default();
        self.upstreams(&upstreams);
        let routes = root.route.map(|route| route.value).unwrap_or_default();
        self.routes(&routes, &upstreams);
    }

    fn admin(&mut self, said: &Option<At<Overrides<AdminSettings>>>) {
        let admin: AdminSettings = settings(&ADMIN_TABLE, said);
        let place = said.as_ref().and_then(|said| said.value.place("listen"));
        if let (Err(problem), Some(place)) = (admin.check(), place) {
            let expected =
                r#"an address such as "127.0.0.1:9901", a Unix socket, or public = true beside it"#;
            self.reader.refuse_at(place, format!("admin.listen: {problem}"), "", expected);
        }
        put_admin(self.config, admin);
    }

    /// The relation between limits that no bound of a single one states. `said`: those that made
    /// them, the innermost first.
    fn check_limits(&mut self, limits: &Limits, said: &[&Option<At<Overrides<Limits>>>]) {
        let Err(problem) = limits.check() else { return };
        let said = || said.iter().filter_map(|said| said.as_ref());
        let place = |key| said().find_map(|said| said.value.place(key));
        if let Some(place) = place("target_bytes").or_else(|| place("head_bytes")).cloned() {
            let expected = "limit.target_bytes of at most limit.head_bytes";
            self.reader.refuse_at(&place, problem, "", expected);
        }
    }

    fn listeners<'t>(
        &mut self,
        tables: impl Iterator<Item = &'t At<ListenTable>> + Clone,
        limit: &Option<At<Overrides<Limits>>>,
    ) {
        let mut names = Names::default();
        for table in tables.clone() {
            if let Some(name) = &table.value.name
                && let Some(other) = names.add(name)
            {
                let problem = format!(
                    "two listeners are called `{}`; the other is {}",
                    name.value,
                    self.whereabouts(&other)
                );
                self.reader.refuse_at(&name.place, problem, "", "a name for each");
            }
        }
        for table in tables {
            let said = &table.value;
            let first = said.addr.iter().flat_map(|addr| &addr.value).next();
            let name = match (&said.name, first) {
                (Some(name), _) => name.value.clone(),
                (None, Some(first)) => names.free(&first.value.to_string()),
                (None, None) => continue,
            };
            let limits = over(&LIMIT, &said.limit, &self.config.limits);
            if said.limit.is_some() && self.config.limits.check().is_ok() {
                self.check_limits(&limits, &[&said.limit, limit]);
            }
            let mut listener = Listener {
                name,
                addresses: Vec::new(),
                proxy_protocol: values(&said.proxy_protocol),
                trusted_proxies: values(&said.trusted_proxies),
                timeouts: over(&TIMEOUT, &said.timeout, &self.config.timeouts),
                limits,
            };
            for addr in said.addr.iter().flat_map(|addr| &addr.value) {
                let address = addr.value.0;
                let mut known = self.config.addresses().chain(listener.addresses.iter().copied());
                if address.port() != 0 && known.any(|known| known == address) {
                    let problem = format!("{address} is listened on twice");
                    self.reader.refuse_at(&addr.place, problem, "", "each address once");
                } else if self.config.addresses().count() + listener.addresses.len()
                    == LISTENERS_MAX
                {
                    let problem =
                        format!("there are more than {LISTENERS_MAX} addresses to listen on");
                    self.reader.refuse_at(&addr.place, problem, "", "fewer addresses");
                    return;
                } else {
                    listener.addresses.push(address);
                }
            }
            self.config.listeners.push(listener);
        }
    }

    /// `b.toml:12`.
    fn whereabouts(&self, place: &Place) -> String {
        let Source { name, text } = &self.sources[place.file];
        if self.reader.problems.len() >= ADVISED_MAX {
            return format!("in {name}");
        }
        let line = 1 + text[..place.span.start].matches('\n').count();
        format!("at {name}:{line}")
    }

    /// Where the path `path` of the file at `place` leads.
    fn path(&self, place: &Place, path: &Path) -> PathBuf {
        self.folders[place.file].join(path)
    }

    /// A name that is none of `known` was given for one of them.
    fn unknown_name(&mut self, place: &Place, what: &str, name: &str, known: &[String], or: &str) {
        let fix = nearest(name, known.iter().map(String::as_str));
        let fix = fix.map_or_else(String::new, |word| format!("did you mean \"{word}\"?"));
        let shown: Vec<String> =
            known.iter().take(NAMES_SHOWN_MAX).map(|name| format!("\"{name}\"")).collect();
        let more = if known.len() > NAMES_SHOWN_MAX { ", ..." } else { "" };
        let expected = match shown.as_slice() {
            [] => or.to_owned(),
            [one] if or.is_empty() => one.clone(),
            many if or.is_empty() => format!("one of {}{more}", many.join(", ")),
            many => format!("one of {}{more}, or {or}", many.join(", ")),
        };
        self.reader.refuse_at(place, format!("there is no {what} `{name}`"), fix, expected);
    }
}

/// Names that a message lists.
const NAMES_SHOWN_MAX: usize = 10;

/// Names that must differ.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
    given: Vec<At<String>>,
}

impl Names {
    /// Adds a name that was given. Returns where it was given before.
    fn add(&mut self, name: &At<String>) -> Option<Place> {
        if self.taken.insert(name.value.clone()) {
            self.given.push(name.clone());
            return None;
        }
        self.given.iter().find(|given| given.value == name.value).map(|given| given.place.clone())
    }

    /// `base`, or with the first number that makes it differ.
    fn free(&mut self, base: &str) -> String {
        let numbered = (2..).map(|number| format!("{base}#{number}"));
        let all = std::iter::once(base.to_owned()).chain(numbered);
        let name = all.into_iter().find(|name| !self.taken.contains(name));
        let name = name.expect("of endless names one is free");
        self.taken.insert(name.clone());
        name
    }
}
