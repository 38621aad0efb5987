//! The file: TOML to `Config`, with every finding at its place.
//!
//! The tree is walked by hand and not through serde, whose derive stops at the first error and
//! cannot say which key was meant.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, nearest};
use super::{Config, ConfigError, Given, Group, Problems, SETTINGS, parse_listen, parse_upstream};

/// Parses the text of a configuration file. `name`: the file's, for the messages.
///
/// Errors: `ConfigError::Invalid` with every finding; where the text is not TOML, with those of the
/// syntax alone, because what the rest says is then a guess.
pub fn parse(text: &str, name: &str) -> Result<Config, ConfigError> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { config: Config::defaults(), problems: Vec::new() };
    if errors.is_empty() {
        reader.document(document.get_ref());
    }
    reader.problems.extend(errors.into_iter().map(|error| Problem {
        span: error.span(),
        problem: error.message().to_owned(),
        fix: String::new(),
        expected: String::new(),
    }));
    if reader.problems.is_empty() {
        Ok(reader.config)
    } else {
        Err(ConfigError::Invalid(Problems::new(name, text, reader.problems)))
    }
}

/// What has been read so far and what was wrong with it.
struct Reader {
    config: Config,
    problems: Vec<Problem>,
}

impl Reader {
    fn document(&mut self, document: &DeTable<'_>) {
        for (key, value) in document {
            match key.get_ref().as_ref() {
                "listen" => self.listen(value),
                "route" => self.route(value),
                name => match SETTINGS.iter().find(|group| group.table == name) {
                    Some(group) => self.group(group, value),
                    None => {
                        let settings = SETTINGS.iter().map(|group| group.table);
                        let known: Vec<&str> =
                            ["listen", "route"].into_iter().chain(settings).collect();
                        self.unknown(key, "the file", &known);
                    }
                },
            }
        }
        if !document.contains_key("listen") {
            self.missing("no [[listen]] table", r#"[[listen]] with addr = ":8080""#);
        }
        if !document.contains_key("route") {
            self.missing("no [[route]] table", r#"[[route]] with to = "127.0.0.1:9000""#);
        }
        // Over a refused value stands its default, whose relations say nothing about the file.
        if !self.problems.is_empty() {
            return;
        }
        if let Err(problem) = self.config.check_relations() {
            let limit = document.get("limit").and_then(|limit| limit.get_ref().as_table());
            let place = limit.and_then(|limit| {
                limit.get("target_bytes").or_else(|| limit.get("head_bytes")).map(Spanned::span)
            });
            let expected = "limit.target_bytes of at most limit.head_bytes".to_owned();
            self.problems.push(Problem { span: place, problem, fix: String::new(), expected });
        }
    }

    fn listen(&mut self, value: &Spanned<DeValue<'_>>) {
        for table in self.array_of_tables("listen", value) {
            for (text, span) in self.only_key("listen", "addr", LISTEN_EXPECTED, table) {
                match parse_listen(text) {
                    Ok(address) => {
                        if let Err(problem) = self.config.add_listener(address) {
                            self.refuse(span, problem, "");
                        }
                    }
                    Err(error) => self.refuse(span, error.to_string(), LISTEN_EXPECTED),
                }
            }
        }
    }

    fn route(&mut self, value: &Spanned<DeValue<'_>>) {
        let tables = self.array_of_tables("route", value);
        for (index, table) in tables.into_iter().enumerate() {
            if index > 0 {
                let problem = format!("a second [[route]]; {NO_ROUTING}");
                self.refuse(table.span(), problem, "one [[route]]; `to` takes several endpoints");
                continue;
            }
            for (text, span) in self.only_key("route", "to", ROUTE_EXPECTED, table) {
                match parse_upstream(text) {
                    Ok(address) => {
                        if let Err(problem) = self.config.add_upstream(address) {
                            self.refuse(span, problem, "");
                        }
                    }
                    Err(error) => self.refuse(span, error.to_string(), ROUTE_EXPECTED),
                }
            }
        }
    }

    fn group(&mut self, group: &Group, value: &Spanned<DeValue<'_>>) {
        let name = group.table;
        let Some(table) = value.get_ref().as_table() else {
            let problem = format!("`{name}` is {}", describe(value.get_ref()));
            self.refuse(value.span(), problem, &format!("a table that starts with [{name}]"));
            return;
        };
        for (key, value) in table {
            let field = group.fields.iter().find(|field| field.name == key.get_ref());
            let Some(field) = field else {
                let known: Vec<&str> = group.fields.iter().map(|field| field.name).collect();
                self.unknown(key, &format!("[{name}]"), &known);
                continue;
            };
            let given = match value.get_ref() {
                DeValue::String(text) => Given::String(text),
                DeValue::Integer(number) if number.radix() == 10 => Given::Integer(number.as_str()),
                other => Given::Other(describe(other)),
            };
            if let Err(error) = field.set(&mut self.config, given) {
                self.problems.push(Problem {
                    span: Some(value.span()),
                    problem: format!("{name}.{}: {}", field.name, error.problem),
                    fix: error.fix,
                    expected: error.expected,
                });
            }
        }
    }

    /// The tables of `[[name]]`. Anything else is a finding, and no table.
    fn array_of_tables<'v, 'i>(
        &mut self,
        name: &str,
        value: &'v Spanned<DeValue<'i>>,
    ) -> Vec<Spanned<&'v DeTable<'i>>> {
        let expected = format!("a table that starts with [[{name}]]");
        let Some(array) = value.get_ref().as_array() else {
            let problem = format!("`{name}` is {}", describe(value.get_ref()));
            self.refuse(value.span(), problem, &expected);
            return Vec::new();
        };
        if array.is_empty() {
            self.refuse(value.span(), format!("`{name}` is empty"), &expected);
        }
        let mut tables = Vec::new();
        for element in array.iter() {
            match element.get_ref() {
                DeValue::Table(table) => tables.push(Spanned::new(element.span(), table)),
                other => {
                    let problem = format!("`{name}` has {} in it", describe(other));
                    self.refuse(element.span(), problem, &expected);
                }
            }
        }
        tables
    }

    /// The strings of the one key that `[[name]]` has, which must be there.
    fn only_key<'v>(
        &mut self,
        name: &str,
        wanted: &'static str,
        expected: &str,
        table: Spanned<&'v DeTable<'_>>,
    ) -> Vec<(&'v str, Range<usize>)> {
        let scope = format!("[[{name}]]");
        let span = table.span();
        let table = table.into_inner();
        for (key, _) in table {
            if key.get_ref() != wanted {
                self.unknown(key, &scope, &[wanted]);
            }
        }
        match table.get(wanted) {
            Some(value) => self.strings(wanted, expected, value),
            None => {
                self.refuse(span, format!("{scope} without `{wanted}`"), expected);
                Vec::new()
            }
        }
    }

    /// One string, or an array of at least one.
    fn strings<'v>(
        &mut self,
        name: &str,
        expected: &str,
        value: &'v Spanned<DeValue<'_>>,
    ) -> Vec<(&'v str, Range<usize>)> {
        let elements = match value.get_ref() {
            DeValue::Array(array) if array.is_empty() => {
                self.refuse(value.span(), format!("`{name}` is empty"), expected);
                return Vec::new();
            }
            DeValue::Array(array) => array.iter().as_slice(),
            _ => std::slice::from_ref(value),
        };
        let mut strings = Vec::new();
        for element in elements {
            match element.get_ref() {
                DeValue::String(text) => strings.push((text.as_ref(), element.span())),
                other => {
                    let problem = format!("{} stands where a string belongs", describe(other));
                    self.refuse(element.span(), problem, expected);
                }
            }
        }
        strings
    }

    fn unknown(&mut self, key: &Spanned<Cow<'_, str>>, scope: &str, known: &[&str]) {
        let name = key.get_ref().as_ref();
        let mut problem = format!("unknown key `{name}` in {scope}");
        if scope == "[[route]]" && ["host", "path"].contains(&name) {
            problem = format!("{problem}; {NO_ROUTING}");
        }
        let fix = match home(name) {
            Some(table) => format!("`{name}` belongs in {table}"),
            None => nearest(name, known.iter().copied())
                .map_or_else(String::new, |word| format!("did you mean `{word}`?")),
        };
        let expected = match known {
            [one] => format!("`{one}`"),
            many => format!("one of: {}", many.join(", ")),
        };
        self.problems.push(Problem { span: Some(key.span()), problem, fix, expected });
    }

    fn refuse(&mut self, span: Range<usize>, problem: String, expected: &str) {
        let expected = expected.to_owned();
        self.problems.push(Problem { span: Some(span), problem, fix: String::new(), expected });
    }

    fn missing(&mut self, problem: &str, expected: &str) {
        self.problems.push(Problem {
            span: None,
            problem: problem.to_owned(),
            fix: String::new(),
            expected: expected.to_owned(),
        });
    }
}

/// The table that has a key of this name, as it is written.
fn home(name: &str) -> Option<String> {
    match name {
        "addr" => Some("[[listen]]".to_owned()),
        "to" => Some("[[route]]".to_owned()),
        _ => SETTINGS
            .iter()
            .find(|group| group.fields.iter().any(|field| field.name == name))
            .map(|group| format!("[{}]", group.table)),
    }
}

/// The type of a value, with the article.
fn describe(value: &DeValue<'_>) -> &'static str {
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

const LISTEN_EXPECTED: &str =
    r#"addr = ":8080", "127.0.0.1:8080" or "[::1]:8080", or an array of these"#;
const ROUTE_EXPECTED: &str =
    r#"to = "127.0.0.1:9000", "[::1]:9000" or "name:9000", or an array of these"#;
const NO_ROUTING: &str = "routing by host and path is not available yet";
