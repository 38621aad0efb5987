//! The command line as scripts and people use it.

use std::time::Duration;

use clap::CommandFactory;

use super::*;
use crate::config::tests::TemporaryFile;
use crate::config::{AcceptMode, SETTINGS, UpstreamAddr};

mod commands;

fn run(line: &str) -> Result<Command, UsageError> {
    parse(line.split_whitespace().map(OsString::from))
}

/// The text for standard error. Every refusal has the same exit status.
#[track_caller]
fn refusal(line: &str) -> String {
    let error = run(line).expect_err("the line is refused");
    assert_eq!(error.exit, 2);
    assert!(error.text.ends_with('\n') && !error.text.ends_with("\n\n"), "{:?}", error.text);
    error.text
}

#[track_caller]
fn config_of(line: &str) -> Config {
    match run(line) {
        Ok(Command::Run(options)) => options.config,
        other => panic!("{line}: {other:?}"),
    }
}

/// How many settings there are.
fn settings() -> usize {
    SETTINGS.iter().map(|section| section.flags().len()).sum()
}

const FILE: &str = "[[listen]]\naddr = ':80'\n[[route]]\nto = 'a:1'\n[log]\nlevel = 'warn'\n";

#[test]
fn no_argument_at_all_is_answered_with_the_short_usage() {
    let expected = "\
Usage: baton --listen <ADDR> --upstream <ADDR> [OPTIONS]
       baton run --config <FILE>
       baton check --config <FILE>
       baton routes --config <FILE>
       baton match --config <FILE> <METHOD> <URL>
       baton fmt <FILE>...
       baton demo

For more information, try 'baton --help'.
";
    assert_eq!(refusal("baton"), expected);
    assert_eq!(refusal(""), expected);
}

/// Each message begins with the lines given; the usage may follow.
#[track_caller]
fn assert_refusals(rows: &[(&str, &str)]) {
    for (line, expected) in rows {
        let text = refusal(line);
        assert!(text.starts_with(expected), "{line}\n--- expected:\n{expected}\n--- was:\n{text}");
    }
}

#[test]
fn missing_and_wrong_addresses_are_refused_with_their_cause() {
    assert_refusals(&[
        (
            "baton --listen :80",
            "error: the following required arguments were not provided:\n  --upstream <ADDR>\n",
        ),
        (
            "baton --upstream a:1",
            "error: the following required arguments were not provided:\n  --listen <ADDR>\n",
        ),
        (
            "baton --listen 8080 --upstream a:1",
            "error: invalid value '8080' for '--listen <ADDR>': a port alone is written `:8080`\n  \
             expected :8080, 127.0.0.1:8080 or [::1]:8080\n",
        ),
        (
            "baton --listen :80 --upstream http://a:1",
            "error: invalid value 'http://a:1' for '--upstream <ADDR>': an address has no scheme; \
             leave out `http://`\n  expected 127.0.0.1:9000, [::1]:9000 or name:9000\n",
        ),
        (
            "baton --listen :80 --listen 0.0.0.0:80 --upstream a:1",
            "error: 0.0.0.0:80 is listened on twice\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --upstream a:1",
            "error: the endpoint a:1 is listed twice\n",
        ),
    ]);
}

#[test]
fn wrong_settings_are_refused_with_their_cause() {
    assert_refusals(&[
        (
            "baton --listen :80 --upstream a:1 --timeout-head 10",
            "error: invalid value '10' for '--timeout-head <DURATION>': the unit is missing; \
             write 10s or 10ms\n  expected a duration from 1ms to 24h, such as 10s\n\n\
             For more information, try '--help'.\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --timeout-heads 10s",
            "error: unexpected argument '--timeout-heads' found\n\n  \
             tip: a similar argument exists: '--timeout-head'\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --limit-body-bytes None",
            "error: invalid value 'None' for '--limit-body-bytes <SIZE|none>': unknown word None; \
             did you mean none?\n  expected a size up to 1024TiB, such as 64MiB, or none\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --cores 0",
            "error: invalid value '0' for '--cores <N|auto>': 0 is under 1\n  \
             expected a number from 1 to 1024, or auto\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --cores 1__0",
            "error: invalid value '1__0' for '--cores <N|auto>': it is not a whole number\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --driver io-uring",
            "error: invalid value 'io-uring' for '--driver <auto|io_uring|poll>': unknown word \
             io-uring; did you mean io_uring?\n  expected one of auto, io_uring, poll\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --limit-head-bytes 4KiB",
            "error: a request target of 8KiB does not fit in a head of 4KiB; \
             --limit-target-bytes is at most --limit-head-bytes\n",
        ),
    ]);
}

#[test]
fn wrong_use_of_the_commands_is_refused_with_its_cause() {
    assert_refusals(&[
        ("baton --listen :80 --upstream a:1 stray", "error: unrecognized subcommand 'stray'\n"),
        (
            "baton demo --log loud",
            "error: invalid value 'loud' for '--log <error|warn|info|debug>': unknown word loud\n  \
             expected one of error, warn, info, debug\n",
        ),
        (
            "baton origin",
            "error: the following required arguments were not provided:\n  --listen <ADDR>\n",
        ),
        ("baton origin --listen :80 --accept dealt", "error: unexpected argument '--accept'"),
        (
            "baton origin --listen :80 --cores none",
            "error: invalid value 'none' for '--cores <N|auto>': it is not a whole number\n",
        ),
        (
            "baton run",
            "error: the following required arguments were not provided:\n  --config <FILE>\n",
        ),
        ("baton run --config /nonexistent/b.toml", "/nonexistent/b.toml: cannot read: "),
    ]);
}

#[test]
fn flags_of_the_proxy_are_refused_beside_a_subcommand_on_either_side() {
    let file = TemporaryFile::with("beside", FILE);
    let path = file.0.display();
    for flag in ["--listen :1", "--upstream b:1", "--cores 2", "--timeout-head 1s"] {
        let name = flag.split(' ').next().unwrap();
        let before = refusal(&format!("baton {flag} run --config {path}"));
        assert!(
            before.starts_with(&format!("error: {name} cannot be used with 'run'\n")),
            "{before}"
        );
        let after = refusal(&format!("baton run --config {path} {flag}"));
        assert!(
            after.starts_with(&format!("error: unexpected argument '{name}' found\n")),
            "{after}"
        );
    }
    let before = refusal("baton --print-config demo");
    assert!(before.starts_with("error: --print-config cannot be used with 'demo'\n"), "{before}");
}

#[test]
fn every_problem_of_a_file_is_reported_with_its_place() {
    let file = TemporaryFile::with("problems", "[[listen]]\nadr = ':80'\n[timeout]\nhead = 10\n");
    let path = file.0.display().to_string();
    for command in ["run", "check"] {
        let text = refusal(&format!("baton {command} --config {path}"));
        assert!(text.contains(&format!("{path}:2:1: unknown key `adr` in [[listen]]\n")), "{text}");
        assert!(
            text.contains(&format!("{path}:4:8: timeout.head: the unit is missing\n")),
            "{text}"
        );
        assert!(text.ends_with(&format!("{path}: 4 errors\n")), "{text}");
    }
}

#[test]
fn addresses_alone_are_enough_to_run() {
    let config = config_of("baton --listen :8080 --upstream 127.0.0.1:9000");
    let mut expected = Config::defaults();
    expected.add_listener("0.0.0.0:8080".parse().unwrap()).unwrap();
    expected.add_upstream(UpstreamAddr::Ip("127.0.0.1:9000".parse().unwrap())).unwrap();
    assert_eq!(config, expected);
}

#[test]
fn addresses_repeat_in_their_order() {
    let config = config_of("baton --listen [::1]:2 --upstream b:1 --listen :1 --upstream a:1");
    assert!(config.addresses().eq(["[::1]:2", "0.0.0.0:1"].map(|text| text.parse().unwrap())));
    let upstreams: Vec<String> = config.endpoints().map(ToString::to_string).collect();
    assert_eq!(upstreams, ["b:1", "a:1"]);
}

/// Method: every flag is given a value that is not its default; the file that says the same is
/// printed and read back. Two flags with one place to store would both show the later value.
#[test]
fn every_setting_has_a_flag_that_reaches_it_and_its_key_in_the_file() {
    let flags = "--cores 3 --driver poll --accept dealt \
        --timeout-head 1ms --timeout-body-idle 2ms --timeout-keep-alive 3ms --timeout-linger 4ms \
        --timeout-connect 5ms --timeout-first-byte 6ms --timeout-upstream-idle 7ms \
        --timeout-tunnel-idle 8ms --timeout-drain 11ms \
        --limit-head-bytes 12KiB --limit-fields 13 --limit-target-bytes 256B \
        --limit-body-bytes 15KiB --limit-body-progress-bytes 24B --limit-pipelined-bytes 16KiB \
        --limit-connections 1_7 \
        --limit-connections-per-ip 18 --limit-requests-per-connection 19 \
        --limit-upstream-head-bytes 20KiB --limit-drain-bytes 21KiB \
        --limit-interim-responses 22 --pool-idle 23 --pool-idle-timeout 9ms --pool-max-age 10ms \
        --forward-x-forwarded= false --forward-forwarded= true --forward-request-id= true \
        --forward-trace-context= true --log debug --log-access stdout --log-access-format json \
        --admin 0.0.0.0:9 --admin-public= true";
    let line = format!("baton --listen :1 --upstream a:1 {}", flags.replace("= ", "="));
    let config = config_of(&line);
    let Ok(Command::Info(file)) = run(&format!("{line} --print-config")) else {
        panic!("the file is printed");
    };
    assert_eq!(config::parse(&file, "printed").unwrap(), config);
    assert_eq!(config.timeouts.head, Duration::from_millis(1));
    assert_eq!(config.runtime.accept, AcceptMode::Dealt);
    assert_eq!(config.limits.connections, 17);

    let words: Vec<&str> = flags.split_whitespace().collect();
    let all = |config: &Config| -> Vec<String> {
        SETTINGS.iter().flat_map(|section| section.shown(config)).collect()
    };
    let (shown, defaults) = (all(&config), all(&Config::defaults()));
    let names = SETTINGS.iter().flat_map(|section| section.flags());
    for (index, (flag, pair)) in names.zip(words.chunks(2)).enumerate() {
        // A switch has its value after an equals sign, or none.
        let value = if pair[1] == "true" { "true".to_owned() } else { pair[1].replace('_', "") };
        assert_eq!(pair[0].trim_end_matches('='), format!("--{}", flag.name));
        assert_eq!(shown[index], value, "{}", pair[0]);
        assert_ne!(shown[index], defaults[index], "{}", pair[0]);
    }
    assert_eq!((shown.len(), words.len()), (settings(), 2 * settings()));
}

#[test]
fn the_log_level_of_the_command_line_goes_before_that_of_the_file() {
    let file = TemporaryFile::with("log", FILE);
    let path = file.0.display();
    assert_eq!(config_of(&format!("baton run --config {path}")).log_level, LogLevel::Warn);
    for line in
        [format!("--log debug run --config {path}"), format!("run --config {path} --log debug")]
    {
        assert_eq!(config_of(&format!("baton {line}")).log_level, LogLevel::Debug);
    }
}

#[test]
fn check_returns_the_configuration_and_where_it_was_or_prints_all_of_it() {
    let file = TemporaryFile::with("check", FILE);
    let line = format!("baton check --config {}", file.0.display());
    let expected = config::load(&file.0).unwrap().config;
    assert_eq!(run(&line), Ok(Command::Check(expected.clone(), file.0.clone())));
    let printed = run(&format!("{line} --print-config"));
    assert_eq!(printed, Ok(Command::Info(config::print(&expected))));
}

#[test]
fn the_origin_takes_an_address_and_the_cores_it_runs_on() {
    let expected = OriginConfig {
        listen: "0.0.0.0:9000".parse().unwrap(),
        cores: None,
        driver: DriverChoice::Auto,
        log_level: LogLevel::Info,
    };
    assert_eq!(run("baton origin --listen :9000"), Ok(Command::Origin(expected)));
    let expected = OriginConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        cores: Some(2),
        driver: DriverChoice::IoUring,
        log_level: LogLevel::Error,
    };
    let line = "baton origin --listen 127.0.0.1:0 --cores 2 --driver io_uring --log error";
    assert_eq!(run(line), Ok(Command::Origin(expected)));
}

#[test]
fn the_demo_needs_no_argument() {
    let listen = |text: &str| text.parse().unwrap();
    let expected = DemoConfig { listen: listen("127.0.0.1:8080"), log_level: LogLevel::Info };
    assert_eq!(run("baton demo"), Ok(Command::Demo(expected)));
    let expected = DemoConfig { listen: listen("[::1]:0"), log_level: LogLevel::Debug };
    assert_eq!(run("baton --log debug demo --listen [::1]:0"), Ok(Command::Demo(expected)));
}

#[test]
fn help_and_version_are_information_and_no_error() {
    let version = format!("baton {}\n", env!("CARGO_PKG_VERSION"));
    for line in ["baton --version", "baton -V"] {
        assert_eq!(run(line), Ok(Command::Info(version.clone())));
    }
    for line in [
        "baton --help",
        "baton -h",
        "baton help",
        "baton run --help",
        "baton help demo",
        "baton match --help",
        "baton fmt --help",
    ] {
        let Ok(Command::Info(text)) = run(line) else { panic!("{line} is refused") };
        assert!(text.contains("Usage: baton"), "{line}: {text}");
    }
}

#[test]
fn the_help_is_grouped_and_has_every_setting_with_its_default() {
    let Ok(Command::Info(text)) = run("baton --help") else { panic!("help is refused") };
    let mut rest = text.as_str();
    for heading in
        ["Commands:", "Options:", "Runtime:", "Timeouts:", "Limits:", "Upstream pool:", "Log:"]
    {
        let at = rest.find(&format!("\n{heading}\n"));
        rest = &rest[at.unwrap_or_else(|| panic!("{heading} is not in its place in\n{text}"))..];
    }
    // However the terminal is wide, words are what counts.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for help in [
        "--timeout-head <DURATION> The whole request head, from its first byte [default: 10s]",
        "--limit-body-bytes <SIZE|none> Request body. Over it: 413 [default: none]",
        "--log <error|warn|info|debug> The least severe event that is logged [default: info]",
    ] {
        assert!(text.contains(help), "{help} is not in\n{text}");
    }
    assert_eq!(text.matches("[default: ").count(), settings());
}

#[test]
fn the_declaration_of_the_commands_is_consistent() {
    Cli::command().debug_assert();
}
