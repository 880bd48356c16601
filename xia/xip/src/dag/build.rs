//! Builders of sound addresses.
//!
//! Reference: Machado et al., "Linux XIA", §3 (scoping, fallback, iterative refinement).

use arrayvec::ArrayVec;

use super::{Address, CheckError, Edge, Edges, NO_EDGES, Row};
use crate::numbers::{MAX_FAN_OUT, MAX_NODES};
use crate::xid::Xid;

/// Why an address cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BuildError {
    /// The address would have no node.
    #[error("an address needs at least one node")]
    Empty,
    /// The address would have more than nine nodes.
    #[error("an address has at most {MAX_NODES} nodes")]
    TooManyNodes,
    /// A node would have more than four edges.
    #[error("a node has at most {MAX_FAN_OUT} edges")]
    TooManyEdges,
    /// Type nat is no node.
    #[error("an XID of type nat is not a node")]
    Nat,
    /// The node is not one of this builder's.
    #[error("the node is not one of this builder's")]
    ForeignNode,
    /// The edges form a cycle.
    #[error("the edges form a cycle; an address is acyclic")]
    Cycle,
    /// The graph breaks another rule.
    #[error("the graph is no address: {0}")]
    Unsound(#[from] CheckError),
}

impl Address {
    /// Entry → `xid`, the simplest address.
    pub fn simple(xid: Xid) -> Result<Address, BuildError> {
        Address::scoping(&[xid])
    }

    /// Entry → first → second → … → last: every node is reached through the one before.
    pub fn scoping(path: &[Xid]) -> Result<Address, BuildError> {
        build(path, |row, _| one_edge(row + 1), one_edge(0))
    }

    /// Entry → last, or else entry → first → … → last: the intent itself, and a way to someone
    /// who knows it in case the router at hand does not.
    pub fn fallback(path: &[Xid]) -> Result<Address, BuildError> {
        let entry = match path.len() {
            0 | 1 => one_edge(0),
            count => edges_to(&[count - 1, 0]),
        };
        build(path, |row, _| one_edge(row + 1), entry)
    }

    /// Entry and every node lead to the last, else to the one before, … and at last to the next:
    /// the shortest way to the intent that the router at hand can find.
    ///
    /// A node with more than four later nodes has edges to the last three and to the next one.
    pub fn refinement(path: &[Xid]) -> Result<Address, BuildError> {
        build(path, |row, count| refining_edges(row + 1, count), refining_edges(0, path.len()))
    }
}

fn edges_to(targets: &[usize]) -> Edges {
    let mut edges = NO_EDGES;
    for (edge, target) in edges.iter_mut().zip(targets) {
        *edge = Edge::to(*target as u8);
    }
    edges
}

fn one_edge(target: usize) -> Edges {
    edges_to(&[target])
}

/// Edges to the rows `next..count`, last first.
fn refining_edges(next: usize, count: usize) -> Edges {
    let later: ArrayVec<usize, MAX_NODES> = (next..count).rev().take(MAX_NODES).collect();
    match later.len() {
        0..=MAX_FAN_OUT => edges_to(&later),
        _ => edges_to(&[later[0], later[1], later[2], next]),
    }
}

/// The address with the nodes of `path`; `edges` gives those of each row but the last.
fn build(
    path: &[Xid],
    edges: impl Fn(usize, usize) -> Edges,
    entry: Edges,
) -> Result<Address, BuildError> {
    check_nodes(path)?;
    let last = path.len() - 1;
    let rows: ArrayVec<Row, MAX_NODES> = path
        .iter()
        .enumerate()
        .map(|(row, xid)| if row == last { (xid, entry) } else { (xid, edges(row, path.len())) })
        .map(|(xid, edges)| Row { xid: *xid, edges })
        .collect();
    finish(&rows)
}

fn check_nodes(nodes: &[Xid]) -> Result<(), BuildError> {
    match nodes.len() {
        0 => return Err(BuildError::Empty),
        1..=MAX_NODES => {}
        _ => return Err(BuildError::TooManyNodes),
    }
    if nodes.iter().any(|xid| xid.kind.is_nat()) { Err(BuildError::Nat) } else { Ok(()) }
}

fn finish(rows: &[Row]) -> Result<Address, BuildError> {
    let address = Address::from_rows(rows).map_err(|_| BuildError::TooManyNodes)?;
    address.check()?;
    Ok(address)
}

/// A node of a [`DagBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DagNode(u8);

type Out = ArrayVec<u8, MAX_FAN_OUT>;

/// Builds any sound address: nodes and edges in any order.
///
/// Edges of one node get their priority from the order in which they are added. Rows are put in
/// topological order; where that leaves a choice, in the order in which the nodes were added. So
/// with several sinks the one that was added last is the final one.
///
/// ```
/// use weft_xip::{DagBuilder, Xid, XidType};
///
/// // Entry → XDP, else → HID → XDP.
/// let mut dag = DagBuilder::new();
/// let host = dag.node(Xid::new(XidType::HID, [0xaa; 20]))?;
/// let socket = dag.node(Xid::new(XidType::XDP, [0xbb; 20]))?;
/// dag.entry(socket)?.entry(host)?.edge(host, socket)?;
/// assert!(dag.build()?.to_string().ends_with("-10"));
/// # Ok::<(), weft_xip::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct DagBuilder {
    nodes: ArrayVec<Xid, MAX_NODES>,
    edges: [Out; MAX_NODES],
    entry: Out,
}

impl DagBuilder {
    /// A graph with nothing but the entry node.
    pub fn new() -> DagBuilder {
        DagBuilder::default()
    }

    /// Adds a node. The same XID may occur several times.
    pub fn node(&mut self, xid: Xid) -> Result<DagNode, BuildError> {
        if xid.kind.is_nat() {
            return Err(BuildError::Nat);
        }
        self.nodes.try_push(xid).map_err(|_| BuildError::TooManyNodes)?;
        Ok(DagNode(self.nodes.len() as u8 - 1))
    }

    /// Adds an edge from the entry node, after those it has.
    pub fn entry(&mut self, to: DagNode) -> Result<&mut DagBuilder, BuildError> {
        self.index(to)?;
        self.entry.try_push(to.0).map_err(|_| BuildError::TooManyEdges)?;
        Ok(self)
    }

    /// Adds an edge, after those that `from` has.
    pub fn edge(&mut self, from: DagNode, to: DagNode) -> Result<&mut DagBuilder, BuildError> {
        let from = self.index(from)?;
        self.index(to)?;
        self.edges[from].try_push(to.0).map_err(|_| BuildError::TooManyEdges)?;
        Ok(self)
    }

    /// The address.
    pub fn build(&self) -> Result<Address, BuildError> {
        if self.nodes.is_empty() {
            return Err(BuildError::Empty);
        }
        let order = self.topological_order()?;
        let mut row_of = [0; MAX_NODES];
        for (row, node) in order.iter().enumerate() {
            row_of[*node] = row;
        }
        let to_rows = |out: &Out| {
            let rows: ArrayVec<usize, MAX_FAN_OUT> =
                out.iter().map(|node| row_of[usize::from(*node)]).collect();
            edges_to(&rows)
        };
        let mut rows: ArrayVec<Row, MAX_NODES> = order
            .iter()
            .map(|node| Row { xid: self.nodes[*node], edges: to_rows(&self.edges[*node]) })
            .collect();
        if let Some(last) = rows.last_mut() {
            // The last in topological order has no edges, so its place is free for the entry's.
            last.edges = to_rows(&self.entry);
        }
        finish(&rows)
    }

    fn index(&self, node: DagNode) -> Result<usize, BuildError> {
        let index = usize::from(node.0);
        if index < self.nodes.len() { Ok(index) } else { Err(BuildError::ForeignNode) }
    }

    /// Fills the rows from the last: of the nodes whose successors are all placed, the one that
    /// was added last.
    fn topological_order(&self) -> Result<ArrayVec<usize, MAX_NODES>, BuildError> {
        let mut order = ArrayVec::new();
        let mut left: ArrayVec<usize, MAX_NODES> = (0..self.nodes.len()).collect();
        while !left.is_empty() {
            let is_free =
                |node: &usize| self.edges[*node].iter().all(|to| !left.contains(&usize::from(*to)));
            let next = left.iter().rposition(is_free).ok_or(BuildError::Cycle)?;
            order.push(left.remove(next));
        }
        order.reverse();
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xid::XidType;

    fn xid(number: u8) -> Xid {
        Xid::new(XidType::HID, [number; 20])
    }

    /// Row by row the first byte of the identifier and the edges, as in the text form.
    fn shape(address: &Address) -> String {
        let row = |row: &Row| {
            let edges = row.edges.iter().filter_map(|edge| edge.target());
            let edges: String = edges.map(|target| target.to_string()).collect();
            format!("{}-{edges}", row.xid.id[0])
        };
        address.rows().iter().map(row).collect::<Vec<_>>().join(" ")
    }

    fn path(count: u8) -> Vec<Xid> {
        (1..=count).map(xid).collect()
    }

    #[test]
    fn scoping_is_a_chain() {
        assert_eq!(shape(&Address::simple(xid(1)).unwrap()), "1-0");
        assert_eq!(shape(&Address::scoping(&path(3)).unwrap()), "1-1 2-2 3-0");
    }

    #[test]
    fn fallback_tries_the_intent_first() {
        assert_eq!(shape(&Address::fallback(&path(1)).unwrap()), "1-0");
        assert_eq!(shape(&Address::fallback(&path(2)).unwrap()), "1-1 2-10");
        assert_eq!(shape(&Address::fallback(&path(3)).unwrap()), "1-1 2-2 3-20");
    }

    #[test]
    fn refinement_tries_every_later_node_nearest_to_the_intent_first() {
        assert_eq!(shape(&Address::refinement(&path(1)).unwrap()), "1-0");
        assert_eq!(shape(&Address::refinement(&path(3)).unwrap()), "1-21 2-2 3-210");
        assert_eq!(shape(&Address::refinement(&path(4)).unwrap()), "1-321 2-32 3-3 4-3210");
    }

    #[test]
    fn refinement_of_a_long_path_keeps_the_next_node() {
        let address = Address::refinement(&path(6)).unwrap();
        assert_eq!(shape(&address), "1-5431 2-5432 3-543 4-54 5-5 6-5430");
    }

    #[test]
    fn paths_that_are_no_address_are_refused() {
        assert_eq!(Address::scoping(&[]), Err(BuildError::Empty));
        assert_eq!(Address::refinement(&path(10)), Err(BuildError::TooManyNodes));
        assert_eq!(Address::fallback(&[xid(1), Xid::NAT]), Err(BuildError::Nat));
        assert!(Address::refinement(&path(9)).is_ok());
    }

    #[test]
    fn builder_puts_nodes_in_topological_order() {
        let mut dag = DagBuilder::new();
        let [sink, near, far] = [1, 2, 3].map(|number| dag.node(xid(number)).unwrap());
        dag.entry(sink).unwrap().entry(far).unwrap();
        dag.edge(far, near).unwrap().edge(near, sink).unwrap();
        assert_eq!(shape(&dag.build().unwrap()), "3-1 2-2 1-20");
    }

    #[test]
    fn builder_makes_the_sink_that_was_added_last_the_final_one() {
        let mut dag = DagBuilder::new();
        let [first, second, via] = [1, 2, 3].map(|number| dag.node(xid(number)).unwrap());
        dag.entry(via).unwrap().edge(via, first).unwrap().edge(via, second).unwrap();
        assert_eq!(shape(&dag.build().unwrap()), "3-12 1- 2-0");
    }

    #[test]
    fn builder_refuses_what_is_no_address() {
        assert_eq!(DagBuilder::new().build(), Err(BuildError::Empty));
        let mut dag = DagBuilder::new();
        assert_eq!(dag.node(Xid::NAT), Err(BuildError::Nat));
        let [a, b] = [1, 2].map(|number| dag.node(xid(number)).unwrap());
        assert_eq!(dag.entry(DagNode(2)).err(), Some(BuildError::ForeignNode));
        dag.edge(a, b).unwrap();
        assert_eq!(dag.build(), Err(BuildError::Unsound(CheckError::NoEntry)));
        dag.entry(b).unwrap();
        assert_eq!(dag.build(), Err(BuildError::Unsound(CheckError::Unreferenced { row: 0 })));
        dag.edge(b, a).unwrap();
        assert_eq!(dag.build(), Err(BuildError::Cycle));
        for _ in 0..MAX_FAN_OUT - 1 {
            dag.entry(a).unwrap();
        }
        assert_eq!(dag.entry(a).err(), Some(BuildError::TooManyEdges));
        for number in 3..=9 {
            dag.node(xid(number)).unwrap();
        }
        assert_eq!(dag.node(xid(10)), Err(BuildError::TooManyNodes));
    }

    #[test]
    fn the_same_xid_may_be_several_nodes() {
        let mut dag = DagBuilder::new();
        let [a, b] = [1, 1].map(|number| dag.node(xid(number)).unwrap());
        dag.entry(a).unwrap().edge(a, b).unwrap();
        assert_eq!(shape(&dag.build().unwrap()), "1-1 1-0");
    }
}
