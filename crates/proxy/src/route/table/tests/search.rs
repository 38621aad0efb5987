//! The search finds what a walk over the rows would find.

use std::collections::HashMap as Map;

use super::*;
use crate::route::Random;

/// The path that routes see, by the words of the documentation; `None`: refused.
fn naive_path(path: &str) -> Option<String> {
    let mut plain = String::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let digits = rest.get(1..3).filter(|_| first == '%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                plain.push(char::from(byte));
            }
            Some(byte) => plain.push_str(&format!("%{byte:02X}")),
            None if first == '%' => plain.push_str("%25"),
            None => plain.push(first),
        }
        rest =
            &rest[if digits.is_some_and(|d| u8::from_str_radix(d, 16).is_ok()) { 3 } else { 1 }..];
    }
    let mut segments: Vec<&str> = Vec::new();
    let parts: Vec<&str> = plain[1..].split('/').collect();
    for part in &parts {
        match *part {
            "" | "." => {}
            ".." => drop(segments.pop()?),
            part if part.starts_with(".;") || part.starts_with("..;") => return None,
            part => segments.push(part),
        }
    }
    let folder = matches!(parts[parts.len() - 1], "" | "." | "..") && !segments.is_empty();
    Some(format!("/{}{}", segments.join("/"), if folder { "/" } else { "" }))
}

/// The route that takes a request, by the words of the documentation and nothing of the table.
fn naive_route(config: &Config, query: &Query<'_, FieldList<'_>>) -> Option<usize> {
    let path = std::str::from_utf8(query.path).expect("rows are ASCII");
    let host = std::str::from_utf8(query.host.expect("rows have one")).expect("rows are ASCII");
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix(":1").unwrap_or(&host).replace("[0::1]", "[::1]");
    let mut taking = Vec::new();
    for (index, route) in config.routes.iter().enumerate() {
        let hosts = route.hosts.iter().filter_map(|pattern| match pattern {
            HostPattern::Exact(name) => (*name == host).then_some((0, 0)),
            HostPattern::Below(end) => {
                (host.ends_with(end) && host != *end).then_some((1, usize::MAX - end.len()))
            }
        });
        let host_rank = if route.hosts.is_empty() { Some((2, 0)) } else { hosts.min() };
        let path_rank = match &route.path {
            PathPattern::Exact(exact) => (naive_path(exact)? == path).then_some((0, 0)),
            PathPattern::Prefix(prefix) if prefix.is_empty() => Some((3, 0)),
            PathPattern::Prefix(prefix) => {
                let prefix = naive_path(prefix)?;
                let below = path == prefix || path.starts_with(&format!("{prefix}/"));
                below.then_some((1, usize::MAX - prefix.len()))
            }
            PathPattern::Regex(regex) => regex.is_match(query.path).then_some({
                (2, config.routes.iter().position(|other| other.path == route.path)?)
            }),
        };
        let listener = config.listeners[query.listener].name.as_str();
        let fits = (route.listeners.is_empty() || route.listeners.iter().any(|at| at == listener))
            && (route.methods.is_empty() || route.methods.iter().any(|at| at == query.method))
            && route.fields.iter().all(|wanted| {
                query.fields.values(&wanted.name).any(|value| {
                    wanted.value.as_ref().is_none_or(|expected| expected.as_bytes() == value)
                })
            });
        let conditions = usize::from(!route.listeners.is_empty())
            + usize::from(!route.methods.is_empty())
            + route.fields.len();
        if let (Some(host), Some(path), true) = (host_rank, path_rank, fits) {
            taking.push((host, path, usize::MAX - conditions, index));
        }
    }
    taking.into_iter().min().map(|rank| rank.3)
}

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
    const SEGMENTS: [&str; 18] = [
        "/a", "/b", "/c", "/a-b", "/a!", "/ab", "/", "/%61", "/..", "/x", "/.", "/%2e%2E", "/..;b",
        "/%2f", "/a;b", "/%", "/%2561", "/..a",
    ];
    for seed in 0..200 {
        let mut random = Random::seeded(seed);
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
            let resolved = resolve(path.as_bytes());
            let normal = resolved.as_ref().ok().map(|path| path.normal().to_vec());
            assert_eq!(normal, naive_path(&path).map(String::into_bytes), "{path}, seed {seed}");
            let Ok(resolved) = resolved else { continue };
            let query = Query {
                listener: random.below(2) as usize,
                method,
                host: Some(host.as_bytes()),
                path: resolved.normal(),
                fields: &FieldList::new(&fields),
            };
            let expected = naive_route(&config, &query);
            assert_eq!(naive(&table, &query), expected, "{host} {path} {method}, seed {seed}");
            let found = match table.find(&query) {
                Found::Route(route) => Some(route),
                Found::MethodNotAllowed(_) | Found::None => None,
            };
            assert_eq!(
                found,
                expected,
                "{host} {path} {method}, seed {seed}\n{}",
                table.text(&config)
            );
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
