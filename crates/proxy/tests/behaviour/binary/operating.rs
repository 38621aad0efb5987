//! What an operator does to a process that serves: reload, log rotation, looking in.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::process::{Process, run};
use crate::support::{GET, wait_until};

/// A directory of its own in that of this test run, empty.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _absent = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the directory is writable");
    path
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("there is room");
}

/// A file whose one route answers with `status`.
fn answering(status: u16, more: &str) -> String {
    format!(
        "[[listen]]\naddr = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = {status} }}\n{more}"
    )
}

fn started(path: &Path) -> Process {
    Process::start(&["run", "--config", path.to_str().expect("a plain path")])
}

#[test]
fn a_wrong_file_is_told_with_its_line_and_the_old_one_stays_in_force() {
    // Goal: SIGHUP. Method: a file with a mistake in line 4, then a valid one.
    let directory = directory("hangup");
    let path = directory.join("site.toml");
    write(&path, &answering(200, ""));
    let mut baton = started(&path);
    let mut client = baton.connect();
    assert_eq!(client.ask(GET).status(), 200);
    write(&path, &answering(204, "[limit]\nhead = \"1 MiB\"\n"));
    baton.signal("HUP");
    baton.wait_for_log("nothing has changed");
    assert!(baton.log().contains("site.toml:"), "{}", baton.log());
    assert_eq!(client.ask(GET).status(), 200);
    write(&path, &answering(204, ""));
    baton.signal("HUP");
    baton.wait_for_log("generation=2");
    assert_eq!(client.ask(GET).status(), 204);
    baton.signal("TERM");
    assert_eq!(baton.wait().code(), Some(0));
}

#[test]
fn a_reload_changes_the_level_of_the_log() {
    let directory = directory("level");
    let path = directory.join("site.toml");
    write(&path, &answering(200, ""));
    let baton = started(&path);
    baton.address();
    write(&path, &answering(204, "[log]\nlevel = \"error\"\n"));
    baton.signal("HUP");
    let mut client = baton.connect();
    wait_until("it is in force", || client.ask(GET).status() == 204);
    write(&path, &answering(202, "[log]\nlevel = \"info\"\n"));
    baton.signal("HUP");
    baton.wait_for_log("generation=3");
    assert!(!baton.log().contains("generation=2"), "{}", baton.log());
}

#[test]
fn the_command_reload_says_what_is_wrong_or_which_generation_is_in_force() {
    // Goal: `baton reload` by a Unix socket. Method: nobody there, a wrong file, a valid one.
    let directory = directory("reload");
    let path = directory.join("site.toml");
    let admin = format!("unix:{}", directory.join("admin").display());
    let settings = format!("[admin]\nlisten = \"{admin}\"\n");
    let reload = || run(&["reload", "--admin", &admin]);
    let ended = reload();
    assert_eq!(ended.exit, 1);
    assert!(ended.stderr.contains("no proxy answers"), "{}", ended.stderr);
    write(&path, &answering(200, &settings));
    let baton = started(&path);
    let mut client = baton.connect();
    write(&path, &answering(204, &format!("{settings}listn = 1\n")));
    let ended = reload();
    assert_eq!((ended.exit, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("listn"), "{}", ended.stderr);
    assert_eq!(client.ask(GET).status(), 200);
    write(&path, &answering(204, &settings));
    let ended = reload();
    assert_eq!((ended.exit, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("generation 2"), "{}", ended.stdout);
    assert_eq!(client.ask(GET).status(), 204);
}

/// The whole answer of the admin server at the socket `admin`.
fn ask_admin(admin: &Path, path: &str) -> String {
    let mut stream = UnixStream::connect(admin).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers in UTF-8 and closes");
    answer
}

#[test]
fn reloads_are_counted_by_their_outcome_whoever_asks() {
    // Goal: the metric. Method: two wrong files by signal and by command, then a valid one.
    let directory = directory("counted");
    let (path, socket) = (directory.join("site.toml"), directory.join("admin"));
    let admin = format!("unix:{}", socket.display());
    let settings = format!("[admin]\nlisten = \"{admin}\"\n");
    write(&path, &answering(200, &settings));
    let baton = started(&path);
    let mut client = baton.connect();
    write(&path, "listn = 1\n");
    baton.signal("HUP");
    baton.wait_for_log("nothing has changed");
    // What is decided at start is refused later than a wrong file is.
    write(&path, &answering(204, &format!("{settings}[runtime]\naccept = \"dealt\"\n")));
    assert_eq!(run(&["reload", "--admin", &admin]).exit, 1);
    write(&path, &answering(204, &settings));
    assert_eq!(run(&["reload", "--admin", &admin]).exit, 0);
    assert_eq!(client.ask(GET).status(), 204);
    let metrics = ask_admin(&socket, "/metrics");
    for sample in ["{outcome=\"taken\"} 1\n", "{outcome=\"refused\"} 2\n"] {
        let sample = format!("baton_config_reloads_total{sample}");
        assert!(metrics.contains(&sample), "{metrics}");
    }
}

#[test]
fn the_access_log_goes_on_in_a_new_file_after_it_was_moved_away() {
    // Goal: SIGUSR1. Method: a request, the file is renamed, the signal, a request.
    let directory = directory("rotation");
    let (path, log) = (directory.join("site.toml"), directory.join("access.log"));
    let settings =
        format!("[log]\naccess = \"{}\"\naccess_format = \"json\"\n", log.to_str().expect("plain"));
    write(&path, &answering(200, &settings));
    let mut baton = started(&path);
    let mut client = baton.connect();
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    client.ask("GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the first line is there", || lines(&log).contains("/first"));
    let moved = directory.join("access.log.1");
    std::fs::rename(&log, &moved).expect("it is there");
    baton.signal("USR1");
    wait_until("a new file is there", || log.exists());
    client.ask("GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
    baton.signal("TERM");
    assert_eq!(baton.wait().code(), Some(0));
    assert!(lines(&log).contains("/second"), "{}", lines(&log));
    assert_eq!(lines(&moved).lines().count(), 1);
}

#[test]
fn a_reload_that_moves_the_admin_address_is_answered_where_it_was_asked() {
    let directory = directory("moved");
    let path = directory.join("site.toml");
    let admin = |name: &str| format!("unix:{}", directory.join(name).display());
    let settings = |name: &str| format!("[admin]\nlisten = \"{}\"\n", admin(name));
    write(&path, &answering(200, &settings("here")));
    let baton = started(&path);
    baton.address();
    write(&path, &answering(204, &settings("there")));
    let moved = run(&["reload", "--admin", &admin("here")]);
    assert_eq!((moved.exit, moved.stderr.as_str()), (0, ""));
    assert!(moved.stdout.contains("generation 2"), "{}", moved.stdout);
    wait_until("its file is gone", || !directory.join("here").exists());
    assert_eq!(run(&["reload", "--admin", &admin("there")]).exit, 0);
}
