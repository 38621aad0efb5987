//! What goes along with the reading of a file: where it is, and what was wrong so far.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::file::homes;
use super::problem::{Problem, nearest};
use super::table::Place;
use super::value::{Given, ValueError};

/// Where the reading is, and what it found.
pub(crate) struct Reader<'e> {
    pub(crate) problems: Vec<Problem>,
    /// Index of the file that is read.
    pub(crate) file: usize,
    /// Where strings begin, by file, that were made of the environment.
    pub(crate) substituted: HashSet<(usize, usize)>,
    /// Where strings begin that could not be made. What is found about them says nothing.
    pub(crate) unusable: HashSet<(usize, usize)>,
    /// Where tables begin in which something was refused.
    flawed: HashSet<(usize, usize)>,
    /// What `${NAME}` stands for.
    pub(crate) environment: &'e dyn Environment,
    /// Keys from the root to the value that is read.
    path: Vec<String>,
    /// Example of the key that is read.
    example: &'static str,
    /// Whether an array may stand where a single value was read.
    in_list: bool,
}

/// What `${NAME}` stands for.
pub(crate) trait Environment {
    /// The value of a variable; `None`: it is not set. Error: what is wrong with it.
    fn value(&self, name: &str) -> Result<Option<String>, &'static str>;

    /// The variables there are.
    fn names(&self) -> Vec<String>;
}

impl<'e> Reader<'e> {
    pub(crate) fn new(environment: &'e dyn Environment) -> Self {
        Self {
            problems: Vec::new(),
            file: 0,
            substituted: HashSet::new(),
            unusable: HashSet::new(),
            flawed: HashSet::new(),
            environment,
            path: Vec::new(),
            example: "",
            in_list: false,
        }
    }

    /// The place of `span` in the file that is read.
    pub(crate) fn place(&self, span: Range<usize>) -> Place {
        Place { file: self.file, span }
    }

    /// Reads the value of `key`.
    pub(crate) fn within<T>(
        &mut self,
        key: &str,
        example: &'static str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.path.push(key.to_owned());
        let outer = (std::mem::replace(&mut self.example, example), self.in_list);
        self.in_list = false;
        let value = read(self);
        (self.example, self.in_list) = outer;
        self.path.pop();
        value
    }

    /// Reads a value in whose place an array may stand.
    pub(crate) fn in_list<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.in_list, true);
        let value = read(self);
        self.in_list = outer;
        value
    }

    /// The key whose value is read.
    pub(crate) fn key(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// An example of the key that is read, without quotes.
    pub(crate) fn example(&self) -> &'static str {
        self.example.trim_matches('"')
    }

    /// The example as the file has it, with its key.
    pub(crate) fn example_line(&self) -> String {
        format!("{} = {}", self.key(), self.example.trim_start_matches("# "))
    }

    /// The key that is read as a table, whose header is `label`.
    pub(crate) fn example_of_table(&self, label: &str) -> String {
        match self.example {
            "" => format!("a table that starts with {label}"),
            _ => self.example_line(),
        }
    }

    /// `label` with the name of the upstream that is read.
    pub(crate) fn label(&self, label: &str) -> String {
        match self.path.as_slice() {
            [first, name, ..] if first == "upstream" => label.replace("NAME", name),
            _ => label.to_owned(),
        }
    }

    /// `value` as a scalar takes it.
    pub(crate) fn given<'v>(&self, value: &'v Spanned<DeValue<'_>>) -> Given<'v> {
        match value.get_ref() {
            DeValue::String(text) if self.is_substituted(value.span().start) => {
                Given::Substituted(text)
            }
            DeValue::String(text) => Given::String(text),
            DeValue::Integer(number) if number.radix() == 10 => Given::Integer(number.as_str()),
            DeValue::Boolean(yes) => Given::Boolean(*yes),
            other => Given::Other(describe(other)),
        }
    }

    fn is_substituted(&self, start: usize) -> bool {
        self.substituted.contains(&(self.file, start))
    }

    /// Reads a table at `place`, and remembers whether something of it was refused.
    pub(crate) fn table_at<T>(&mut self, place: &Place, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.problems.len();
        let value = read(self);
        if self.problems.len() > before {
            self.flawed.insert((place.file, place.span.start));
        }
        value
    }

    /// Whether nothing of the table at `place` was refused.
    pub(crate) fn is_sound(&self, place: &Place) -> bool {
        !self.flawed.contains(&(place.file, place.span.start))
    }

    /// A value was refused.
    pub(crate) fn refuse_value(&mut self, span: Range<usize>, error: ValueError) {
        let ValueError { problem, fix, mut expected } = error;
        if self.in_list {
            expected.push_str(", or an array of these");
        }
        let made = self.is_substituted(span.start);
        let note = if made { " (with its variables put in)" } else { "" };
        let problem = format!("{}: {problem}{note}", self.path.join("."));
        self.push(Some(self.place(span)), problem, fix, expected);
    }

    /// Something at `span` is wrong.
    pub(crate) fn refuse(&mut self, span: Range<usize>, problem: String, expected: &str) {
        self.push(Some(self.place(span)), problem, String::new(), expected.to_owned());
    }

    /// Something at `place`, maybe in another file, is wrong.
    pub(crate) fn refuse_at(
        &mut self,
        place: &Place,
        problem: String,
        fix: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.push(Some(place.clone()), problem, fix.into(), expected.into());
    }

    /// Something is not there at all.
    pub(crate) fn missing(&mut self, problem: &str, expected: &str) {
        self.push(None, problem.to_owned(), String::new(), expected.to_owned());
    }

    fn push(&mut self, place: Option<Place>, problem: String, fix: String, expected: String) {
        // What was not put in has its own finding already.
        let unusable = place
            .as_ref()
            .is_some_and(|place| self.unusable.contains(&(place.file, place.span.start)));
        if !unusable {
            self.problems.push(Problem { place, problem, fix, expected });
        }
    }

    /// `key` is none of `known`, which are those of `label`.
    pub(crate) fn unknown_key(
        &mut self,
        key: &Spanned<Cow<'_, str>>,
        label: &str,
        known: &[&'static str],
    ) {
        let name = key.get_ref().as_ref();
        let problem = format!("unknown key `{name}` in {label}");
        if self.problems.len() >= ADVISED_MAX {
            return self.refuse(key.span(), problem, "");
        }
        let elsewhere = elsewhere(name).filter(|word| known.contains(word));
        let homes = homes(name, label);
        let fix = match (elsewhere, nearest(name, known.iter().copied())) {
            (Some(word), _) => format!("here it is `{word}`"),
            (None, None) if label.ends_with("_headers]") => {
                format!("write set = {{ {name} = \"...\" }}")
            }
            (None, Some(word)) if homes.is_empty() => format!("did you mean `{word}`?"),
            (None, _) if !homes.is_empty() => {
                format!("`{name}` belongs in {}", self.label(&homes.join(" or ")))
            }
            (None, _) => not_here(name).to_owned(),
        };
        let expected = match known {
            [one] => format!("`{one}`"),
            many => format!("one of: {}", many.join(", ")),
        };
        self.push(Some(self.place(key.span())), problem, fix, expected);
    }
}

/// Problems over which no advice is looked for: far more than are shown, few enough to look for.
pub(crate) const ADVISED_MAX: usize = 1_000;

/// The key here for the word of another proxy.
fn elsewhere(word: &str) -> Option<&'static str> {
    let (_, ours) = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word)?;
    Some(ours)
}

/// Words of nginx, HAProxy, Caddy, Traefik and Envoy, and what they are here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("proxy_pass", "to"),
    ("reverse_proxy", "to"),
    ("backend", "to"),
    ("use_backend", "to"),
    ("cluster", "to"),
    ("service", "to"),
    ("target", "to"),
    ("upstream", "to"),
    ("server_name", "host"),
    ("hostname", "host"),
    ("domain", "host"),
    ("domains", "host"),
    ("location", "path"),
    ("prefix", "path"),
    ("match", "path"),
    ("return", "respond"),
    ("rewrite", "replace_prefix"),
    ("add_header", "response_headers"),
    ("proxy_set_header", "request_headers"),
    ("set_header", "request_headers"),
    ("headers", "header"),
    ("limit_req", "rate_limit"),
    ("limit_conn", "concurrency"),
    ("error_page", "error_pages"),
    ("bind", "addr"),
    ("address", "addr"),
    ("port", "addr"),
    ("server", "endpoints"),
    ("servers", "endpoints"),
    ("addresses", "endpoints"),
    ("hosts", "endpoints"),
    ("lb_policy", "balance"),
    ("policy", "balance"),
    ("maxconn", "max_conns"),
    ("max_connections", "max_conns"),
    ("health_check", "health"),
    ("healthcheck", "health"),
    ("retries", "retry"),
    ("max_fails", "eject"),
    ("outlier_detection", "eject"),
    ("keepalive", "pool"),
    ("set_real_ip_from", "trusted_proxies"),
    ("backends", "upstream"),
    ("upstreams", "upstream"),
    ("clusters", "upstream"),
    ("frontend", "listen"),
    ("server_tokens", "limit"),
    ("logging", "log"),
    ("timeouts", "timeout"),
    ("limits", "limit"),
];

/// What is said of something that this proxy does not have.
fn not_here(word: &str) -> &'static str {
    match word {
        "tls" | "ssl" | "certificate" | "cert" | "certificates" | "https" | "acme" => {
            "TLS is not available yet: let what has it stand before baton"
        }
        "cache" | "proxy_cache" => "there is no cache",
        "gzip" | "compress" | "compression" | "encode" => "there is no compression yet",
        "root" | "file_server" | "static" | "try_files" => {
            "files are not served: name the server of them with `to`"
        }
        "auth" | "basic_auth" | "auth_basic" => {
            "there is no authentication: leave it to the origin"
        }
        _ => "",
    }
}

/// The type of a value, with the article.
pub(crate) fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(number) if number.radix() == 10 => "an integer",
        DeValue::Integer(_) => "an integer that is not decimal",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
