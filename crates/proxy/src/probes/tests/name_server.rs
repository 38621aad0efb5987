//! A name server for `b.test` that answers as it is told.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::runtime::Handle;

/// What it answers for `b.test`; it knows no other name.
#[derive(Clone)]
pub(super) enum Zone {
    /// There is no such name.
    Unknown,
    /// Server failure.
    Fails,
    /// Nothing.
    Silent,
    /// These, each with this TTL.
    Addresses(Vec<IpAddr>, u32),
    /// This one for one second, and server failure when asked for the other kind.
    OnlyV4(IpAddr),
}

impl Zone {
    pub(super) fn addresses(texts: &[&str], ttl: u32) -> Zone {
        Zone::Addresses(texts.iter().map(|text| text.parse().expect("an address")).collect(), ttl)
    }
}

/// Ends with its runtime.
pub(super) struct NameServer {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    zone: Mutex<Zone>,
    asked: AtomicUsize,
    refused: AtomicUsize,
}

impl NameServer {
    pub(super) fn start(handle: &Handle, zone: Zone) -> NameServer {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        let address = socket.local_addr().expect("bound");
        let counters = (AtomicUsize::new(0), AtomicUsize::new(0));
        let state = State { zone: Mutex::new(zone), asked: counters.0, refused: counters.1 };
        let state = Arc::new(state);
        handle.spawn(serve(socket, state.clone()));
        NameServer { address, state }
    }

    pub(super) fn set(&self, zone: Zone) {
        *self.state.zone.lock().expect("not poisoned") = zone;
    }

    /// Questions so far.
    pub(super) fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// Server failures so far.
    pub(super) fn refused(&self) -> usize {
        self.state.refused.load(Ordering::SeqCst)
    }

    /// A configuration with this server alone.
    pub(super) fn config(&self) -> ResolverConfig {
        let mut udp = ConnectionConfig::udp();
        udp.port = self.address.port();
        let server = NameServerConfig::new(self.address.ip(), true, vec![udp]);
        ResolverConfig::from_name_servers(vec![server])
    }
}

async fn serve(socket: std::net::UdpSocket, state: Arc<State>) {
    let socket = UdpSocket::from_std(socket).expect("a socket");
    let mut buffer = [0; 4096];
    loop {
        let (count, peer) = socket.recv_from(&mut buffer).await.expect("a question");
        let question = Message::from_vec(&buffer[..count]).expect("a question");
        state.asked.fetch_add(1, Ordering::SeqCst);
        let zone = state.zone.lock().expect("not poisoned").clone();
        let Some(answer) = answer(&question, &zone) else { continue };
        if answer.metadata.response_code == ResponseCode::ServFail {
            state.refused.fetch_add(1, Ordering::SeqCst);
        }
        let bytes = answer.to_vec().expect("an answer");
        socket.send_to(&bytes, peer).await.expect("sent");
    }
}

fn answer(question: &Message, zone: &Zone) -> Option<Message> {
    let metadata = &question.metadata;
    let mut answer = Message::new(metadata.id, MessageType::Response, metadata.op_code);
    answer.metadata.recursion_available = true;
    let query = question.queries.first()?;
    answer.add_query(query.clone());
    let (addresses, ttl) = match zone {
        Zone::Silent => return None,
        Zone::Fails => (Err(ResponseCode::ServFail), 0),
        Zone::Unknown => (Err(ResponseCode::NXDomain), 0),
        _ if query.name().to_ascii() != "b.test." => (Err(ResponseCode::NXDomain), 0),
        Zone::OnlyV4(address) if query.query_type() == RecordType::A => (Ok(vec![*address]), 1),
        Zone::OnlyV4(_) => (Err(ResponseCode::ServFail), 0),
        Zone::Addresses(addresses, ttl) => (Ok(addresses.clone()), *ttl),
    };
    match addresses {
        Err(code) => answer.metadata.response_code = code,
        Ok(addresses) => {
            for address in addresses {
                let data = RData::from(address);
                if data.record_type() == query.query_type() {
                    answer.add_answer(Record::from_rdata(query.name().clone(), ttl, data));
                }
            }
        }
    }
    Some(answer)
}
