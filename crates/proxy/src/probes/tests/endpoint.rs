//! An endpoint that answers checks as it is told.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What it does with a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manner {
    /// Closes the connection.
    Closes,
    /// Answers this and closes.
    Says(&'static [u8]),
    /// Answers this until nobody reads it.
    SaysForEver(&'static [u8]),
    /// Answers nothing.
    Hangs,
}

pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    /// `None`: it is to end.
    manner: Option<Manner>,
    last_request: String,
}

impl Endpoint {
    pub(super) fn start(manner: Manner) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let state = State { manner: Some(manner), last_request: String::new() };
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        let thread = std::thread::spawn(move || serve(&listener, &shared));
        Endpoint { address, state, thread: Some(thread) }
    }

    pub(super) fn set(&self, manner: Manner) {
        self.state.lock().expect("not poisoned").manner = Some(manner);
    }

    pub(super) fn last_request(&self) -> String {
        self.state.lock().expect("not poisoned").last_request.clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.lock() {
            state.manner = None;
        }
        // It waits for a connection.
        let _woken = TcpStream::connect(self.address);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// One connection after the other. Peers go as they like: what fails is theirs.
fn serve(listener: &TcpListener, state: &Mutex<State>) {
    let mut hanging = Vec::new();
    for stream in listener.incoming() {
        let Some(manner) = state.lock().expect("not poisoned").manner else { return };
        let mut stream = stream.expect("a connection");
        if let Manner::Hangs = manner {
            hanging.push(stream);
            continue;
        }
        let Some(request) = read_head(&mut stream) else { continue };
        state.lock().expect("not poisoned").last_request = request;
        match manner {
            Manner::Closes | Manner::Hangs => {}
            Manner::Says(bytes) => drop(stream.write_all(bytes)),
            Manner::SaysForEver(bytes) => while stream.write_all(bytes).is_ok() {},
        }
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    String::from_utf8(head).ok()
}
