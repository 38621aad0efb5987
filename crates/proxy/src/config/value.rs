//! Single values: from what was given to what is stored, and back to text.

mod kinds;

use std::fmt::{self, Display};
use std::ops::RangeInclusive;

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::DeValue;

use super::problem::nearest;
use super::reader::Reader;
use super::schema::or_environment;
use super::shapes::quote;
use super::table::Codec;
use crate::units::{self, UnitError};

pub(crate) use kinds::{CountIn, CountOr, DurationIn, OneOf, SizeIn, SizeOrNone, YesNo};

/// A value as it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    /// The value of a flag.
    Flag(&'a str),
    /// A key of the file.
    Key(&'a str),
    /// A string of the file, without its quotes.
    String(&'a str),
    /// A string of the file in which something of the environment was put. It may be a number.
    Substituted(&'a str),
    /// An integer of the file, in decimal.
    Integer(&'a str),
    /// A boolean of the file.
    Boolean(bool),
    /// Something else of the file: its type, with the article.
    Other(&'static str),
}

impl<'a> Given<'a> {
    /// `text` as it is written where this value was found: quoted in the file, bare in a flag.
    pub(crate) fn spell(self, text: impl Display) -> String {
        match self {
            Self::Flag(_) | Self::Key(_) => text.to_string(),
            _ => format!("\"{text}\""),
        }
    }

    /// The text of what is one; else what stands there.
    pub(crate) fn text(self) -> Result<&'a str, &'static str> {
        match self {
            Self::Flag(text) | Self::Key(text) | Self::String(text) | Self::Substituted(text) => {
                Ok(text)
            }
            Self::Integer(_) => Err("an integer"),
            Self::Boolean(_) => Err("a boolean"),
            Self::Other(kind) => Err(kind),
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

/// A `ValueError` before it is known what was expected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) problem: String,
    pub(crate) fix: String,
}

impl Refusal {
    pub(crate) fn new(problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { problem: problem.into(), fix: fix.into() }
    }

    pub(crate) fn expecting(self, expected: String) -> ValueError {
        ValueError { problem: self.problem, fix: self.fix, expected }
    }
}

/// A kind of single values, which a flag may have too.
pub(crate) trait Scalar: Sync {
    /// What is stored.
    type Value;

    fn parse(&self, given: Given<'_>) -> Result<Self::Value, Refusal>;

    /// The value as a flag takes it.
    fn show(&self, value: &Self::Value) -> String;

    /// What is taken, spelled as where `given` stands, with an example.
    fn expected(&self, given: Given<'_>, example: &str) -> String;

    /// What stands for the value in the help: `DURATION`, `N|auto`, `per-core|dealt`.
    fn placeholder(&self) -> String;

    fn schema(&self) -> Json;

    /// Whether TOML has `text`, which is a value shown, without quotes.
    fn is_bare(&self, text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl<S: Scalar> Codec for S {
    type Value = S::Value;

    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<S::Value> {
        let given = reader.given(value);
        match self.parse(given) {
            Ok(value) => Some(value),
            Err(refusal) => {
                let expected = self.expected(given, reader.example());
                reader.refuse_value(value.span(), refusal.expecting(expected));
                None
            }
        }
    }

    fn write(&self, value: &S::Value) -> String {
        let text = self.show(value);
        // `${` of a value is no variable when it is read again.
        if self.is_bare(&text) { text } else { quote(&text.replace("${", "$${")) }
    }

    fn schema(&self) -> Json {
        or_environment(Scalar::schema(self))
    }
}

pub(crate) fn within<T: PartialOrd>(
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
        Given::Integer(number) if number.starts_with('-') => {
            return Err(Refusal::new(UnitError::Negative.to_string(), ""));
        }
        Given::Integer(number) => {
            return Err(Refusal::new(UnitError::NoUnit.to_string(), with_units(number)));
        }
        _ => given.text().map_err(not_a_string)?,
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

pub(crate) fn not_a_string(kind: &str) -> Refusal {
    Refusal::new(format!("{kind} stands where a string belongs"), "")
}

/// A whole number, as the file or a flag has it.
pub(crate) fn count(given: Given<'_>) -> Result<u64, Refusal> {
    let text = match given {
        Given::Flag(text) | Given::Key(text) | Given::Substituted(text) => text,
        // TOML allows a plus sign.
        Given::Integer(text) => text.strip_prefix('+').unwrap_or(text),
        Given::String(text) => {
            let fix = match number(text) {
                Ok(_) => format!("write {text} without quotes"),
                Err(_) => String::new(),
            };
            return Err(Refusal::new("a string stands where a number belongs", fix));
        }
        Given::Boolean(_) => return Err(not_a_number("a boolean")),
        Given::Other(kind) => return Err(not_a_number(kind)),
    };
    number(text)
}

fn not_a_number(kind: &str) -> Refusal {
    Refusal::new(format!("{kind} stands where a number belongs"), "")
}

/// A whole number; underscores between digits group them, as in TOML.
fn number(text: &str) -> Result<u64, Refusal> {
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
    let Ok(text) = given.text() else { return parse().map(Some) };
    if text == word {
        return Ok(None);
    }
    parse().map(Some).map_err(|refusal| match nearest(text, [word].into_iter()) {
        Some(word) => unknown_word(given, text, Some(word)),
        None => refusal,
    })
}

pub(crate) fn unknown_word(given: Given<'_>, text: &str, meant: Option<&str>) -> Refusal {
    let fix = meant.map(|word| format!("did you mean {}?", given.spell(word)));
    Refusal::new(format!("unknown word {}", given.spell(text)), fix.unwrap_or_default())
}
