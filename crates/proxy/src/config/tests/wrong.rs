//! Wrong configurations with their whole messages, to be read one after the other: `wrong/*.txt`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::*;
use crate::config::reader::Environment;

/// Before each file: its name. Then each file, `---`, and the message. A first line of `...` stands
/// for the smallest file.
const NEW_CASE: &str = "=== ";
const MESSAGE: &str = "---";

/// The variables of the cases.
struct Fixed;

impl Environment for Fixed {
    fn value(&self, name: &str) -> Result<Option<String>, &'static str> {
        Ok(match name {
            "ADDRESS" => Some("127.0.0.1".to_owned()),
            "NUMBER" => Some("10".to_owned()),
            _ => None,
        })
    }

    fn names(&self) -> Vec<String> {
        vec!["ADDRESS".to_owned(), "NUMBER".to_owned()]
    }
}

/// Where the files are that cases include, from where tests run.
fn files() -> PathBuf {
    PathBuf::from("src/config/tests/files")
}

fn message(text: &str) -> String {
    let text = match text.strip_prefix("...\n") {
        Some(rest) => format!("{}{rest}", SMALLEST.trim_start()),
        None => text.to_owned(),
    };
    match file::load_with(&text, "b.toml", &files(), None, &Fixed) {
        Ok(_) => "it is right".to_owned(),
        Err(error) => error.to_string().trim_end().to_owned(),
    }
}

/// Goal: a reviewer reads what users are told, message after message, and a change of one is seen.
/// Method: every file of every case is read, and its whole message compared. To write the messages
/// anew after a change that is meant: `BATON_WRITE_MESSAGES=1 cargo test`.
#[test]
fn every_wrong_configuration_is_refused_with_its_message() {
    let folder = Path::new("src/config/tests/wrong");
    let is_writing = std::env::var_os("BATON_WRITE_MESSAGES").is_some();
    let mut count = 0;
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let cases = std::fs::read_to_string(&path).unwrap();
        let mut written = String::new();
        for case in cases.split(NEW_CASE).skip(1) {
            let (name, case) = case.split_once('\n').unwrap();
            let text = match case.split_once(&format!("{MESSAGE}\n")) {
                Some((text, _)) => text,
                None => panic!("{}: {name}: no {MESSAGE}", path.display()),
            };
            let message = message(text);
            assert_ne!(message, "it is right", "{}: {name}", path.display());
            write!(written, "{NEW_CASE}{name}\n{text}{MESSAGE}\n{message}\n\n").unwrap();
            count += 1;
        }
        if is_writing {
            std::fs::write(&path, &written).unwrap();
        }
        assert!(is_writing || written == cases, "{}: is now\n{written}", path.display());
    }
    assert!(count >= 50, "only {count} wrong configurations");
}
