//! `baton doctor`: what this machine gives the proxy, and what an operator can change.
//!
//! Owns the judgement; the facts come from `platform` and from a trial of the driver. Called by the
//! command line. Never changes the machine; raises the process's own descriptor limit, as a start
//! of the proxy does.
//!
//! ```text
//! Readings::take (this machine) ─► checks (pure) ─► Report ─► table, JSON, exit status
//! ```

mod cores;
mod network;
mod readings;
mod remedy;
mod room;

use std::fmt;

use serde_json::{Value, json};

use readings::Readings;

/// Looks at the machine. Takes a few tens of milliseconds: small files, and a trial of the driver
/// with as many cores as would run.
pub(crate) fn report() -> Report {
    Report::of(&Readings::take())
}

/// What was found, one check after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    version: &'static str,
    checks: Vec<Check>,
}

/// How well a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// It works, and something would be better or could not be seen.
    Note,
    /// The proxy will not do what it is set up for.
    Warn,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    level: Level,
    /// The same in every report, for those who read the JSON.
    name: &'static str,
    value: String,
    /// There is one unless the level is `Ok`.
    advice: Option<Advice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Advice {
    meaning: String,
    /// The command or setting that changes it, where there is one.
    change: Option<String>,
}

impl Check {
    fn ok(name: &'static str, value: impl Into<String>) -> Check {
        Check { level: Level::Ok, name, value: value.into(), advice: None }
    }

    fn note(name: &'static str, value: impl Into<String>, meaning: impl Into<String>) -> Check {
        Check::advised(Level::Note, name, value.into(), meaning.into())
    }

    fn warn(name: &'static str, value: impl Into<String>, meaning: impl Into<String>) -> Check {
        Check::advised(Level::Warn, name, value.into(), meaning.into())
    }

    fn advised(level: Level, name: &'static str, value: String, meaning: String) -> Check {
        Check { level, name, value, advice: Some(Advice { meaning, change: None }) }
    }

    /// Says what changes it.
    fn change(mut self, change: impl Into<String>) -> Check {
        let advice = self.advice.as_mut().expect("only what is not as it should be is changed");
        advice.change = Some(change.into());
        self
    }
}

impl Report {
    fn of(readings: &Readings) -> Report {
        let mut checks = vec![Check::ok("version", readings.version)];
        checks.extend(cores::checks(readings));
        checks.extend(room::checks(readings));
        checks.extend(network::checks(readings));
        Report { version: readings.version, checks }
    }

    /// 0, or 1 if any check warns.
    pub(crate) fn exit_status(&self) -> u8 {
        u8::from(self.level() == Level::Warn)
    }

    /// The report as data:
    /// `{"version", "level", "checks": [{"name", "level", "value", "meaning", "change"}]}`;
    /// `meaning` and `change` are null where there is nothing to say.
    pub(crate) fn to_json(&self) -> Value {
        let check = |check: &Check| {
            let advice = check.advice.as_ref();
            json!({
                "name": check.name,
                "level": check.level.word(),
                "value": check.value,
                "meaning": advice.map(|advice| &advice.meaning),
                "change": advice.and_then(|advice| advice.change.as_ref()),
            })
        };
        let checks: Vec<Value> = self.checks.iter().map(check).collect();
        json!({ "version": self.version, "level": self.level().word(), "checks": checks })
    }

    /// The worst of the levels.
    fn level(&self) -> Level {
        self.checks.iter().map(|check| check.level).max().unwrap_or(Level::Ok)
    }

    fn count(&self, level: Level) -> usize {
        self.checks.iter().filter(|check| check.level == level).count()
    }
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warn => "warn",
        }
    }
}

/// A table with a line for each check, and below one that is not as it should be a second line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for Check { level, name, value, advice } in &self.checks {
            writeln!(f, "{:<4}  {name:<width$}  {value}", level.word())?;
            if let Some(Advice { meaning, change }) = advice {
                write!(f, "      {:<width$}  {meaning}", "")?;
                match change {
                    Some(change) => writeln!(f, ". Change: {change}")?,
                    None => writeln!(f)?,
                }
            }
        }
        let [ok, note, warn] = [Level::Ok, Level::Note, Level::Warn].map(|level| self.count(level));
        writeln!(f, "\n{ok} ok, {note} to note, {warn} to warn of")
    }
}

#[cfg(test)]
mod tests;
