//! The control plane over real sockets, beside cores that run.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::snapshot::Snapshot;
use super::*;
use crate::config;
use crate::control::client::Reply;
use crate::plan::Plan;
use crate::route::RouteTable;
use crate::server::Server;

/// A running proxy of one core and its control plane. The proxy goes first.
struct Proxy {
    control: Control,
    address: AdminAddress,
    live: Arc<Live>,
    ready: Arc<AtomicBool>,
    _server: Server,
}

fn live(config: &config::Config, server: &Server) -> Arc<Live> {
    let shared = Arc::new(crate::proxy::Shared {
        clients: Arc::new(crate::clients::Clients::new(None)),
        counters: Arc::from([crate::Counters::default()]),
        lines: Arc::from([crate::access_log::Lines::default()]),
        sink: crate::proxy::AccessLogSink::default(),
    });
    let plan = Arc::new(Plan::new(config.clone(), 1, &[vec![0]], None));
    Arc::new(Live::new(server.runtime().observer(), shared, plan))
}

type Reload = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

fn start_with(admin: AdminAddress, reload: Reload) -> Proxy {
    let text =
        "[[listen]]\naddr = \"127.0.0.1:0\"\n[[route]]\nto = [\"127.0.0.1:9\", \"[::1]:9\"]\n";
    let mut config = config::parse(text, "test").expect("it is valid");
    config.runtime.cores = Some(1);
    config.runtime.driver = config::DriverChoice::Poll;
    let server =
        Server::start(&config, Box::new(|| Err(String::new()))).expect("a port can be had");
    let live = live(&config, &server);
    let ready = Arc::new(AtomicBool::new(true));
    let hooks = Hooks { reload, ready: ready.clone() };
    let control = start(live.clone(), Some(admin), hooks).expect("the address can be had");
    let address = control.reception().address().expect("it has one");
    Proxy { control, address, live, ready, _server: server }
}

fn start_tcp() -> Proxy {
    let address = AdminAddress::Tcp(([127, 0, 0, 1], 0).into());
    start_with(address, Box::new(|| Ok("nothing changed".to_owned())))
}

impl Proxy {
    fn address(&self) -> &AdminAddress {
        &self.address
    }

    fn get(&self, path: &str) -> Reply {
        client::get(self.address(), path).expect("it answers")
    }

    fn post(&self, path: &str) -> Reply {
        client::post(self.address(), path).expect("it answers")
    }

    fn tcp(&self) -> SocketAddr {
        match self.address() {
            AdminAddress::Tcp(address) => *address,
            AdminAddress::Unix(path) => panic!("{} is no TCP address", path.display()),
        }
    }

    /// Sends `request` as it is and reads to the end.
    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.tcp()).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers in UTF-8 and closes");
        answer
    }
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let proxy = start_tcp();
    let reply = proxy.get("/statuz");
    assert_eq!(reply.status, 404);
    for (_, path, _) in paths::PATHS {
        assert!(reply.text().contains(path), "{}", reply.text());
    }
}

#[test]
fn a_wrong_method_is_told_the_right_ones() {
    let proxy = start_tcp();
    let answer = proxy.raw("PUT /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
    let answer = proxy.raw("GET /reload HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.contains("allow: POST\r\n"), "{answer}");
}

#[test]
fn a_page_from_elsewhere_can_neither_read_nor_change() {
    let proxy = start_tcp();
    for path in ["/", "/status", "/config", "/routes"] {
        let answer = proxy.raw(&format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    let form = "POST /reload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n";
    assert!(proxy.raw(form).starts_with("HTTP/1.1 403 "));
    let asks = "OPTIONS /reload HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\
                Access-Control-Request-Headers: x-baton\r\n\r\n";
    let answer = proxy.raw(asks);
    assert!(answer.starts_with("HTTP/1.1 405 ") && !answer.contains("access-control"), "{answer}");
    let monitoring = "GET /healthz HTTP/1.1\r\nHost: edge-1.internal:9100\r\n\r\n";
    assert!(proxy.raw(monitoring).starts_with("HTTP/1.1 200 "));
}

#[test]
fn what_is_too_large_is_refused() {
    let proxy = start_tcp();
    let fields = "a: b\r\n".repeat(limits::FIELDS_MAX + 1);
    let answer = proxy.raw(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let body = "x".repeat(limits::BODY_BYTES_MAX + 1);
    let answer = proxy.raw(&format!(
        "POST /reload HTTP/1.1\r\nHost: localhost\r\nX-Baton: 1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn the_status_is_the_snapshot() {
    let proxy = start_tcp();
    proxy.live.shared.counters[0].requests.add(3);
    let reply = proxy.get("/status");
    let snapshot: Snapshot = serde_json::from_slice(&reply.body).expect("a snapshot");
    assert_eq!(snapshot.counters["requests"], 3);
    assert_eq!(snapshot.cores[0].requests, 3);
    assert_eq!((snapshot.generation, snapshot.ready, snapshot.driver.as_str()), (1, true, "poll"));
    assert_eq!(snapshot.upstreams[0].endpoints.len(), 2);
    assert!(snapshot.process.descriptors_max > Some(0));
}

#[test]
fn metrics_come_in_the_format_that_was_asked_for() {
    let proxy = start_tcp();
    let text = proxy.get("/metrics").text();
    assert!(text.contains("baton_config_generation 1\n"), "{text}");
    let answer = proxy.raw(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\
         Accept: application/openmetrics-text;version=1.0.0\r\n\r\n",
    );
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(answer.ends_with("# EOF\n"));
}

#[test]
fn the_page_comes_with_its_policy_and_head_without_it() {
    let proxy = start_tcp();
    let answer = proxy.raw("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.contains(&format!("content-security-policy: {}\r\n", page::policy())));
    assert!(answer.ends_with(page::HTML));
    let head = proxy.raw("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn it_is_ready_until_it_drains_and_healthy_while_its_cores_run() {
    let proxy = start_tcp();
    assert_eq!(proxy.get("/readyz").status, 200);
    assert_eq!(proxy.get("/healthz").status, 200);
    proxy.ready.store(false, Ordering::Relaxed);
    let reply = proxy.get("/readyz");
    assert_eq!((reply.status, reply.text().as_str()), (503, "draining\n"));
}

#[test]
fn a_core_whose_heart_stopped_is_known() {
    let proxy = start_tcp();
    let source = Source::new(proxy.live.clone(), proxy.ready.clone());
    assert_eq!(source.silent_core(), None, "its heart beats");
    // With the cores gone nothing beats any more.
    let Proxy { _server: server, control, .. } = proxy;
    server.stop(std::time::Duration::from_secs(10));
    assert_eq!(source.silent_core(), None, "not yet for long");
    source.pretend_silence(limits::CORE_SILENCE_MAX);
    let (core, silence) = source.silent_core().expect("it is silent");
    assert!(core == 0 && silence >= limits::CORE_SILENCE_MAX);
    assert!(source.take().cores[0].silent_ms >= 10_000);
    drop(control);
}

#[test]
fn the_configuration_in_force_is_printed() {
    let proxy = start_tcp();
    let expected = config::print(&proxy.live.plan().config);
    assert_eq!(proxy.get("/config").text(), expected);
}

#[test]
fn the_routes_in_force_are_told_as_the_command_tells_them() {
    let proxy = start_tcp();
    let reply = proxy.get("/routes");
    let expected = RouteTable::new(&proxy.live.plan().config).text(&proxy.live.plan().config);
    assert_eq!((reply.status, reply.text()), (200, expected));
    let next = config::parse(
        "[[listen]]\naddr = \"127.0.0.1:0\"\n[[route]]\npath = \"/new\"\nto = \"127.0.0.1:9\"\n",
        "test",
    )
    .expect("it is valid");
    let plan = Plan::new(next, 1, &[vec![0]], Some(&proxy.live.plan()));
    proxy.live.set_plan(Arc::new(plan));
    assert!(proxy.get("/routes").text().contains("/new"));
}

#[test]
fn an_endpoint_is_drained_and_enabled() {
    let proxy = start_tcp();
    let plan = proxy.live.plan();
    let upstream = &plan.upstreams[0];
    let name = paths::encode(&upstream.config().name);
    let wrong = proxy.post("/upstreams/nope/endpoints/127.0.0.1:9/drain");
    assert_eq!(wrong.status, 404);
    assert!(wrong.text().contains(&upstream.config().name), "{}", wrong.text());
    let wrong = proxy.post(&format!("/upstreams/{name}/endpoints/127.0.0.1:8/drain"));
    assert_eq!(wrong.status, 404);
    assert!(wrong.text().contains("[::1]:9"), "{}", wrong.text());

    let path = format!("/upstreams/{name}/endpoints/{}", paths::encode("[::1]:9"));
    let drained = || upstream.endpoints().iter().map(|e| e.is_drained()).collect::<Vec<_>>();
    assert!(proxy.post(&format!("{path}/drain")).is_success());
    assert_eq!(drained(), [false, true]);
    assert!(proxy.post(&format!("{path}/enable")).is_success());
    assert_eq!(drained(), [false, false]);
}

#[test]
fn a_reload_that_fails_says_why_and_one_at_a_time_is_done() {
    let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
    let (end, may_end) = std::sync::mpsc::sync_channel::<()>(1);
    let may_end = std::sync::Mutex::new(may_end);
    let reload = move || {
        begun.send(()).expect("the test waits");
        may_end.lock().expect("one at a time").recv().expect("the test lets it end");
        Err("baton.toml:3: nothing changed".to_owned())
    };
    let address = AdminAddress::Tcp(([127, 0, 0, 1], 0).into());
    let proxy = start_with(address, Box::new(reload));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| proxy.post("/reload"));
        has_begun.recv().expect("it begins");
        assert_eq!(proxy.post("/reload").status, 409);
        // Everything else is answered meanwhile.
        assert_eq!(proxy.get("/healthz").status, 200);
        end.send(()).expect("it waits");
        let first = first.join().expect("no panic");
        assert_eq!((first.status, first.text().as_str()), (422, "baton.toml:3: nothing changed\n"));
    });
}

#[test]
fn a_reload_that_panics_is_an_answer_and_the_next_one_is_done() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let reload = move || match calls.fetch_add(1, Ordering::Relaxed) {
        0 => panic!("a test"),
        _ => Ok("generation 2".to_owned()),
    };
    let address = AdminAddress::Tcp(([127, 0, 0, 1], 0).into());
    let proxy = start_with(address, Box::new(reload));
    assert_eq!(proxy.post("/reload").status, 500);
    assert_eq!(proxy.post("/reload").text(), "generation 2\n");
}

#[test]
fn a_unix_socket_answers_and_is_gone_afterwards() {
    let name = format!("baton-control-{}.sock", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let proxy = start_with(AdminAddress::Unix(path.clone()), Box::new(|| Ok(String::new())));
    assert_eq!(proxy.get("/healthz").status, 200);
    assert_eq!(proxy.post("/reload").status, 200);
    drop(proxy.control);
    assert!(!path.exists());
}

#[test]
fn an_address_that_is_taken_is_named() {
    let proxy = start_tcp();
    let hooks = Hooks { reload: Box::new(|| Ok(String::new())), ready: proxy.ready.clone() };
    let error = start(proxy.live.clone(), Some(proxy.address().clone()), hooks).err();
    let error = error.expect("it is taken").to_string();
    assert!(error.contains(&proxy.tcp().to_string()), "{error}");
}

#[test]
fn without_an_address_tasks_run_all_the_same() {
    let proxy = start_tcp();
    let hooks = Hooks { reload: Box::new(|| Ok(String::new())), ready: proxy.ready.clone() };
    let control = start(proxy.live.clone(), None, hooks).expect("there is a thread");
    assert_eq!(control.reception().address(), None);
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    control.handle().spawn(async move {
        let name = std::thread::current().name().map(str::to_owned);
        done.send(name).expect("the test waits");
    });
    assert_eq!(is_done.recv().expect("it runs").as_deref(), Some("control"));
}

#[test]
fn a_client_that_says_nothing_keeps_nobody_waiting() {
    let proxy = start_tcp();
    let silent: Vec<TcpStream> = (0..limits::CONNECTIONS_MAX - 1)
        .map(|_| TcpStream::connect(proxy.tcp()).expect("it listens"))
        .collect();
    assert_eq!(proxy.get("/healthz").status, 200);
    drop(silent);
}
