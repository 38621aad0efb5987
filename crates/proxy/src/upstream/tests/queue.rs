//! Connections under a bound: who waits, and who gets what becomes free. Cores take turns here.

use std::cell::RefCell;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::limits::OTHER_CORES_WAIT;
use crate::pool::Parked;
use crate::upstream::UpstreamNotice;
use crate::upstream::clock::ms;
use crate::upstream::endpoint::{Endpoint, QueueIsFull, Waiting};

/// Two cores before one endpoint, and the notices that are on their way.
struct Bounded {
    most: u32,
    open: Arc<AtomicU32>,
    state: Arc<UpstreamState>,
    views: [View<Token>; 2],
    notices: Arc<Mutex<Vec<(usize, UpstreamNotice)>>>,
    picks: RefCell<Vec<Pick<Token>>>,
}

impl Bounded {
    fn new(most: u32, queue: usize) -> Bounded {
        let state = upstream(1, 2, |config| {
            config.max_conns = Some(most as usize);
            config.queue.length = queue;
        });
        let notices: Arc<Mutex<Vec<_>>> = Arc::default();
        let sent = notices.clone();
        state.set_postbox(Box::new(move |core, notice| {
            sent.lock().expect("one thread").push((core, notice));
        }));
        let views = [view(&state, 0), view(&state, 1)];
        let picks = RefCell::default();
        Bounded { most, open: Arc::default(), state, views, notices, picks }
    }

    fn endpoint(&self, core: usize) -> std::rc::Rc<Endpoint<Token>> {
        let pick = self.views[core].pick(1, None, &Tried::default()).expect("there is one");
        pick.endpoint.clone()
    }

    /// A request on `core` at `now`: a connection, or a place in the queue.
    fn enter(&self, core: usize, now: u64) -> Result<Entry<Token>, QueueIsFull> {
        let pick = self.views[core].pick(1, None, &Tried::default()).expect("there is one");
        let entry = pick.endpoint.enter(now)?;
        self.picks.borrow_mut().push(pick);
        Ok(entry)
    }

    fn connected(&self, core: usize) -> Grant<Token> {
        self.connect(super::open(self.enter(core, 1).expect("the queue has room")))
    }

    fn connect(&self, mut grant: Grant<Token>) -> Grant<Token> {
        grant.parked.get_or_insert_with(|| {
            let stream = Token::open(&self.open, self.most);
            Parked { stream, since: 1, retires: u64::MAX }
        });
        grant
    }

    fn waits(&self, core: usize, now: u64) -> Waiting<Token> {
        match self.enter(core, now).expect("the queue has room") {
            Entry::Wait(waiting) => waiting,
            Entry::Open(_) => panic!("there was a connection to spare"),
        }
    }

    fn keep(&self, core: usize, grant: Grant<Token>) {
        let Grant { parked, permit } = grant;
        permit.lay_down();
        self.endpoint(core).keep(parked.expect("it is connected"), 1);
    }

    /// Brings the notices to their cores; how many there were.
    fn deliver(&self) -> usize {
        let mut count = 0;
        loop {
            let notices = std::mem::take(&mut *self.notices.lock().expect("one thread"));
            if notices.is_empty() {
                return count;
            }
            for (core, notice) in notices {
                count += 1;
                self.views[core].handle(&notice);
            }
        }
    }
}

fn turn(waiting: &Waiting<Token>) -> Option<Grant<Token>> {
    match waiting.poll(&mut Context::from_waker(Waker::noop()), |_| Poll::Pending) {
        Poll::Ready(grant) => grant,
        Poll::Pending => None,
    }
}

#[test]
fn a_full_queue_refuses_and_a_place_given_up_is_free_again() {
    let bounded = Bounded::new(1, 2);
    let _busy = bounded.connected(0);
    let first = bounded.waits(0, 1);
    let _second = bounded.waits(1, 1);
    assert!(bounded.enter(0, 1).is_err());
    assert!(bounded.enter(1, 1).is_err());
    drop(first);
    assert_eq!(bounded.state.endpoints()[0].queued(), 1);
    let _third = bounded.waits(1, 1);
}

#[test]
fn one_that_is_late_leaves_the_queue() {
    let bounded = Bounded::new(1, 1);
    let busy = bounded.connected(0);
    let waiting = bounded.waits(0, 1);
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(waiting.poll(&mut context, |_| Poll::Ready(())), Poll::Ready(None)));
    drop(waiting);
    drop(busy);
    let state = &bounded.state.endpoints()[0];
    assert_eq!((state.queued(), state.connections.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn the_first_to_wait_on_a_core_gets_the_connection_that_comes_back_to_it() {
    let bounded = Bounded::new(1, 9);
    let busy = bounded.connected(0);
    let (first, second) = (bounded.waits(0, 1), bounded.waits(0, 2));
    bounded.keep(0, busy);
    assert!(turn(&second).is_none());
    let grant = turn(&first).expect("it is its turn");
    assert!(grant.parked.is_some(), "with the connection");
    // One that was cut off leaves the permit alone.
    drop(grant);
    let grant = turn(&second).expect("it is its turn");
    assert!(grant.parked.is_none());
}

#[test]
fn a_connection_that_stirred_is_not_handed_on() {
    let bounded = Bounded::new(1, 9);
    let busy = bounded.connected(0);
    let first = bounded.waits(0, 1);
    busy.parked.as_ref().expect("it is connected").stream.stirred.set(true);
    bounded.keep(0, busy);
    assert!(turn(&first).expect("it is its turn").parked.is_none());
}

#[test]
fn a_connection_past_its_age_is_closed_when_it_comes_back() {
    let bounded = Bounded::new(1, 9);
    let mut grant = bounded.connected(0);
    grant.parked.as_mut().expect("it is connected").retires = 1;
    bounded.keep(0, grant);
    assert_eq!(bounded.open.load(Ordering::Relaxed), 0);
    assert!(super::open(bounded.enter(1, 1).expect("the queue has room")).parked.is_none());
}

#[test]
fn what_was_handed_to_one_that_left_goes_to_the_next() {
    let bounded = Bounded::new(1, 9);
    let busy = bounded.connected(0);
    let (first, second) = (bounded.waits(0, 1), bounded.waits(0, 2));
    let third = bounded.waits(1, 3);
    bounded.keep(0, busy);
    drop(first);
    let grant = turn(&second).expect("it is its turn");
    assert!(grant.parked.is_some(), "with the connection");
    bounded.keep(0, grant);
    // On another core it gets the permit, and may not have taken it when it leaves.
    assert_eq!(bounded.deliver(), 1);
    drop(third);
    let state = &bounded.state.endpoints()[0];
    assert_eq!((state.queued(), state.connections.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_permit_for_one_that_left_before_the_notice_came_is_free_again() {
    let bounded = Bounded::new(1, 9);
    let busy = bounded.connected(0);
    let waiting = bounded.waits(1, 1);
    drop(busy);
    drop(waiting);
    let late = bounded.waits(1, 2);
    assert_eq!(bounded.deliver(), 1);
    drop(turn(&late).expect("the permit is as good for it"));
    assert_eq!(bounded.state.endpoints()[0].connections.load(Ordering::Relaxed), 0);
}

#[test]
fn an_idle_connection_of_another_core_is_given_up() {
    let bounded = Bounded::new(2, 9);
    let (one, two) = (bounded.connected(0), bounded.connected(0));
    bounded.keep(0, one);
    bounded.keep(0, two);
    assert_eq!(bounded.open.load(Ordering::Relaxed), 2);
    let waiting = bounded.waits(1, 1);
    assert_eq!(bounded.deliver(), 2, "the wish, and the permit");
    assert_eq!(bounded.open.load(Ordering::Relaxed), 1);
    let _busy = bounded.connect(turn(&waiting).expect("it is its turn"));
    assert!(bounded.endpoint(0).lease(1).is_some(), "the other is still there");
}

#[test]
fn a_lost_notice_is_made_up_for_by_the_sweep() {
    let bounded = Bounded::new(1, 9);
    let busy = bounded.connected(0);
    bounded.keep(0, busy);
    let waiting = bounded.waits(1, 1);
    bounded.notices.lock().expect("one thread").clear();
    bounded.views[0].sweep(1);
    bounded.notices.lock().expect("one thread").clear();
    bounded.views[1].sweep(1);
    assert!(turn(&waiting).is_some());
}

#[test]
fn another_core_is_served_first_once_it_has_waited_much_longer() {
    let bounded = Bounded::new(1, 9);
    let busy = bounded.connected(0);
    let there = bounded.waits(1, 1);
    let here = bounded.waits(0, 1 + ms(OTHER_CORES_WAIT));
    bounded.keep(0, busy);
    let grant = turn(&here).expect("the difference is small: its connection is used");
    let _later = bounded.waits(0, 2 + ms(OTHER_CORES_WAIT));
    bounded.keep(0, grant);
    assert_eq!(bounded.deliver(), 1);
    assert!(turn(&there).is_some());
}

/// Goal: a bound far below the number of clients does not turn into a connection per request, and no
/// core starves. Method: two cores with unequal numbers of clients, a virtual clock, answers that
/// take a millisecond each.
#[test]
fn under_a_bound_most_requests_reuse_a_connection_and_no_core_starves() {
    for clients in [[32, 32], [56, 8], [60, 1]] {
        let (connects, longest_ms) = saturate(clients, 40_000);
        println!("{clients:?}: {connects} connects for 40000 requests, {longest_ms} ms at most");
        assert!(connects <= 4_000, "{clients:?}: {connects} connects");
        assert!(longest_ms <= 60, "{clients:?}: one waited for {longest_ms} ms");
    }
}

enum Seat {
    Waits(Waiting<Token>, u64),
    Busy(Grant<Token>, u64),
}

/// Connections opened, and the longest wait, of `requests` requests of `clients` on each core.
fn saturate(clients: [usize; 2], requests: usize) -> (usize, u64) {
    let bounded = Bounded::new(10, 1_000);
    let mut rng = Rng::with_seed(5);
    let (mut connects, mut longest_us, mut done, mut now_us) = (0, 0, 0, 0);
    let mut seats: Vec<(usize, Option<Seat>)> = Vec::new();
    for (core, count) in clients.into_iter().enumerate() {
        seats.extend((0..count).map(|_| (core, None)));
    }
    while done < requests {
        now_us += 20;
        for (core, seat) in &mut seats {
            *seat = match seat.take() {
                Some(Seat::Busy(grant, until)) if until <= now_us => {
                    done += 1;
                    bounded.keep(*core, grant);
                    bounded.picks.borrow_mut().clear();
                    None
                }
                Some(Seat::Waits(waiting, since)) => match turn(&waiting) {
                    Some(grant) => {
                        longest_us = longest_us.max(now_us - since);
                        Some(busy(&bounded, grant, &mut connects, now_us, &mut rng))
                    }
                    None => Some(Seat::Waits(waiting, since)),
                },
                None => Some(
                    match bounded.enter(*core, 1 + now_us / 1_000).expect("the queue has room") {
                        Entry::Open(grant) => {
                            busy(&bounded, grant, &mut connects, now_us, &mut rng)
                        }
                        Entry::Wait(waiting) => Seat::Waits(waiting, now_us),
                    },
                ),
                seat => seat,
            };
        }
        bounded.deliver();
    }
    (connects, longest_us / 1_000)
}

fn busy(
    bounded: &Bounded,
    grant: Grant<Token>,
    connects: &mut usize,
    now_us: u64,
    rng: &mut Rng,
) -> Seat {
    *connects += usize::from(grant.parked.is_none());
    let takes_us = -rng.f64().max(1e-9).ln() * 1_000.0;
    Seat::Busy(bounded.connect(grant), now_us + takes_us as u64)
}
