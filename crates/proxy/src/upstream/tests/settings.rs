//! What is known of endpoints when the settings of their upstream change.

use std::time::Duration;

use super::*;
use crate::upstream::Health;

fn changed(before: &UpstreamState, edit: impl FnOnce(&mut config::Upstream)) -> UpstreamState {
    let mut config = before.config().clone();
    edit(&mut config);
    UpstreamState::new(config, 1, Some(before))
}

fn checked(config: &mut config::Upstream) {
    config.health = Some(config::HealthConfig::new("/healthz".into()));
}

#[test]
fn without_checks_an_endpoint_is_not_down_for_ever() {
    let before = upstream(2, 1, checked);
    before.endpoints()[0].set_health(Health::Down);
    let after = changed(&before, |config| config.health = None);
    assert_eq!(after.endpoints()[0].health(), Health::Unknown);
}

#[test]
fn an_endpoint_stays_drained_and_down() {
    let before = upstream(3, 1, checked);
    before.endpoints()[0].set_drained(true);
    before.endpoints()[1].set_health(Health::Down);

    let after = changed(&before, |config| config.slow_start = Duration::from_secs(1));
    let now = after.endpoints();
    assert_eq!(now.iter().map(|one| one.is_drained()).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(now[1].health(), Health::Down);
    assert_eq!(now[2].health(), Health::Unknown);
}

#[test]
fn a_name_that_is_looked_up_later_finds_what_was_known_of_its_addresses() {
    let named = |config: &mut config::Upstream| {
        config.endpoints[0].address = UpstreamAddr::Name { host: "api.example".into(), port: 80 };
    };
    let before = upstream(1, 1, named);
    before.resolved(0, &[address(0), address(1)]);
    before.endpoints()[1].set_drained(true);
    // Two changes, with no time to look it up between them.
    let between = changed(&before, |config| config.slow_start = Duration::from_secs(1));
    let after = changed(&between, |config| config.slow_start = Duration::from_secs(2));
    assert!(after.endpoints().is_empty());
    after.resolved(0, &[address(0), address(1)]);
    let drained: Vec<bool> = after.endpoints().iter().map(|one| one.is_drained()).collect();
    assert_eq!(drained, [false, true]);
}

#[test]
fn what_was_known_of_an_address_is_used_once() {
    // Goal: an operator's last word holds. Method: drained, another setting, enabled; the name
    // loses the address and gets it back.
    let named = |config: &mut config::Upstream| {
        config.endpoints[0].address = UpstreamAddr::Name { host: "api.example".into(), port: 80 };
    };
    let before = upstream(1, 1, named);
    before.resolved(0, &[address(0), address(1)]);
    before.endpoints()[1].set_drained(true);
    let after = changed(&before, |config| config.slow_start = Duration::from_secs(1));
    after.resolved(0, &[address(0), address(1)]);
    after.endpoints()[1].set_drained(false);
    after.resolved(0, &[address(0)]);
    after.resolved(0, &[address(0), address(1)]);
    assert!(!after.endpoints()[1].is_drained());
}

#[test]
fn an_endpoint_that_a_file_took_out_comes_back_as_a_new_one() {
    let before = upstream(2, 1, checked);
    before.endpoints()[1].set_drained(true);
    let without = changed(&before, |config| config.endpoints.truncate(1));
    let endpoints = before.config().endpoints.clone();
    let after = changed(&without, |config| config.endpoints = endpoints);
    assert!(!after.endpoints()[1].is_drained());
}
