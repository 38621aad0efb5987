//! The file as its users meet it: what each mistake is answered with, and what a good file says.

mod complete;
mod formatting;
mod includes;
mod wrong;

use std::time::Duration;

use super::*;

/// The four lines that any file has.
const SMALLEST: &str = r#"
[[listen]]
addr = ":8080"
[[route]]
to = "127.0.0.1:9000"
"#;

/// Goal: the exact text for the user. Method: parse, compare the whole message.
#[track_caller]
fn assert_refused(text: &str, expected: &str) {
    let error = parse(text, "b.toml").expect_err("the text is refused").to_string();
    assert_eq!(error.trim_end(), expected.trim(), "\n--- the message was:\n{error}");
}

/// As `assert_refused` for one problem in what follows the smallest file, whose last line is 5.
#[track_caller]
fn assert_setting_refused(settings: &str, expected: &str) {
    let expected = format!("{}\n\nb.toml: 1 error", expected.trim());
    assert_refused(&format!("{SMALLEST}{settings}"), &expected);
}

fn smallest_with(settings: &str) -> Config {
    parse(&format!("{SMALLEST}{settings}"), "b.toml").expect("the text is valid")
}

/// What the TOML crate says is its own; the place, the line and the carets are ours.
#[test]
fn text_that_is_not_toml_is_refused_for_its_syntax_alone() {
    let text = "[[listen]]\naddr = 8080x\n[[route]]\nhead = \"1s\"\nto = [\"127.0.0.1:9000\n";
    let error = parse(text, "b.toml").unwrap_err().to_string();
    assert!(error.starts_with("b.toml:2:8: "), "{error}");
    assert!(error.contains("\n2 | addr = 8080x\n  |        ^^^^^\n"), "{error}");
    assert!(error.contains("\nb.toml:5:"), "{error}");
    assert!(error.contains("\n5 | to = [\"127.0.0.1:9000\n"), "{error}");
    assert!(!error.contains("unknown key"), "{error}");
}

#[test]
fn a_key_given_twice_is_refused() {
    let expected = r#"
b.toml:8:1: duplicate key
8 | head = "2s"
  | ^^^^"#;
    assert_setting_refused("[timeout]\nhead = \"1s\"\nhead = \"2s\"", expected);
}

#[test]
fn a_key_in_the_wrong_table_is_told_where_it_belongs() {
    let rows = [
        ("[pool]\ncores = 2", "`cores` belongs in [runtime]"),
        ("[pool]\nbalance = 2", "`balance` belongs in [upstream.NAME]"),
        ("[limit]\ndeny = 2", "`deny` belongs in [[route]]"),
        ("idle_timeout = \"4s\"", "`idle_timeout` belongs in [pool]"),
        ("[limit]\nhead = 2", "`head` belongs in [timeout] or [listen.timeout]"),
    ];
    for (settings, expected) in rows {
        let error = parse(&format!("{SMALLEST}{settings}"), "b.toml").unwrap_err().to_string();
        assert!(error.contains(&format!("^ {expected}\n")), "{error}");
    }
}

/// One wrong value: its line, what is wrong, what to write instead (empty: nothing is near).
type WrongValue = (&'static str, &'static str, &'static str);

#[track_caller]
fn assert_values_refused(table: &str, expectation: &str, rows: &[WrongValue]) {
    for (line, problem, fix) in rows {
        let (key, value) = line.split_once(" = ").unwrap();
        let column = key.len() + " = ".len() + 1;
        let indent = " ".repeat(column - 1);
        let fix = if fix.is_empty() { String::new() } else { format!(" {fix}") };
        let carets = "^".repeat(value.len());
        let expected = format!(
            "b.toml:7:{column}: {table}.{key}: {problem}\n7 | {line}\n  | {indent}{carets}{fix}\n  \
             = expected {expectation}"
        );
        assert_setting_refused(&format!("[{table}]\n{line}"), &expected);
    }
}

#[test]
fn a_wrong_duration_is_refused_with_what_to_write_instead() {
    let rows = [
        ("head = 10", "the unit is missing", r#"write "10s" or "10ms""#),
        (r#"head = "10""#, "the unit is missing", r#"write "10s" or "10ms""#),
        (r#"head = "10 s""#, "it contains white space", r#"write "10s""#),
        (r#"head = "1 day""#, "it contains white space", ""),
        (r#"head = "-1s""#, "it is negative", ""),
        ("head = -1", "it is negative", ""),
        (r#"head = """#, "it does not start with a number", ""),
        (r#"head = "1.5s""#, "fractions are not accepted; use a smaller unit", ""),
        (r#"head = "10KiB""#, "unknown unit `KiB`", ""),
        (r#"head = "0s""#, "0s is under 1ms", ""),
        (r#"head = "1441m""#, "1441m is over 24h", ""),
        (r#"head = "9999999h""#, "the number is too large", ""),
        ("head = 1.5", "a fraction stands where a string belongs", ""),
        ("head = true", "a boolean stands where a string belongs", ""),
        ("head = 10:00:00", "a date stands where a string belongs", ""),
        ("head = ['1s']", "an array stands where a string belongs", ""),
        ("head = {}", "a table stands where a string belongs", ""),
    ];
    assert_values_refused("timeout", r#"a duration from 1ms to 24h, such as "10s""#, &rows);
    let rows = [(r#"linger = "25h""#, "25h is over 24h", "")];
    assert_values_refused("timeout", r#"a duration from 0s to 24h, such as "1s""#, &rows);
}

#[test]
fn a_wrong_size_is_refused_with_what_to_write_instead() {
    let rows = [
        ("head_bytes = 16384", "the unit is missing", r#"write "16384KiB" or "16384B""#),
        (r#"head_bytes = "1023B""#, "1023B is under 1KiB", ""),
        (r#"head_bytes = "65537B""#, "65537B is over 64KiB", ""),
        (r#"head_bytes = "16kib""#, "unknown unit `kib`; did you mean `KiB`?", ""),
        (r#"head_bytes = "none""#, "it does not start with a number", ""),
    ];
    assert_values_refused("limit", r#"a size from 1KiB to 64KiB, such as "16KiB""#, &rows);
    let rows = [
        (r#"body_bytes = "nome""#, r#"unknown word "nome""#, r#"did you mean "none"?"#),
        ("body_bytes = 0", "the unit is missing", r#"write "0KiB" or "0B""#),
        (r#"body_bytes = "1025TiB""#, "1025TiB is over 1024TiB", ""),
    ];
    assert_values_refused("limit", r#"a size up to 1024TiB, such as "64MiB", or "none""#, &rows);
}

#[test]
fn a_wrong_number_is_refused_with_what_to_write_instead() {
    let number = "a string stands where a number belongs";
    let rows = [
        ("fields = 0", "0 is under 1", ""),
        ("fields = 129", "129 is over 128", ""),
        ("fields = -1", "it is negative", ""),
        (r#"fields = "100""#, number, "write 100 without quotes"),
        (r#"fields = "many""#, number, ""),
        ("fields = 1.0", "a fraction stands where a number belongs", ""),
        ("fields = 0x40", "an integer that is not decimal stands where a number belongs", ""),
        ("fields = 99999999999999999999999", "the number is too large", ""),
    ];
    assert_values_refused("limit", "a number from 1 to 128", &rows);
    let rows = [
        ("connections_per_ip = 0", "0 is under 1", ""),
        (r#"connections_per_ip = "None""#, r#"unknown word "None""#, r#"did you mean "none"?"#),
        (r#"connections_per_ip = "off""#, number, ""),
    ];
    assert_values_refused("limit", r#"a number from 1 to 1000000, or "none""#, &rows);
}

#[test]
fn a_wrong_word_is_refused_with_the_nearest() {
    let rows = [
        (r#"driver = "epoll""#, r#"unknown word "epoll""#, r#"did you mean "poll"?"#),
        (r#"driver = "io-uring""#, r#"unknown word "io-uring""#, r#"did you mean "io_uring"?"#),
        (r#"driver = "kqueue""#, r#"unknown word "kqueue""#, ""),
        ("driver = 1", "an integer stands where a string belongs", ""),
        ("driver = []", "an array stands where a string belongs", ""),
    ];
    assert_values_refused("runtime", r#"one of "auto", "io_uring", "poll""#, &rows);
    let rows = [(r#"level = "trace""#, r#"unknown word "trace""#, "")];
    assert_values_refused("log", r#"one of "error", "warn", "info", "debug""#, &rows);
}

#[test]
fn more_addresses_than_the_bounds_are_refused() {
    let list = |count: usize| {
        let all: Vec<String> = (1..=count).map(|port| format!("'127.0.0.1:{port}'")).collect();
        all.join(", ")
    };
    let file = |listeners: usize, upstreams: usize| {
        let (addr, to) = (list(listeners), list(upstreams));
        parse(&format!("[[listen]]\naddr = [{addr}]\n[[route]]\nto = [{to}]"), "b.toml")
    };
    let full = file(LISTENERS_MAX, UPSTREAMS_MAX).unwrap();
    assert_eq!(
        (full.addresses().count(), full.endpoints().count()),
        (LISTENERS_MAX, UPSTREAMS_MAX)
    );
    let error = file(LISTENERS_MAX + 1, 1).unwrap_err().to_string();
    assert!(error.contains(": there are more than 64 addresses to listen on\n"), "{error}");
    let error = file(1, UPSTREAMS_MAX + 1).unwrap_err().to_string();
    assert!(error.contains(": there are more than 1024 endpoints\n"), "{error}");
}

#[test]
fn a_target_longer_than_the_head_is_refused_at_the_value_that_the_file_gives() {
    let expected = r#"
b.toml:7:14: a request target of 8KiB does not fit in a head of 4KiB
7 | head_bytes = "4KiB"
  |              ^^^^^^
  = expected limit.target_bytes of at most limit.head_bytes"#;
    assert_setting_refused("[limit]\nhead_bytes = \"4KiB\"", expected);
    let expected = r#"
b.toml:7:16: a request target of 17KiB does not fit in a head of 16KiB
7 | target_bytes = "17KiB"
  |                ^^^^^^^
  = expected limit.target_bytes of at most limit.head_bytes"#;
    assert_setting_refused("[limit]\ntarget_bytes = \"17KiB\"", expected);
    let equal = smallest_with("[limit]\nhead_bytes = \"8KiB\"");
    assert_eq!(equal.limits.head_bytes, equal.limits.target_bytes);
}

/// Method: each character of a file is replaced or cut out, and the file is cut before it. Nothing
/// may panic; a place that is not in the text or not between two characters would.
#[test]
fn no_damage_to_a_file_makes_the_parser_panic() {
    let whole = "# ünïcödé\n[[listen]]\naddr = [\":80\", \"[::1]:80\"]\r\n[[route]]\nto = \"a:1\"\n\
                 [limit]\nfields = 1_0\nhead_bytes = \"9KiB\" # ü\ntimeout.head = \"1s\"\n";
    let mut refused = 0;
    for (at, replaced) in whole.char_indices() {
        let (before, after) = (&whole[..at], &whole[at + replaced.len_utf8()..]);
        let damaged = ["\"", "\n", "\r", "[", "=", ".", "é", "\u{0}", ""]
            .map(|damage| format!("{before}{damage}{after}"));
        for text in damaged.iter().map(String::as_str).chain([before]) {
            if let Err(error) = parse(text, "b.toml") {
                assert!(error.to_string().starts_with("b.toml:"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > whole.len(), "{refused}");
}

#[test]
fn the_smallest_file_gets_the_defaults() {
    let config = smallest_with("");
    assert!(config.addresses().eq(["0.0.0.0:8080".parse().unwrap()]));
    assert!(config.endpoints().eq([&UpstreamAddr::Ip("127.0.0.1:9000".parse().unwrap())]));
    let mut defaults = Config::defaults();
    defaults.listeners.clone_from(&config.listeners);
    defaults.upstreams.clone_from(&config.upstreams);
    defaults.routes.clone_from(&config.routes);
    assert_eq!(config, defaults);
}

#[test]
fn several_listen_tables_and_arrays_add_up_in_the_order_of_the_file() {
    let text = r#"
route = [{ to = ["b:1", "[::1]:2"] }]
[[listen]]
addr = [":1", "[::1]:2"]
[[listen]]
addr = "127.0.0.1:3"
"#;
    let config = parse(text, "b.toml").unwrap();
    let listeners: Vec<String> = config.addresses().map(|address| address.to_string()).collect();
    assert_eq!(listeners, ["0.0.0.0:1", "[::1]:2", "127.0.0.1:3"]);
    let upstreams: Vec<String> = config.endpoints().map(ToString::to_string).collect();
    assert_eq!(upstreams, ["b:1", "[::1]:2"]);
}

#[test]
fn each_kind_of_setting_is_stored() {
    let config = smallest_with(
        r#"
[runtime]
cores = 8
driver = "poll"
accept = "dealt"
[timeout]
head = "1500ms"
drain = "0s"
[limit]
body_bytes = "64MiB"
connections = 200_000
fields = +12
connections_per_ip = 200
drain_bytes = "0B"
[pool]
idle = 0
[log]
level = "debug"
"#,
    );
    assert_eq!(config.runtime.cores, Some(8));
    assert_eq!(config.runtime.driver, DriverChoice::Poll);
    assert_eq!(config.runtime.accept, AcceptMode::Dealt);
    assert_eq!(config.timeouts.head, Duration::from_millis(1_500));
    assert_eq!(config.timeouts.drain, Duration::ZERO);
    assert_eq!(config.limits.body_bytes, Some(67_108_864));
    assert_eq!(config.limits.connections, 200_000);
    assert_eq!(config.limits.fields, 12);
    assert_eq!(config.limits.connections_per_ip, Some(200));
    assert_eq!(config.limits.drain_bytes, 0);
    assert_eq!(config.pool.idle, 0);
    assert_eq!(config.log_level, LogLevel::Debug);
    let words = smallest_with("[runtime]\ncores = \"auto\"\n[limit]\nbody_bytes = \"none\"");
    assert_eq!(words, smallest_with(""));
}

#[test]
fn what_is_printed_is_read_back_as_the_same_configuration() {
    let several = r#"
listen = [{ addr = [":1", "[::1]:2"] }]
route = [{ to = ["b:1", "127.0.0.1:2"] }]
[runtime]
cores = 3
driver = "io_uring"
[timeout]
head = "90s"
[limit]
body_bytes = "10MB"
connections_per_ip = 7
[log]
level = "warn"
"#;
    for config in [smallest_with(""), parse(several, "b.toml").unwrap()] {
        let text = print(&config);
        assert_eq!(parse(&text, "printed").unwrap(), config, "{text}");
    }
}

#[test]
fn the_printed_file_has_every_setting_with_its_meaning_and_default() {
    let text = print(&smallest_with(""));
    assert!(
        text.starts_with("[[listen]]\naddr = \":8080\"\n\n[[route]]\nto = \"127.0.0.1:9000\"\n")
    );
    let lines = [
        "[timeout]\n# The whole request head, from its first byte.\nhead = \"10s\"\n",
        "\nhead_bytes = \"16KiB\"\n",
        "\nbody_bytes = \"none\"\n",
        "\nconnections = 8192\n",
        "\ncores = \"auto\"\n",
        "\n[log]\n# The least severe event that is logged.\nlevel = \"info\"\n",
    ];
    for line in lines {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let settings: usize = SETTINGS.iter().map(|section| section.flags().len()).sum();
    let assignments = text.lines().filter(|line| line.contains(" = ") && !line.starts_with('#'));
    assert_eq!(assignments.count(), settings + 2);
}

#[test]
fn the_summary_counts_what_there_is() {
    let path = Path::new("b.toml");
    assert_eq!(
        summary(&smallest_with(""), path),
        "b.toml: ok, 1 address, 1 route, 1 upstream, 1 endpoint"
    );
    let two = smallest_with("[[listen]]\naddr = ':2'");
    assert_eq!(summary(&two, path), "b.toml: ok, 2 addresses, 1 route, 1 upstream, 1 endpoint");
}

/// A file in the system's directory for temporary files, removed when dropped.
pub(crate) struct TemporaryFile(pub(crate) PathBuf);

impl TemporaryFile {
    /// `name` is another one in each test.
    pub(crate) fn with(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let name = format!("baton-{}-{name}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Nothing depends on its removal.
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_in_the_error() {
    let error = load(Path::new("/nonexistent/b.toml")).unwrap_err();
    assert!(matches!(&error, ConfigError::Unreadable { .. }));
    assert!(error.to_string().starts_with("/nonexistent/b.toml: cannot read: "), "{error}");
}

#[test]
fn a_file_over_the_bound_is_refused_and_one_at_the_bound_is_read() {
    let mut bytes = SMALLEST.as_bytes().to_vec();
    bytes.resize(usize::try_from(FILE_BYTES_MAX).unwrap(), b'\n');
    let full = TemporaryFile::with("full", &bytes);
    let loaded = load(&full.0).unwrap();
    assert_eq!((loaded.config, loaded.files), (smallest_with(""), vec![full.0.clone()]));
    bytes.push(b'\n');
    let over = TemporaryFile::with("over", &bytes);
    let error = load(&over.0).unwrap_err().to_string();
    assert_eq!(error, format!("{}: the file is over 1MiB", over.0.display()));
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_at_its_line() {
    let file = TemporaryFile::with("latin1", b"# one\n# b\xfccher\n");
    let error = load(&file.0).unwrap_err().to_string();
    assert_eq!(error, format!("{}:2: the line is not UTF-8", file.0.display()));
}
