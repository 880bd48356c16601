//! Shortest paths over the graph of nodes.
//!
//! Reference: Dijkstra, "A Note on Two Problems in Connexion with Graphs" (1959); RFC 2328 §16.1; ISO
//! 10589 §7.2.5 and §C. A link counts if both ends advertise it, and a node if its piece number 0 is
//! there. The links of this node itself are those that are up now, not those it advertised last: what is
//! lost is not used even while the next advertisement has to wait.
//!
//! Every link costs something. So all nodes before another on a shortest path are nearer, next hops of
//! equal cost lead nearer, and following them cannot lead in a circle, as long as all nodes have the
//! same database.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::database::Database;
use crate::ids::{LinkId, Metric, NodeId};

/// One way to a destination: over this link to that neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The neighbour.
    pub node: NodeId,
    /// The way there.
    pub link: LinkId,
}

/// Next hops, in order, each once; shared by all nodes behind them.
pub(crate) type NextHops = Arc<[NextHop]>;

/// How a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) distance: u64,
    pub(crate) next_hops: NextHops,
}

/// The links of this node that are up: to whom, and what each costs.
pub(crate) type OwnLinks = BTreeMap<NodeId, Vec<(LinkId, Metric)>>;

/// The graph with nodes as numbers, in order of their names.
pub(crate) struct Graph {
    nodes: Vec<NodeId>,
    /// For each node its neighbours, in order, with the cheapest metric.
    links: Vec<Vec<(usize, Metric)>>,
}

impl Graph {
    pub(crate) fn read(database: &Database) -> Self {
        let has_head = |id: &crate::ids::LsaId| id.fragment == 0;
        let live =
            |entry: &crate::database::Entry| entry.lsa().is_some_and(|lsa| !lsa.is_withdrawn());
        let nodes: Vec<NodeId> = database
            .iter()
            .filter(|(id, entry)| has_head(id) && live(entry))
            .map(|(id, _)| id.origin)
            .collect();
        let links = nodes
            .iter()
            .map(|node| {
                let all = database.of_node(*node).flat_map(|lsa| lsa.links());
                let known = |(to, metric)| Some((nodes.binary_search(&to).ok()?, metric));
                let mut links: Vec<_> = all.filter_map(known).collect();
                links.sort_unstable();
                links.dedup_by_key(|(to, _)| *to);
                links
            })
            .collect();
        Self { nodes, links }
    }

    fn has_link(&self, from: usize, to: usize) -> bool {
        self.links[from].binary_search_by_key(&to, |(to, _)| *to).is_ok()
    }

    /// The nodes that a node has links with, which they have, too, in order.
    pub(crate) fn neighbours(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let at = self.nodes.binary_search(&node).ok();
        let links = at.into_iter().flat_map(|at| self.links[at].iter().map(move |to| (at, to.0)));
        links.filter(|(at, to)| self.has_link(*to, *at)).map(|(_, to)| self.nodes[to])
    }

    /// What it costs to send from one node to another over a link, if there is one.
    pub(crate) fn metric(&self, from: NodeId, to: NodeId) -> Option<Metric> {
        let [from, to] = [from, to].map(|node| self.nodes.binary_search(&node).ok());
        let (links, to) = (&self.links[from?], to?);
        let found = links.binary_search_by_key(&to, |(to, _)| *to).ok()?;
        Some(links[found].1)
    }
}

/// How each node but this one is reached, by at most `width` next hops.
pub(crate) fn shortest_paths(
    database: &Database,
    own: NodeId,
    own_links: &OwnLinks,
    width: usize,
) -> BTreeMap<NodeId, Reach> {
    let graph = Graph::read(database);
    let Ok(root) = graph.nodes.binary_search(&own) else { return BTreeMap::new() };
    let mut best: Vec<Option<(u64, NextHops)>> = vec![None; graph.nodes.len()];
    let mut done = vec![false; graph.nodes.len()];
    let mut heap = BinaryHeap::new();
    done[root] = true;
    for (node, links) in own_links {
        let Ok(to) = graph.nodes.binary_search(node) else { continue };
        let Some(cost) = links.iter().map(|(_, metric)| *metric).min() else { continue };
        if to != root && graph.has_link(to, root) {
            let cheapest = links.iter().filter(|(_, metric)| *metric == cost);
            let mut hops: Vec<_> =
                cheapest.map(|(link, _)| NextHop { node: *node, link: *link }).collect();
            hops.sort_unstable();
            best[to] = Some((u64::from(cost), hops.into()));
            heap.push(Reverse((u64::from(cost), to)));
        }
    }
    while let Some(Reverse((distance, at))) = heap.pop() {
        if std::mem::replace(&mut done[at], true) {
            continue;
        }
        let Some((_, hops)) = best[at].clone() else { continue };
        for (to, metric) in &graph.links[at] {
            if done[*to] || !graph.has_link(*to, at) {
                continue;
            }
            let distance = distance + u64::from(*metric);
            match &mut best[*to] {
                Some((known, _)) if *known < distance => {}
                Some((known, others)) if *known == distance => *others = union(others, &hops),
                slot => {
                    *slot = Some((distance, hops.clone()));
                    heap.push(Reverse((distance, *to)));
                }
            }
        }
    }
    let reached = best.into_iter().zip(graph.nodes).filter_map(|(best, node)| {
        let (distance, next_hops) = best?;
        Some((node, Reach { distance, next_hops: cut(next_hops, width) }))
    });
    reached.collect()
}

/// The next hops of both, in order.
pub(crate) fn union(one: &NextHops, other: &NextHops) -> NextHops {
    if one == other {
        return one.clone();
    }
    let mut all: Vec<_> = one.iter().chain(other.iter()).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// The first of them.
pub(crate) fn cut(hops: NextHops, width: usize) -> NextHops {
    if hops.len() <= width { hops } else { hops[..width].into() }
}
