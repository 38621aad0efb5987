//! Threads as cores, before endpoints whose connections are bounded. Bounded by a count of requests.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use super::*;
use crate::pool::Parked;
use crate::upstream::UpstreamNotice;
use crate::upstream::clock::now_ms;
use crate::upstream::endpoint::Waiting;

const CORES: usize = 4;
const ENDPOINTS: usize = 2;
const CLIENTS_PER_CORE: usize = 12;
const REQUESTS_PER_CORE: usize = 20_000;
const CONNECTIONS_MAX: u32 = 5;
/// Rounds without anything to do, over all of which no other core has anything to do either.
const IDLE_ROUNDS_MAX: usize = 20_000_000;

type Inbox = Mutex<VecDeque<UpstreamNotice>>;

/// Notes that a client was woken: only then is it looked at again, so that a lost wake-up shows.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

enum Client {
    Idle,
    Waits(Waiting<Token>, Pick<Token>, Arc<Woken>),
    Busy(Grant<Token>, Pick<Token>),
}

struct ThreadCore {
    view: View<Token>,
    rng: Rng,
    open: Vec<Arc<AtomicU32>>,
    done: usize,
}

impl ThreadCore {
    /// Brings a client one step further; whether that was possible.
    fn step(&mut self, client: Client) -> (Client, bool) {
        match client {
            Client::Idle => (self.begin(), true),
            Client::Waits(waiting, pick, woken) => {
                if self.rng.u32(..2_000) == 0 {
                    // Cut off while it waits.
                    self.done += 1;
                    return (Client::Idle, true);
                }
                if !woken.0.swap(false, Ordering::SeqCst) {
                    return (Client::Waits(waiting, pick, woken), false);
                }
                (self.poll(waiting, pick, woken), true)
            }
            Client::Busy(grant, pick) => {
                if self.rng.u32(..4) > 0 {
                    return (Client::Busy(grant, pick), true);
                }
                self.end(grant, pick);
                (Client::Idle, true)
            }
        }
    }

    fn begin(&mut self) -> Client {
        let pick = self.view.pick(1, None, &Tried::default()).expect("both are well");
        if let Some(grant) = pick.endpoint.lease(1) {
            return Client::Busy(grant, pick);
        }
        match pick.endpoint.enter(now_ms()) {
            Ok(Entry::Open(grant)) => self.connect(grant, pick),
            Ok(Entry::Wait(waiting)) => self.poll(waiting, pick, Arc::default()),
            Err(_) => {
                self.done += 1;
                Client::Idle
            }
        }
    }

    fn poll(&mut self, waiting: Waiting<Token>, pick: Pick<Token>, woken: Arc<Woken>) -> Client {
        let waker = Waker::from(woken.clone());
        match waiting.poll(&mut Context::from_waker(&waker), |_| Poll::Pending) {
            Poll::Ready(grant) => self.connect(grant.expect("nobody is late"), pick),
            Poll::Pending => Client::Waits(waiting, pick, woken),
        }
    }

    fn connect(&mut self, mut grant: Grant<Token>, pick: Pick<Token>) -> Client {
        if grant.parked.is_none() {
            let stream = Token::open(&self.open[index(&pick)], CONNECTIONS_MAX);
            grant.parked = Some(Parked { stream, since: 1, retires: u64::MAX });
        }
        Client::Busy(grant, pick)
    }

    fn end(&mut self, grant: Grant<Token>, pick: Pick<Token>) {
        self.done += 1;
        if self.rng.u32(..10) == 0 {
            return;
        }
        let Grant { parked, permit } = grant;
        permit.lay_down();
        let parked = parked.expect("it is connected");
        parked.stream.stirred.set(self.rng.u32(..50) == 0);
        pick.endpoint.keep(parked, 1);
    }
}

fn run(core: usize, state: &Arc<UpstreamState>, open: &[Arc<AtomicU32>], inboxes: &[Inbox]) {
    let rng = Rng::with_seed(core as u64);
    let mut this = ThreadCore { view: view(state, core), rng, open: open.to_vec(), done: 0 };
    let mut clients: Vec<Client> = (0..CLIENTS_PER_CORE).map(|_| Client::Idle).collect();
    let mut idle_rounds = 0;
    while this.done < REQUESTS_PER_CORE {
        let notices = std::mem::take(&mut *inboxes[core].lock().expect("no core panics with it"));
        let mut moved = !notices.is_empty();
        notices.iter().for_each(|notice| this.view.handle(notice));
        for client in &mut clients {
            let (next, stepped) = this.step(std::mem::replace(client, Client::Idle));
            *client = next;
            moved |= stepped;
        }
        idle_rounds = if moved { 0 } else { idle_rounds + 1 };
        assert!(idle_rounds < IDLE_ROUNDS_MAX, "core {core} is stuck");
        if !moved {
            thread::yield_now();
        }
    }
    drop(clients);
    // Others may still wait for what this core keeps.
    this.view.clear();
    let notices = std::mem::take(&mut *inboxes[core].lock().expect("no core panics with it"));
    notices.iter().for_each(|notice| this.view.handle(notice));
    // Dropped: what is granted to it from here on, its last look takes.
}

/// Goal: never more connections than allowed, no request stuck, nothing left behind. Method: each
/// connection counts itself and asserts the bound; a client moves only when it was woken.
#[test]
fn connections_never_exceed_their_bound_and_nobody_waits_for_ever() {
    let inboxes: Arc<[Inbox]> = (0..CORES).map(|_| Inbox::default()).collect();
    let state = upstream(ENDPOINTS, CORES, |config| {
        config.max_conns = Some(CONNECTIONS_MAX as usize);
        config.queue.length = CORES * CLIENTS_PER_CORE / 2 - 8;
    });
    let open: Vec<Arc<AtomicU32>> = (0..ENDPOINTS).map(|_| Arc::default()).collect();
    let sent = inboxes.clone();
    state.set_postbox(Box::new(move |core, notice| {
        sent[core].lock().expect("no core panics with it").push_back(notice);
    }));
    thread::scope(|scope| {
        for core in 0..CORES {
            let (state, open, inboxes) = (&state, &open, &inboxes);
            scope.spawn(move || run(core, state, open, inboxes));
        }
    });
    // A core that takes one more look, as its sweep would.
    for core in 0..CORES {
        view(&state, core).sweep(1);
    }
    for (endpoint, open) in state.endpoints().iter().zip(&open) {
        assert_eq!(open.load(Ordering::SeqCst), 0);
        assert_eq!(endpoint.in_flight.load(Ordering::SeqCst), 0);
        assert_eq!(endpoint.queued(), 0);
        assert_eq!(endpoint.connections.load(Ordering::SeqCst), 0);
    }
}

const ROUNDS: usize = 50_000;

/// Goal: no wake-up is lost. Method: one connection, one request of each of two cores, and no next
/// request before both are through: what one core fails to hand on, nobody else brings.
#[test]
fn one_connection_serves_both_cores_in_each_of_many_rounds() {
    let inboxes: Arc<[Inbox]> = (0..2).map(|_| Inbox::default()).collect();
    let state = upstream(1, 2, |config| config.max_conns = Some(1));
    let (open, finished) = (Arc::new(AtomicU32::new(0)), AtomicUsize::new(0));
    let sent = inboxes.clone();
    state.set_postbox(Box::new(move |core, notice| {
        sent[core].lock().expect("no core panics with it").push_back(notice);
    }));
    thread::scope(|scope| {
        for core in 0..2 {
            let (state, open, inbox, finished) = (&state, &open, &inboxes[core], &finished);
            scope.spawn(move || {
                let view = view(state, core);
                let mut rng = Rng::with_seed(core as u64);
                for round in 0..ROUNDS {
                    (0..rng.u32(..200)).for_each(|_| std::hint::spin_loop());
                    rounds_request(&view, &mut rng, open, inbox);
                    finished.fetch_add(1, Ordering::SeqCst);
                    wait_until(&view, inbox, || finished.load(Ordering::SeqCst) >= 2 * (round + 1));
                }
                view.clear();
            });
        }
    });
    assert_eq!(state.endpoints()[0].connections.load(Ordering::SeqCst), 0);
}

fn rounds_request(view: &View<Token>, rng: &mut Rng, open: &Arc<AtomicU32>, inbox: &Inbox) {
    let pick = view.pick(1, None, &Tried::default()).expect("it is well");
    let grant = pick.endpoint.lease(1);
    let mut grant = grant.unwrap_or_else(|| match pick.endpoint.enter(now_ms()) {
        Ok(Entry::Open(grant)) => grant,
        Ok(Entry::Wait(waiting)) => {
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            let mut granted = None;
            wait_until(view, inbox, || {
                match waiting.poll(&mut Context::from_waker(&waker), |_| Poll::Pending) {
                    Poll::Ready(grant) => granted = grant,
                    Poll::Pending => return false,
                }
                true
            });
            granted.expect("it was woken with its turn")
        }
        Err(_) => panic!("the queue has room"),
    });
    let parked = grant.parked.take();
    let parked = parked.unwrap_or_else(|| Parked {
        stream: Token::open(open, 1),
        since: 1,
        retires: u64::MAX,
    });
    (0..rng.u32(..100)).for_each(|_| std::hint::spin_loop());
    if rng.bool() {
        grant.permit.lay_down();
        pick.endpoint.keep(parked, 1);
    } else {
        grant.parked = Some(parked);
    }
}

/// Attends to the notices until it is `over`.
fn wait_until(view: &View<Token>, inbox: &Inbox, mut over: impl FnMut() -> bool) {
    for _ in 0..IDLE_ROUNDS_MAX {
        let notices = std::mem::take(&mut *inbox.lock().expect("no core panics with it"));
        notices.iter().for_each(|notice| view.handle(notice));
        if over() {
            return;
        }
        thread::yield_now();
    }
    panic!("a core is stuck");
}
