//! An endpoint whose behaviour is a function: one thread per connection.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::wire::{Message, Wire};

/// An endpoint. When dropped it accepts no more; its connections end with their functions.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    connections: AtomicUsize,
    requests: Mutex<Vec<Message>>,
    leaves: AtomicBool,
}

/// One connection of the proxy to an endpoint.
pub(crate) struct Link {
    wire: Wire,
    /// Which connection it is, from 0.
    pub(crate) number: usize,
    state: Arc<State>,
}

impl Link {
    /// The next request, which is also noted; `None` at the end of the connection.
    pub(crate) fn request(&mut self) -> Option<Message> {
        let request = self.wire.request()?;
        self.state.requests.lock().expect("nobody panics with it").push(request.clone());
        Some(request)
    }
}

impl Deref for Link {
    type Target = Wire;

    fn deref(&self) -> &Wire {
        &self.wire
    }
}

impl DerefMut for Link {
    fn deref_mut(&mut self) -> &mut Wire {
        &mut self.wire
    }
}

impl Upstream {
    /// Serves each connection with `serve`, after which it is closed.
    pub(crate) fn start(serve: impl Fn(Link) + Send + Sync + 'static) -> Upstream {
        Upstream::start_at((Ipv4Addr::LOCALHOST, 0).into(), serve)
    }

    /// As [`Upstream::start`], at an address that was used before.
    pub(crate) fn start_at(
        address: SocketAddr,
        serve: impl Fn(Link) + Send + Sync + 'static,
    ) -> Upstream {
        let listener = TcpListener::bind(address).expect("the address is free");
        let address = listener.local_addr().expect("it is bound");
        let state = Arc::new(State::default());
        let acceptor = thread::spawn({
            let (state, serve) = (state.clone(), Arc::new(serve));
            move || {
                while let Ok((stream, _)) = listener.accept() {
                    if state.leaves.load(Ordering::SeqCst) {
                        return;
                    }
                    let number = state.connections.fetch_add(1, Ordering::SeqCst);
                    let link = Link { wire: Wire::new(stream), number, state: state.clone() };
                    let serve = serve.clone();
                    thread::spawn(move || serve(link));
                }
            }
        });
        Upstream { address, state, acceptor: Some(acceptor) }
    }

    /// Answers every request with `answer`, and keeps its connections open.
    pub(crate) fn answering(answer: &str) -> Upstream {
        let answer = answer.to_owned();
        Upstream::start(move |mut link| {
            while link.request().is_some() {
                if link.try_send(&answer).is_err() {
                    return;
                }
            }
        })
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// The requests read so far.
    pub(crate) fn requests(&self) -> Vec<Message> {
        self.state.requests.lock().expect("nobody panics with it").clone()
    }

    /// The one request read so far.
    pub(crate) fn only_request(&self) -> Message {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "requests at the upstream");
        requests[0].clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.state.leaves.store(true, Ordering::SeqCst);
        // Ends the wait for the next connection. If it fails, the listener is broken already.
        let _knock = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().expect("the acceptor does not panic");
        }
    }
}

/// An address on loopback where nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("it is bound")
}
