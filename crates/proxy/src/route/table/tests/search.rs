//! The search finds what a walk over the rows would find.

use std::collections::HashMap as Map;

use super::*;
use crate::route::Random;

/// What the lines say, one after the other.
fn naive(table: &RouteTable, query: &Query<'_, FieldList<'_>>) -> Option<usize> {
    let takes = |row: &&Row| {
        row.covers(query.host, query.path) == (true, true) && row.candidate.refusal(query).is_none()
    };
    table.rows().iter().find(takes).map(|row| row.route)
}

#[test]
fn the_search_finds_what_the_lines_say() {
    const HOSTS: [&str; 8] = [
        "-",
        "-",
        "a.example",
        "b.example",
        "*.example",
        "*.a.example",
        "a.example,*.b.example",
        "[::1]",
    ];
    const PATHS: [&str; 14] = [
        "/*",
        "/a",
        "/a/*",
        "/a/b/*",
        "/a/b",
        "/a-b/*",
        "/a!/*",
        "/ab/*",
        "/a/b/c/*",
        "~^/a/[bc]",
        "~c$",
        "/b/*",
        "/%61/c",
        "/a//b/c",
    ];
    const CONDITIONS: [&str; 6] = ["", "", " GET", " POST,PUT", " x-a", " x-a=1 @second"];
    const ASKED: [&str; 8] = [
        "a.example",
        "b.example:1",
        "x.a.example",
        "x.b.EXAMPLE",
        "c",
        "[0::1]",
        "example",
        ".a.example",
    ];
    const SEGMENTS: [&str; 10] = ["/a", "/b", "/c", "/a-b", "/a!", "/ab", "/", "/%61", "/..", "/x"];
    let mut random = Random::seeded(13);
    for _ in 0..200 {
        let mut pick = |from: &[&'static str]| from[random.below(from.len() as u64) as usize];
        let routes: Vec<String> = (0..12)
            .map(|at| format!("r{at} {} {}{}", pick(&HOSTS), pick(&PATHS), pick(&CONDITIONS)))
            .collect();
        let config = config_of(&routes.iter().map(String::as_str).collect::<Vec<_>>());
        let table = RouteTable::new(&config);
        for _ in 0..50 {
            let mut pick = |from: &[&'static str]| from[random.below(from.len() as u64) as usize];
            let path = [pick(&SEGMENTS), pick(&SEGMENTS), pick(&SEGMENTS)].concat();
            let host = pick(&ASKED);
            let (method, fields) = (pick(&["GET", "POST"]), [("X-A", pick(&["1", "2"]))]);
            let Ok(resolved) = table.resolve(path.as_bytes()) else { continue };
            let query = Query {
                listener: random.below(2) as usize,
                method,
                host: Some(host.as_bytes()),
                path: resolved.normal(),
                fields: &FieldList::new(&fields),
            };
            let expected = naive(&table, &query);
            let found = match table.find(&query) {
                Found::Route(route) => Some(route),
                Found::MethodNotAllowed(_) | Found::None => None,
            };
            assert_eq!(found, expected, "{host} {path} {method}\n{}", table.text(&config));
        }
    }
}

#[test]
fn a_large_table_is_searched_and_not_walked() {
    let mut texts = Vec::new();
    for at in 0..10_000 {
        texts.push(match at % 4 {
            0 => format!("r{at} h{at}.example /*"),
            1 => format!("r{at} *.w{at}.example /*"),
            2 => format!("r{at} - /p{at}/deep/*"),
            _ => format!("r{at} - /e{at}"),
        });
    }
    let config = config_of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let table = RouteTable::new(&config);
    let seen = |host: &str, path: &str| {
        let mut seen = Vec::new();
        table.candidates(Some(host.as_bytes()), path.as_bytes(), &mut |candidate| {
            seen.push(candidate.route);
            false
        });
        seen
    };
    assert_eq!(seen("h8000.example", "/"), [8000]);
    assert_eq!(seen("a.b.w8001.example", "/"), [8001]);
    assert_eq!(seen("x", "/p8002/deep/er"), [8002]);
    assert_eq!(seen("x", "/e8003"), [8003]);
    assert_eq!(seen("h8000.example", "/e8003"), [8000, 8003]);
    assert_eq!(seen("x", &"/p2".repeat(2_000)), [0; 0]);
    // One search in sorted paths for each kind; no way up is longer than the nesting of prefixes.
    let depths = table.any.prefixes.iter().map(|prefix| usize::from(prefix.parent.is_some()));
    assert_eq!(depths.sum::<usize>(), 0);
    assert!(table.any.exact.is_sorted_by_key(|known| &known.0) && table.hosts.len() == 2_500);
}

#[test]
fn prefixes_know_the_one_they_are_below() {
    let config = config_of(&["d - /a/b/c/*", "b - /a/b/*", "x - /a-b/*", "a - /a/*", "y - /ab/*"]);
    let table = RouteTable::new(&config);
    let parents: Map<String, Option<usize>> = (table.any.prefixes.iter())
        .map(|prefix| (String::from_utf8_lossy(&prefix.path).into_owned(), prefix.parent))
        .collect();
    let expected =
        [("/a", None), ("/a/b", Some(0)), ("/a/b/c", Some(1)), ("/a-b", None), ("/ab", None)];
    assert_eq!(parents, expected.map(|(path, parent)| (path.to_owned(), parent)).into());
}
