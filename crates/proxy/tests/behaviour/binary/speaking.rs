//! Commands that say something and end, and the demonstration.

use std::io::Write;
use std::path::PathBuf;

use super::process::{Process, run};
use crate::support::upstream::nobody;
use crate::support::wire::Wire;

/// A file in the directory of this test run, with `text` in it.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut file = std::fs::File::create(&path).expect("the directory is writable");
    file.write_all(text.as_bytes()).expect("there is room");
    path
}

#[test]
fn a_wrong_flag_is_named_and_ends_with_2() {
    // Goal: usage errors. Method: an unknown flag, a value out of bounds, no argument at all.
    for (args, named) in [
        (&["--listen", ":0", "--upstream", "127.0.0.1:1", "--lisen", ":1"][..], "--lisen"),
        (&["--listen", ":0", "--upstream", "127.0.0.1:1", "--timeout-head", "5"], "--timeout-head"),
        (&[], "Usage"),
    ] {
        let ended = run(args);
        assert_eq!(ended.exit, 2, "{args:?}");
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_wrong_file_is_named_with_line_and_column_and_ends_with_2() {
    // Goal: configuration errors. Method: an unknown key in line 4, by both commands.
    let path =
        file("wrong.toml", "[[listen]]\naddr = \":0\"\n[[route]]\n  tow = \"127.0.0.1:1\"\n");
    let path = path.to_str().expect("a plain path");
    for command in ["check", "run"] {
        let ended = run(&[command, "--config", path]);
        assert_eq!(ended.exit, 2);
        assert!(ended.stderr.contains(&format!("{path}:4:3")), "{}", ended.stderr);
        assert!(ended.stderr.contains("tow"), "{}", ended.stderr);
    }
}

#[test]
fn the_printed_configuration_is_a_file_that_says_the_same() {
    // Goal: --print-config and check. Method: what is printed is checked, and printed again.
    let endpoint = nobody().to_string();
    let ended = run(&[
        "--listen",
        "127.0.0.1:8080",
        "--upstream",
        &endpoint,
        "--timeout-head",
        "7s",
        "--print-config",
    ]);
    assert_eq!((ended.exit, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("head = \"7s\""), "{}", ended.stdout);
    let path = file("printed.toml", &ended.stdout);
    let path = path.to_str().expect("a plain path");
    let checked = run(&["check", "--config", path]);
    assert_eq!((checked.exit, checked.stderr.as_str()), (0, ""));
    assert!(!checked.stdout.is_empty());
    let again = run(&["check", "--config", path, "--print-config"]);
    assert_eq!(again.stdout, ended.stdout);
}

#[test]
fn the_demonstration_prints_commands_that_work() {
    // Goal: `baton demo`. Method: ask for the path of every URL it prints.
    let mut demo = Process::start(&["demo", "--listen", "127.0.0.1:0"]);
    let text = demo.stdout_until("Ctrl-C ends it.\n");
    let urls = text.lines().filter(|line| line.trim_start().starts_with("curl "));
    let urls = urls.filter(|line| !line.contains("POST"));
    let urls =
        urls.filter_map(|line| line.split(' ').find_map(|word| word.strip_prefix("http://")));
    let mut count = 0;
    for url in urls {
        let (address, path) = url.split_once('/').expect("a path");
        let mut client = Wire::connect(address.parse().expect("an address"));
        let answer = client.ask(&format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        let expected = if path.starts_with("old/") { 308 } else { 200 };
        assert_eq!(answer.status(), expected, "{url}");
        count += 1;
    }
    assert_eq!(count, 7);
    demo.signal("INT");
    assert_eq!(demo.wait().code(), Some(0));
}
