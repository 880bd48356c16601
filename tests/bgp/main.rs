//! Ten routers that speak BGP with each other while links fail and processes are killed: when nothing happens any more, all
//! of them use what a reference computation says.
//!
//! Each router is a Finder, a manager, an FEA, a RIB and BGP, as processes of their own in the simulator. The manager is a small
//! one of these tests, and there is no launcher: the test itself starts what it has killed.
//!
//! `WEFT_BGP_SEED=7 cargo test -p weft-tests --test bgp ten` does one of them, with `WEFT_BGP_LOG=1` it prints what processes
//! report; `WEFT_BGP_SEEDS=1000 … --ignored` says how many a long run does, and `WEFT_BGP_FIRST=500` where it begins.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod plan;
mod reference;
mod router;
mod run;

/// How many are done each time.
const SEEDS: u64 = 100;
/// Of those that follow, what has gone wrong once.
const ONCE_WRONG: [u64; 2] = [1020, 1310];
/// How many in a long run.
const MANY: u64 = 1000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")))
}

#[test]
fn ten_routers_agree_with_the_reference_when_faults_are_over() {
    match number("WEFT_BGP_SEED") {
        Some(seed) => run::run(seed),
        None => (0..SEEDS).chain(ONCE_WRONG).for_each(run::run),
    }
}

/// Both kinds of systems with two routers are among those that are done each time.
#[test]
fn some_systems_are_divided_and_some_are_not() {
    let plans: Vec<_> = (0..SEEDS).map(run::plan).collect();
    let has_member = |plan: &&plan::Plan| plan.members.iter().flatten().next().is_some();
    let has_pair = |plan: &&plan::Plan| {
        (0..plan::ROUTERS).any(|one| {
            let systems = &plan.systems;
            plan.members[one].is_none() && systems[..one].contains(&systems[one])
        })
    };
    assert!(plans.iter().filter(has_member).count() >= 10);
    assert!(plans.iter().filter(has_pair).count() >= 10);
}

#[test]
#[ignore = "long: `make soak` runs it"]
fn soak_ten_routers_agree_with_the_reference_when_faults_are_over() {
    let first = number("WEFT_BGP_FIRST").unwrap_or(0);
    (first..first + number("WEFT_BGP_SEEDS").unwrap_or(MANY)).for_each(run::run);
}
