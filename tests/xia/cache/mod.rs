//! The routing cache against a model, with every principal that there is.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2. Long random sequences change tables, neighbours, tunnels,
//! sockets and principals, let time pass, and have hosts come and go that the router finds by itself, with packets in
//! between, alone and many together. After every step
//!
//! * each decision in the cache is the one that the tables give now;
//! * what was in the cache before the step, and rests on answers that are still the same, is there still with
//!   its count of packets; and nothing else is, but what another engine had, which is decided anew;
//! * an engine elsewhere that did what it was told has no decision but those that the tables give now.
//!
//! The model works decisions out from [`Principal::lookup`] alone, with no more than the rules of the paper.
//! `WEFT_CACHE_STEPS` asks for more steps than `make test` has time for.

mod changes;
mod copy;
mod model;
mod neighbours;
mod universe;
mod world;

use std::thread;

use world::World;

/// Steps of each sequence; there are [`SEQUENCES`].
const STEPS: u64 = 250_000;
const SEQUENCES: u64 = 4;

#[test]
fn every_decision_is_right_after_every_step_and_nothing_else_is_forgotten() {
    let asked = std::env::var("WEFT_CACHE_STEPS").ok().and_then(|steps| steps.parse::<u64>().ok());
    let (steps, seed) = match asked {
        Some(steps) => (steps.div_ceil(SEQUENCES), rand_seed()),
        None => (STEPS, 1),
    };
    let sequences: Vec<_> = (seed..seed + SEQUENCES)
        .map(|seed| thread::spawn(move || World::new(seed).run(steps)))
        .collect();
    let mut sum = world::Seen::default();
    for sequence in sequences {
        sum += sequence.join().unwrap();
    }
    println!("{} steps: {sum:?}", steps * SEQUENCES);
    // The sequences must have met what they are for.
    let all = steps * SEQUENCES;
    assert!(sum.hits > all / 6 && sum.stale > all / 50 && sum.survived > 3 * all, "{sum:?}");
    assert!(sum.misses > all / 5 && sum.evicted > all / 100, "{sum:?}");
    assert!(sum.chosen > all / 2 && sum.tried > all / 4, "{sum:?}");
    assert!(sum.found > all / 100 && sum.lost > all / 20_000, "{sum:?}");
    assert!(sum.refused > all / 1_000, "{sum:?}");
    assert!(sum.offloaded > all / 20 && sum.rewritten > all / 200, "{sum:?}");
}

/// Long runs shall not repeat each other; the seed is in the message of a failure.
fn rand_seed() -> u64 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    time.map_or(1, |time| time.as_secs())
}

/// With and without a cache the same packets leave, in small and large batches.
#[test]
fn a_cache_changes_no_verdict() {
    for seed in 100..104 {
        World::new(seed).compare_with_a_router_without_cache(20_000);
    }
}
