use std::sync::Barrier;

use super::*;

fn config(key: RateKey, requests: u32, per: Duration, burst: u32) -> config::RateLimit {
    config::RateLimit { key, requests, per, burst }
}

/// A limit and the virtual time it begins at.
fn limiter(key: RateKey, requests: u32, per: Duration, burst: u32) -> (RateLimiter, Instant) {
    let start = Instant::now();
    (RateLimiter::starting_at(&config(key, requests, per, burst), start), start)
}

fn is_admitted(decision: &Decision) -> bool {
    matches!(decision, Decision::Admitted { .. })
}

const SECOND: Duration = Duration::from_secs(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn settings_beyond_all_sense_neither_overflow_nor_admit_everything() {
    let rows = [
        (u32::MAX, SECOND, u32::MAX),
        (1, Duration::MAX, u32::MAX),
        (1, Duration::MAX, 1),
        (u32::MAX, Duration::from_nanos(1), 1),
        (0, Duration::ZERO, 0),
    ];
    for (requests, per, burst) in rows {
        for key in [RateKey::Route, RateKey::ClientIp] {
            let (limiter, start) = limiter(key, requests, per, burst);
            let years = Duration::from_secs(400 * 366 * 24 * 60 * 60);
            for now in [start, start + years, start] {
                let client = Key::Client([10, 0, 0, 1].into());
                let decisions = [limiter.check(client, now), limiter.check(client, now)];
                let mut out = Vec::new();
                decisions.iter().for_each(|decision| limiter.append_fields(decision, &mut out));
            }
        }
    }
    let (limiter, start) = limiter(RateKey::Route, 1, Duration::MAX, 1);
    assert!(is_admitted(&limiter.check(Key::Route, start)));
    assert!(!is_admitted(&limiter.check(Key::Route, start + SECOND)));
}

#[test]
fn a_time_before_the_start_of_the_limit_counts_as_its_start() {
    let (limiter, start) = limiter(RateKey::Route, 1, SECOND, 1);
    let before = start.checked_sub(ms(1)).unwrap_or(start);
    assert!(is_admitted(&limiter.check(Key::Route, before)));
    assert_eq!(limiter.check(Key::Route, before), Decision::Refused { retry_after: SECOND });
}

#[test]
fn a_burst_is_admitted_at_once_and_then_one_in_each_interval() {
    for key in [RateKey::Route, RateKey::ClientIp] {
        let (limiter, start) = limiter(key, 10, SECOND, 3);
        let client = Key::Client([10, 0, 0, 1].into());
        for remaining in [2, 1, 0] {
            let expected = Decision::Admitted { remaining, reset: ms(100) };
            assert_eq!(limiter.check(client, start), expected);
        }
        assert_eq!(limiter.check(client, start), Decision::Refused { retry_after: ms(100) });
        let later = start + ms(99);
        assert_eq!(limiter.check(client, later), Decision::Refused { retry_after: ms(1) });
        assert!(is_admitted(&limiter.check(client, start + ms(100))));
        assert!(!is_admitted(&limiter.check(client, start + ms(199))));
        // Unused time is saved up to the burst.
        let rested = start + SECOND * 60;
        let admitted = (0..10).filter(|_| is_admitted(&limiter.check(client, rested))).count();
        assert_eq!(admitted, 3);
    }
}

#[test]
fn time_that_passes_within_an_interval_is_not_lost() {
    let (limiter, start) = limiter(RateKey::Route, 10, SECOND, 2);
    assert!(is_admitted(&limiter.check(Key::Route, start)));
    let expected = Decision::Admitted { remaining: 0, reset: ms(70) };
    assert_eq!(limiter.check(Key::Route, start + ms(30)), expected);
    assert_eq!(
        limiter.check(Key::Route, start + ms(100)),
        Decision::Admitted { remaining: 0, reset: ms(100) }
    );
}

#[test]
fn addresses_are_told_apart_and_those_of_one_ipv6_network_are_not() {
    let (limiter, now) = limiter(RateKey::ClientIp, 1, SECOND, 1);
    let check = |address: &str| {
        is_admitted(&limiter.check(Key::Client(address.parse().expect("an address")), now))
    };
    let rows = [
        ("10.0.0.1", true),
        ("10.0.0.1", false),
        ("10.0.0.2", true),
        ("::ffff:10.0.0.2", false),
        ("2001:db8:1:2::1", true),
        ("2001:db8:1:2:ffff::9", false),
        ("2001:db8:1:3::1", true),
    ];
    for (address, admitted) in rows {
        assert_eq!(check(address), admitted, "{address}");
    }
}

#[test]
fn values_of_a_field_are_told_apart_and_requests_without_it_count_together() {
    let (limiter, now) = limiter(RateKey::Field("x-api-key".to_owned()), 1, SECOND, 1);
    let rows: [(Option<&[u8]>, bool); 7] = [
        (None, true),
        (Some(b""), true),
        (Some(b"a"), true),
        (Some(b"b"), true),
        (None, false),
        (Some(b""), false),
        (Some(b"a"), false),
    ];
    for (value, admitted) in rows {
        assert_eq!(is_admitted(&limiter.check(Key::Field(value), now)), admitted, "{value:?}");
    }
}

/// Threads ask at the same virtual moments, many times more often than is admitted.
#[test]
fn many_threads_are_admitted_exactly_the_rate_and_the_burst() {
    const THREADS: usize = 4;
    const STEPS: u64 = 50;
    for key in [RateKey::Route, RateKey::ClientIp] {
        let (limiter, start) = limiter(key, 100, SECOND, 20);
        // A key that is known is counted exactly.
        assert!(is_admitted(&limiter.check(Key::Client([10, 0, 0, 1].into()), start)));
        let (admitted, barrier) = (AtomicU64::new(0), Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for step in 0..STEPS {
                        barrier.wait();
                        let now = start + ms(70) * step as u32;
                        for _ in 0..60 {
                            let client = Key::Client([10, 0, 0, 1].into());
                            if is_admitted(&limiter.check(client, now)) {
                                admitted.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        // 7 of 100/s in each step after the first, which has the burst.
        assert_eq!(1 + admitted.into_inner(), 20 + 7 * (STEPS - 1));
        assert_eq!(limiter.forgotten(), (0, 0));
    }
}

/// New keys are brought by several threads at once: each of them has its exact burst all the same.
#[test]
fn keys_that_several_threads_bring_at_once_are_counted_once() {
    const THREADS: usize = 4;
    const KEYS: usize = 3_000;
    let (limiter, start) = limiter(RateKey::ClientIp, 1, SECOND, 5);
    let counts: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                for (index, count) in counts.iter().enumerate() {
                    let address = IpAddr::from((0x0a00_0000 + index as u32).to_be_bytes());
                    for _ in 0..4 {
                        if is_admitted(&limiter.check(Key::Client(address), start)) {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    // What a key has left, as requests of its were counted elsewhere: the scheduler may put a thread
    // aside while it brings a key.
    let mut sum: u64 = counts.into_iter().map(AtomicU64::into_inner).sum();
    for index in 0..KEYS {
        let address = IpAddr::from((0x0a00_0000 + index as u32).to_be_bytes());
        while is_admitted(&limiter.check(Key::Client(address), start)) {
            sum += 1;
        }
    }
    let (evicted, reserved) = limiter.forgotten();
    assert_eq!(evicted, 0);
    let most = 5 * KEYS as u64 + reserved;
    assert!((5 * KEYS as u64..=most).contains(&sum), "{sum} admitted, {reserved} elsewhere");
}

/// As if the kernel had put a core aside while it brings a key.
#[test]
fn a_key_that_cannot_get_in_is_limited_all_the_same() {
    let rate = Rate::new(&config(RateKey::ClientIp, 10, SECOND, 5));
    let table = Table::new();
    table.set_claimed(7, true);
    let mut admitted = (0..100).filter(|_| is_admitted(&table.check(7, &rate, 0))).count();
    assert_eq!(admitted, 5);
    admitted = (0..100).filter(|_| is_admitted(&table.check(7, &rate, 100_000_000))).count();
    assert_eq!(admitted, 1);
    assert_eq!(table.forgotten(), (0, 200));
    table.set_claimed(7, false);
    admitted = (0..100).filter(|_| is_admitted(&table.check(7, &rate, 100_000_000))).count();
    assert_eq!(admitted, 5);
    assert_eq!(table.forgotten(), (0, 200));
}

/// More keys than there is room for, all in debt: the memory is what it was, and the one that is
/// over its limit is still refused.
#[test]
fn a_flood_of_keys_takes_no_memory_and_frees_nobody_who_is_over_the_limit() {
    let (limiter, start) = limiter(RateKey::ClientIp, 1, SECOND * 3_600, 3);
    let greedy = Key::Client([192, 0, 2, 1].into());
    (0..3).for_each(|_| assert!(is_admitted(&limiter.check(greedy, start))));
    for index in 0..2 * Table::KEYS as u32 {
        let address = IpAddr::from((0x0a00_0000 + index).to_be_bytes());
        assert!(is_admitted(&limiter.check(Key::Client(address), start)));
    }
    assert!(!is_admitted(&limiter.check(greedy, start)));
    let (evicted, reserved) = limiter.forgotten();
    assert_eq!(reserved, 0);
    assert!(evicted >= Table::KEYS as u64, "{evicted} keys were forgotten");
    // As soon as they owe nothing their places are free.
    let later = start + SECOND * 3_600 * 3;
    for index in 0..1_000u32 {
        let address = IpAddr::from((0x0b00_0000 + index).to_be_bytes());
        assert!(is_admitted(&limiter.check(Key::Client(address), later)));
    }
    assert_eq!(limiter.forgotten().0, evicted);
}

#[test]
fn answers_carry_the_policy_what_is_left_and_when_to_come_back() {
    let text = |limiter: &RateLimiter, decision: &Decision| {
        let mut out = Vec::new();
        limiter.append_fields(decision, &mut out);
        String::from_utf8(out).expect("fields are text")
    };
    let (limiter, start) = limiter(RateKey::Route, 2, SECOND * 60, 2);
    let first = limiter.check(Key::Route, start);
    assert_eq!(
        text(&limiter, &first),
        "RateLimit-Policy: \"default\";q=2;w=60\r\nRateLimit: \"default\";r=1;t=30\r\n"
    );
    limiter.check(Key::Route, start);
    let refused = limiter.check(Key::Route, start + ms(500));
    assert_eq!(
        text(&limiter, &refused),
        "RateLimit-Policy: \"default\";q=2;w=60\r\nRateLimit: \"default\";r=0;t=30\r\n\
         Retry-After: 30\r\n"
    );
    let soon = limiter.check(Key::Route, start + SECOND * 30 - ms(1));
    assert!(text(&limiter, &soon).ends_with("r=0;t=1\r\nRetry-After: 1\r\n"));
}

#[test]
fn a_policy_says_the_rate_in_whole_seconds_and_never_less_than_what_remains() {
    let rows = [
        (100, SECOND, (100, 1)),
        (50, ms(500), (100, 1)),
        (3, ms(1_500), (4, 2)),
        (1_000, SECOND * 3_600, (1_000, 3_600)),
        (1, Duration::from_nanos(1), (1_000_000_000, 1)),
        (u32::MAX, Duration::from_nanos(1), (999_999_999_999_999, 1)),
        (1, Duration::ZERO, (1_000_000_000, 1)),
        (1, Duration::MAX, (1, 999_999_999_999_999)),
    ];
    for (requests, per, expected) in rows {
        assert_eq!(
            policy(&config(RateKey::Route, requests, per, 1)),
            expected,
            "{requests} {per:?}"
        );
    }
    let (limiter, start) = limiter(RateKey::Route, 100, SECOND, 500);
    let decision = limiter.check(Key::Route, start);
    assert_eq!(decision, Decision::Admitted { remaining: 499, reset: ms(10) });
    let mut out = Vec::new();
    limiter.append_fields(&decision, &mut out);
    assert!(out.ends_with(b"r=100;t=1\r\n"));
}

/// `cargo test --release -- --ignored --nocapture cost_of_a_check`
#[test]
#[ignore = "measures; for release builds"]
fn cost_of_a_check() {
    const CHECKS: u32 = 4_000_000;
    const RUN_CHECKS: u32 = 1_000;
    let rows = [
        ("route", RateKey::Route, 1),
        ("one client", RateKey::ClientIp, 1),
        ("50,000 clients", RateKey::ClientIp, 50_000),
        ("1,000,000 clients", RateKey::ClientIp, 1_000_000),
    ];
    for (name, key, clients) in rows {
        let (limiter, start) = limiter(key, 1_000, SECOND, 100);
        let mut admitted = 0;
        // Of many short runs, the fastest ones are those that nothing else interrupted.
        let mut runs: Vec<Duration> = (0..CHECKS / RUN_CHECKS)
            .map(|run| {
                let begun = Instant::now();
                for index in run * RUN_CHECKS..(run + 1) * RUN_CHECKS {
                    let address = index.wrapping_mul(2_654_435_761) % clients;
                    let address = IpAddr::from(address.to_be_bytes());
                    let now = start + Duration::from_micros(u64::from(index));
                    let decision = limiter.check(Key::Client(address), now);
                    admitted += u32::from(is_admitted(&decision));
                }
                begun.elapsed()
            })
            .collect();
        runs.sort();
        let each = runs[runs.len() / 4].as_nanos() / u128::from(RUN_CHECKS);
        println!("{name}: {each} ns a check, {admitted} admitted, {:?}", limiter.forgotten());
    }
}
