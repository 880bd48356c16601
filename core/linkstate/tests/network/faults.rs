//! Many small networks with all kinds of faults: when they come to rest, the routes of all nodes are
//! those of the reference.
//!
//! `WEFT_LINKSTATE_SEEDS` says how many networks, `WEFT_LINKSTATE_SEED` where to begin.

use std::time::Duration;

use weft_linkstate::{Destination, Settings};

use crate::reference;
use crate::world::{Faults, World};

/// Networks unless the environment says how many: as many as take some seconds.
const SEEDS: u64 = 1000;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable}: `{text}` is no number"))
    })
}

/// Fewer hellos than by default, so that there is less to simulate.
fn settings() -> Settings {
    let [hello, hold] = [2, 7].map(Duration::from_secs);
    Settings { hello, hold, ..Settings::default() }
}

/// A destination that several nodes may advertise.
fn anycast(number: u64) -> Destination {
    Destination::new(&[number as u8]).unwrap()
}

/// A network of this seed: nodes on a chain, so that it is whole, and more cables between them.
fn network(seed: u64) -> World {
    let mut draw = weft_base::Random::from_seed(seed).fork("network");
    let nodes = 3 + draw.below(7) as usize;
    let mut world = World::new(seed, nodes, &settings());
    let metric = |draw: &mut weft_base::Random| 1 + draw.below(4) as u32;
    for node in 1..nodes {
        let other = draw.below(node as u64) as usize;
        let metrics = [metric(&mut draw), metric(&mut draw)];
        world.connect([other, node], metrics);
    }
    for _ in 0..draw.below(nodes as u64 + 1) {
        let one = draw.below(nodes as u64) as usize;
        let other = (one + 1 + draw.below(nodes as u64 - 1) as usize) % nodes;
        let metrics = [metric(&mut draw), metric(&mut draw)];
        world.connect([one, other], metrics);
    }
    world
}

/// Something happens.
fn disturb(world: &mut World) {
    let mut draw = world.random.fork("disturb");
    let node = draw.below(world.nodes.len() as u64) as usize;
    let cable = draw.below(world.cables.len() as u64) as usize;
    match draw.below(10) {
        0 | 1 => {
            let noticed = draw.chance(2, 3);
            if world.cables[cable].whole {
                world.cut(cable, noticed);
            }
        }
        2..=4 => {
            if !world.cables[cable].whole {
                world.mend(cable);
            }
        }
        5 => world.crash(node),
        6 | 7 => {
            if world.nodes[node].is_none() {
                world.start(node);
            }
        }
        8 => {
            let metric = 1 + draw.below(4) as u32;
            world.set_metric(cable, draw.below(2) as usize, metric);
        }
        _ => {
            let destination = anycast(draw.below(3));
            if world.destinations[node].contains_key(&destination) {
                world.withdraw(node, &destination);
            } else {
                world.advertise(node, destination, draw.below(4) as u32);
            }
        }
    }
}

fn run(seed: u64) -> World {
    let mut world = network(seed);
    world.faults = Faults {
        loss: world.random.below(200),
        duplicates: world.random.below(200),
        jitter: world.random.below(20_000),
    };
    for _ in 0..10 + world.random.below(30) {
        let pause = world.random.below(1_500);
        world.run_for(Duration::from_millis(pause));
        disturb(&mut world);
    }
    // Some of what is lost is lost while nothing else happens any more.
    world.run_for(Duration::from_secs(5));
    world.faults.loss = 0;
    world.run_for(Duration::from_secs(25));
    world
}

#[test]
fn routes_are_those_of_the_reference_after_any_faults() {
    let first = number("WEFT_LINKSTATE_SEED", 0);
    for seed in first..first + number("WEFT_LINKSTATE_SEEDS", SEEDS) {
        let world = run(seed);
        reference::check(&world, &format!("seed {seed}"));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let [one, other] = [run(7), run(7)];
    assert_eq!((one.delivered, one.last_change), (other.delivered, other.last_change));
}
