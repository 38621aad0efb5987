//! What a reload changes, and what it leaves alone.

use std::net::SocketAddr;

use baton_proxy::config::AdminAddress;
use baton_proxy::server::ServerError;

use crate::support::upstream::nobody;
use crate::support::{GET, OK, Proxy, Upstream, Wire, on_each_driver, wait_until};

fn file(upstream: &Upstream, more: &str) -> String {
    format!(
        "[[listen]]\nname = \"one\"\naddr = \"$LISTEN\"\n[upstream.a]\nendpoints = [\"{}\"]\n\
         [[route]]\nto = \"a\"\n{more}",
        upstream.address
    )
}

#[test]
fn what_is_fixed_at_start_or_cannot_be_had_changes_nothing() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &file(&upstream, ""));
        let dealt = file(&upstream, "[runtime]\naccept = \"dealt\"\n");
        let refused = proxy.reload(driver, &dealt);
        assert!(matches!(refused, Err(ServerError::Fixed("runtime.accept"))), "{refused:?}");
        // A port that another one listens on, and with it a route that must not come into force.
        let taken = format!("[[listen]]\nname = \"two\"\naddr = \"{}\"\n", upstream.address);
        let mut text = file(&upstream, "");
        text = text.replace("to = \"a\"", "respond = { status = 204 }") + &taken;
        let refused = proxy.reload(driver, &text);
        assert!(matches!(refused, Err(ServerError::Start(_))), "{refused:?}");
        assert_eq!(proxy.ask(GET).text(), "ok");
    });
}

#[test]
fn the_next_request_of_an_open_connection_goes_by_the_new_configuration() {
    on_each_driver(|driver| {
        let (one, other) = (Upstream::answering(OK), Upstream::answering(OK));
        let proxy = Proxy::with(driver, &file(&one, ""));
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).text(), "ok");
        proxy.reload(driver, &file(&other, "")).expect("it is valid");
        assert_eq!(client.ask(GET).text(), "ok");
        assert_eq!((one.requests().len(), other.requests().len()), (1, 1));
        assert_eq!(proxy.count("requests"), 2);
        assert_eq!(proxy.server().runtime().connections(), 1);
    });
}

#[test]
fn connections_to_endpoints_that_stay_are_kept() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &file(&upstream, ""));
        for round in 0..5 {
            assert_eq!(proxy.ask(GET).text(), "ok");
            let other = format!("[[route]]\npath = \"/x{round}\"\nrespond = {{ status = 204 }}\n");
            proxy.reload(driver, &file(&upstream, &other)).expect("it is valid");
        }
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn a_request_under_way_ends_as_it_began() {
    on_each_driver(|driver| {
        let (go, told) = std::sync::mpsc::sync_channel::<()>(0);
        let told = std::sync::Mutex::new(told);
        let upstream = Upstream::start(move |mut link| {
            link.request();
            link.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfi");
            told.lock().expect("unpoisoned").recv().expect("the test goes on");
            link.send("ne");
        });
        let proxy = Proxy::with(driver, &file(&upstream, ""));
        let mut client = proxy.connect();
        client.send(GET);
        let head = client.head().expect("the head");
        let elsewhere = format!(
            "[[listen]]\nname = \"one\"\naddr = \"$LISTEN\"\n[[route]]\nto = \"{}\"\n",
            nobody()
        );
        proxy.reload(driver, &elsewhere).expect("it is valid");
        go.send(()).expect("the endpoint waits");
        assert_eq!(client.body(head).expect("the body").text(), "fine");
        assert_eq!(client.ask(GET).status(), 502);
    });
}

#[test]
fn listeners_come_and_go_and_those_that_stay_are_untouched() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let proxy = Proxy::with(driver, &file(&upstream, ""));
        let port = nobody();
        let more = format!("[[listen]]\nname = \"two\"\naddr = \"{port}\"\n");
        proxy.reload(driver, &file(&upstream, &more)).expect("it is valid");
        let mut of_new = Wire::connect(port);
        assert_eq!(of_new.ask(GET).text(), "ok");
        proxy.reload(driver, &file(&upstream, "")).expect("it is valid");
        wait_until("it is closed", || std::net::TcpStream::connect(port).is_err());
        // Who is connected stays.
        assert_eq!(of_new.ask(GET).text(), "ok");
        assert_eq!(proxy.ask(GET).text(), "ok");
    });
}

#[test]
fn a_tunnel_outlives_its_route_and_upstream() {
    on_each_driver(|driver| {
        let upstream = Upstream::start(|mut link| {
            link.request();
            link.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            );
            while let Ok(bytes) = link.bytes(4) {
                link.send(bytes);
            }
        });
        let proxy = Proxy::with(driver, &file(&upstream, ""));
        let mut client = proxy.connect();
        let upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        assert_eq!(client.ask(upgrade).status(), 101);
        let none = "[[listen]]\nname = \"one\"\naddr = \"$LISTEN\"\n\
                    [[route]]\nrespond = { status = 204 }\n";
        for word in ["one.", "two."] {
            proxy.reload(driver, none).expect("it is valid");
            client.send(word);
            assert_eq!(client.bytes(4).expect("the echo"), word.as_bytes());
        }
        assert_eq!(proxy.ask(GET).status(), 204);
    });
}

#[test]
fn the_admin_address_moves_and_one_that_cannot_be_had_changes_nothing() {
    on_each_driver(|driver| {
        let upstream = Upstream::answering(OK);
        let admin = |address: SocketAddr| format!("[admin]\nlisten = \"{address}\"\n");
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let proxy = Proxy::with(driver, &file(&upstream, &admin(anywhere)));
        let address = || match proxy.server().admin_address() {
            Some(AdminAddress::Tcp(address)) => address,
            other => panic!("{other:?} is no TCP address"),
        };
        let before = address();
        let ready = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let refused = proxy.reload(driver, &file(&upstream, &admin(upstream.address)));
        assert!(matches!(refused, Err(ServerError::Admin(_))), "{refused:?}");
        assert_eq!(Wire::connect(before).ask(ready).status(), 200);
        // The same again: it stays where it is.
        proxy.reload(driver, &file(&upstream, &admin(anywhere))).expect("it is valid");
        assert_eq!(address(), before);
        let elsewhere = SocketAddr::from(([127, 0, 0, 2], 0));
        let moved = proxy.reload(driver, &file(&upstream, &admin(elsewhere)));
        if cfg!(target_os = "linux") {
            moved.expect("all of 127.0.0.0/8 is this machine's");
            assert_eq!(Wire::connect(address()).ask(ready).status(), 200);
            wait_until("it is left", || std::net::TcpStream::connect(before).is_err());
        }
        proxy.reload(driver, &file(&upstream, "")).expect("it is valid");
        assert_eq!(proxy.server().admin_address(), None);
    });
}
