//! HTTP/1 cases: raw bytes from a client, a scripted upstream, strict parsers on both sides.
//!
//! Each test plays every case in one form on one driver: the conditions of the case must hold, and
//! everything that reaches the upstream and the client must be strict HTTP/1.1.

mod case;
mod client;
mod conditions;
mod record;
mod run;
mod strict;
mod upstream;

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use baton_proxy::config;
use baton_proxy::server::{Server, ServerError};
use baton_runtime::StartError;

use case::{Case, Step};
use client::Writing;
use run::{Form, Pair};
use upstream::Upstream;

/// How long to wait for what must come. A case that holds gets nowhere near it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Proxies of one test. Most of a case is waiting, so there are more of them than cores.
const PAIRS: usize = 20;

#[test]
fn every_case_holds_in_one_write_on_io_uring() {
    check("io_uring", whole);
}

#[test]
fn every_case_holds_in_one_write_on_poll() {
    check("poll", whole);
}

#[test]
fn every_small_case_holds_byte_by_byte_on_io_uring() {
    check("io_uring", bytewise);
}

#[test]
fn every_small_case_holds_byte_by_byte_on_poll() {
    check("poll", bytewise);
}

#[test]
fn every_case_holds_cut_in_two_on_io_uring() {
    check("io_uring", split);
}

#[test]
fn every_case_holds_cut_in_two_on_poll() {
    check("poll", split);
}

#[test]
fn every_case_holds_after_another_request_on_io_uring() {
    check("io_uring", after_keep_alive);
}

#[test]
fn every_case_holds_after_another_request_on_poll() {
    check("poll", after_keep_alive);
}

#[test]
fn no_two_cases_have_the_same_name_and_each_has_a_source() {
    let cases = case::load();
    let mut names: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
    assert_eq!(cases.len(), 256);
    assert!(cases.iter().all(|case| !case.reference.is_empty() && !case.steps.is_empty()));
}

#[test]
fn only_the_cases_known_not_to_apply_are_left_out() {
    let cases = case::load();
    let left_out = |forms: fn(&Case) -> Vec<Form>| {
        let out = cases.iter().filter(|case| forms(case).is_empty());
        out.map(|case| case.id.as_str()).collect::<Vec<_>>()
    };
    let never = "proxy-protocol/pp2-tlv-overrun";
    assert_eq!(left_out(whole), [never]);
    assert_eq!(left_out(after_keep_alive), [never, "response/resp-backpressure"]);
    assert_eq!(
        left_out(split),
        [
            "connection/slowloris",
            "header-syntax/header-split-every-byte",
            never,
            "request-line/crlf-flood"
        ]
    );
    assert_eq!(
        left_out(bytewise),
        [
            "chunked/chunk-ext-16MB",
            "chunked/chunk-ext-per-byte",
            "chunked/chunk-trailer-flood",
            "connection/slowloris",
            "connection/slow-body",
            "header-syntax/headers-count-limit",
            "header-syntax/header-line-limit",
            "header-syntax/uri-limit",
            "header-syntax/header-70k",
            "header-syntax/headers-300",
            "header-syntax/uri-20k",
            "header-syntax/uri-7900",
            never,
            "request-line/method-long",
            "request-line/crlf-flood",
            "response/resp-backpressure",
            "upgrade/expect-never-body"
        ]
    );
}

fn whole(case: &Case) -> Vec<Form> {
    forms(case, &[Writing::Whole])
}

fn bytewise(case: &Case) -> Vec<Form> {
    if case.bytewise { forms(case, &[Writing::Bytewise]) } else { Vec::new() }
}

/// Cut inside and after line ends, and in the middle.
fn split(case: &Case) -> Vec<Form> {
    let first = case.steps.iter().find_map(|step| match step {
        Step::Send(bytes) => Some(&bytes.0),
        _ => None,
    });
    let Some(bytes) = first else {
        return Vec::new();
    };
    let find = |part: &[u8]| bytes.windows(part.len()).position(|window| window == part);
    let mut cuts = vec![1, bytes.len() / 2, bytes.len().saturating_sub(1)];
    cuts.extend(find(b"\r\n").map(|at| at + 1));
    cuts.extend(find(b"\r\n\r\n").into_iter().flat_map(|at| [at + 3, at + 4]));
    cuts.retain(|cut| (1..bytes.len()).contains(cut));
    cuts.sort_unstable();
    cuts.dedup();
    let writings: Vec<Writing> = cuts.into_iter().map(Writing::Split).collect();
    forms(case, &writings)
}

fn after_keep_alive(case: &Case) -> Vec<Form> {
    let mut forms = if case.after_keep_alive { whole(case) } else { Vec::new() };
    forms.iter_mut().for_each(|form| form.after_keep_alive = true);
    forms
}

/// One form for each writing; none if the proxy lacks what the case needs.
fn forms(case: &Case, writings: &[Writing]) -> Vec<Form> {
    if !case.needs.is_empty() {
        return Vec::new();
    }
    writings.iter().map(|&writing| Form { writing, after_keep_alive: false }).collect()
}

/// Plays every form of every case on `driver`, several at a time, and fails with all that did not
/// hold. Says so on the terminal if the machine refuses the driver.
fn check(driver: &str, forms: fn(&Case) -> Vec<Form>) {
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        match start(driver) {
            Ok(pair) => pairs.push(pair),
            Err(error @ ServerError::Start(StartError::Driver { .. })) if pairs.is_empty() => {
                let test = thread::current().name().unwrap_or("a test").to_owned();
                // Not eprintln: the harness hides what a passing test prints.
                writeln!(std::io::stderr().lock(), "SKIPPED {test}: {error}").unwrap();
                return;
            }
            Err(error) => panic!("the proxy does not start: {error}"),
        }
    }
    let mut cases = case::load();
    cases.sort_by_key(|case| std::cmp::Reverse(case.cost));
    let plan: Vec<(&Case, Form)> = cases
        .iter()
        .flat_map(|case| forms(case).into_iter().map(move |form| (case, form)))
        .collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new((0, String::new()));
    thread::scope(|scope| {
        for mut pair in pairs {
            let (next, plan, failures) = (&next, &plan, &failures);
            scope.spawn(move || {
                while let Some(&(case, form)) = plan.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(failure) = pair.run(case, form) {
                        let mut failures = failures.lock().expect("no test thread panics");
                        failures.0 += 1;
                        failures.1.push_str(&report(case, form, &failure));
                    }
                }
                assert!(pair.server.stop(PATIENCE), "the proxy did not stop by itself");
            });
        }
    });
    let (count, report) = failures.into_inner().expect("no test thread panics");
    assert!(count == 0, "{count} of {} did not hold:\n{report}", plan.len());
}

fn start(driver: &str) -> Result<Pair, ServerError> {
    let upstream = Upstream::listen().expect("a port is free");
    let text = format!(
        r#"
        [[listen]]
        addr = "127.0.0.1:0"
        [[route]]
        to = "{}"
        [runtime]
        cores = 1
        driver = "{driver}"
        [timeout]
        head = "3s"
        body_idle = "3s"
        "#,
        upstream.address()
    );
    let config = config::parse(&text, "cases").expect("the configuration is valid");
    Ok(Pair {
        server: Server::start(&config, Box::new(|| Err(String::new())))?,
        upstream,
        opened: 0,
    })
}

fn report(case: &Case, form: Form, failure: &run::Failure) -> String {
    let Case { id, level, reference, note, expected, .. } = case;
    let (reasons, seen) = (failure.reasons.join("; "), &failure.seen);
    format!(
        "{id} ({level:?}, {reference}) {form:?}\n    because {reasons}\n    expected {expected}\n    \
         saw {seen}\n    {note}\n"
    )
}
