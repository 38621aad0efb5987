//! The commands beside the proxy itself.

use super::*;

#[test]
fn wrong_orders_to_a_running_proxy_are_refused_with_their_cause() {
    assert_refusals(&[
        (
            "baton reload",
            "error: the following required arguments were not provided:\n  \
             --admin <ADDR|unix:PATH>\n",
        ),
        (
            "baton top --admin localhost:1",
            "error: invalid value 'localhost:1' for '--admin <ADDR|unix:PATH>': a listener takes an \
             IP address, not the name `localhost`\n  expected 127.0.0.1:9901 or \
             unix:/run/baton.sock\n",
        ),
        (
            "baton reload --admin none",
            "error: invalid value 'none' for '--admin <ADDR|unix:PATH>': it is no address\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --admin :9901",
            "error: invalid value '0.0.0.0:9901' for '--admin <ADDR|unix:PATH|none>': 0.0.0.0:9901 \
             can be reached from other machines, and whoever reaches it may drain endpoints and \
             read the configuration\n  expected 127.0.0.1:9901, a Unix socket, or --admin-public \
             beside it\n",
        ),
        (
            "baton --listen :80 --upstream a:1 --log-access access.log",
            "error: invalid value 'access.log' for '--log-access <none|stdout|FILE>': a file is \
             named by its whole path, which begins with `/`\n  expected none, stdout or",
        ),
        (
            "baton --listen :80 --upstream a:1 --forward-forwarded=yes",
            "error: invalid value 'yes' for '--forward-forwarded <true|false>': unknown word yes\n",
        ),
    ]);
}

#[test]
fn a_switch_alone_is_true() {
    let config = config_of(
        "baton --listen :1 --upstream a:1 --forward-forwarded --forward-x-forwarded=false \
         --admin-public --admin :9901",
    );
    assert!(config.forward.forwarded && !config.forward.x_forwarded);
    assert_eq!(config.admin, Some(AdminAddress::Tcp("0.0.0.0:9901".parse().unwrap())));
}

#[test]
fn reload_top_and_doctor_are_told_where() {
    let tcp = AdminAddress::Tcp("127.0.0.1:9901".parse().unwrap());
    assert_eq!(run("baton reload --admin 127.0.0.1:9901"), Ok(Command::Reload(tcp.clone())));
    let unix = AdminAddress::Unix("/run/baton.sock".into());
    assert_eq!(run("baton reload --admin unix:/run/baton.sock"), Ok(Command::Reload(unix)));
    assert_eq!(run("baton top --admin 127.0.0.1:9901"), Ok(Command::Top(tcp)));
    assert_eq!(run("baton doctor"), Ok(Command::Doctor(ReportForm::Text)));
    assert_eq!(run("baton doctor --json"), Ok(Command::Doctor(ReportForm::Json)));
}

#[test]
fn a_request_to_match_has_host_target_fields_and_client() {
    let file = TemporaryFile::with("match", FILE);
    let path = file.0.display();
    assert_refusals(&[
        (&format!("baton match --config {path} GET"), "error: the following required arguments"),
        (
            &format!("baton match --config {path} GET ftp://a/"),
            "error: invalid value 'ftp://a/' for '<URL>': unknown scheme `ftp`\n",
        ),
        (
            &format!("baton match --config {path} GET / -H novalue"),
            "error: invalid value 'novalue' for '--header <NAME: VALUE>': the colon is missing\n",
        ),
        (
            &format!("baton match --config {path} GET / --listener web"),
            "error: there is no listener 'web'\n  expected one of :80\n",
        ),
    ]);
    let line = format!(
        "baton match --config {path} POST http://a:80/x?y -H Host:b:8080 -H x:1 --from ::1"
    );
    let Ok(Command::Match(MatchConfig { request, .. })) = run(&line) else { panic!("{line}") };
    let expected = MatchRequest {
        method: "POST".to_owned(),
        host: Some("b".to_owned()),
        target: "/x?y".to_owned(),
        fields: vec![("Host".to_owned(), "b:8080".to_owned()), ("x".to_owned(), "1".to_owned())],
        from: Some("::1".parse().unwrap()),
        listener: None,
    };
    assert_eq!(request, expected);
    let routes = run(&format!("baton routes --config {path}"));
    assert!(matches!(routes, Ok(Command::Routes(config)) if config.routes.len() == 1));
}

#[test]
fn run_keeps_what_a_reload_needs() {
    let file = TemporaryFile::with("again", FILE);
    let path = file.0.clone();
    let line = format!("baton run --config {} --log debug", path.display());
    let Ok(Command::Run(options)) = run(&line) else { panic!("{line}") };
    assert_eq!((options.path.as_ref(), &options.files), (Some(&path), &vec![path.clone()]));
    std::fs::write(&path, FILE.replace(":80", ":81")).unwrap();
    let again = options.load_again().unwrap().unwrap().config;
    assert_eq!(again.listeners[0].addresses[0].port(), 81);
    assert_eq!(again.log_level, LogLevel::Debug);
    let Ok(Command::Run(flags)) = run("baton --listen :1 --upstream a:1") else { panic!("flags") };
    assert!(flags.path.is_none() && flags.load_again().is_none());
}

#[test]
fn the_schema_is_json() {
    let Ok(Command::Info(text)) = run("baton schema") else { panic!("the schema is refused") };
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema, config::schema());
}

#[test]
fn fmt_changes_files_in_place_and_check_changes_none() {
    let file = TemporaryFile::with("fmt", "[[listen]]\naddr=':80'\n");
    let broken = TemporaryFile::with("broken", "addr = \n");
    let line =
        |flags: &str| format!("baton fmt {flags} {} {}", file.0.display(), broken.0.display());
    let format = |line: &str, input: &str| match run(line) {
        Ok(Command::Fmt(options)) => format_files(&options, input.as_bytes()),
        other => panic!("{line}: {other:?}"),
    };
    let read = || std::fs::read_to_string(&file.0).unwrap();

    let done = format(&line("--check"), "");
    assert!(done.errors.contains(": not in the form that baton fmt gives it\n"), "{}", done.errors);
    assert!(done.errors.contains(&format!("{}:1:", broken.0.display())), "{}", done.errors);
    assert_eq!((done.exit, read()), (2, "[[listen]]\naddr=':80'\n".to_owned()));

    let done = format(&line(""), "");
    assert_eq!(done.output, format!("{}: formatted\n", file.0.display()));
    assert_eq!((done.exit, read()), (2, "[[listen]]\naddr = ':80'\n".to_owned()));
    assert_eq!(std::fs::read_to_string(&broken.0).unwrap(), "addr = \n");

    let done = format(&format!("baton fmt --check {}", file.0.display()), "");
    assert_eq!((done.output, done.errors, done.exit), (String::new(), String::new(), 0));
    let done = format("baton fmt -", "a=1");
    assert_eq!((done.output.as_str(), done.exit), ("a = 1\n", 0));
    let done = format("baton fmt --check -", "a=1");
    assert_eq!((done.output.as_str(), done.exit), ("", 1));
    let done = format("baton fmt /nonexistent/b.toml", "");
    assert!(done.errors.starts_with("/nonexistent/b.toml: cannot read: "), "{}", done.errors);
}
