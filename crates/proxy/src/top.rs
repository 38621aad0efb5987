//! `baton top`: what the live page shows, in a terminal.
//!
//! Asks an admin address for `/status` once a second, on a thread of its own, so that keys are
//! heard while a proxy does not answer. What is drawn is a function of what is known ([`view`]).

mod view;
mod window;
mod words;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::config::AdminAddress;
use crate::control::client;
use crate::control::snapshot::Snapshot;
use view::View;

/// From one answer to the next question.
const PERIOD: Duration = Duration::from_secs(1);

/// How long keys are waited for before the screen is looked at again: a second that a proxy has
/// been away, or a signal, is seen at most this late.
const LOOK: Duration = Duration::from_millis(100);

/// Answers that wait to be shown. When full: the thread that asks waits.
const ANSWERS_MAX: usize = 1;

/// Shows what the proxy at `address` does, until somebody ends it or the process is told to stop.
/// The terminal is restored on every way out, a panic included.
///
/// Errors: standard output is no terminal, or the terminal failed.
pub(crate) fn run(address: AdminAddress) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        let text = "standard output is no terminal; the admin address has the numbers at /status";
        return Err(io::Error::other(text));
    }
    let stop = Arc::new(AtomicBool::new(false));
    // Not SIGHUP, which ends the process: there is no terminal left to restore then, and the wait for
    // its keys would never end.
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let view = View::new(words::address(&address));
    let (answer, answers) = sync_channel(ANSWERS_MAX);
    let (_until_here, ended) = sync_channel(0);
    std::thread::Builder::new()
        .name("ask".to_owned())
        .spawn(move || ask(&address, &answer, &ended))?;
    let shown = match ratatui::try_init() {
        Ok(mut terminal) => show(&mut terminal, view, &answers, &stop),
        Err(error) => Err(error),
    };
    // A failed start may have changed the terminal, too.
    ratatui::restore();
    shown
}

fn show(
    terminal: &mut DefaultTerminal,
    mut view: View,
    answers: &Receiver<io::Result<Snapshot>>,
    stop: &AtomicBool,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        match answers.try_recv() {
            Ok(Ok(snapshot)) => view.answered(snapshot),
            Ok(Err(error)) => view.failed(error.to_string()),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(io::Error::other("nobody asks")),
        }
        terminal.draw(|frame| view.render(frame, Instant::now()))?;
        if event::poll(LOOK)?
            && let Some(key) = key(&event::read()?)
        {
            match key {
                Key::End => return Ok(()),
                Key::Scroll(rows) => view.scroll(rows),
            }
        }
    }
    Ok(())
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    End,
    /// By so many rows, down if positive.
    Scroll(i32),
}

/// Rows a page key moves by: less than the smallest terminal shows.
const PAGE_ROWS: i32 = 15;

fn key(event: &Event) -> Option<Key> {
    // A resize needs no word: the next drawing asks for the size.
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::End,
        KeyCode::Char('q') | KeyCode::Esc => Key::End,
        KeyCode::Up | KeyCode::Char('k') => Key::Scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => Key::Scroll(1),
        KeyCode::PageUp => Key::Scroll(-PAGE_ROWS),
        KeyCode::PageDown | KeyCode::Char(' ') => Key::Scroll(PAGE_ROWS),
        KeyCode::Home => Key::Scroll(i32::MIN),
        KeyCode::End => Key::Scroll(i32::MAX),
        _ => return None,
    })
}

/// Asks until nobody takes the answers.
fn ask(address: &AdminAddress, answer: &SyncSender<io::Result<Snapshot>>, ended: &Receiver<()>) {
    while answer.send(status(address)).is_ok() {
        match ended.recv_timeout(PERIOD) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn status(address: &AdminAddress) -> io::Result<Snapshot> {
    let reply = client::get(address, "/status")?;
    if !reply.is_success() {
        let first = reply.text().lines().next().unwrap_or_default().to_owned();
        return Err(io::Error::other(format!("status {}: {first}", reply.status)));
    }
    serde_json::from_slice(&reply.body).map_err(|error| {
        io::Error::other(format!("its numbers are of another version of baton: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
        key(&Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn each_key_that_ends_it_ends_it_and_others_do_not() {
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(pressed(KeyCode::Enter, KeyModifiers::NONE), None);
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::End));
        assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::NONE), Some(Key::End));
        assert_eq!(pressed(KeyCode::Esc, KeyModifiers::NONE), Some(Key::End));
        assert_eq!(pressed(KeyCode::Down, KeyModifiers::NONE), Some(Key::Scroll(1)));
    }

    #[test]
    fn a_proxy_that_is_away_is_an_error_in_words() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port can be had");
        let address = listener.local_addr().expect("it is bound");
        drop(listener);
        assert!(status(&AdminAddress::Tcp(address)).is_err());
        let nowhere = AdminAddress::Unix("/nonexistent/admin.sock".into());
        assert!(status(&nowhere).is_err());
    }
}
