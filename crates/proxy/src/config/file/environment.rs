//! `${NAME}` and `${NAME:-default}` in strings.

use std::borrow::Cow;
use std::ffi::OsStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::problem::nearest;
use crate::config::reader::{Environment, Reader};

/// Bytes that one string may become. Over it: refused.
const STRING_BYTES_MAX: usize = 64 * 1024;
/// Tables and arrays within each other that are looked through. No setting is deeper.
const DEPTH_MAX: usize = 16;

/// The variables of this process.
pub(in crate::config) struct OfProcess;

impl Environment for OfProcess {
    fn value(&self, name: &str) -> Result<Option<String>, &'static str> {
        match std::env::var_os(OsStr::new(name)) {
            None => Ok(None),
            Some(value) => value.into_string().map(Some).map_err(|_| "is not UTF-8"),
        }
    }

    fn names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }
}

/// Puts in what strings of `table` ask for. What cannot be put in is a finding.
pub(super) fn substitute(table: &mut DeTable<'_>, reader: &mut Reader<'_>) {
    substitute_table(table, reader, DEPTH_MAX);
}

fn substitute_table(table: &mut DeTable<'_>, reader: &mut Reader<'_>, depth: usize) {
    for (_, value) in table.iter_mut() {
        substitute_value(value, reader, depth);
    }
}

fn substitute_value(value: &mut Spanned<DeValue<'_>>, reader: &mut Reader<'_>, depth: usize) {
    let span = value.span();
    match value.get_mut() {
        DeValue::String(text) if text.contains("${") => match expand(text, reader.environment) {
            Ok((expanded, is_changed)) => {
                *text = Cow::Owned(expanded);
                if is_changed {
                    reader.substituted.insert((reader.file, span.start));
                }
            }
            Err(Refused { problem, fix, expected }) => {
                let place = reader.place(span.clone());
                reader.refuse_at(&place, problem, fix, expected);
                reader.unusable.insert((reader.file, span.start));
            }
        },
        DeValue::Array(array) if depth > 0 => {
            for element in array.iter_mut() {
                substitute_value(element, reader, depth - 1);
            }
        }
        DeValue::Table(table) if depth > 0 => substitute_table(table, reader, depth - 1),
        _ => {}
    }
}

struct Refused {
    problem: String,
    fix: String,
    expected: &'static str,
}

const EXPECTED: &str = "${NAME} or ${NAME:-default}; a `${` that is meant is written `$${`";

/// `text` with its variables, and whether there was one.
fn expand(text: &str, environment: &dyn Environment) -> Result<(String, bool), Refused> {
    let refuse = |problem: String, fix: String| Refused { problem, fix, expected: EXPECTED };
    let mut out = String::new();
    let mut is_changed = false;
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some((inside, after)) = inside.split_once('}') else {
            return Err(refuse("`${` without its `}`".to_owned(), String::new()));
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            let problem = format!("`{name}` is no name of a variable");
            return Err(refuse(problem, String::new()));
        }
        let value = environment
            .value(name)
            .map_err(|wrong| refuse(format!("the variable {name} {wrong}"), String::new()))?;
        match value.as_deref().or(default) {
            Some(value) => out.push_str(value),
            None => return Err(unset(name, environment)),
        }
        if out.len() > STRING_BYTES_MAX {
            let problem = "with its variables the text is over 64KiB".to_owned();
            return Err(refuse(problem, String::new()));
        }
        is_changed = true;
        rest = after;
    }
    out.push_str(rest);
    Ok((out, is_changed))
}

fn unset(name: &str, environment: &dyn Environment) -> Refused {
    let names = environment.names();
    // What is near a short name is so by chance.
    let known = names.iter().map(String::as_str).filter(|known| known.len() > 3);
    let fix = nearest(name, known);
    let fix = fix.map_or_else(String::new, |word| format!("did you mean ${{{word}}}?"));
    Refused { problem: format!("the variable {name} is not set"), fix, expected: EXPECTED }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Environment for Fixed {
        fn value(&self, name: &str) -> Result<Option<String>, &'static str> {
            match name {
                "A" => Ok(Some("1".to_owned())),
                "EMPTY" => Ok(Some(String::new())),
                "QUOTES" => Ok(Some("\"]\n[x]\n${A}".to_owned())),
                "LONG" => Ok(Some("x".repeat(STRING_BYTES_MAX))),
                "LATIN" => Err("is not UTF-8"),
                _ => Ok(None),
            }
        }

        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn what_cannot_be_put_in_is_refused_with_its_cause() {
        for (text, expected) in [
            ("${", "`${` without its `}`"),
            ("a${A", "`${` without its `}`"),
            ("${}", "`` is no name of a variable"),
            ("${1A}", "`1A` is no name of a variable"),
            ("${A B}", "`A B` is no name of a variable"),
            ("${A-x}", "`A-x` is no name of a variable"),
            ("${UNSET_FOR_THIS_TEST}", "the variable UNSET_FOR_THIS_TEST is not set"),
            ("${LATIN}", "the variable LATIN is not UTF-8"),
            ("${LONG}${A}", "with its variables the text is over 64KiB"),
        ] {
            let refused = expand(text, &Fixed).err().map(|refused| refused.problem);
            assert_eq!(refused.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn variables_defaults_and_signs_that_are_meant_are_put_in_once() {
        for (text, expected, is_changed) in [
            ("${A}", "1", true),
            ("x${A}y${A}z", "x1y1z", true),
            ("${B:-2}", "2", true),
            ("${B:-}", "", true),
            ("${A:-2}", "1", true),
            ("${EMPTY:-2}", "", true),
            ("$${A}", "${A}", false),
            ("$$${A}", "$${A}", false),
            ("${QUOTES}", "\"]\n[x]\n${A}", true),
            ("$A {A} $", "$A {A} $", false),
        ] {
            let expanded = expand(text, &Fixed).map_err(|refused| refused.problem);
            assert_eq!(expanded, Ok((expected.to_owned(), is_changed)), "{text}");
        }
    }
}
