//! What the routes must be: computed from the network itself, in the simplest way.

use std::collections::{BTreeMap, BTreeSet};

use weft_linkstate::{Destination, LinkId, Metric, NextHop, NodeId};

use crate::world::{World, name};

/// A link that works, from one of its ends.
struct Hop {
    to: usize,
    metric: Metric,
    cable: usize,
}

/// The links that work, by the node that they begin at.
struct Hops(Vec<Vec<Hop>>);

impl Hops {
    fn of(world: &World) -> Self {
        let mut from: Vec<Vec<Hop>> = world.nodes.iter().map(|_| Vec::new()).collect();
        for (number, cable) in world.cables.iter().enumerate() {
            let [a, b] = cable.ends;
            if cable.whole && world.nodes[a].is_some() && world.nodes[b].is_some() {
                from[a].push(Hop { to: b, metric: cable.metrics[0], cable: number });
                from[b].push(Hop { to: a, metric: cable.metrics[1], cable: number });
            }
        }
        Self(from)
    }

    /// For each node that runs and gets there, what it costs to go to a destination; by relaxing all links again and
    /// again (Bellman and Ford).
    fn distances(&self, world: &World, destination: &Destination) -> Vec<Option<u64>> {
        let own = |node: usize| world.destinations[node].get(destination);
        let runs = |node: usize| world.nodes[node].is_some();
        let mut distances: Vec<Option<u64>> = (0..world.nodes.len())
            .map(|node| own(node).filter(|_| runs(node)).map(|metric| u64::from(*metric)))
            .collect();
        loop {
            let mut changed = false;
            for (from, hops) in self.0.iter().enumerate() {
                for hop in hops {
                    let Some(rest) = distances[hop.to] else { continue };
                    let distance = rest + u64::from(hop.metric);
                    if distances[from].is_none_or(|known| distance < known) {
                        distances[from] = Some(distance);
                        changed = true;
                    }
                }
            }
            if !changed {
                return distances;
            }
        }
    }

    /// What the cheapest link between two neighbours costs.
    fn cheapest(&self, from: usize, to: usize) -> Option<Metric> {
        self.0[from].iter().filter(|hop| hop.to == to).map(|hop| hop.metric).min()
    }
}

/// Checks the routes and trees of all nodes: equal to the reference, free of loops, arriving.
pub(crate) fn check(world: &World, context: &str) {
    let hops = Hops::of(world);
    check_routes(world, &hops, context);
    for node in 0..world.nodes.len() {
        // To all, and to some of them.
        (1..=3).for_each(|step| check_tree(world, &hops, node, step, context));
    }
}

/// As [`check`], for a network in which the trees of all nodes would take too long: of every `each`th.
pub(crate) fn check_large(world: &World, each: usize, context: &str) {
    let hops = Hops::of(world);
    check_routes(world, &hops, context);
    for node in (0..world.nodes.len()).step_by(each) {
        check_tree(world, &hops, node, 1, context);
    }
}

fn check_routes(world: &World, hops: &Hops, context: &str) {
    let all: BTreeSet<&Destination> =
        world.destinations.iter().flat_map(|destinations| destinations.keys()).collect();
    for destination in &all {
        let distances = hops.distances(world, destination);
        for (node, engine) in world.nodes.iter().enumerate() {
            let Some(engine) = engine else { continue };
            let is_local = world.destinations[node].contains_key(*destination);
            let route = engine.route(destination);
            let place = || format!("{context}: node {node} to {destination}");
            let expected = distances[node].filter(|_| !is_local);
            assert_eq!(route.map(|route| route.distance), expected, "{}", place());
            let Some(route) = route else { continue };
            let is_way = |hop: &&Hop| {
                let rest = distances[hop.to].map(|rest| rest + u64::from(hop.metric));
                rest == Some(route.distance)
            };
            let next = |hop: &Hop| NextHop { node: name(hop.to), link: LinkId(hop.cable as u32) };
            let ways: BTreeSet<NextHop> = hops.0[node].iter().filter(is_way).map(next).collect();
            let found: BTreeSet<NextHop> = route.next_hops.iter().copied().collect();
            assert_eq!(found, ways, "{}", place());
        }
        follow(world, destination, context);
    }
    for engine in world.nodes.iter().flatten() {
        for (destination, _) in engine.routes() {
            assert!(all.contains(destination), "{context}: a route to {destination}");
        }
    }
}

/// Checks the tree from a node to every `step`th that it reaches: of shortest paths, and of nothing else.
fn check_tree(world: &World, hops: &Hops, root: usize, step: usize, context: &str) {
    let Some(engine) = &world.nodes[root] else { return };
    let numbers: BTreeMap<NodeId, usize> =
        (0..world.nodes.len()).map(|node| (name(node), node)).collect();
    let others = (0..world.nodes.len()).filter(|node| *node != root);
    let distances: BTreeMap<NodeId, u64> =
        others.filter_map(|node| Some((name(node), engine.distance(name(node))?))).collect();
    let ends: Vec<NodeId> = distances.keys().copied().step_by(step).collect();
    let place = format!("{context}: the tree from {root} to every {step}th");
    let tree = engine.tree(&ends).unwrap_or_else(|node| panic!("{place}: {node:?} not reached"));
    let before: BTreeMap<NodeId, NodeId> = tree.iter().map(|(from, to)| (*to, *from)).collect();
    assert_eq!(before.len(), tree.len(), "{place}: two ways to a node");
    let mut used = BTreeSet::new();
    for end in &ends {
        let (mut at, mut cost) = (*end, 0);
        while at != name(root) {
            let from = before[&at];
            used.insert((from, at));
            let cheapest = hops.cheapest(numbers[&from], numbers[&at]);
            cost += u64::from(cheapest.unwrap_or_else(|| panic!("{place}: no link to {at:?}")));
            at = from;
        }
        assert_eq!(cost, distances[end], "{place}: to {end:?}");
    }
    assert_eq!(used, tree, "{place}: links that lead nowhere");
    let nobody = NodeId([0xee; 20]);
    assert_eq!(engine.tree(&[nobody]), Err(nobody), "{place}");
}

/// What is known of a node by whoever follows routes.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    Not,
    /// It is on the way that is being followed.
    OnTheWay,
    /// All ways from it arrive.
    Arrives,
}

/// Follows each next hop from each node to the end.
fn follow(world: &World, destination: &Destination, context: &str) {
    let mut seen = vec![Seen::Not; world.nodes.len()];
    for start in 0..world.nodes.len() {
        let route = world.nodes[start].as_ref().and_then(|node| node.route(destination));
        if route.is_some() {
            follow_from(world, start, destination, &mut seen, context);
        }
    }
}

fn follow_from(
    world: &World,
    node: usize,
    destination: &Destination,
    seen: &mut [Seen],
    context: &str,
) {
    assert!(seen[node] != Seen::OnTheWay, "{context}: a loop through {node} to {destination}");
    if seen[node] == Seen::Arrives {
        return;
    }
    seen[node] = Seen::OnTheWay;
    if !world.destinations[node].contains_key(destination) {
        let route = world.nodes[node].as_ref().and_then(|one| one.route(destination));
        let route =
            route.unwrap_or_else(|| panic!("{context}: no way on from {node} to {destination}"));
        for hop in route.next_hops.iter() {
            let ends = world.cables[hop.link.0 as usize].ends;
            let next = ends[usize::from(ends[0] == node)];
            follow_from(world, next, destination, seen, context);
        }
    }
    seen[node] = Seen::Arrives;
}
