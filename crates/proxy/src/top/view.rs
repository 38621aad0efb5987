//! What `baton top` draws: a function of the last answers, the scroll and the size.

mod table;

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::window::{Window, find};
use super::words;
use crate::control::snapshot::{CoreNumbers, EndpointNumbers, HealthWord, RouteNumbers, Snapshot};
use table::{
    BAD, Column, FAINT, GOOD, Row, WARN, bar, column, count, sparkline, table, toned, whole,
};

/// What is known.
pub(super) struct View {
    address: String,
    window: Window,
    /// Why the last question had no answer, and since when there is none.
    away: Option<(String, Instant)>,
    scroll: usize,
}

impl View {
    pub(super) fn new(address: String) -> View {
        View { address, window: Window::default(), away: None, scroll: 0 }
    }

    pub(super) fn answered(&mut self, snapshot: Snapshot) {
        self.away = None;
        self.window.add(snapshot);
    }

    pub(super) fn failed(&mut self, why: String) {
        let since = self.away.take().map_or_else(Instant::now, |(_, since)| since);
        self.away = Some((why, since));
    }

    /// Moves by so many rows, as far as there are any when it is drawn next.
    pub(super) fn scroll(&mut self, rows: i32) {
        let rows = isize::try_from(rows).unwrap_or(0);
        self.scroll = self.scroll.saturating_add_signed(rows);
    }

    pub(super) fn render(&mut self, frame: &mut Frame<'_>, now: Instant) {
        let layout =
            Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(1)]);
        let [head, body, foot] = layout.areas(frame.area());
        frame.render_widget(Paragraph::new(self.head(head.width, now)), head);
        let lines = self.body(usize::from(body.width));
        let rows = usize::from(body.height);
        let most = lines.len().saturating_sub(rows);
        self.scroll = self.scroll.min(most);
        let below = most - self.scroll;
        frame.render_widget(Paragraph::new(self.foot(below)), foot);
        let seen: Vec<Line<'_>> = lines.into_iter().skip(self.scroll).take(rows).collect();
        frame.render_widget(Paragraph::new(seen), body);
        if self.away.is_some() {
            frame.buffer_mut().set_style(body, FAINT);
        }
    }

    fn head(&self, width: u16, now: Instant) -> Vec<Line<'_>> {
        let Some(known) = self.window.now() else {
            let why = match &self.away {
                None => Line::from(format!(" asking {} …", self.address)),
                Some((why, _)) => {
                    Line::from(format!(" no answer from {}: {why}", self.address)).style(BAD)
                }
            };
            return vec![Line::from(" Baton".bold()), why];
        };
        let state = match (&self.away, known.ready) {
            (Some(_), _) => Span::styled("no answer", BAD),
            (None, true) => Span::styled("serving", GOOD),
            (None, false) => Span::styled("draining", WARN),
        };
        let facts = format!(
            "   up {}   {}   generation {}",
            words::span(known.uptime_ms / 1_000),
            known.driver,
            known.generation
        );
        let title = format!(" Baton {}   ", known.version);
        let mut first = vec![title.bold(), state, Span::raw(facts)];
        let used: usize = first.iter().map(Span::width).sum();
        if let Some(gap) = usize::from(width).checked_sub(used + self.address.len() + 1)
            && gap > 1
        {
            first.push(Span::styled(format!("{}{}", " ".repeat(gap), self.address), FAINT));
        }
        let third = match &self.away {
            None => Line::default(),
            Some((why, since)) => {
                let seconds = now.saturating_duration_since(*since).as_secs();
                let away = words::span(seconds);
                Line::from(format!(" no answer for {away}: {why}; below is the last one"))
                    .style(BAD)
            }
        };
        vec![Line::from(first), self.sums(known), third]
    }

    fn sums(&self, known: &Snapshot) -> Line<'static> {
        let counter = |name: &'static str| {
            self.window.rate(move |snapshot| snapshot.counters.get(name).copied().unwrap_or(0))
        };
        let errors = counter("answers_5xx");
        let busy = self.window.rate(|s| s.cores.iter().map(|core| core.busy_ns).sum());
        let busy = busy / 1e9 / known.cores.len().max(1) as f64;
        let memory = known.process.resident_bytes.map_or("–".to_owned(), words::bytes);
        let descriptors = known.process.descriptors.map_or("–".to_owned(), words::number);
        let mut spans = Vec::new();
        let mut say = |value: String, what: &'static str, style: Style| {
            spans.push(Span::styled(format!(" {value}"), style.add_modifier(Modifier::BOLD)));
            spans.push(Span::styled(format!(" {what}  "), FAINT));
        };
        say(words::rate(counter("requests")), "req/s", Style::new());
        say(words::rate(errors), "5xx/s", if errors > 0.0 { BAD } else { Style::new() });
        say(words::number(known.connections), "conns", Style::new());
        say(format!("{:.0} %", busy * 100.0), "busy", Style::new());
        say(memory, "memory", Style::new());
        say(descriptors, "fds", Style::new());
        Line::from(spans)
    }

    fn foot(&self, below: usize) -> Line<'static> {
        let mut text = String::from(" q ends  ↑ ↓ scroll");
        match (self.scroll, below) {
            (0, 0) => {}
            (_, 0) => text.push_str("  end"),
            (_, below) => text.push_str(&format!("  {below} rows below")),
        }
        Line::from(text).style(FAINT)
    }

    fn body(&self, width: usize) -> Vec<Line<'static>> {
        let Some(known) = self.window.now() else { return Vec::new() };
        let mut lines = self.cores(known, width);
        lines.push(Line::default());
        lines.extend(self.upstreams(known, width));
        lines.push(Line::default());
        lines.extend(self.routes(known, width));
        lines
    }

    fn cores(&self, known: &Snapshot, width: usize) -> Vec<Line<'static>> {
        let columns = [
            column("REQ/S", 10),
            column("CONNS", 8),
            column("TASKS", 8),
            column("LAG", 10),
            column("5XX/S", 8),
            Column { from: 120, ..column("WORST LAG", 12) },
            Column { from: 120, ..column("ACCEPTED/S", 12) },
            Column { from: 120, ..column("PANICS", 8) },
        ];
        let room = table::room(&columns, width);
        let rows = known.cores.iter().map(|core| {
            let before = self.window.before().and_then(|before| before.cores.get(core.index));
            let rate = |number: fn(&CoreNumbers) -> u64| {
                before.map_or(0.0, |b| self.window.per_second(number(core), number(b)))
            };
            let busy = rate(|core| core.busy_ns) / 1e9;
            let mut name = vec![Span::raw(format!("{:>3}  ", core.index))];
            name.extend(bar(busy, room.saturating_sub(13)));
            Row {
                name,
                cells: vec![
                    count(rate(|core| core.requests)),
                    Span::raw(words::number(core.connections)),
                    Span::raw(words::number(core.tasks)),
                    self.lag(known, core),
                    toned(rate(|core| core.answers_5xx), BAD),
                    Span::raw(words::micros(core.lag_worst_us / 100 * 100)),
                    count(rate(|core| core.accepted)),
                    whole(core.panics).patch_style(if core.panics > 0 { BAD } else { FAINT }),
                ],
            }
        });
        table("CORE BUSY", &columns, rows, width)
    }

    /// The class of the latest heartbeat of the window.
    fn lag(&self, known: &Snapshot, core: &CoreNumbers) -> Span<'static> {
        if core.silent_ms > SILENT_MS {
            return Span::styled(format!("{} !", words::span(core.silent_ms / 1_000)), BAD);
        }
        let before = self.window.oldest().and_then(|oldest| oldest.cores.get(core.index));
        let lag = before.map_or_else(|| core.lag.clone(), |before| core.lag.since(&before.lag));
        let bounds = &known.lag_bounds_us;
        match (lag.classes.iter().rposition(|count| *count > 0), bounds.last()) {
            (Some(class), Some(last)) => {
                let style = match class {
                    0 | 1 => Style::new(),
                    2 | 3 => WARN,
                    _ => BAD,
                };
                let bound = bounds.get(class).map(|bound| format!("< {}", words::micros(*bound)));
                Span::styled(bound.unwrap_or_else(|| format!("> {}", words::micros(*last))), style)
            }
            _ => Span::styled("–", FAINT),
        }
    }

    fn upstreams(&self, known: &Snapshot, width: usize) -> Vec<Line<'static>> {
        let trail = if width >= 180 { 62 } else { 22 };
        let columns = [
            column("STATE", 12),
            column("REQ/S", 8),
            column("FLIGHT", 7),
            column("CONNS", 7),
            column("FAILED", 8),
            column("P50", 9),
            column("P99", 9),
            Column { from: 160, ..column("RETRIES/S", 11) },
            Column { from: 160, ..column("EJECTED", 9) },
            Column { from: 110, ..column("LAST MINUTE", trail) },
        ];
        let mut lines = table::head("ENDPOINT", &columns, width);
        for upstream in &known.upstreams {
            let mut title = vec![Span::raw(format!(" {}", upstream.name)).bold()];
            if upstream.endpoints.is_empty() {
                title.push(Span::styled("  no endpoint: its name has no address yet", WARN));
            }
            lines.push(Line::from(title));
            for endpoint in &upstream.endpoints {
                let mut cells = self.endpoint(known, &upstream.name, endpoint);
                cells.push(sparkline(&self.window.trail(&upstream.name, &endpoint.address), trail));
                let backup = if endpoint.backup { " backup" } else { "" };
                let name = vec![Span::raw(format!("  {}{backup}", endpoint.address))];
                lines.push(Row { name, cells }.line(&columns, width));
            }
        }
        lines
    }

    fn endpoint(
        &self,
        known: &Snapshot,
        upstream: &str,
        endpoint: &EndpointNumbers,
    ) -> Vec<Span<'static>> {
        let at = |moment| find(moment, upstream, &endpoint.address);
        let (before, oldest) =
            (self.window.before().and_then(at), self.window.oldest().and_then(at));
        let rate = |number: fn(&EndpointNumbers) -> u64| {
            before.map_or(0.0, |b| self.window.per_second(number(endpoint), number(b)))
        };
        let of_window = |number: fn(&EndpointNumbers) -> u64| {
            let (now, before) = (number(endpoint), oldest.map_or(0, number));
            now.checked_sub(before).unwrap_or(now)
        };
        let (requests, failures) = (of_window(|e| e.requests), of_window(|e| e.failures));
        let share = (failures as f64 / requests.max(1) as f64).min(1.0);
        let failed = match (requests, failures) {
            (0, 0) => Span::styled("–", FAINT),
            (_, 0) => Span::styled("0 %", FAINT),
            _ => Span::styled(words::percent(share), if share < 0.05 { WARN } else { BAD }),
        };
        let times = oldest.map_or_else(
            || endpoint.first_byte.clone(),
            |oldest| endpoint.first_byte.since(&oldest.first_byte),
        );
        let bounds = &known.duration_bounds_us;
        vec![
            state(endpoint),
            count(rate(|e| e.requests)),
            whole(endpoint.in_flight),
            whole(endpoint.connections),
            failed,
            Span::raw(words::quantile(&times, bounds, 0.5)),
            Span::raw(words::quantile(&times, bounds, 0.99)),
            toned(rate(|e| e.retries), WARN),
            whole(endpoint.ejections),
        ]
    }

    fn routes(&self, known: &Snapshot, width: usize) -> Vec<Line<'static>> {
        let columns = [
            column("REQ/S", 8),
            Column { from: 110, ..column("2XX/S", 8) },
            Column { from: 110, ..column("3XX/S", 8) },
            column("4XX/S", 8),
            column("5XX/S", 7),
            column("REFUSED", 8),
            column("FLIGHT", 7),
            column("P50", 9),
            column("P99", 9),
        ];
        let rows = known.routes.iter().map(|route| {
            let at = |moment: &'_ Snapshot| {
                moment.routes.iter().find(|known| known.name == route.name).cloned()
            };
            let (before, oldest) =
                (self.window.before().and_then(at), self.window.oldest().and_then(at));
            let rate = |number: fn(&RouteNumbers) -> u64| {
                before.as_ref().map_or(0.0, |b| self.window.per_second(number(route), number(b)))
            };
            let times = oldest.map_or_else(
                || route.duration.clone(),
                |oldest| route.duration.since(&oldest.duration),
            );
            let bounds = &known.duration_bounds_us;
            Row {
                name: vec![Span::raw(format!(" {}", route.name))],
                cells: vec![
                    count(rate(|r| r.answers.iter().sum::<u64>() + r.unanswered)),
                    count(rate(|r| r.answers[1])),
                    count(rate(|r| r.answers[2])),
                    count(rate(|r| r.answers[3])),
                    toned(rate(|r| r.answers[4]), BAD),
                    toned(rate(|r| r.rate_limited + r.over_concurrency + r.denied), WARN),
                    whole(route.in_flight),
                    Span::raw(words::quantile(&times, bounds, 0.5)),
                    Span::raw(words::quantile(&times, bounds, 0.99)),
                ],
            }
        });
        table("ROUTE", &columns, rows, width)
    }
}

/// Without a heartbeat for longer, a core is shown as silent; they are looked at each second.
const SILENT_MS: u64 = 3_000;

/// The first that applies.
fn state(endpoint: &EndpointNumbers) -> Span<'static> {
    match endpoint.health {
        _ if endpoint.drained => Span::styled("drained", FAINT),
        HealthWord::Down => Span::styled("down", BAD),
        _ if endpoint.ejected => Span::styled("ejected", WARN),
        HealthWord::Up => Span::styled("up", GOOD),
        HealthWord::Unknown => Span::styled("not checked", FAINT),
    }
}

#[cfg(test)]
mod tests;
