//! Files that include others, and the environment.

use super::*;

fn files() -> PathBuf {
    PathBuf::from("src/config/tests/files")
}

#[test]
fn what_included_files_say_is_added_in_the_order_of_their_names() {
    let text = "include = 'sub/*.toml'\n[[listen]]\naddr = ':1'\n[[route]]\nto = 'shared'\n";
    let loaded = file::load_with(text, "b.toml", &files(), None, &file::OfProcess).unwrap();
    let routes: Vec<&str> = loaded.config.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(routes, ["/*", "/one", "/two"]);
    let read: Vec<String> = loaded
        .files
        .iter()
        .map(|path| path.strip_prefix(files()).unwrap().display().to_string())
        .collect();
    assert_eq!(read, ["sub/1.toml", "sub/2.toml", "sub/../shared.toml", "sub/../502.html"]);
}

#[test]
fn a_pattern_that_matches_no_file_includes_none() {
    let text = format!("include = 'sub/*.conf'\n{SMALLEST}");
    let loaded = file::load_with(&text, "b.toml", &files(), None, &file::OfProcess).unwrap();
    assert_eq!(loaded.config, smallest_with(""));
}

#[test]
fn a_file_that_includes_itself_by_another_way_is_refused() {
    let file = TemporaryFile::with("itself", "");
    let name = file.0.file_name().unwrap().to_str().unwrap();
    std::fs::write(&file.0, format!("include = './{name}'\n{SMALLEST}")).unwrap();
    let error = load(&file.0).unwrap_err().to_string();
    assert!(error.contains(" includes itself\n"), "{error}");
}

#[test]
fn the_environment_is_put_into_strings_and_may_be_a_number_there() {
    struct Fixed;

    impl reader::Environment for Fixed {
        fn value(&self, name: &str) -> Result<Option<String>, &'static str> {
            Ok(match name {
                "PORT" => Some("9000".to_owned()),
                "BODY" => Some("\"\n[limit]\nfields = 1".to_owned()),
                _ => None,
            })
        }

        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }

    let text = r#"
[[listen]]
addr = ["${HOST:-127.0.0.1}:${PORT}", ":1"]
[[route]]
respond = { body = "${BODY}" }
access_log = "${LOG:-false}"
[limit]
connections = "${PORT}"
[runtime]
cores = "${CORES:-auto}"
"#;
    let loaded = file::load_with(text, "b.toml", Path::new(""), None, &Fixed).unwrap();
    let config = loaded.config;
    assert_eq!(config.listeners[0].addresses[0], "127.0.0.1:9000".parse().unwrap());
    assert_eq!(config.limits.connections, 9_000);
    assert_eq!(config.limits.fields, Limits::default().fields);
    assert!(!config.routes[0].access_log);
    let Action::Respond { body, .. } = &config.routes[0].action else { panic!("an answer") };
    assert_eq!(&**body, b"\"\n[limit]\nfields = 1");
}

#[test]
fn standard_input_is_read_to_its_bound() {
    let loaded = load_input(SMALLEST.as_bytes()).unwrap();
    assert_eq!((loaded.config, loaded.files), (smallest_with(""), Vec::new()));
    let error = load_input(&b"\xff"[..]).unwrap_err().to_string();
    assert_eq!(error, "standard input:1: the line is not UTF-8");
    let error = load_input(std::io::repeat(b'#')).unwrap_err().to_string();
    assert_eq!(error, "standard input: the file is over 1MiB");
    let error = load_input(&b""[..]).unwrap_err().to_string();
    assert!(error.starts_with("standard input: no [[listen]] table\n"), "{error}");
}

/// As many files as may be included, and one more.
#[test]
fn more_files_than_the_bound_are_refused() {
    let folder = std::env::temp_dir().join(format!("baton-{}-many", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("include = '*.toml'\n{SMALLEST}");
    let load = || file::load_with(&text, "b.conf", &folder, None, &file::OfProcess);
    for index in 0..256 {
        std::fs::write(folder.join(format!("{index}.toml")), "").unwrap();
    }
    let full = load().map(|loaded| loaded.files.len());
    std::fs::write(folder.join("over.toml"), "").unwrap();
    let over = load();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(full.unwrap(), 256);
    let error = over.unwrap_err().to_string();
    assert!(error.contains("include: more than 256 files are included\n"), "{error}");
}
