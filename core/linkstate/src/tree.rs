//! The tree from this node to some others, of which multicast is made.
//!
//! Every branch is a shortest path (RFC 2328 §16.1): whoever is reached over it is reached as early as by a packet of
//! its own. Of several shortest paths one is taken that joins the tree at the next node, if there is one, so that the tree has
//! few links. That with the fewest of all would be a Steiner tree, which is NP-hard to find (Karp, "Reducibility Among
//! Combinatorial Problems", 1972).

use std::collections::{BTreeMap, BTreeSet};

use crate::database::Database;
use crate::ids::NodeId;
use crate::spf::{Graph, OwnLinks, Reach};

/// The links of the tree from `own` to the nodes `to`, each as the node where it begins and that where it ends, in order.
///
/// # Errors
/// The first of `to` that cannot be reached.
pub(crate) fn tree(
    database: &Database,
    own: NodeId,
    own_links: &OwnLinks,
    reach: &BTreeMap<NodeId, Reach>,
    to: &[NodeId],
) -> Result<BTreeSet<(NodeId, NodeId)>, NodeId> {
    let graph = Graph::read(database);
    let distance = |node: NodeId| match node == own {
        true => Some(0),
        false => reach.get(&node).map(|reach| reach.distance),
    };
    let mut ends = Vec::new();
    for node in to {
        ends.push((distance(*node).ok_or(*node)?, *node));
    }
    ends.sort_unstable();
    let (mut links, mut in_tree) = (BTreeSet::new(), BTreeSet::from([own]));
    for (_, end) in ends {
        let mut at = end;
        while in_tree.insert(at) {
            let cost = |from: NodeId| match from == own {
                true => own_links.get(&at)?.iter().map(|(_, metric)| *metric).min(),
                false => graph.metric(from, at),
            };
            let is_before = |from: &NodeId| {
                let both = distance(*from).zip(cost(*from));
                both.map(|(before, cost)| before + u64::from(cost)) == distance(at)
            };
            let before: Vec<_> = graph.neighbours(at).filter(is_before).collect();
            let joins = before.iter().find(|from| in_tree.contains(from));
            // The database may say already what the distances do not: a node without a way to it is not reached.
            let from = *joins.or(before.first()).ok_or(end)?;
            links.insert((from, at));
            at = from;
        }
    }
    Ok(links)
}
