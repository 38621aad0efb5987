//! An endpoint that dies and comes back under load.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{GET, Link, OK, Proxy, Upstream, Wire, on_each_driver, wait_until};

const CLIENTS: usize = 16;

/// The sockets of an endpoint's connections, to break them all at once.
type Sockets = Arc<Mutex<Vec<std::net::TcpStream>>>;

fn endpoint(sockets: &Sockets) -> impl Fn(Link) + Send + Sync + 'static {
    let sockets = sockets.clone();
    move |mut link| {
        let stream = link.stream.try_clone().expect("a descriptor is free");
        sockets.lock().expect("nobody panics with it").push(stream);
        while link.request().is_some() {
            if link.try_send(OK).is_err() {
                return;
            }
        }
    }
}

/// One exchange on a kept connection, which is opened anew if the proxy has closed it.
fn ask(client: &mut Option<Wire>, proxy: &Proxy) -> io::Result<u16> {
    let wire = client.get_or_insert_with(|| proxy.connect());
    let answer = wire.try_send(GET).and_then(|()| wire.try_answer());
    let closes = answer.as_ref().map_or(true, |answer| answer.closes());
    if closes {
        *client = None;
    }
    answer.map(|answer| answer.status())
}

#[test]
fn only_what_is_under_way_fails_when_the_endpoint_dies_and_all_recovers() {
    // Goal: an outage is 502s and nothing else. Method: 16 clients ask without pause while the
    // endpoint's connections and listener are broken, and again while it is back.
    on_each_driver(|driver| {
        let sockets = Sockets::default();
        let upstream = Upstream::start(endpoint(&sockets));
        let address = upstream.address;
        let proxy = Proxy::start(driver, &[address], "");
        let (stop, good, bad) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let mut client = None;
                    while !stop.load(Ordering::SeqCst) {
                        match ask(&mut client, &proxy).expect("every request is answered") {
                            200 => good.fetch_add(1, Ordering::SeqCst),
                            502 => bad.fetch_add(1, Ordering::SeqCst),
                            status => panic!("status {status}"),
                        };
                    }
                });
            }
            let more = |count: &AtomicUsize, what: &str| {
                let before = count.load(Ordering::SeqCst);
                wait_until(what, || count.load(Ordering::SeqCst) > before + 10 * CLIENTS);
            };
            more(&good, "requests are answered");
            assert_eq!(bad.load(Ordering::SeqCst), 0);
            drop(upstream);
            for stream in sockets.lock().expect("nobody panics with it").drain(..) {
                // A socket that its thread has closed already is what is wanted.
                let _gone = stream.shutdown(std::net::Shutdown::Both);
            }
            more(&bad, "requests fail while the endpoint is gone");
            let _back = Upstream::start_at(address, endpoint(&sockets));
            more(&good, "requests are answered again");
            let before = bad.load(Ordering::SeqCst);
            more(&good, "requests go on being answered");
            assert_eq!(bad.load(Ordering::SeqCst), before, "a request failed after the recovery");
            stop.store(true, Ordering::SeqCst);
        });
        proxy.wait_for_connections(0);
    });
}

#[test]
fn where_no_name_has_an_address_requests_are_503_and_their_clients_stay() {
    // Goal: no endpoint at all. Method: a name that never has an address (RFC 6761 §6.4); two
    // requests on one connection, and one with a body, which ends it.
    on_each_driver(|driver| {
        let text = "[[listen]]\naddr = \"$LISTEN\"\n[[route]]\nto = \"nobody.invalid:80\"\n";
        let proxy = Proxy::with(driver, text);
        let mut client = proxy.connect();
        assert_eq!(client.ask(GET).status(), 503);
        assert_eq!(client.ask(GET).status(), 503);
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        let answer = client.answer();
        assert_eq!((answer.status(), answer.field("connection")), (503, Some("close")));
        assert_eq!(proxy.count("upstream_no_endpoint"), 3);
    });
}
