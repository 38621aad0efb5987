//! The documentation says what the program does.

use std::path::Path;

use baton_proxy::config;

/// The smallest file there is; the README shows it.
const SMALLEST: &str = "[[listen]]\naddr = \":8080\"\n[[route]]\nto = \"127.0.0.1:9000\"\n";

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Goal: a reader of docs/configuration.md sees every setting, its default and its meaning as they
/// are. Method: the page contains what `--print-config` writes, to the letter.
#[test]
fn the_configuration_page_shows_every_setting_with_its_default() {
    let config = config::parse(SMALLEST, "smallest.toml").expect("the smallest file is valid");
    // The address as a reader writes it; the program prints it in full.
    let printed = config::print(&config).replace("\"0.0.0.0:8080\"", "\":8080\"");
    let page = document("docs/configuration.md");
    for line in printed.lines() {
        assert!(page.contains(line), "docs/configuration.md lacks this line: {line}");
    }
    assert!(page.contains(&printed), "docs/configuration.md shows the settings in another order");
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
