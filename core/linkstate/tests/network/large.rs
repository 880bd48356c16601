//! Large networks: how long they take to come to rest, and how many messages.

use std::time::Duration;

use weft_base::Instant;
use weft_linkstate::{Activity, Settings};

use crate::reference;
use crate::world::World;

/// A network of nodes on a ring, with chords across it, so that each has four neighbours.
fn ring_with_chords(nodes: usize) -> World {
    let mut world = World::new(1, nodes, &Settings::default());
    for node in 0..nodes {
        world.connect([node, (node + 1) % nodes], [10, 10]);
    }
    for node in 0..nodes {
        let chord = 2 + world.random.below(nodes as u64 - 4) as usize;
        world.connect([node, (node + chord) % nodes], [10, 10]);
    }
    world
}

/// Starts a network and lets it come to rest; says what that took.
fn converge(nodes: usize) -> World {
    let mut world = ring_with_chords(nodes);
    let begin = std::time::Instant::now();
    world.run_for(Duration::from_secs(30));
    let trees: u64 =
        world.nodes.iter().flatten().map(|node| node.counted().get(Activity::Trees)).sum();
    println!(
        "{nodes} nodes, {} links: at rest after {:.3} s, {} messages and {} computations in 30 s; \
         that took {:.1} s to simulate",
        world.cables.len(),
        world.last_change.since(Instant::ZERO).as_secs_f64(),
        world.delivered,
        trees,
        begin.elapsed().as_secs_f64(),
    );
    let routes = world.nodes.iter().flatten().map(|node| node.routes().count());
    assert!(routes.into_iter().all(|count| count == nodes - 1));
    world
}

#[test]
fn a_hundred_nodes_find_all_routes() {
    reference::check(&converge(100), "a hundred");
}

#[test]
fn a_cut_link_is_routed_around_at_once() {
    let mut world = converge(30);
    let begin = world.now;
    world.cut(0, true);
    world.run_for(Duration::from_secs(10));
    reference::check(&world, "cut");
    let time = world.last_change.since(begin);
    println!("30 nodes: at rest {} ms after a link was cut", time.as_millis());
    assert!(time <= Duration::from_millis(200), "{time:?}");
}

#[test]
fn a_thousand_nodes_find_all_routes() {
    reference::check_large(&converge(1000), 50, "a thousand");
}
