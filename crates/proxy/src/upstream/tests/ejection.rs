//! Which endpoints are used: drained, unwell, left out, on probation, starting slowly, tried, new.

use std::time::Duration;

use super::*;
use crate::config::{Balance, HashKey};
use crate::upstream::Health;

const PERIOD_MS: u64 = 1_000;

fn ejecting(endpoints: usize, max_percent: u32) -> Arc<UpstreamState> {
    upstream(endpoints, 1, |config| {
        config.eject.failures = 3;
        config.eject.period = Duration::from_millis(PERIOD_MS);
        config.eject.max_percent = max_percent;
    })
}

/// Lets endpoint `index` fail `count` times at `now`; whether that left it out.
fn fail(state: &UpstreamState, index: usize, count: usize, now: u64) -> bool {
    let endpoint = &state.endpoints()[index];
    (0..count).fold(false, |ejected, _| ejected | state.failed(endpoint, now))
}

#[test]
fn without_an_endpoint_that_may_be_used_there_is_no_choice() {
    let state = upstream(2, 1, |_| {});
    let view = view(&state, 0);
    state.endpoints().iter().for_each(|endpoint| endpoint.set_drained(true));
    assert!(view.pick(1, None, &Tried::default()).is_none());
    state.endpoints()[1].set_drained(false);
    assert_eq!(spread(&view, 1, 10, 2), [0, 10]);
}

#[test]
fn when_all_are_unwell_all_that_are_not_drained_are_used() {
    let state = upstream(3, 1, |config| config.endpoints[2].backup = true);
    let view = view(&state, 0);
    state.endpoints().iter().for_each(|endpoint| endpoint.set_health(Health::Down));
    state.endpoints()[0].set_drained(true);
    let counts = spread(&view, 1, 100, 3);
    assert!(counts[0] == 0 && counts[1] > 0 && counts[2] > 0, "{counts:?}");
}

#[test]
fn a_backup_is_used_only_while_no_other_can_be() {
    let state = upstream(3, 1, |config| config.endpoints[2].backup = true);
    let view = view(&state, 0);
    assert_eq!(spread(&view, 1, 100, 3)[2], 0);
    state.endpoints()[0].set_health(Health::Down);
    assert_eq!(spread(&view, 1, 100, 3), [0, 100, 0]);
    state.endpoints()[1].set_health(Health::Down);
    assert_eq!(spread(&view, 1, 100, 3), [0, 0, 100]);
    state.endpoints()[1].set_health(Health::Up);
    assert_eq!(spread(&view, 1, 100, 3), [0, 100, 0]);
}

#[test]
fn an_endpoint_that_was_tried_is_chosen_again_only_without_another() {
    let state = upstream(3, 1, |config| config.endpoints[2].backup = true);
    let view = view(&state, 0);
    for _ in 0..20 {
        let pick = view.pick(1, None, &tried(&[0])).expect("there is another");
        assert_eq!((index(&pick), pick.again, pick.is_retry), (1, false, true));
        let pick = view.pick(1, None, &tried(&[0, 1])).expect("there is a backup");
        assert_eq!((index(&pick), pick.again), (2, false));
        let pick = view.pick(1, None, &tried(&[0, 1, 2])).expect("they can be tried again");
        assert!(index(&pick) < 2 && pick.again);
    }
}

#[test]
fn a_single_endpoint_is_never_left_out() {
    let state = ejecting(1, 100);
    assert!(!fail(&state, 0, 100, 1));
    assert_eq!(spread(&view(&state, 0), 1, 10, 1), [10]);
}

#[test]
fn no_more_endpoints_are_left_out_than_their_percentage_but_one_may_always_be() {
    for (max_percent, most) in [(0, 1), (50, 2), (100, 4)] {
        let state = ejecting(5, max_percent);
        let out = (0..5).filter(|one| fail(&state, *one, 9, 1)).count();
        let expected = if max_percent == 100 { 5 } else { most };
        assert_eq!(out, expected, "{max_percent} %");
    }
}

#[test]
fn a_success_ends_the_row_of_failures() {
    let state = ejecting(2, 50);
    assert!(!fail(&state, 0, 2, 1));
    state.succeeded(&state.endpoints()[0], 1);
    assert!(!fail(&state, 0, 2, 1));
    assert!(fail(&state, 0, 1, 1));
    assert!(!fail(&state, 0, 9, 1), "it is left out once");
}

#[test]
fn what_was_left_out_is_tried_by_one_request_and_left_out_for_longer_if_that_fails() {
    let state = ejecting(2, 50);
    let view = view(&state, 0);
    assert!(fail(&state, 0, 3, 1));
    assert_eq!(spread(&view, PERIOD_MS, 100, 2), [0, 100]);
    let back = PERIOD_MS + 1;
    let counts = spread(&view, back, 100, 2);
    assert_eq!(counts, [1, 99], "one request tries it");
    assert!(fail(&state, 0, 1, back), "one failure is enough now");
    assert_eq!(spread(&view, back + PERIOD_MS, 100, 2), [0, 100]);
    assert_eq!(spread(&view, back + 2 * PERIOD_MS, 100, 2), [1, 99]);
    state.succeeded(&state.endpoints()[0], back + 2 * PERIOD_MS);
    let counts = spread(&view, back + 2 * PERIOD_MS, 100, 2);
    assert!(counts[0] > 30, "{counts:?}");
}

#[test]
fn a_retry_does_not_go_to_an_endpoint_on_probation() {
    let state = ejecting(3, 50);
    let view = view(&state, 0);
    assert!(fail(&state, 0, 3, 1));
    for _ in 0..20 {
        let pick = view.pick(PERIOD_MS + 1, None, &tried(&[1])).expect("there is another");
        assert_eq!(index(&pick), 2);
    }
}

#[test]
fn one_that_is_back_rises_to_its_share_slowly() {
    let state = upstream(2, 1, |config| {
        config.eject.failures = 1;
        config.slow_start = Duration::from_secs(10);
    });
    let view = view(&state, 0);
    assert!(fail(&state, 0, 1, 1));
    let back = 1 + 10_000;
    state.succeeded(&state.endpoints()[0], back);
    // 10 % of a share beside a whole one, then 55 %, then as much as the other.
    for (after_ms, expected) in [(0, 909), (5_000, 3_548), (10_000, 5_000)] {
        let got = spread(&view, back + after_ms, 10_000, 2)[0];
        assert!(got.abs_diff(expected) < 300, "{after_ms} ms: {got} instead of {expected}");
    }
}

#[test]
fn an_endpoint_that_leaves_loses_its_connections_and_one_that_stays_keeps_them() {
    let state = upstream(2, 1, |config| {
        config.endpoints[1].address = UpstreamAddr::Name { host: "name".into(), port: 80 };
    });
    let open = Arc::new(AtomicU32::new(0));
    let view = view(&state, 0);
    state.resolved(1, &[address(1), address(2)]);
    for one in [0, 1, 2] {
        let others: Vec<usize> = (0..3).filter(|other| *other != one).collect();
        let pick = view.pick(1, None, &tried(&others)).expect("it is there");
        let grant = super::open(pick.endpoint.enter(1).expect("not bounded"));
        grant.permit.lay_down();
        let stream = Token::open(&open, 3);
        let parked = crate::pool::Parked { stream, since: 1, retires: u64::MAX };
        pick.endpoint.keep(parked, 1);
    }
    state.resolved(1, &[address(2)]);
    assert!(view.pick(2, None, &Tried::default()).is_some());
    assert_eq!(open.load(Ordering::Relaxed), 2);
    let pick = view.pick(2, None, &tried(&[0])).expect("it stayed");
    assert_eq!(pick.address(), address(2));
    assert!(pick.endpoint.lease(2).is_some(), "its connection stayed");
}

#[test]
fn one_that_returns_while_its_connections_are_open_is_the_same() {
    let state = upstream(1, 1, |config| {
        config.endpoints[0].address = UpstreamAddr::Name { host: "name".into(), port: 80 };
    });
    let view = view(&state, 0);
    state.resolved(0, &[address(0)]);
    let pick = view.pick(1, None, &Tried::default()).expect("it is there");
    state.resolved(0, &[]);
    assert!(view.pick(1, None, &Tried::default()).is_none());
    state.resolved(0, &[address(0)]);
    let again = view.pick(1, None, &Tried::default()).expect("it is there again");
    assert!(std::rc::Rc::ptr_eq(&pick.endpoint, &again.endpoint));
}

#[test]
fn a_key_stays_with_its_endpoint_and_moves_while_that_is_unwell() {
    let state = upstream(4, 1, |config| config.balance = Balance::Hash(HashKey::Path));
    let view = view(&state, 0);
    let at = |key| index(&view.pick(1, Some(key), &Tried::default()).expect("there are four"));
    let before: Vec<usize> = (0..200).map(at).collect();
    assert_eq!(before, (0..200).map(at).collect::<Vec<_>>());
    state.endpoints()[2].set_health(Health::Down);
    for (key, home) in (0..200).zip(&before) {
        assert!(at(key) == *home || *home == 2);
    }
    state.endpoints()[2].set_health(Health::Up);
    assert_eq!(before, (0..200).map(at).collect::<Vec<_>>());
    assert!(view.pick(1, None, &Tried::default()).is_some(), "a request without a key");
}

#[test]
fn retries_are_bounded_by_the_requests_under_way() {
    let state = upstream(1, 1, |_| {});
    let view = view(&state, 0);
    let alone: Vec<_> = (0..4).map(|_| state.try_retry()).collect();
    assert_eq!(alone.iter().flatten().count(), 3);
    drop(alone);
    let _picks: Vec<_> = (0..50).map(|_| view.pick(1, None, &Tried::default())).collect();
    let busy: Vec<_> = (0..20).map(|_| state.try_retry()).collect();
    assert_eq!(busy.iter().flatten().count(), 3 + 10);
    assert_eq!(state.retry_budget_exhausted.load(Ordering::Relaxed), 1 + 7);
}
