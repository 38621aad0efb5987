//! The site of docs/examples/site.toml, as its visitors see it: files, an API with events and a
//! WebSocket, a shop. The very file runs here, with other addresses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use baton_proxy::config::DriverChoice;

use crate::support::upstream::nobody;
use crate::support::{Link, Message, Proxy, Upstream, on_each_driver, wait_until};

/// The servers of the site. The shop is down.
struct Site {
    files: Upstream,
    api: [Upstream; 2],
    /// Lets the API send its next event.
    next_event: SyncSender<()>,
    log: PathBuf,
    proxy: Proxy,
}

impl Site {
    /// `test`: names the log, since tests run at once.
    fn start(driver: DriverChoice, test: &str) -> Site {
        let files = Upstream::answering(
            "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 6\r\n\r\n<html>",
        );
        let (next_event, events) = sync_channel(1);
        let events = Arc::new(Mutex::new(events));
        let api = [(); 2].map(|()| {
            let events = events.clone();
            Upstream::start(move |link| serve_api(link, &events))
        });
        let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{driver:?}.log"));
        let _absent = std::fs::remove_file(&log);
        let shop = nobody();
        let text = adapted(files.address, [api[0].address, api[1].address], shop, &log);
        let proxy = Proxy::with(driver, &text);
        Site { files, api, next_event, log, proxy }
    }

    fn get(&self, host: &str, target: &str) -> Message {
        self.proxy.ask(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    }

    /// Requests for `target` that reached the API.
    fn api_requests(&self, target: &str) -> Vec<Message> {
        let start = format!("GET {target} ");
        let requests = self.api.iter().flat_map(Upstream::requests);
        requests.filter(|request| request.head.starts_with(&start)).collect()
    }
}

/// The file of the documentation, with addresses that are free here.
fn adapted(files: SocketAddr, api: [SocketAddr; 2], shop: SocketAddr, log: &Path) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/site.toml");
    let mut text = std::fs::read_to_string(file).expect("the example is there");
    let log = format!("access = \"{}\"", log.to_str().expect("a plain path"));
    for (theirs, ours) in [
        ("\":8080\"", "\"$LISTEN\"".to_owned()),
        ("127.0.0.1:9001", files.to_string()),
        ("127.0.0.1:9002", api[0].to_string()),
        ("127.0.0.1:9003", api[1].to_string()),
        ("127.0.0.1:9004", shop.to_string()),
        ("127.0.0.1:9901", "127.0.0.1:0".to_owned()),
        ("access = \"stdout\"", log),
    ] {
        assert_eq!(text.matches(theirs).count(), 1, "{theirs} in the example");
        text = text.replace(theirs, &ours);
    }
    text
}

fn serve_api(mut link: Link, events: &Mutex<Receiver<()>>) {
    while let Some(request) = link.request() {
        let target = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
        match target.as_str() {
            "/events" => {
                link.send(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                     Transfer-Encoding: chunked\r\n\r\n",
                );
                for number in 0..3 {
                    // The sender is gone once its test has failed.
                    let next = events.lock().expect("unpoisoned").recv();
                    if next.is_err() {
                        return;
                    }
                    link.send(format!("9\r\ndata: {number}\n\n\r\n"));
                }
                link.send("0\r\n\r\n");
            }
            "/ws" => {
                link.send(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                     Connection: upgrade\r\n\r\n",
                );
                while let Ok(bytes) = link.bytes(4) {
                    link.send(bytes);
                }
                return;
            }
            _ => link.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
        }
    }
}

#[test]
fn a_service_that_is_down_is_an_error_on_its_route_alone() {
    on_each_driver(|driver| {
        let site = Site::start(driver, "site-down");
        assert_eq!(site.get("shop.example.com", "/").status(), 502);
        assert_eq!(site.get("example.com", "/").status(), 200);
        assert_eq!(site.get("example.com", "/api/items").status(), 200);
    });
}

#[test]
fn strangers_do_not_come_to_what_is_internal_nor_to_other_hosts() {
    on_each_driver(|driver| {
        let site = Site::start(driver, "site-strangers");
        for target in ["/api/internal/metrics", "/api/x/../internal/metrics", "/api/%69nternal/"] {
            let answer = site.get("example.com", target);
            assert_eq!((answer.status(), answer.text()), (404, "not here\n"), "{target}");
        }
        assert_eq!(site.get("elsewhere.example", "/").status(), 404);
        assert!(site.files.requests().is_empty());
    });
}

#[test]
fn a_client_that_asks_too_often_is_told_when_to_come_back() {
    on_each_driver(|driver| {
        let site = Site::start(driver, "site-rate");
        let mut client = site.proxy.connect();
        let ask = "GET /api/items HTTP/1.1\r\nHost: example.com\r\n\r\n";
        // The burst, and what the rate admits while they are sent.
        let refused = (0..100_000).map(|_| client.ask(ask)).find(|answer| answer.status() != 200);
        let refused = refused.expect("the rate has an end");
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.field("retry-after"), Some("1"));
        assert!(refused.field("ratelimit").is_some(), "{}", refused.head);
        assert_eq!(site.get("example.com", "/").status(), 200, "files have no rate");
    });
}

#[test]
fn pages_come_from_the_files_with_their_time_to_live() {
    on_each_driver(|driver| {
        let site = Site::start(driver, "site-pages");
        let page = site.get("www.example.com", "/index.html");
        assert_eq!((page.status(), page.text()), (200, "<html>"));
        assert_eq!(page.field("cache-control"), Some("public, max-age=300"));
        assert_eq!(page.field("server"), None);
        let moved = site.get("old-shop.example.com", "/a?b=c");
        assert_eq!(moved.field("location"), Some("http://shop.example.com/a?b=c"));
        assert_eq!(moved.status() / 100, 3);
    });
}

#[test]
fn the_api_has_its_prefix_taken_away_and_requests_have_an_id_in_the_log_too() {
    on_each_driver(|driver| {
        let site = Site::start(driver, "site-api");
        assert_eq!(site.get("example.com", "/api/items?x=1").text(), "{}");
        let [request] = &site.api_requests("/items?x=1")[..] else { panic!("it came once") };
        let id = request.field("x-request-id").expect("it has one").to_owned();
        let log = || std::fs::read_to_string(&site.log).unwrap_or_default();
        wait_until("it is in the log", || log().contains(&id));
        let log = log();
        let line = log.lines().find(|line| line.contains(&id)).expect("it was waited for");
        for part in [r#""route":"api""#, r#""upstream":"api""#, r#""target":"/api/items?x=1""#] {
            assert!(line.contains(part), "{part} in {line}");
        }
    });
}

#[test]
fn events_arrive_one_by_one_while_the_answer_is_open() {
    on_each_driver(|driver| {
        let site = Site::start(driver, "site-events");
        let mut client = site.proxy.connect();
        client.send("GET /api/events HTTP/1.1\r\nHost: example.com\r\n\r\n");
        let head = client.head().expect("the head comes before the first event");
        assert!(head.to_ascii_lowercase().contains("text/event-stream"), "{head}");
        for number in 0..3 {
            site.next_event.send(()).expect("the API waits");
            let event = client.chunk().expect("it is whole").expect("the answer is open");
            assert_eq!(event, format!("data: {number}\n\n").as_bytes());
        }
        assert_eq!(client.chunk().expect("it ends in order"), None);
    });
}

#[test]
fn a_web_socket_goes_through() {
    on_each_driver(|driver| {
        let site = Site::start(driver, "site-socket");
        let mut client = site.proxy.connect();
        let answer = client.ask(
            "GET /api/ws HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\n\r\n",
        );
        assert_eq!(answer.status(), 101);
        for word in ["ping", "pong"] {
            client.send(word);
            assert_eq!(client.bytes(4).expect("the echo"), word.as_bytes());
        }
    });
}
