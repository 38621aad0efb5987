//! The documentation says what the program does.

use std::path::{Path, PathBuf};

use baton_proxy::config;

/// The smallest file there is; the README shows it.
const SMALLEST: &str = "[[listen]]\naddr = \":8080\"\n[[route]]\nto = \"127.0.0.1:9000\"\n";

/// What stands before the reference.
const REFERENCE: &str = "## Every key\n\n```toml\n";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn document(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Goal: a reader of docs/configuration.md sees every key, its default and its meaning as they are.
/// Method: the page contains the reference that the tables make, to the letter. To write it there
/// after a change: `BATON_WRITE_REFERENCE=1 cargo test`.
#[test]
fn the_configuration_page_shows_every_key_with_its_meaning() {
    let reference = config::reference();
    let mut page = document("docs/configuration.md");
    if std::env::var_os("BATON_WRITE_REFERENCE").is_some() {
        let start = page.find(REFERENCE).expect("the page has the reference") + REFERENCE.len();
        let end = start + page[start..].find("```").expect("the reference ends");
        page.replace_range(start..end, &reference);
        std::fs::write(path("docs/configuration.md"), &page).expect("the page can be written");
    }
    for line in reference.lines() {
        assert!(page.contains(line), "docs/configuration.md lacks this line: {line}");
    }
    assert!(page.contains(&reference), "docs/configuration.md shows the keys in another order");
}

/// Goal: every example of the page works as it stands. Method: each block of TOML is parsed; one
/// that is no whole file is put after the smallest.
#[test]
fn every_example_of_the_configuration_page_is_valid() {
    let page = document("docs/configuration.md");
    let mut count = 0;
    for block in page.split("```toml\n").skip(1) {
        let (block, _) = block.split_once("```").expect("the block ends");
        let is_whole = block.contains("[[listen]]");
        let text = if is_whole { block.to_owned() } else { format!("{SMALLEST}{block}") };
        if let Err(error) = config::parse(&text, "example") {
            panic!("{error}\n{text}");
        }
        count += 1;
    }
    assert!(count >= 4, "only {count} examples");
}

/// Goal: a newcomer's first file works. Method: the README's file is the one that is parsed here.
#[test]
fn the_smallest_file_of_the_readme_is_valid() {
    assert!(document("README.md").contains(SMALLEST), "README.md shows the smallest file");
}

/// Goal: nobody looks in vain for a counter. Method: every counter the page names exists.
#[test]
fn every_counter_that_the_configuration_page_names_exists() {
    let counters = baton_proxy::Counters::default();
    let names: Vec<&str> = counters.read().into_iter().map(|(name, _)| name).collect();
    let page = document("docs/configuration.md");
    let (_, table) = page.split_once("## What each limit does").expect("the page has the table");
    let mut seen = 0;
    for row in table.lines().filter(|row| row.starts_with("| ") && row.contains('`')) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().expect("a row has cells");
        for name in cell.split('`').skip(1).step_by(2).filter(|name| *name != "accept_paused") {
            assert!(names.contains(&name), "there is no counter {name}");
            seen += 1;
        }
    }
    assert!(seen >= 15, "only {seen} counters were found in the table");
}
