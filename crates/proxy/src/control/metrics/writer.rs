//! The two text formats, which differ in few places.

use std::fmt::{self, Display, Write};

use super::Format;
use crate::control::snapshot::Times;

/// What a family of metrics is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only rises. Its samples have the suffix `_total`.
    Counter,
    Gauge,
    Histogram,
    /// A 1 whose labels tell something. Its samples have the suffix `_info`.
    Info,
}

/// Name and value of each label.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// Writes families one after the other.
pub(super) struct Writer {
    out: String,
    format: Format,
    family: String,
    kind: Kind,
}

impl Writer {
    pub(super) fn new(format: Format) -> Writer {
        Writer { out: String::new(), format, family: String::new(), kind: Kind::Gauge }
    }

    /// Begins a family; its samples follow. `name`: without the suffix of its samples. A name that
    /// ends in `_seconds` or `_bytes` has that unit.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        name.clone_into(&mut self.family);
        self.kind = kind;
        let (word, open_word) = match kind {
            Kind::Counter => ("counter", "counter"),
            Kind::Gauge => ("gauge", "gauge"),
            Kind::Histogram => ("histogram", "histogram"),
            Kind::Info => ("gauge", "info"),
        };
        let help = Escaped { text: help, quotes: self.format == Format::OpenMetrics };
        // Text names the samples, OpenMetrics the family.
        let (suffix, word) = match self.format {
            Format::Text => (self.suffix(), word),
            Format::OpenMetrics => ("", open_word),
        };
        self.line(format_args!("# HELP {name}{suffix} {help}"));
        self.line(format_args!("# TYPE {name}{suffix} {word}"));
        let unit = ["seconds", "bytes"]
            .into_iter()
            .find(|unit| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')));
        if let (Format::OpenMetrics, Some(unit)) = (self.format, unit) {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
    }

    /// A sample of the family. `value` is a number as text.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        let suffix = self.suffix();
        self.write_sample(suffix, labels, None, value);
    }

    /// A histogram of the family: `times` in classes with the upper bounds `bounds_us`.
    pub(super) fn histogram(&mut self, labels: Labels<'_>, bounds_us: &[u64], times: &Times) {
        let mut seen = 0;
        for (index, count) in times.classes.iter().enumerate() {
            seen += count;
            let bound = bounds_us.get(index).map_or("+Inf".to_owned(), |us| {
                // With its point, so that both formats name the same series.
                format!("{:?}", *us as f64 / 1e6)
            });
            self.write_sample("_bucket", labels, Some(&bound), seen);
        }
        self.write_sample("_sum", labels, None, times.sum_us as f64 / 1e6);
        self.write_sample("_count", labels, None, seen);
    }

    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.line(format_args!("# EOF"));
        }
        self.out
    }

    fn suffix(&self) -> &'static str {
        match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        }
    }

    fn write_sample(
        &mut self,
        suffix: &str,
        labels: Labels<'_>,
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.out.push_str(&self.family);
        self.out.push_str(suffix);
        let bound = bound.map(|bound| ("le", bound));
        let mut mark = '{';
        for (name, value) in labels.iter().copied().chain(bound) {
            let value = Escaped { text: value, quotes: true };
            self.write(format_args!("{mark}{name}=\"{value}\""));
            mark = ',';
        }
        if mark == ',' {
            self.out.push('}');
        }
        self.line(format_args!(" {value}"));
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        self.write(text);
        self.out.push('\n');
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a string takes everything");
    }
}

/// A text of a label or a help line.
struct Escaped<'a> {
    text: &'a str,
    quotes: bool,
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.text.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if self.quotes => f.write_str("\\\"")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}
