use std::collections::BTreeSet;

use super::*;
use crate::control::made_up;

fn accepted(accept: &str) -> Format {
    Format::accepted(Some(&accept.parse().expect("a field value")))
}

#[test]
fn a_scraper_that_says_nothing_known_is_given_text() {
    for accept in [
        "",
        ";;q=;,",
        "application/json",
        "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.3,text/plain;q=0.5",
        "*/*",
    ] {
        assert_eq!(accepted(accept), Format::Text, "{accept}");
    }
    assert_eq!(Format::accepted(None), Format::Text);
}

#[test]
fn prometheus_itself_is_given_open_metrics() {
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                      application/openmetrics-text;version=0.0.1;q=0.4,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    assert_eq!(accepted(prometheus), Format::OpenMetrics);
    assert_eq!(accepted("application/openmetrics-text; version=1.0.0"), Format::OpenMetrics);
}

#[test]
fn labels_and_help_are_escaped() {
    let mut snapshot = made_up::snapshot(3);
    snapshot.routes[0].name = "a\"b\\c\nd".to_owned();
    let text = write(&snapshot, Format::Text);
    assert!(text.contains(r#"baton_route_in_flight{route="a\"b\\c\nd"} "#), "{text}");
    for line in text.lines() {
        assert!(line.starts_with("# ") || line.starts_with("baton_"), "{line}");
    }
}

#[test]
fn the_two_formats_differ_in_names_of_families_and_the_end_alone() {
    let snapshot = made_up::snapshot(3);
    let samples = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let text = write(&snapshot, Format::Text);
    let open = write(&snapshot, Format::OpenMetrics);
    assert_eq!(samples(&text), samples(&open));
    assert!(open.ends_with("\n# EOF\n"));
    assert!(text.contains("# TYPE baton_requests_total counter\nbaton_requests_total "));
    assert!(open.contains("# TYPE baton_requests counter\nbaton_requests_total "));
    assert!(text.contains("# TYPE baton_build_info gauge\nbaton_build_info{version="));
    assert!(open.contains("# TYPE baton_build info\nbaton_build_info{version="));
    assert!(open.contains("# UNIT baton_core_cpu_seconds seconds\n"));
}

#[test]
fn a_histogram_is_cumulative_and_ends_with_its_count() {
    let mut snapshot = made_up::snapshot(3);
    snapshot.duration_bounds_us = vec![250, 1_000_000];
    snapshot.routes.truncate(1);
    snapshot.routes[0].name = "a".to_owned();
    snapshot.routes[0].duration.classes = vec![3, 0, 4];
    snapshot.routes[0].duration.sum_us = 5_250_000;
    let text = write(&snapshot, Format::Text);
    let expected = "\
baton_route_duration_seconds_bucket{route=\"a\",le=\"0.00025\"} 3
baton_route_duration_seconds_bucket{route=\"a\",le=\"1.0\"} 3
baton_route_duration_seconds_bucket{route=\"a\",le=\"+Inf\"} 7
baton_route_duration_seconds_sum{route=\"a\"} 5.25
baton_route_duration_seconds_count{route=\"a\"} 7
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn no_series_is_there_twice() {
    let text = write(&made_up::snapshot(3), Format::Text);
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a sample has a value");
        assert!(seen.insert(series), "{series}");
    }
}

#[test]
fn without_routes_and_endpoints_no_family_is_empty() {
    let mut snapshot = made_up::snapshot(3);
    snapshot.routes.clear();
    snapshot.upstreams.clear();
    let text = write(&snapshot, Format::Text);
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2) {
        let ends = pair[0].starts_with("# TYPE");
        assert!(!ends || !pair[1].starts_with('#'), "{pair:?}");
    }
}

/// Goal: the reference lists every metric, and nothing else. Method: its rows are made here.
#[test]
fn the_operations_page_lists_every_metric() {
    let text = write(&made_up::snapshot(3), Format::Text);
    let mut rows = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|l| l.split_once(' '))
        else {
            continue;
        };
        let kind = lines.next().and_then(|line| line.rsplit(' ').next()).expect("a type follows");
        let sample = lines.peek().expect("a sample follows");
        let labels = sample.split_once('{').map_or("", |(_, rest)| rest);
        let labels = labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0));
        let labels: Vec<&str> = labels.filter(|label| *label != "le").collect();
        rows.push(format!("| `{name}` | {kind} | {} | {help} |", labels.join(", ")));
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = std::fs::read_to_string(page).expect("docs/operations.md is there");
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `baton_")).collect();
    assert_eq!(listed, rows, "docs/operations.md should have these rows:\n{}", rows.join("\n"));
}
