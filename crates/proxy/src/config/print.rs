//! A configuration as text: the complete file, and one line for `baton check`.

use std::fmt::Display;
use std::path::Path;

use super::{Config, SETTINGS};

/// Writes the complete file that says what `config` says, every setting with its meaning.
/// [`super::parse`] reads the same `config` back.
pub fn print(config: &Config) -> String {
    let mut out = format!(
        "[[listen]]\naddr = {}\n\n[[route]]\nto = {}\n",
        one_or_many(config.addresses()),
        one_or_many(config.endpoints()),
    );
    for group in SETTINGS {
        out.push_str(&format!("\n[{}]\n", group.table));
        for field in group.fields {
            for line in field.doc {
                out.push_str(&format!("#{line}\n"));
            }
            out.push_str(&format!("{} = {}\n", field.name, field.show_toml(config)));
        }
    }
    out
}

/// One line on what the file at `path` sets up.
pub fn summary(config: &Config, path: &Path) -> String {
    let count = |count: usize, thing: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {thing}{plural}")
    };
    let listeners = count(config.addresses().count(), "listener");
    let endpoints = count(config.endpoints().count(), "endpoint");
    format!("{}: ok, {listeners}, {endpoints}", path.display())
}

/// Addresses and host names hold nothing that TOML escapes.
fn one_or_many(addresses: impl Iterator<Item = impl Display>) -> String {
    let quoted: Vec<String> = addresses.map(|address| format!("\"{address}\"")).collect();
    match quoted.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
