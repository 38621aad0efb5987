//! Rows and columns of text.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::top::words;

// Colours by their names, so that they are those of the terminal's theme.
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
pub(super) const WARN: Style = Style::new().fg(Color::Yellow);
pub(super) const BAD: Style = Style::new().fg(Color::Red);
pub(super) const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// A column right of the name.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) width: usize,
    /// Width of the terminal from which it is there.
    pub(super) from: usize,
}

pub(super) fn column(title: &'static str, width: usize) -> Column {
    Column { title, width, from: 0 }
}

/// A name and one cell per column.
pub(super) struct Row {
    pub(super) name: Vec<Span<'static>>,
    pub(super) cells: Vec<Span<'static>>,
}

/// Widest name. Wider, the eye loses the row between it and its numbers.
const NAME_MAX: usize = 64;

/// What the columns leave for the name.
pub(super) fn room(columns: &[Column], width: usize) -> usize {
    let used: usize = shown(columns, width).map(|(_, column)| column.width).sum();
    // One column of the terminal stays free at the right.
    width.saturating_sub(used + 1).min(NAME_MAX)
}

fn shown(columns: &[Column], width: usize) -> impl Iterator<Item = (usize, &Column)> {
    columns.iter().enumerate().filter(move |(_, column)| width >= column.from)
}

pub(super) fn table(
    name: &'static str,
    columns: &[Column],
    rows: impl Iterator<Item = Row>,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = head(name, columns, width);
    lines.extend(rows.map(|row| row.line(columns, width)));
    lines
}

pub(super) fn head(name: &'static str, columns: &[Column], width: usize) -> Vec<Line<'static>> {
    let row = Row {
        name: vec![Span::raw(format!(" {name}"))],
        cells: columns.iter().map(|column| Span::raw(column.title)).collect(),
    };
    vec![row.line(columns, width).style(FAINT)]
}

impl Row {
    /// The name is cut where the cells begin; a cell is cut to its column.
    pub(super) fn line(self, columns: &[Column], width: usize) -> Line<'static> {
        let room = room(columns, width);
        let mut spans = Vec::new();
        let mut left = room;
        for span in self.name {
            let fitted = fit(&span.content, left);
            let span = Span::styled(fitted, span.style);
            left -= span.width();
            spans.push(span);
        }
        spans.push(Span::raw(" ".repeat(left)));
        for (index, column) in shown(columns, width) {
            let cell = self.cells.get(index).cloned().unwrap_or_default();
            let text = fit(&cell.content, column.width.saturating_sub(1));
            let cell = Span::styled(text, cell.style);
            let pad = column.width.saturating_sub(cell.width());
            spans.push(Span::raw(" ".repeat(pad)));
            spans.push(cell);
        }
        Line::from(spans)
    }
}

/// `text` in at most `width` cells of the terminal; what is cut ends with a mark.
fn fit(text: &str, width: usize) -> String {
    let mut text = text.to_owned();
    if Span::raw(text.as_str()).width() <= width {
        return text;
    }
    while Span::raw(text.as_str()).width() >= width.max(1) {
        text.pop();
    }
    if width > 0 {
        text.push('…');
    }
    text
}

/// A whole number; nothing is faint.
pub(super) fn whole(value: u64) -> Span<'static> {
    Span::styled(words::number(value), if value > 0 { Style::new() } else { FAINT })
}

/// A rate; nothing is faint.
pub(super) fn count(value: f64) -> Span<'static> {
    toned(value, Style::new())
}

/// As [`count`], in `style` if it is more than nothing.
pub(super) fn toned(value: f64, style: Style) -> Span<'static> {
    if value > 0.0 { Span::styled(words::rate(value), style) } else { Span::styled("0", FAINT) }
}

/// A bar of `width` cells and the share in words.
pub(super) fn bar(share: f64, width: usize) -> Vec<Span<'static>> {
    let full = ((share.clamp(0.0, 1.0) * width as f64).round() as usize).min(width);
    let style = match share {
        share if share > 0.95 => BAD,
        share if share > 0.8 => WARN,
        _ => Style::new().fg(Color::Cyan),
    };
    vec![
        Span::styled("█".repeat(full), style),
        Span::styled("░".repeat(width - full), FAINT),
        Span::raw(format!("{:>5.0} %", share * 100.0)),
    ]
}

/// The last values that fit into a column of `width`, each as high as its share of the highest.
pub(super) fn sparkline(values: &[f64], width: usize) -> Span<'static> {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let skipped = values.len().saturating_sub(width.saturating_sub(2));
    let values = &values[skipped..];
    let highest = values.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return Span::styled("▁".repeat(values.len()), FAINT);
    }
    let step = |value: &f64| {
        let index = (value / highest * (STEPS.len() - 1) as f64).round() as usize;
        STEPS[index.min(STEPS.len() - 1)]
    };
    Span::styled(values.iter().map(step).collect::<String>(), Style::new().fg(Color::Cyan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_with_a_mark() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abcd", 1), "…");
        assert_eq!(fit("abcd", 0), "");
    }

    #[test]
    fn a_line_fits_whatever_is_in_it() {
        let columns = [column("A", 6), Column { from: 50, ..column("B", 9) }];
        for width in [0, 1, 5, 7, 20, 49, 50, 200] {
            let row = Row {
                name: vec![Span::raw("a name that is long"), Span::raw(" and goes on")],
                cells: vec![Span::raw("1,234,567,890"), Span::raw("2")],
            };
            let line = row.line(&columns, width);
            let whole = width.saturating_sub(1).clamp(6, NAME_MAX + 15);
            assert_eq!(line.width(), whole, "{width}: {line}");
        }
    }

    #[test]
    fn a_bar_is_never_longer_than_its_room() {
        for share in [-1.0, 0.0, 0.5, 1.0, 7.0, f64::NAN] {
            let bar = bar(share, 10);
            assert_eq!(bar[0].width() + bar[1].width(), 10, "{share}");
        }
    }
}
