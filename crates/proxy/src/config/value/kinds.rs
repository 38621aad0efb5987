//! The kinds of single values that settings have: numbers, durations, sizes, words.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{
    Given, Refusal, Scalar, count, not_a_string, or_word, quantity, size, unknown_word, within,
};
use crate::config::Word;
use crate::config::problem::nearest;
use crate::units;

/// A duration within bounds.
pub(crate) struct DurationIn(pub(crate) RangeInclusive<Duration>);

impl Scalar for DurationIn {
    type Value = Duration;

    fn parse(&self, given: Given<'_>) -> Result<Duration, Refusal> {
        let value = quantity(given, ["s", "ms"], units::parse_duration)?;
        within(value, &self.0, |value| units::format_duration(*value))
    }

    fn show(&self, value: &Duration) -> String {
        units::format_duration(*value)
    }

    fn expected(&self, given: Given<'_>, example: &str) -> String {
        let (least, most) = (self.show(self.0.start()), self.show(self.0.end()));
        format!("a duration from {least} to {most}, such as {}", given.spell(example))
    }

    fn placeholder(&self) -> String {
        "DURATION".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": "^[0-9]+(h|m|s|ms|us|ns)$" })
    }
}

/// The pattern of sizes for editors.
const SIZE_PATTERN: &str = "^[0-9]+([KMGT]iB|[kKMGT]B|B)$";

/// A size within bounds.
pub(crate) struct SizeIn(pub(crate) RangeInclusive<usize>);

impl Scalar for SizeIn {
    type Value = usize;

    fn parse(&self, given: Given<'_>) -> Result<usize, Refusal> {
        // A size that the machine cannot address is over every bound.
        let value = usize::try_from(size(given)?).unwrap_or(usize::MAX);
        within(value, &self.0, |value| self.show(value))
    }

    fn show(&self, value: &usize) -> String {
        units::format_size(*value as u64)
    }

    fn expected(&self, given: Given<'_>, example: &str) -> String {
        let (least, most) = (self.show(self.0.start()), self.show(self.0.end()));
        format!("a size from {least} to {most}, such as {}", given.spell(example))
    }

    fn placeholder(&self) -> String {
        "SIZE".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": SIZE_PATTERN })
    }
}

/// A size, or the word `none`.
pub(crate) struct SizeOrNone(pub(crate) RangeInclusive<u64>);

impl Scalar for SizeOrNone {
    type Value = Option<u64>;

    fn parse(&self, given: Given<'_>) -> Result<Option<u64>, Refusal> {
        or_word(given, "none", || within(size(given)?, &self.0, |value| units::format_size(*value)))
    }

    fn show(&self, value: &Option<u64>) -> String {
        value.map_or_else(|| "none".to_owned(), units::format_size)
    }

    fn expected(&self, given: Given<'_>, _: &str) -> String {
        let most = units::format_size(*self.0.end());
        let (example, none) = (given.spell("64MiB"), given.spell("none"));
        format!("a size up to {most}, such as {example}, or {none}")
    }

    fn placeholder(&self) -> String {
        "SIZE|none".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "const": "none" }, { "type": "string", "pattern": SIZE_PATTERN }] })
    }
}

/// A whole number of the type `N` within bounds.
pub(crate) struct CountIn<N>(pub(crate) RangeInclusive<N>);

/// The types that a [`CountIn`] may have.
pub(crate) trait Number: Copy + PartialOrd + Display + TryFrom<u64> + Sync {
    /// The largest there is.
    const LARGEST: Self;
    /// As JSON has it.
    fn json(self) -> Json;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const LARGEST: Self = Self::MAX;

            fn json(self) -> Json {
                json!(self)
            }
        }
    )*};
}

number!(u16, u32, usize);

impl<N: Number> Scalar for CountIn<N> {
    type Value = N;

    fn parse(&self, given: Given<'_>) -> Result<N, Refusal> {
        let value = count(given)?;
        let bounded = N::try_from(value).unwrap_or(N::LARGEST);
        // What the type does not hold is over every bound; the message has what was written.
        within(bounded, &self.0, |shown| {
            if *shown == bounded { value.to_string() } else { shown.to_string() }
        })
    }

    fn show(&self, value: &N) -> String {
        value.to_string()
    }

    fn expected(&self, _: Given<'_>, _: &str) -> String {
        format!("a number from {} to {}", self.0.start(), self.0.end())
    }

    fn placeholder(&self) -> String {
        "N".to_owned()
    }

    fn schema(&self) -> Json {
        let (least, most) = (self.0.start().json(), self.0.end().json());
        json!({ "type": "integer", "minimum": least, "maximum": most })
    }
}

/// A number, or the word that stands for `None`.
pub(crate) struct CountOr(pub(crate) RangeInclusive<usize>, pub(crate) &'static str);

impl Scalar for CountOr {
    type Value = Option<usize>;

    fn parse(&self, given: Given<'_>) -> Result<Option<usize>, Refusal> {
        or_word(given, self.1, || CountIn(self.0.clone()).parse(given))
    }

    fn show(&self, value: &Option<usize>) -> String {
        value.map_or_else(|| self.1.to_owned(), |value| value.to_string())
    }

    fn expected(&self, given: Given<'_>, _: &str) -> String {
        let Self(range, word) = self;
        format!("a number from {} to {}, or {}", range.start(), range.end(), given.spell(word))
    }

    fn placeholder(&self) -> String {
        format!("N|{}", self.1)
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "const": self.1 }, Scalar::schema(&CountIn(self.0.clone()))] })
    }
}

/// One of the words of `T`.
pub(crate) struct OneOf<T>(pub(crate) PhantomData<fn() -> T>);

impl<T: Word> Scalar for OneOf<T> {
    type Value = T;

    fn parse(&self, given: Given<'_>) -> Result<T, Refusal> {
        let text = given.text().map_err(not_a_string)?;
        if let Some((_, value)) = T::ALL.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let known = T::ALL.iter().map(|(word, _)| *word);
        Err(unknown_word(given, text, nearest(text, known)))
    }

    fn show(&self, value: &T) -> String {
        value.word().to_owned()
    }

    fn expected(&self, given: Given<'_>, _: &str) -> String {
        let words: Vec<String> = T::ALL.iter().map(|(word, _)| given.spell(word)).collect();
        format!("one of {}", words.join(", "))
    }

    fn placeholder(&self) -> String {
        let words: Vec<&str> = T::ALL.iter().map(|(word, _)| *word).collect();
        words.join("|")
    }

    fn schema(&self) -> Json {
        let words: Vec<&str> = T::ALL.iter().map(|(word, _)| *word).collect();
        json!({ "enum": words })
    }
}

/// True or false.
pub(crate) struct YesNo;

impl Scalar for YesNo {
    type Value = bool;

    fn parse(&self, given: Given<'_>) -> Result<bool, Refusal> {
        let wrong = |what| Refusal::new(format!("{what} stands where true or false belongs"), "");
        match given {
            Given::Boolean(yes) => Ok(yes),
            Given::Flag(text) | Given::Substituted(text) => match text {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(unknown_word(given, text, nearest(text, ["true", "false"].into_iter()))),
            },
            Given::String(text @ ("true" | "false")) => {
                let fix = format!("write {text} without quotes");
                Err(Refusal::new("a string stands where true or false belongs", fix))
            }
            Given::String("on" | "yes") => Err(Refusal::new(
                "a string stands where true or false belongs",
                "write true without quotes",
            )),
            Given::String("off" | "no") => Err(Refusal::new(
                "a string stands where true or false belongs",
                "write false without quotes",
            )),
            Given::Key(_) | Given::String(_) => Err(wrong("a string")),
            Given::Integer(_) => Err(wrong("an integer")),
            Given::Other(kind) => Err(wrong(kind)),
        }
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }

    fn expected(&self, _: Given<'_>, _: &str) -> String {
        "true or false".to_owned()
    }

    fn placeholder(&self) -> String {
        "true|false".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }

    fn is_bare(&self, _: &str) -> bool {
        true
    }
}
