//! One client connection, from its first request to its end.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use baton_http1::{Framing, HeadProgress, MethodKind, RequestFacts};
use baton_runtime::{Accepted, Buffer, BufferSize, Stream, Timer};

use crate::account::{self, Account};
use crate::admission::Dress;
use crate::answer::make_room;
use crate::config::{Limits, Timeouts};
use crate::error::{ProxyError, is_timeout};
use crate::exchange::{self, Attempt, Begun, Failure, Outcome, Seen};
use crate::plan::ListenerRule;
use crate::proxy::{Current, Proxy, Way};
use crate::reply::{self, Reply};
use crate::route::ProxyHeader;
use crate::tunnel;

/// A client connection.
pub(crate) struct Client {
    pub(crate) stream: Stream,
    pub(crate) peer: SocketAddr,
    pub(crate) peer_text: AddressText,
    /// Bounds what is awaited of the client, and the sending of its request.
    pub(crate) timer: Timer,
    /// Bounds what is awaited of the endpoint, and the sending of its answer.
    pub(crate) answer_timer: Timer,
    /// What was read and is not yet used: a request, and what follows it. None while it waits.
    pub(crate) buffer: Buffer,
    pub(crate) progress: HeadProgress,
    requests: usize,
    /// The number of the listener it came from.
    pub(crate) listener: usize,
    /// The generation in force when its last request began.
    pub(crate) current: Rc<Current>,
    /// The way of the request under way, once that is known.
    pub(crate) way: Option<Way>,
    /// What goes on with the request under way besides its head.
    pub(crate) dress: Dress,
    /// What is noted of the request under way.
    pub(crate) account: Account,
}

impl Client {
    /// The timeouts of the request's route, or while that is unknown of the listener.
    pub(crate) fn timeouts(&self) -> &Timeouts {
        self.way.as_ref().map_or_else(|| &self.rule().config.timeouts, Way::timeouts)
    }

    /// The limits of the request's route, or while that is unknown of the listener.
    fn limits(&self) -> &Limits {
        self.way.as_ref().map_or_else(|| &self.rule().config.limits, Way::limits)
    }

    /// What is made of the listener it came from.
    pub(crate) fn rule(&self) -> &ListenerRule {
        self.current.plan.listener(self.listener)
    }

    /// The request is over.
    fn close_account(&mut self, proxy: &Proxy, failure: Option<&ProxyError>) {
        let parties = (self.peer, self.dress.client(&self.peer_text));
        self.account.close(proxy, self.way.as_ref(), parties, failure);
    }

    /// Whether the connection ends after the request under way.
    pub(crate) fn is_last_request(&self, proxy: &Proxy) -> bool {
        let most = self.rule().config.limits.requests_per_connection;
        proxy.core.is_draining() || self.requests >= most
    }
}

/// Serves a client until it or the proxy ends the connection.
pub(crate) async fn serve(proxy: Rc<Proxy>, connection: Accepted) {
    let Accepted { stream, peer, listener } = connection;
    let mut client = Client {
        stream,
        peer,
        peer_text: AddressText::new(peer.ip()),
        timer: proxy.core.timer(),
        answer_timer: proxy.core.timer(),
        buffer: Buffer::none(),
        progress: HeadProgress::default(),
        requests: 0,
        listener,
        current: proxy.current(),
        way: None,
        dress: Dress::default(),
        account: Account::begin(),
    };
    if client.rule().expects_introduction(peer.ip())
        && let Err(error) = Box::pin(introduce(&proxy, &mut client)).await
    {
        proxy.report(&error, client.peer, None);
        return;
    }
    let Some(_admission) = proxy.shared.clients.admit(client.peer.ip()) else {
        proxy.counters().clients_over_ip_limit.add(1);
        return;
    };
    while !client.buffer.is_empty() || wait_for_request(&proxy, &client).await {
        // Boxed, so that a connection that waits is small, and the memory of a burst is that of
        // the last one, still in the cache.
        if Box::pin(burst(&proxy, &mut client)).await != Outcome::KeepAlive {
            return;
        }
    }
}

/// Reads the PROXY protocol header that must stand in front; the client is who it names. What
/// follows it stays in the buffer.
async fn introduce(proxy: &Proxy, client: &mut Client) -> Result<(), ProxyError> {
    let bound = client.rule().config.timeouts.head;
    client.timer.set(bound);
    client.buffer = proxy.core.buffer(BufferSize::Head);
    loop {
        if let Some(header) = ProxyHeader::parse(client.buffer.filled())? {
            client.buffer.consume(header.bytes);
            if client.buffer.is_empty() {
                client.buffer = Buffer::none();
            }
            if let Some(addresses) = header.addresses {
                // An IPv4 client has one address, however a balancer of IPv6 writes it.
                let ip = addresses.client.ip().to_canonical();
                client.peer = SocketAddr::new(ip, addresses.client.port());
                client.peer_text = AddressText::new(ip);
            }
            return Ok(());
        }
        match client.stream.read(client.buffer.spare(), &client.timer).await {
            Ok(0) => return Err(ProxyError::ClientGone(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => client.buffer.advance(count),
            Err(error) if is_timeout(&error) => return Err(ProxyError::RequestHeadTimeout(bound)),
            Err(error) => return Err(ProxyError::ClientGone(error)),
        }
    }
}

/// Waits, without a buffer, until the client sends something; `false` if it does not.
async fn wait_for_request(proxy: &Proxy, client: &Client) -> bool {
    let keep_alive = proxy.current().plan.listener(client.listener).config.timeouts.keep_alive;
    client.timer.set_idle(keep_alive);
    match client.stream.readable(&client.timer).await {
        Ok(()) => true,
        // A request that crossed our decision to close is still served.
        Err(error) => is_timeout(&error) && client.stream.has_bytes(),
    }
}

/// Serves requests until none is left in the buffer.
///
/// What only some requests need is boxed in turn, here and further down: the future of a burst is
/// moved into its box once per burst, whole.
async fn burst(proxy: &Proxy, client: &mut Client) -> Outcome {
    client.current = proxy.current();
    let size = Proxy::head_buffer(client.rule().request_head.head_bytes_max);
    if client.buffer.is_empty() {
        client.buffer = proxy.core.buffer(size);
        // A first read: the client has something to say, or has left.
        match client.stream.try_read(client.buffer.spare()) {
            Ok(0) => return Outcome::Abandon,
            Ok(count) => client.buffer.advance(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Outcome::Abandon,
        }
    }
    while !client.buffer.is_empty() {
        client.requests += 1;
        client.current = proxy.current();
        // What is left of the request before would be logged with one whose head is refused.
        client.way = None;
        client.dress = Dress::default();
        client.account = Account::begin();
        let outcome = match one(proxy, client).await {
            Ok(outcome) => {
                client.close_account(proxy, None);
                outcome
            }
            Err(failure) => Box::pin(fail(proxy, client, failure)).await,
        };
        if outcome != Outcome::KeepAlive {
            Box::pin(close(client, outcome)).await;
            return outcome;
        }
    }
    client.buffer = Buffer::none();
    Outcome::KeepAlive
}

/// Serves the request that the buffer begins with.
async fn one(proxy: &Proxy, client: &mut Client) -> Result<Outcome, Box<Failure>> {
    let mut attempt = match exchange::begin(proxy, client)? {
        Begun::Sent(attempt) => attempt,
        begun => match Box::pin(begin_slowly(proxy, client, begun)).await? {
            Slow::Sent(attempt) => *attempt,
            Slow::Answered(outcome) => return Ok(outcome),
        },
    };
    let answered = exchange::conclude(proxy, client, &mut attempt).await?;
    if let Some(rest) = answered.tunnel {
        proxy.counters().tunnels.add(1);
        let idle = attempt.way.timeouts().tunnel_idle;
        Box::pin(tunnel::run(proxy, client, attempt.upstream(), rest, idle)).await;
        return Ok(Outcome::Close);
    }
    Ok(exchange::finish(attempt, &answered))
}

/// What a request that could not be sent at once has come to.
enum Slow {
    Sent(Box<Attempt>),
    Answered(Outcome),
}

/// Brings a request on its way that needs a wait first: for its head, or for a connection.
async fn begin_slowly(
    proxy: &Proxy,
    client: &mut Client,
    begun: Begun,
) -> Result<Slow, Box<Failure>> {
    let begun = match begun {
        Begun::Incomplete => read_head(proxy, client).await?,
        begun => begun,
    };
    match begun {
        Begun::Incomplete => unreachable!("a head is read until it is complete"),
        Begun::Reply(facts, bytes, reply) => {
            answer_locally(proxy, client, facts, bytes, *reply).await.map(Slow::Answered)
        }
        Begun::Sent(attempt) => Ok(Slow::Sent(Box::new(attempt))),
        Begun::Connect(way, facts, pick) => {
            let first = exchange::Trials::default();
            let sent = exchange::connect(proxy, client, way, facts, pick, first).await?;
            Ok(Slow::Sent(Box::new(sent)))
        }
    }
}

/// Reads until the head is complete. Its bound runs from its first byte.
async fn read_head(proxy: &Proxy, client: &mut Client) -> Result<Begun, Box<Failure>> {
    let bound = client.rule().config.timeouts.head;
    let limit = client.rule().request_head.head_bytes_max;
    client.timer.set(bound);
    loop {
        make_room(proxy, &mut client.buffer, limit);
        let error = match client.stream.read(client.buffer.spare(), &client.timer).await {
            Ok(0) => ProxyError::ClientGone(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                client.buffer.advance(count);
                match exchange::begin(proxy, client)? {
                    Begun::Incomplete => continue,
                    begun => {
                        client.account.head_was_late();
                        return Ok(begun);
                    }
                }
            }
            Err(error) if is_timeout(&error) => ProxyError::RequestHeadTimeout(bound),
            Err(error) => ProxyError::ClientGone(error),
        };
        return Err(Failure::early(error, None));
    }
}

/// Answers a request that goes no further.
async fn answer_locally(
    proxy: &Proxy,
    client: &mut Client,
    facts: RequestFacts,
    bytes: usize,
    reply: Reply,
) -> Result<Outcome, Box<Failure>> {
    client.buffer.consume(bytes);
    // A body is not read: the connection ends instead.
    let no_body = matches!(facts.framing, Framing::None | Framing::Length(0));
    let keep = facts.persistent && !client.is_last_request(proxy);
    let then = match (no_body, keep) {
        (true, true) => Outcome::KeepAlive,
        (true, false) => Outcome::Close,
        (false, _) => Outcome::Linger,
    };
    let reply = reply.with_page_of(client.way.as_ref());
    reply::send(proxy, client, &reply, Some(facts), facts.is_head(), then).await
}

/// Tells the client what went wrong, where it can be told; logs and counts.
async fn fail(proxy: &Proxy, client: &mut Client, failure: Box<Failure>) -> Outcome {
    let Failure { error, seen, facts, request_complete, .. } = *failure;
    let status = error.status().filter(|_| seen == Seen::Nothing);
    // A head that was refused has no facts; yet its sender takes no body for an answer to HEAD.
    let head_only = match facts {
        Some(facts) => facts.is_head(),
        None => MethodKind::of_refused(client.buffer.filled()) == MethodKind::Head,
    };
    if client.way.is_none() && !client.buffer.is_empty() {
        client.account.capture_unrouted(proxy, account::Seen::Bytes(client.buffer.filled()));
    }
    proxy.report(&error, client.peer, status);
    let outcome = match status {
        Some(status) => {
            let keep = request_complete
                && error.spares_client()
                && facts.is_some_and(|facts| facts.persistent)
                && !client.is_last_request(proxy);
            let then = match (request_complete, keep) {
                (true, true) => Outcome::KeepAlive,
                (true, false) => Outcome::Close,
                (false, _) => Outcome::Linger,
            };
            let reply = Reply::of_status(status, &error.reason());
            let reply = reply.with_page_of(client.way.as_ref());
            // A client that does not take its answer is gone; the connection ends in either case.
            let sent = reply::send(proxy, client, &reply, facts, head_only, then).await;
            sent.unwrap_or(Outcome::Abandon)
        }
        None => {
            if seen == Seen::PartUntilClose || matches!(error, ProxyError::ClientStalled(_)) {
                // The client would take the end of the connection for the end of the body; or it
                // takes nothing, and what waits for it would stay in the kernel's memory. A failed
                // call leaves an ordinary close, which is the most that can be done then.
                let _result = client.stream.reset_on_close();
            }
            Outcome::Abandon
        }
    };
    client.close_account(proxy, Some(&error));
    outcome
}

/// Ends the connection so that the client can read the last answer: what it still sends is read
/// away for a while, since closing on unread bytes would reset the connection under the answer
/// (RFC 9112 §9.6).
async fn close(client: &mut Client, outcome: Outcome) {
    if outcome == Outcome::Abandon {
        return;
    }
    let pending = client.buffer.len();
    client.buffer.consume(pending);
    let is_over = pending == 0 && outcome == Outcome::Close;
    // Nothing more is there in the ordinary case, and one look finds that out.
    let mut read = match client.stream.try_read(client.buffer.spare()) {
        Ok(0) => return,
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_over => return,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(_) => return,
    };
    if client.stream.shutdown_write().is_err() {
        return;
    }
    client.timer.set(client.timeouts().linger);
    while read <= client.limits().drain_bytes {
        match client.stream.read(client.buffer.spare(), &client.timer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => read += count,
        }
    }
}

/// An address as text, without allocation.
#[derive(Clone, Copy)]
pub(crate) struct AddressText {
    bytes: [u8; ADDRESS_TEXT_BYTES],
    length: u8,
}

/// Bytes of the longest address text: an IPv6 address with an IPv4 tail.
const ADDRESS_TEXT_BYTES: usize = 45;

impl AddressText {
    pub(crate) fn new(address: IpAddr) -> AddressText {
        let mut text = AddressText { bytes: [0; ADDRESS_TEXT_BYTES], length: 0 };
        write!(text, "{address}").expect("an address has at most 45 bytes");
        text
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("an address is ASCII")
    }
}

impl std::fmt::Write for AddressText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let start = usize::from(self.length);
        let room = self.bytes.get_mut(start..start + text.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len() as u8;
        Ok(())
    }
}
