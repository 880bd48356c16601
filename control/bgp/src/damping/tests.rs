use proptest::prelude::*;

use super::*;

const CONFIG: Config = Config {
    suppress: 6000,
    reuse: 750,
    half_life: Duration::from_secs(900),
    max_suppress: Duration::from_secs(3600),
};

fn key(number: u8) -> Key {
    (Version::V4, format!("203.0.{number}.0/24").parse().unwrap(), 0)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// It goes and comes so many times at once.
fn flaps(damping: &mut Damping, now: Instant, number: u8, times: usize) -> bool {
    let mut is_damped = false;
    for _ in 0..times {
        damping.happened(now, key(number), Event::Withdrawn);
        is_damped = damping.happened(now, key(number), Event::Announced);
    }
    is_damped
}

/// All that is used again until then, and when.
fn pass(damping: &mut Damping, until: Instant) -> Vec<(Instant, Key)> {
    let mut again = Vec::new();
    while let Some(now) = damping.deadline().filter(|now| *now <= until) {
        again.extend(damping.tick(now, 1).into_iter().map(|key| (now, key)));
    }
    again
}

#[test]
fn a_route_is_damped_beyond_the_threshold_and_used_again_below_the_other_one() {
    let mut damping = Damping::new(CONFIG);
    assert!(!flaps(&mut damping, at(10), 1, 6), "6000 is not beyond");
    assert!(!damping.happened(at(10), key(1), Event::Announced));
    assert!(damping.happened(at(10), key(1), Event::Changed));
    assert_eq!((damping.damped(), damping.len()), (1, 1));
    // 6500 is below 750 after 900 s * log2(6500 / 750) = 2803.9 s; lists are looked at every five seconds.
    let standing = damping.standing(at(10), &key(1)).unwrap();
    assert_eq!(standing, Standing { penalty: 6500, until: Some(at(10 + 2804)) });
    assert_eq!(damping.standing(at(910), &key(1)).unwrap().penalty, 3250);
    assert_eq!(pass(&mut damping, at(2814)), []);
    assert!(damping.is_damped(&key(1)));
    assert_eq!(pass(&mut damping, at(2815)), [(at(2815), key(1))]);
    assert_eq!((damping.damped(), damping.is_damped(&key(1))), (0, false));
    // And forgotten when half of that is left.
    assert_eq!(pass(&mut damping, at(2815 + 899)), []);
    assert_eq!(damping.len(), 1);
    assert_eq!(pass(&mut damping, at(2815 + 910)), []);
    assert_eq!((damping.len(), damping.deadline()), (0, None));
}

#[test]
fn a_route_that_is_still_is_not_damped_for_ever() {
    let mut damping = Damping::new(CONFIG);
    assert!(flaps(&mut damping, at(0), 1, 200));
    assert_eq!(damping.standing(at(0), &key(1)).unwrap().penalty, Penalty::MOST);
    assert_eq!(pass(&mut damping, at(3599)), []);
    assert_eq!(pass(&mut damping, at(3600)), [(at(3600), key(1))]);
    assert!(damping.standing(at(3600), &key(1)).unwrap().penalty <= 750);
    // One more change does not damp it again.
    assert!(!flaps(&mut damping, at(3601), 1, 1));
}

#[test]
fn changes_meanwhile_make_it_longer() {
    let mut damping = Damping::new(CONFIG);
    assert!(flaps(&mut damping, at(0), 1, 7));
    assert!(!flaps(&mut damping, at(0), 2, 1));
    let first = damping.standing(at(0), &key(1)).unwrap().until.unwrap();
    assert!(flaps(&mut damping, at(1000), 1, 3));
    let later = damping.standing(at(1000), &key(1)).unwrap().until.unwrap();
    assert!(later > first);
    let again = pass(&mut damping, later + SPAN);
    assert_eq!(again.iter().map(|(_, key)| *key).collect::<Vec<_>>(), [key(1)]);
    assert!(again[0].0 >= later && again[0].0 < later + SPAN);
}

#[test]
fn what_only_comes_and_says_the_same_has_no_record() {
    let mut damping = Damping::new(CONFIG);
    assert!(!damping.happened(at(0), key(1), Event::Announced));
    assert_eq!((damping.len(), damping.deadline()), (0, None));
    // With a low threshold one withdrawal is enough.
    let mut strict = Damping::new(Config { suppress: 999, ..CONFIG });
    assert!(strict.happened(at(0), key(1), Event::Withdrawn));
    assert!(strict.happened(at(0), key(1), Event::Announced));
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let mut damping = Damping::new(CONFIG);
    // A prefix has many paths.
    let path = |number: usize| (Version::V4, key(1).1, u32::try_from(number).unwrap());
    for number in 0..=MOST {
        damping.happened(at(0), path(number), Event::Withdrawn);
    }
    assert_eq!((damping.len(), damping.missed()), (MOST, 1));
    assert!(damping.standing(at(0), &path(MOST)).is_none());
    // When others are forgotten, there is room again: some at a time.
    let due = damping.deadline().unwrap();
    assert_eq!(due.as_nanos() % span(), 0);
    damping.tick(due + Duration::from_secs(3600), 10);
    assert_eq!(damping.len(), MOST - 10);
    damping.happened(due, path(MOST), Event::Withdrawn);
    assert_eq!((damping.len(), damping.missed()), (MOST - 9, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A twin that has no lists and computes each route by itself, in floating point. Where it is nearer to a threshold than
    /// some points it does not matter who is right.
    #[test]
    fn routes_are_damped_as_the_formula_says(
        steps in prop::collection::vec((0u64..400, 0u8..3, 0u8..3), 1..120),
    ) {
        #[derive(Clone, Copy, Default)]
        struct Twin { penalty: f64, changed: u64, damped_until: Option<f64> }
        let mut damping = Damping::new(CONFIG);
        let mut twins = [Twin::default(); 3];
        let mut now = 0;
        for (pause, number, what) in steps {
            now += pause;
            // Lists are looked at when their spans are over.
            let now_exact = now as f64;
            pass(&mut damping, at(now));
            let twin = &mut twins[usize::from(number)];
            let left = |twin: &Twin, now: f64| twin.penalty * (-(now - twin.changed as f64) / 900.0).exp2();
            let (event, points) = match what {
                0 => (Event::Withdrawn, 1000.0),
                1 => (Event::Changed, 500.0),
                _ => (Event::Announced, 0.0),
            };
            let due = twin.damped_until;
            // Within the span behind its time a route may be used again or not yet: do not ask.
            if due.is_some_and(|due| now_exact >= due - 2.0 && now_exact < due + 6.0) {
                now += 8;
                pass(&mut damping, at(now));
            }
            let now_exact = now as f64;
            if twin.damped_until.is_some_and(|due| now_exact >= due) {
                // It has stood as one that has just decayed since it was used again.
                let used = (twin.damped_until.unwrap() / 5.0).ceil() * 5.0;
                twin.penalty = left(twin, used).min(750.0);
                (twin.changed, twin.damped_until) = (used as u64, None);
            }
            if damping.standing(at(now), &key(number)).is_none() {
                prop_assert!(twin.damped_until.is_none() && left(twin, now_exact) < 376.0);
                twin.penalty = 0.0;
            }
            if points > 0.0 {
                twin.penalty = (left(twin, now_exact) + points).min(50_000.0);
                twin.changed = now;
                prop_assume!((twin.penalty - 6000.0).abs() > 5.0);
                if twin.damped_until.is_some() || twin.penalty > 6000.0 {
                    let time = 900.0 * (twin.penalty / 750.0).log2();
                    twin.damped_until = Some(now_exact + time.clamp(0.0, 3600.0));
                }
            }
            let is_damped = damping.happened(at(now), key(number), event);
            prop_assert_eq!(is_damped, twin.damped_until.is_some(), "{} at {}", number, now);
            if let Some(standing) = damping.standing(at(now), &key(number)) {
                let expected = left(twin, now_exact);
                let points = f64::from(standing.penalty);
                prop_assert!((points - expected).abs() < 5.0, "{points} instead of {expected}");
            }
        }
    }
}
