use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::control::made_up;

/// A view that has seen a minute and a bit of a proxy.
fn view() -> View {
    let mut view = View::new("127.0.0.1:9901".to_owned());
    (0..70).for_each(|second| view.answered(made_up::snapshot(second)));
    view
}

/// What `view` draws on a terminal of this size, without the spaces at the ends of lines.
fn drawn(view: &mut View, width: u16, height: u16, now: Instant) -> Vec<String> {
    let backend = TestBackend::new(width, height);
    let mut terminal = Terminal::new(backend).expect("it needs nothing");
    terminal.draw(|frame| view.render(frame, now)).expect("it has room");
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width));
    rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    })
    .collect()
}

#[test]
fn before_the_first_answer_it_says_what_it_asks_or_why_there_is_none() {
    let mut view = View::new("/run/admin.sock".to_owned());
    let lines = drawn(&mut view, 80, 24, Instant::now());
    assert_eq!(lines[1], " asking /run/admin.sock …");
    view.failed("Connection refused (os error 111)".to_owned());
    let lines = drawn(&mut view, 80, 24, Instant::now());
    assert_eq!(lines[1], " no answer from /run/admin.sock: Connection refused (os error 111)");
}

#[test]
fn a_proxy_that_went_away_is_said_so_above_its_last_numbers() {
    let mut view = view();
    let before = drawn(&mut view, 80, 24, Instant::now());
    view.failed("no answer in time".to_owned());
    let later = Instant::now() + Duration::from_secs(75);
    let lines = drawn(&mut view, 80, 24, later);
    assert!(lines[0].contains("no answer"), "{}", lines[0]);
    assert_eq!(lines[2], " no answer for 1 min 15 s: no answer in time; below is the last one");
    assert_eq!(lines[3..], before[3..]);
    view.answered(made_up::snapshot(71));
    assert_eq!(drawn(&mut view, 80, 24, later)[2], "");
}

#[test]
fn a_small_terminal_shows_what_fits() {
    for (width, height) in [(1, 1), (2, 40), (20, 5), (40, 10), (300, 2)] {
        let lines = drawn(&mut view(), width, height, Instant::now());
        assert_eq!(lines.len(), usize::from(height));
    }
}

/// Goal: the whole at the size of an old terminal, as people see it.
#[test]
fn at_80_by_24_everything_but_the_last_rows_is_there() {
    let lines = drawn(&mut view(), 80, 24, Instant::now());
    let expected = include_str!("at_80_by_24.txt");
    assert_eq!(lines.join("\n") + "\n", expected);
}

#[test]
fn at_120_by_40_and_200_by_60_more_is_there() {
    let lines = drawn(&mut view(), 120, 40, Instant::now());
    let text = lines.join("\n");
    for word in
        ["WORST LAG", "LAST MINUTE", "2XX/S", "static.example.com /assets", "127.0.0.1:9901"]
    {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    assert!(!text.contains("RETRIES/S") && !text.contains("rows below"), "{text}");
    let lines = drawn(&mut view(), 200, 60, Instant::now());
    let text = lines.join("\n");
    assert!(
        text.contains("RETRIES/S") && text.contains("[2001:db8:4::5a:13]:8080 backup"),
        "{text}"
    );
    let history = lines.iter().find(|line| line.contains("10.0.7.2:80")).expect("it is there");
    assert_eq!(history.chars().filter(|c| ('▁'..='█').contains(c)).count(), 60, "{history}");
}

#[test]
fn it_scrolls_to_the_end_and_back_and_no_further() {
    let mut view = view();
    let first = drawn(&mut view, 80, 24, Instant::now());
    view.scroll(i32::MAX);
    let last = drawn(&mut view, 80, 24, Instant::now());
    assert!(last[22].contains("static.example.com"), "{last:#?}");
    assert_eq!(last[23], " q ends  ↑ ↓ scroll  end");
    view.scroll(-1);
    assert!(drawn(&mut view, 80, 24, Instant::now())[23].ends_with("1 rows below"));
    view.scroll(i32::MIN);
    assert_eq!(drawn(&mut view, 80, 24, Instant::now()), first);
}

/// Goal: somebody who changes what is drawn sees it. Method: run with `--nocapture`.
#[test]
#[ignore = "prints what is drawn, to look at; it checks nothing"]
fn print_to_look_at() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        println!("{}", drawn(&mut view(), width, height, Instant::now()).join("\n"));
    }
}
