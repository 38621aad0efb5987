//! What is wrong with a file, shown at its place.

use std::fmt;
use std::ops::Range;

use super::table;

/// One finding, before it is known where its line is.
#[derive(Debug)]
pub(crate) struct Problem {
    /// What it is about; `None` for what is missing altogether.
    pub(crate) place: Option<table::Place>,
    /// What is wrong.
    pub(crate) problem: String,
    /// What to write instead, shown at the caret; may be empty.
    pub(crate) fix: String,
    /// What would be right; may be empty.
    pub(crate) expected: String,
}

/// A file that was read.
pub(crate) struct Source {
    /// As it was named.
    pub(crate) name: String,
    pub(crate) text: std::sync::Arc<str>,
}

/// The findings of one file and those it includes, in their order; at least one.
///
/// `Display`: for each, `name:line:column: what`, the line with carets under the place and the fix
/// beside them, then what was expected. Without a final newline.
#[derive(Debug)]
pub struct Problems {
    /// Of the first file.
    name: String,
    /// How many files are included.
    included: usize,
    /// How many there are. `shown.len() <= count`.
    count: usize,
    /// The first of them, at most `FINDINGS_SHOWN_MAX`.
    shown: Vec<Finding>,
}

#[derive(Debug)]
struct Finding {
    /// Of the file.
    name: String,
    place: Option<Place>,
    problem: String,
    fix: String,
    expected: String,
}

/// Where a finding is, with the part of the line that is shown.
#[derive(Debug)]
struct Place {
    /// From 1.
    line: usize,
    /// From 1, in characters.
    column: usize,
    /// What is shown of the line.
    excerpt: String,
    /// What stands under `excerpt` before the carets: as wide as the text over it.
    indent: String,
    /// How many, at least one.
    carets: usize,
}

impl Problems {
    /// `problems` is not empty; their places lie in `sources`, the first of which is the file that
    /// includes the others.
    pub(crate) fn new(sources: &[Source], mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty());
        // What has no place comes last.
        problems.sort_by_key(|problem| {
            let place = problem.place.as_ref();
            place.map_or((usize::MAX, 0), |place| (place.file, place.span.start))
        });
        let count = problems.len();
        // Only what is shown is looked for: each costs a pass over the text.
        problems.truncate(FINDINGS_SHOWN_MAX);
        let shown = problems.into_iter().map(|Problem { place, problem, fix, expected }| Finding {
            name: sources[place.as_ref().map_or(0, |place| place.file)].name.clone(),
            place: place.map(|place| Place::find(&sources[place.file].text, place.span)),
            problem: printable(problem.chars().take(MESSAGE_MAX)),
            fix: printable(fix.chars().take(MESSAGE_MAX)),
            expected: printable(expected.chars().take(MESSAGE_MAX)),
        });
        let name = sources[0].name.clone();
        Self { name, included: sources.len() - 1, count, shown: shown.collect() }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.shown {
            finding.write(f)?;
            f.write_str("\n\n")?;
        }
        let Self { count, shown, included, .. } = self;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        f.write_str(&self.name)?;
        if *included > 0 {
            write!(f, " and {included} included file{}", plural(*included))?;
        }
        write!(f, ": {count} error{}", plural(*count))?;
        if *count > shown.len() {
            write!(f, ", the first {} shown", shown.len())?;
        }
        Ok(())
    }
}

impl Finding {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, place, problem, fix, expected } = self;
        let mut margin = String::new();
        match place {
            None => write!(f, "{name}: {problem}")?,
            Some(Place { line, column, excerpt, indent, carets }) => {
                let number = line.to_string();
                margin = " ".repeat(number.len());
                write!(f, "{name}:{line}:{column}: {problem}")?;
                write!(f, "\n{number} | {excerpt}")?;
                write!(f, "\n{margin} | {indent}{}", "^".repeat(*carets))?;
                if !fix.is_empty() {
                    write!(f, " {fix}")?;
                }
            }
        }
        if !expected.is_empty() {
            write!(f, "\n{margin} = expected {expected}")?;
        }
        Ok(())
    }
}

impl Place {
    fn find(text: &str, span: Range<usize>) -> Self {
        let before = &text[..span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[span.start..].find('\n').map_or(text.len(), |at| span.start + at);
        let line = 1 + before.matches('\n').count();
        let column = 1 + text[line_start..span.start].chars().count();

        // A long line is shown from a little before the place.
        let left = text[line_start..span.start].chars().rev().take(EXCERPT_LEFT_MAX);
        let indent: String = left.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let indent: String = indent.chars().rev().collect();
        let skipped = column - 1 - indent.chars().count();
        let shown = text[line_start..line_end].trim_end_matches('\r').chars().skip(skipped);
        let excerpt = printable(shown.take(EXCERPT_MAX));

        let room = excerpt.chars().count().saturating_sub(indent.chars().count());
        let covered = text[span.start..span.end.clamp(span.start, line_end)].chars().count();
        Self { line, column, excerpt, indent, carets: covered.min(room).max(1) }
    }
}

/// The file is the operator's, but not everything in it is for a terminal. Keeps the width.
fn printable(text: impl Iterator<Item = char>) -> String {
    text.map(|c| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// The word of `known` that `word` is most likely a misspelling of, if one is near: equal but for
/// case and hyphens, or with one letter in each three changed, swapped, missing or too many.
pub(crate) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    // No word of ours is near it, and the distance costs memory by its length.
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let wanted = plain(word);
    let edits_max = wanted.chars().count().div_ceil(3);
    known
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|(edits, _)| *edits <= edits_max)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Bytes of a word that may be a misspelling.
const WORD_BYTES_MAX: usize = 64;
/// Characters of a message, which may quote the file.
const MESSAGE_MAX: usize = 300;
/// Findings of one file that are shown; the others are counted. More do not fit a screen.
const FINDINGS_SHOWN_MAX: usize = 20;
/// Characters of a line that are shown.
const EXCERPT_MAX: usize = 120;
/// Of these, characters before the place.
const EXCERPT_LEFT_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { name: "f".to_owned(), text: text.into() }
    }

    fn shown(text: &str, span: Range<usize>) -> String {
        let problem = Problem {
            place: Some(table::Place { file: 0, span }),
            problem: "wrong".to_owned(),
            fix: "fix".to_owned(),
            expected: "right".to_owned(),
        };
        Problems::new(&[source(text)], vec![problem]).to_string()
    }

    #[test]
    fn carets_stand_under_the_place_in_characters_and_after_the_same_tabs() {
        let text = "first\n\té = \"ü\"\r\nlast";
        let start = text.find("\"ü\"").unwrap();
        let expected =
            "f:2:6: wrong\n2 | \té = \"ü\"\n  | \t    ^^^ fix\n  = expected right\n\nf: 1 error";
        assert_eq!(shown(text, start..start + "\"ü\"".len()), expected);
    }

    #[test]
    fn a_place_at_the_end_of_the_text_has_one_caret_after_the_line() {
        assert!(shown("ab", 2..2).starts_with("f:1:3: wrong\n1 | ab\n  |   ^ fix"));
        assert!(shown("ab\n", 3..3).starts_with("f:2:1: wrong\n2 | \n  | ^ fix"));
        assert!(shown("", 0..0).starts_with("f:1:1: wrong\n1 | \n  | ^ fix"));
    }

    #[test]
    fn a_place_of_several_lines_is_marked_on_its_first() {
        assert!(shown("a = [\n1,\n]", 4..10).starts_with("f:1:5: wrong\n1 | a = [\n  |     ^ fix"));
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let left = "a".repeat(EXCERPT_LEFT_MAX);
        let right = "b".repeat(EXCERPT_MAX - EXCERPT_LEFT_MAX - 1);
        let expected = format!(
            "f:1:501: wrong\n1 | {left}X{right}\n  | {}^ fix\n",
            " ".repeat(EXCERPT_LEFT_MAX)
        );
        let shown = shown(&text, 500..501);
        assert!(shown.starts_with(&expected), "{shown}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let shown = shown("a = \u{1b}[2J", 0..1);
        assert!(shown.contains("1 | a = \u{fffd}[2J"), "{shown}");
        assert!(!shown.contains('\u{1b}'));
    }

    #[test]
    fn problems_over_the_bound_are_counted_and_not_shown() {
        let problem = |at: usize| Problem {
            place: Some(table::Place { file: 0, span: at..at + 1 }),
            problem: format!("problem {at}"),
            fix: String::new(),
            expected: String::new(),
        };
        let text = "x".repeat(100);
        let shown =
            Problems::new(&[source(&text)], (0..21).rev().map(problem).collect()).to_string();
        assert!(shown.starts_with("f:1:1: problem 0\n"), "{shown}");
        assert!(shown.contains(": problem 19\n"), "{shown}");
        assert!(!shown.contains(": problem 20\n"), "{shown}");
        assert!(shown.ends_with("f: 21 errors, the first 20 shown"), "{shown}");
    }

    #[test]
    fn a_word_is_near_within_one_edit_in_three_letters_whatever_its_case_and_hyphens() {
        let known = || ["head", "head_bytes", "connect"].into_iter();
        let rows = [
            ("haed", Some("head")),
            ("HEAD", Some("head")),
            ("head-bytes", Some("head_bytes")),
            ("hea", Some("head")),
            ("conect", Some("connect")),
            ("conncets", Some("connect")),
            ("haedd", Some("head")),
            ("tls", None),
            ("he", None),
            ("", None),
        ];
        for (word, expected) in rows {
            assert_eq!(nearest(word, known()), expected, "{word:?}");
        }
        assert_eq!(nearest(&"head".repeat(20), ["head".repeat(20).as_str()].into_iter()), None);
    }
}
