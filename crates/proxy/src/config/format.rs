//! One form for every file: what `baton fmt` writes.
//!
//! White space alone is changed, token by token: every comment, every spelling of a value and every
//! order stays. So nothing can be lost that a tree would not hold.

use toml::de::DeTable;
use toml_parser::Source as Tokens;
use toml_parser::lexer::TokenKind;

use super::problem::{Problem, Source};
use super::table::Place;
use super::{ConfigError, Problems};

/// Spaces for each array or table that is open over several lines.
const INDENT: usize = 2;
/// Code that is longer than this does not push the comments of its neighbours to the right.
const COMMENT_COLUMN_MAX: usize = 60;

/// Formats `text`. What it says stays the same; formatting the result changes nothing.
///
/// Errors: `ConfigError::Invalid` where the text is not TOML. `name`: the file's, for the messages.
pub fn format(text: &str, name: &str) -> Result<String, ConfigError> {
    // A mark that some editors of other systems leave; TOML has none.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (_, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problems = errors.into_iter().map(|error| Problem {
            place: error.span().map(|span| Place { file: 0, span }),
            problem: error.message().to_owned(),
            fix: String::new(),
            expected: String::new(),
        });
        let source = Source { name: name.to_owned(), text: text.into() };
        return Err(ConfigError::Invalid(Problems::new(&[source], problems.collect())));
    }
    let mut out = String::with_capacity(text.len());
    let lines = spaced(lines(text));
    for (at, line) in lines.iter().enumerate() {
        out.push_str(&line.code);
        if let Some(comment) = &line.comment {
            let column = comment_column(&lines, at);
            let width = line.code.chars().count();
            out.extend(std::iter::repeat_n(' ', column.saturating_sub(width)));
            out.push_str(comment);
        }
        out.push('\n');
    }
    Ok(out)
}

/// A line of the result.
#[derive(Debug, Default)]
struct Line {
    /// All but the comment, with its indent. A string of several lines makes it several lines.
    code: String,
    comment: Option<String>,
    /// Whether it is the header of a table.
    is_header: bool,
    /// Whether it is within an array or an inline table.
    is_inside: bool,
}

impl Line {
    fn is_blank(&self) -> bool {
        self.code.trim().is_empty() && self.comment.is_none()
    }

    fn is_comment(&self) -> bool {
        self.code.trim().is_empty() && self.comment.is_some()
    }

    /// Whether its comment is at the end of code that fits beside others.
    fn is_trailed(&self) -> bool {
        self.comment.is_some()
            && !self.is_comment()
            && !self.code.contains('\n')
            && self.code.chars().count() <= COMMENT_COLUMN_MAX
    }
}

fn lines(text: &str) -> Vec<Line> {
    use TokenKind::{
        Atom, Comma, Comment, Dot, Eof, Equals, LeftCurlyBracket, LeftSquareBracket, Newline,
        RightCurlyBracket, RightSquareBracket, Whitespace,
    };
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut depth = 0_usize;
    // Of this line: the token before, and whether white space was after it.
    let mut before: Option<(TokenKind, bool)> = None;
    let tokens = Tokens::new(text);
    for token in tokens.lex() {
        let raw = &text[token.span().start()..token.span().end()];
        let kind = token.kind();
        match kind {
            Whitespace => {
                if let Some((_, is_spaced)) = &mut before {
                    *is_spaced = true;
                }
                continue;
            }
            Newline | Eof => {
                let next = Line { is_inside: depth > 0, ..Line::default() };
                lines.push(std::mem::replace(&mut line, next));
                before = None;
                continue;
            }
            Comment => {
                if before.is_none() {
                    line.code = " ".repeat(INDENT * depth);
                }
                line.comment = Some(raw.trim_end().to_owned());
                continue;
            }
            _ => {}
        }
        if before.is_none() && depth == 0 && kind == LeftSquareBracket {
            line.is_header = true;
        }
        if !line.is_header && matches!(kind, RightSquareBracket | RightCurlyBracket) {
            depth = depth.saturating_sub(1);
        }
        let is_apart = match (before, kind) {
            (None, _) => {
                line.code = " ".repeat(INDENT * depth);
                false
            }
            (Some(_), Comma | Dot) | (Some((Dot | LeftSquareBracket, _)), _) => false,
            _ if line.is_header => false,
            (Some((LeftCurlyBracket, _)), RightCurlyBracket) | (_, RightSquareBracket) => false,
            (Some((Comma | Equals | LeftCurlyBracket, _)), _) | (_, Equals | RightCurlyBracket) => {
                true
            }
            // A date and its time.
            (Some((Atom, is_spaced)), Atom) => is_spaced,
            _ => false,
        };
        if is_apart {
            line.code.push(' ');
        }
        line.code.push_str(raw);
        if !line.is_header && matches!(kind, LeftSquareBracket | LeftCurlyBracket) {
            depth += 1;
        }
        before = Some((kind, false));
    }
    lines
}

/// The lines with one blank line before each table, and nowhere two.
fn spaced(lines: Vec<Line>) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::with_capacity(lines.len());
    for mut line in lines {
        let after_blank = out.last().is_none_or(Line::is_blank);
        if line.is_blank() {
            line.code.clear();
            if !after_blank {
                out.push(line);
            }
            continue;
        }
        if line.is_header {
            // The comments right over a header belong to it.
            let about = out.iter().rev().take_while(|line| line.is_comment()).count();
            let at = out.len() - about;
            if at > 0 && !out[at - 1].is_blank() {
                out.insert(at, Line::default());
            }
        }
        out.push(line);
    }
    while out.last().is_some_and(Line::is_blank) {
        out.pop();
    }
    out
}

/// The column of the comment of line `at`: that of its neighbours with comments.
fn comment_column(lines: &[Line], at: usize) -> usize {
    if lines[at].is_comment() {
        return 0;
    }
    let own = lines[at].code.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    if !lines[at].is_trailed() {
        return lines[at].code.chars().count() + 1;
    }
    let width = |line: &Line| line.code.chars().count() + 1;
    let is_neighbour = |line: &&Line| line.is_trailed() && line.is_inside == lines[at].is_inside;
    let over = lines[..at].iter().rev().take_while(is_neighbour).map(width).max();
    let under = lines[at..].iter().take_while(is_neighbour).map(width).max();
    own.max(over.unwrap_or(0)).max(under.unwrap_or(0))
}
