//! Routes to destinations: the nearest of those who advertise one.
//!
//! Reference: RFC 2328 §16.2 and §16.4 (routes behind the shortest-path tree); RFC 1546 (anycast). What
//! changes only in destinations needs no new tree: the routes to those destinations are worked out
//! again, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{Destination, Metric, NodeId};
use crate::spf::{NextHop, NextHops, Reach, cut, union};

/// The way to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// What it costs.
    pub distance: u64,
    /// The ways that cost this, in order, at least one.
    pub next_hops: NextHops,
}

impl Route {
    /// The first way.
    #[must_use]
    pub fn first(&self) -> Option<NextHop> {
        self.next_hops.first().copied()
    }
}

/// Who advertises what, and the routes that follow.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    advertised: BTreeMap<Destination, BTreeMap<NodeId, Metric>>,
    routes: BTreeMap<Destination, Route>,
    /// What is to be worked out again.
    changed: BTreeSet<Destination>,
}

impl Routes {
    /// A node advertises these destinations from now on; before, it advertised those.
    pub(crate) fn advertise(
        &mut self,
        node: NodeId,
        before: &BTreeMap<Destination, Metric>,
        after: &BTreeMap<Destination, Metric>,
    ) {
        for destination in before.keys().filter(|one| !after.contains_key(one)) {
            if let Some(nodes) = self.advertised.get_mut(destination) {
                nodes.remove(&node);
                if nodes.is_empty() {
                    self.advertised.remove(destination);
                }
            }
            self.changed.insert(destination.clone());
        }
        for (destination, metric) in after {
            if before.get(destination) != Some(metric) {
                let nodes = self.advertised.entry(destination.clone()).or_default();
                nodes.insert(node, *metric);
                self.changed.insert(destination.clone());
            }
        }
    }

    /// All routes are to be worked out again.
    pub(crate) fn all_changed(&mut self) {
        self.changed.extend(self.advertised.keys().chain(self.routes.keys()).cloned());
    }

    /// Whether a route is to be worked out again.
    pub(crate) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Works out what has changed; returns the routes that are others now, or none.
    pub(crate) fn work_out(
        &mut self,
        own: NodeId,
        reach: &BTreeMap<NodeId, Reach>,
        width: usize,
    ) -> Vec<(Destination, Option<Route>)> {
        let mut differences = Vec::new();
        for destination in std::mem::take(&mut self.changed) {
            let advertised = self.advertised.get(&destination);
            let route = advertised.and_then(|nodes| nearest(nodes, own, reach, width));
            if self.routes.get(&destination) == route.as_ref() {
                continue;
            }
            match &route {
                Some(route) => self.routes.insert(destination.clone(), route.clone()),
                None => self.routes.remove(&destination),
            };
            differences.push((destination, route));
        }
        differences
    }

    /// All routes, by destination.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Destination, &Route)> {
        self.routes.iter()
    }

    pub(crate) fn get(&self, destination: &Destination) -> Option<&Route> {
        self.routes.get(destination)
    }

    /// How many destinations somebody advertises.
    #[cfg(test)]
    pub(crate) fn names(&self) -> usize {
        self.advertised.len()
    }
}

/// The route to the nearest of these nodes; none to what this node advertises itself.
fn nearest(
    nodes: &BTreeMap<NodeId, Metric>,
    own: NodeId,
    reach: &BTreeMap<NodeId, Reach>,
    width: usize,
) -> Option<Route> {
    if nodes.contains_key(&own) {
        return None;
    }
    let mut best: Option<Route> = None;
    for (node, metric) in nodes {
        let Some(reach) = reach.get(node) else { continue };
        let distance = reach.distance + u64::from(*metric);
        match &mut best {
            Some(route) if route.distance < distance => {}
            Some(route) if route.distance == distance => {
                route.next_hops = union(&route.next_hops, &reach.next_hops);
            }
            _ => best = Some(Route { distance, next_hops: reach.next_hops.clone() }),
        }
    }
    best.map(|route| Route { next_hops: cut(route.next_hops, width), ..route })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LinkId;

    fn node(number: u8) -> NodeId {
        NodeId([number; 20])
    }

    fn name(number: u8) -> Destination {
        Destination::new(&[number]).unwrap()
    }

    fn reach(entries: &[(u8, u64, u8)]) -> BTreeMap<NodeId, Reach> {
        let hop = |via| NextHop { node: node(via), link: LinkId(u32::from(via)) };
        let one = |(to, distance, via): &(u8, u64, u8)| {
            (node(*to), Reach { distance: *distance, next_hops: vec![hop(*via)].into() })
        };
        entries.iter().map(one).collect()
    }

    fn advertise(routes: &mut Routes, by: u8, before: &[(u8, u32)], after: &[(u8, u32)]) {
        let map = |list: &[(u8, u32)]| list.iter().map(|(to, cost)| (name(*to), *cost)).collect();
        routes.advertise(node(by), &map(before), &map(after));
    }

    fn ways(routes: &Routes, to: u8) -> Option<(u64, Vec<u32>)> {
        let route = routes.get(&name(to))?;
        Some((route.distance, route.next_hops.iter().map(|hop| hop.link.0).collect()))
    }

    #[test]
    fn the_nearest_of_several_wins_and_equal_ones_share() {
        let mut routes = Routes::default();
        let reach = reach(&[(2, 10, 2), (3, 20, 3), (4, 30, 4)]);
        advertise(&mut routes, 3, &[], &[(9, 5)]);
        advertise(&mut routes, 4, &[], &[(9, 0)]);
        routes.work_out(node(1), &reach, 8);
        assert_eq!(ways(&routes, 9), Some((25, vec![3])));
        advertise(&mut routes, 2, &[], &[(9, 15)]);
        routes.work_out(node(1), &reach, 8);
        assert_eq!(ways(&routes, 9), Some((25, vec![2, 3])));
        routes.all_changed();
        routes.work_out(node(1), &reach, 1);
        assert_eq!(ways(&routes, 9), Some((25, vec![2])), "no more than are wanted");
        advertise(&mut routes, 1, &[], &[(9, 100)]);
        let gone = routes.work_out(node(1), &reach, 8);
        assert_eq!(gone, [(name(9), None)], "what is here needs no route");
    }

    #[test]
    fn only_differences_are_told() {
        let mut routes = Routes::default();
        let paths = reach(&[(2, 10, 2)]);
        advertise(&mut routes, 2, &[], &[(8, 0), (9, 0)]);
        assert_eq!(routes.work_out(node(1), &paths, 8).len(), 2);
        advertise(&mut routes, 2, &[(8, 0), (9, 0)], &[(8, 0), (9, 1)]);
        let told = routes.work_out(node(1), &paths, 8);
        assert_eq!((told.len(), &told[0].0), (1, &name(9)));
        routes.all_changed();
        assert_eq!(routes.work_out(node(1), &paths, 8), []);
        routes.all_changed();
        assert_eq!(routes.work_out(node(1), &reach(&[]), 8).len(), 2);
        assert_eq!(routes.iter().count(), 0);
        advertise(&mut routes, 2, &[(8, 0), (9, 1)], &[]);
        assert_eq!(routes.work_out(node(1), &paths, 8), []);
    }
}
