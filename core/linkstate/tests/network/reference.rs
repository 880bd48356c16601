//! What the routes must be: computed from the network itself, in the simplest way.

use std::collections::{BTreeMap, BTreeSet};

use weft_linkstate::{Destination, Metric, NextHop, NodeId};

use crate::world::{World, name};

/// For each node that runs, what it costs to go to a destination; by relaxing all links again and again
/// (Bellman and Ford).
fn distances(world: &World, destination: &Destination) -> BTreeMap<usize, u64> {
    let runs = |node: usize| world.nodes[node].is_some();
    let mut distances: BTreeMap<usize, u64> = (0..world.nodes.len())
        .filter(|node| runs(*node))
        .filter_map(|node| Some((node, u64::from(*world.destinations[node].get(destination)?))))
        .collect();
    loop {
        let mut changed = false;
        for (from, to, metric, _) in hops(world) {
            let Some(distance) = distances.get(&to).map(|rest| rest + u64::from(metric)) else {
                continue;
            };
            if distances.get(&from).is_none_or(|known| distance < *known) {
                distances.insert(from, distance);
                changed = true;
            }
        }
        if !changed {
            return distances;
        }
    }
}

/// Every link that works: from, to, its metric, the cable.
fn hops(world: &World) -> impl Iterator<Item = (usize, usize, Metric, usize)> {
    let runs = |node: usize| world.nodes[node].is_some();
    world.cables.iter().enumerate().flat_map(move |(number, cable)| {
        let [a, b] = cable.ends;
        let works = cable.whole && runs(a) && runs(b);
        let both = [(a, b, cable.metrics[0], number), (b, a, cable.metrics[1], number)];
        both.into_iter().filter(move |_| works)
    })
}

/// Checks the routes of all nodes: equal to the reference, free of loops, arriving.
pub(crate) fn check(world: &World, context: &str) {
    let all: BTreeSet<&Destination> =
        world.destinations.iter().flat_map(|destinations| destinations.keys()).collect();
    for destination in &all {
        let distances = distances(world, destination);
        for (node, engine) in world.nodes.iter().enumerate() {
            let Some(engine) = engine else { continue };
            let is_local = world.destinations[node].contains_key(*destination);
            let route = engine.route(destination);
            let place = || format!("{context}: node {node} to {destination}");
            let expected = distances.get(&node).filter(|_| !is_local);
            assert_eq!(route.map(|route| route.distance), expected.copied(), "{}", place());
            let Some(route) = route else { continue };
            let ways: BTreeSet<NextHop> = hops(world)
                .filter(|(from, to, metric, _)| {
                    let rest = distances.get(to).map(|rest| rest + u64::from(*metric));
                    *from == node && rest == Some(route.distance)
                })
                .map(|(_, to, _, cable)| NextHop {
                    node: name(to),
                    link: weft_linkstate::LinkId(cable as u32),
                })
                .collect();
            assert_eq!(
                route.next_hops.iter().copied().collect::<BTreeSet<_>>(),
                ways,
                "{}",
                place()
            );
        }
        follow(world, destination, &distances, context);
    }
    for node in 0..world.nodes.len() {
        // To all, and to some of them.
        (1..=3).for_each(|step| check_tree(world, node, step, context));
    }
    for engine in world.nodes.iter().flatten() {
        for (destination, _) in engine.routes() {
            assert!(all.contains(destination), "{context}: a route to {destination}");
        }
    }
}

/// Checks the tree from a node to every `step`th that it reaches: of shortest paths, and of nothing else.
fn check_tree(world: &World, root: usize, step: usize, context: &str) {
    let Some(engine) = &world.nodes[root] else { return };
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
            let links = hops(world).filter(|(a, b, ..)| (name(*a), name(*b)) == (from, at));
            let cheapest = links.map(|(_, _, metric, _)| metric).min();
            cost += u64::from(cheapest.unwrap_or_else(|| panic!("{place}: no link to {at:?}")));
            at = from;
        }
        assert_eq!(cost, distances[end], "{place}: to {end:?}");
    }
    assert_eq!(used, tree, "{place}: links that lead nowhere");
    let nobody = NodeId([0xee; 20]);
    assert_eq!(engine.tree(&[nobody]), Err(nobody), "{place}");
}

/// Follows each next hop from each node to the end.
fn follow(
    world: &World,
    destination: &Destination,
    distances: &BTreeMap<usize, u64>,
    context: &str,
) {
    for start in distances.keys() {
        let mut at = BTreeSet::from([*start]);
        for step in 0.. {
            assert!(step <= world.nodes.len(), "{context}: a loop from {start} to {destination}");
            at = at
                .into_iter()
                .filter(|node| !world.destinations[*node].contains_key(destination))
                .flat_map(|node| {
                    let route = world.nodes[node].as_ref().and_then(|one| one.route(destination));
                    let route = route.unwrap_or_else(|| {
                        panic!("{context}: no way on from {node} to {destination}")
                    });
                    let ends = route.next_hops.iter().map(move |hop| {
                        let ends = world.cables[hop.link.0 as usize].ends;
                        ends[usize::from(ends[0] == node)]
                    });
                    ends.collect::<Vec<_>>()
                })
                .collect();
            if at.is_empty() {
                break;
            }
        }
    }
}
