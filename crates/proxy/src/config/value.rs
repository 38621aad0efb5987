//! One value of a setting: from what was given to what is stored, and back to text.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::problem::nearest;
use super::{AcceptMode, Config, DriverChoice, Field, LogLevel, Word};
use crate::units::{self, UnitError};

/// Where a setting lives in `Config`.
pub(crate) struct Slot<T: 'static> {
    pub(crate) read: fn(&Config) -> &T,
    pub(crate) write: fn(&mut Config) -> &mut T,
}

/// What a setting holds and the smallest and largest value accepted.
pub(crate) enum Kind {
    Duration(Slot<Duration>, RangeInclusive<Duration>),
    Size(Slot<usize>, RangeInclusive<usize>),
    /// A size, or the word `none`.
    SizeOrNone(Slot<Option<u64>>, RangeInclusive<u64>),
    Count(Slot<usize>, RangeInclusive<usize>),
    /// A number, or the word that stands for `None`.
    CountOr(Slot<Option<usize>>, RangeInclusive<usize>, &'static str),
    Driver(Slot<DriverChoice>),
    Accept(Slot<AcceptMode>),
    LogLevel(Slot<LogLevel>),
}

/// A value as it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    /// The value of a flag.
    Flag(&'a str),
    /// A string of the file, without its quotes.
    String(&'a str),
    /// An integer of the file, in decimal.
    Integer(&'a str),
    /// Something else of the file: its type, with the article.
    Other(&'static str),
}

impl Given<'_> {
    /// `text` as it is written where this value was found: quoted in the file, bare in a flag.
    fn spell(self, text: impl Display) -> String {
        match self {
            Self::Flag(_) => text.to_string(),
            Self::String(_) | Self::Integer(_) | Self::Other(_) => format!("\"{text}\""),
        }
    }
}

/// Why a value was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    /// What is wrong.
    pub(crate) problem: String,
    /// What to write instead; empty if nothing is near.
    pub(crate) fix: String,
    /// What the setting takes.
    pub(crate) expected: String,
}

impl Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if !self.fix.is_empty() {
            write!(f, "; {}", self.fix)?;
        }
        write!(f, "\n  expected {}", self.expected)
    }
}

/// A `ValueError` before it is known which setting it is about.
struct Refusal {
    problem: String,
    fix: String,
}

impl Refusal {
    fn new(problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { problem: problem.into(), fix: fix.into() }
    }
}

impl Field {
    /// Parses `given` and stores it in `config`. On error `config` is as it was.
    pub(crate) fn set(&self, config: &mut Config, given: Given<'_>) -> Result<(), ValueError> {
        self.store(config, given).map_err(|Refusal { problem, fix }| {
            let expected = self.expected(given);
            ValueError { problem, fix, expected }
        })
    }

    fn store(&self, config: &mut Config, given: Given<'_>) -> Result<(), Refusal> {
        match &self.kind {
            Kind::Duration(slot, range) => {
                let value =
                    within(duration(given)?, range, |value| units::format_duration(*value))?;
                *(slot.write)(config) = value;
            }
            Kind::Size(slot, range) => {
                // A size that the machine cannot address is over every bound.
                let value = usize::try_from(size(given)?).unwrap_or(usize::MAX);
                *(slot.write)(config) = within(value, range, |value| show_size(*value))?;
            }
            Kind::SizeOrNone(slot, range) => {
                *(slot.write)(config) = or_word(given, "none", || {
                    within(size(given)?, range, |value| units::format_size(*value))
                })?;
            }
            Kind::Count(slot, range) => {
                *(slot.write)(config) = within(count(given)?, range, usize::to_string)?;
            }
            Kind::CountOr(slot, range, word) => {
                *(slot.write)(config) =
                    or_word(given, word, || within(count(given)?, range, usize::to_string))?;
            }
            Kind::Driver(slot) => *(slot.write)(config) = word(given)?,
            Kind::Accept(slot) => *(slot.write)(config) = word(given)?,
            Kind::LogLevel(slot) => *(slot.write)(config) = word(given)?,
        }
        Ok(())
    }

    /// The value in `config`, as a flag takes it.
    pub(crate) fn show(&self, config: &Config) -> String {
        match &self.kind {
            Kind::Duration(slot, _) => units::format_duration(*(slot.read)(config)),
            Kind::Size(slot, _) => show_size(*(slot.read)(config)),
            Kind::SizeOrNone(slot, _) => {
                (slot.read)(config).map_or_else(|| "none".to_owned(), units::format_size)
            }
            Kind::Count(slot, _) => (slot.read)(config).to_string(),
            Kind::CountOr(slot, _, word) => {
                (slot.read)(config).map_or_else(|| (*word).to_owned(), |value| value.to_string())
            }
            Kind::Driver(slot) => (slot.read)(config).word().to_owned(),
            Kind::Accept(slot) => (slot.read)(config).word().to_owned(),
            Kind::LogLevel(slot) => (slot.read)(config).word().to_owned(),
        }
    }

    /// The value in `config`, as the file takes it: numbers bare, all else in quotes. No value
    /// holds a character that TOML escapes.
    pub(crate) fn show_toml(&self, config: &Config) -> String {
        let text = self.show(config);
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text } else { format!("\"{text}\"") }
    }

    /// What stands for the value in the help: `DURATION`, `N|auto`, `per-core|dealt`.
    pub(crate) fn placeholder(&self) -> String {
        match &self.kind {
            Kind::Duration(..) => "DURATION".to_owned(),
            Kind::Size(..) => "SIZE".to_owned(),
            Kind::SizeOrNone(..) => "SIZE|none".to_owned(),
            Kind::Count(..) => "N".to_owned(),
            Kind::CountOr(_, _, word) => format!("N|{word}"),
            Kind::Driver(_) => words::<DriverChoice>("|", str::to_owned),
            Kind::Accept(_) => words::<AcceptMode>("|", str::to_owned),
            Kind::LogLevel(_) => words::<LogLevel>("|", str::to_owned),
        }
    }

    /// What the setting takes, spelled as where `given` stands.
    fn expected(&self, given: Given<'_>) -> String {
        let example = given.spell(self.show(&Config::defaults()));
        let spell = |word: &str| given.spell(word);
        match &self.kind {
            Kind::Duration(_, range) => format!(
                "a duration from {} to {}, such as {example}",
                units::format_duration(*range.start()),
                units::format_duration(*range.end()),
            ),
            Kind::Size(_, range) => format!(
                "a size from {} to {}, such as {example}",
                show_size(*range.start()),
                show_size(*range.end()),
            ),
            Kind::SizeOrNone(_, range) => format!(
                "a size up to {}, such as {}, or {}",
                units::format_size(*range.end()),
                spell("64MiB"),
                spell("none"),
            ),
            Kind::Count(_, range) => format!("a number from {} to {}", range.start(), range.end()),
            Kind::CountOr(_, range, word) => {
                format!("a number from {} to {}, or {}", range.start(), range.end(), spell(word))
            }
            Kind::Driver(_) => format!("one of {}", words::<DriverChoice>(", ", spell)),
            Kind::Accept(_) => format!("one of {}", words::<AcceptMode>(", ", spell)),
            Kind::LogLevel(_) => format!("one of {}", words::<LogLevel>(", ", spell)),
        }
    }
}

fn show_size(bytes: usize) -> String {
    units::format_size(bytes as u64)
}

fn words<T: Word>(separator: &str, spell: impl Fn(&str) -> String) -> String {
    let words: Vec<String> = T::ALL.iter().map(|(word, _)| spell(word)).collect();
    words.join(separator)
}

fn within<T: PartialOrd>(
    value: T,
    range: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Result<T, Refusal> {
    if value < *range.start() {
        let problem = format!("{} is under {}", show(&value), show(range.start()));
        return Err(Refusal::new(problem, ""));
    }
    if value > *range.end() {
        let problem = format!("{} is over {}", show(&value), show(range.end()));
        return Err(Refusal::new(problem, ""));
    }
    Ok(value)
}

fn duration(given: Given<'_>) -> Result<Duration, Refusal> {
    quantity(given, ["s", "ms"], units::parse_duration)
}

fn size(given: Given<'_>) -> Result<u64, Refusal> {
    quantity(given, ["KiB", "B"], units::parse_size)
}

/// A number with a unit. `usual`: the units to suggest where there is none.
fn quantity<T>(
    given: Given<'_>,
    usual: [&str; 2],
    parse: fn(&str) -> Result<T, UnitError>,
) -> Result<T, Refusal> {
    let with_units = |number: &str| {
        let [first, second] = usual.map(|unit| given.spell(format_args!("{number}{unit}")));
        format!("write {first} or {second}")
    };
    let text = match given {
        Given::Flag(text) | Given::String(text) => text,
        Given::Integer(number) if number.starts_with('-') => {
            return Err(Refusal::new(UnitError::Negative.to_string(), ""));
        }
        Given::Integer(number) => {
            return Err(Refusal::new(UnitError::NoUnit.to_string(), with_units(number)));
        }
        Given::Other(kind) => return Err(not_a_string(kind)),
    };
    parse(text).map_err(|error| {
        let fix = match &error {
            UnitError::NoUnit => with_units(text),
            UnitError::Space => {
                let tight: String = text.split_whitespace().collect();
                let fix = format!("write {}", given.spell(&tight));
                if parse(&tight).is_ok() { fix } else { String::new() }
            }
            _ => String::new(),
        };
        Refusal::new(error.to_string(), fix)
    })
}

fn not_a_string(kind: &str) -> Refusal {
    Refusal::new(format!("{kind} stands where a string belongs"), "")
}

fn count(given: Given<'_>) -> Result<usize, Refusal> {
    let text = match given {
        Given::Flag(text) => text,
        // TOML allows a plus sign.
        Given::Integer(text) => text.strip_prefix('+').unwrap_or(text),
        Given::String(text) => {
            let fix = match number(text) {
                Ok(_) => format!("write {text} without quotes"),
                Err(_) => String::new(),
            };
            return Err(Refusal::new("a string stands where a number belongs", fix));
        }
        Given::Other(kind) => {
            return Err(Refusal::new(format!("{kind} stands where a number belongs"), ""));
        }
    };
    number(text)
}

/// A whole number; underscores between digits group them, as in TOML.
fn number(text: &str) -> Result<usize, Refusal> {
    let grouped = text.split('_').all(|group| !group.is_empty());
    let digits = text.replace('_', "");
    if digits.starts_with('-') {
        return Err(Refusal::new("it is negative", ""));
    }
    if !grouped || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::new("it is not a whole number", ""));
    }
    // Digits alone fail to parse only by overflow.
    digits.parse().map_err(|_| Refusal::new("the number is too large", ""))
}

/// `None` for `word`, else what `parse` makes of the value. A text near `word` was meant as such.
fn or_word<T>(
    given: Given<'_>,
    word: &str,
    parse: impl Fn() -> Result<T, Refusal>,
) -> Result<Option<T>, Refusal> {
    let (Given::Flag(text) | Given::String(text)) = given else { return parse().map(Some) };
    if text == word {
        return Ok(None);
    }
    parse().map(Some).map_err(|refusal| match nearest(text, [word].into_iter()) {
        Some(word) => unknown_word(given, text, Some(word)),
        None => refusal,
    })
}

fn word<T: Word>(given: Given<'_>) -> Result<T, Refusal> {
    let text = match given {
        Given::Flag(text) | Given::String(text) => text,
        Given::Integer(_) => return Err(not_a_string("an integer")),
        Given::Other(kind) => return Err(not_a_string(kind)),
    };
    if let Some((_, value)) = T::ALL.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known = T::ALL.iter().map(|(word, _)| *word);
    Err(unknown_word(given, text, nearest(text, known)))
}

fn unknown_word(given: Given<'_>, text: &str, meant: Option<&str>) -> Refusal {
    let fix = meant.map(|word| format!("did you mean {}?", given.spell(word)));
    Refusal::new(format!("unknown word {}", given.spell(text)), fix.unwrap_or_default())
}
