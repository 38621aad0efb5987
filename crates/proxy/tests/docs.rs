//! The documentation says what the program does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use baton_proxy::cli::{self, Command};
use baton_proxy::config;

/// The smallest file there is; the README shows it.
const SMALLEST: &str = "[[listen]]\naddr = \":8080\"\n[[route]]\nto = \"127.0.0.1:9000\"\n";

/// What stands before the reference.
const REFERENCE: &str = "## Every key\n\n```toml\n";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn document(name: &str) -> String {
    read(&path(name))
}

/// The files of a folder whose names end with `extension`.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path(folder)).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|known| known == extension)).collect();
    found.sort();
    assert!(!found.is_empty(), "{folder} has files");
    found
}

/// Every page.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![path("README.md"), path("CHANGELOG.md"), path("CONTRIBUTING.md")];
    pages.extend(files("docs", "md"));
    pages.extend(files("docs/decisions", "md"));
    pages
}

/// A block between two fences.
struct Block {
    /// What stands behind the first fence.
    label: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), open.as_mut()) {
            (Some(label), None) => {
                open = Some(Block { label: label.to_owned(), text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "the last block ends");
    blocks
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

/// Goal: every example works as it stands. Method: each block of TOML on every page is parsed: one
/// marked `toml` as it is, one marked `toml fragment` behind the smallest file.
#[test]
fn every_example_of_every_page_is_valid() {
    let mut count = 0;
    for path in pages() {
        for Block { label, text } in blocks(&read(&path)) {
            let text = match label.as_str() {
                "toml" => text,
                "toml fragment" => format!("{SMALLEST}{text}"),
                _ => {
                    assert!(!label.contains("toml"), "{}: what is {label}?", path.display());
                    continue;
                }
            };
            if let Err(error) = config::parse(&text, "example") {
                panic!("{}: {error}\n{text}", path.display());
            }
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} examples");
}

/// Goal: the files that are there to be copied work. Method: each is loaded.
#[test]
fn every_file_of_the_examples_is_valid() {
    for path in files("docs/examples", "toml") {
        if let Err(error) = config::load(&path) {
            panic!("{error}");
        }
    }
}

/// Goal: a newcomer's first file works. Method: the README's file is the one that is parsed here.
#[test]
fn the_smallest_file_of_the_readme_is_valid() {
    let blocks = blocks(&document("README.md"));
    assert!(blocks.iter().any(|block| block.text == SMALLEST), "README.md shows the smallest file");
}

/// What `baton` says with these arguments: help.
fn help(args: &[&str]) -> String {
    let args = ["baton"].iter().chain(args).chain(&["--help"]).map(OsString::from);
    match cli::parse(args) {
        Ok(Command::Info(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// The commands that the help names.
fn commands(help: &str) -> Vec<&str> {
    let (_, rest) = help.split_once("Commands:\n").expect("the help lists commands");
    let (list, _) = rest.split_once("\n\n").expect("the list ends");
    list.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

/// Goal: no page shows a command or a flag that is not there. Method: each line of a block, or text
/// between backquotes, that begins with `baton` is compared with the help.
#[test]
fn every_command_and_flag_of_the_pages_exists() {
    let all = help(&[]);
    let known = commands(&all);
    let mut count = 0;
    for path in pages() {
        let page = read(&path);
        let blocks = blocks(&page);
        let lines = blocks.iter().flat_map(|block| block.text.lines());
        let inline = page.split('`').skip(1).step_by(2).filter(|text| !text.contains('\n'));
        for shown in lines.chain(inline) {
            let Some(args) = shown.trim().strip_prefix("baton ") else { continue };
            let args = args.split(['#', '|', '>']).next().unwrap_or_default();
            let first = args.split_whitespace().next().unwrap_or_default();
            let help = match first.starts_with('-') {
                true => all.clone(),
                false => {
                    assert!(known.contains(&first), "{}: {shown}", path.display());
                    help(&[first])
                }
            };
            let flags = args.split_whitespace().filter(|word| word.starts_with("--"));
            for flag in flags.map(|flag| flag.split('=').next().unwrap_or(flag)) {
                let is_there = help.split([' ', '\n', '[']).any(|word| word == flag);
                assert!(is_there, "{}: {flag} in: {shown}", path.display());
            }
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} commands");
}

/// Goal: no link leads nowhere. Method: the file of each relative link is there.
#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut count = 0;
    for path in pages() {
        let page = read(&path);
        for link in page.split("](").skip(1) {
            let (link, _) = link.split_once(')').expect("a link ends");
            let file = link.split('#').next().unwrap_or_default();
            if link.contains("://") || file.is_empty() {
                continue;
            }
            let target = path.parent().expect("a page is in a folder").join(file);
            assert!(target.exists(), "{}: {link}", path.display());
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} links");
}

/// Goal: nobody looks in vain for a counter. Method: every counter the page names exists, or stands
/// as a metric on the page that is compared with the metrics.
#[test]
fn every_counter_that_the_configuration_page_names_exists() {
    let counters = baton_proxy::Counters::default();
    let names: Vec<&str> = counters.read().into_iter().map(|(name, _)| name).collect();
    let metrics = document("docs/operations.md");
    let page = document("docs/configuration.md");
    let (_, table) = page.split_once("## What each limit does").expect("the page has the table");
    let mut seen = 0;
    for row in table.lines().filter(|row| row.starts_with("| ") && row.contains('`')) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().expect("a row has cells");
        for name in cell.split('`').skip(1).step_by(2) {
            let is_metric =
                name.starts_with("baton_") && metrics.contains(&format!("| `{name}` |"));
            assert!(is_metric || names.contains(&name), "there is no counter {name}");
            seen += 1;
        }
    }
    assert!(seen >= 20, "only {seen} counters were found in the table");
}
