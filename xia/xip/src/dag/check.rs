//! Checks of addresses: the whole graph, one row of a packet in flight, the sinks.
//!
//! Reference: Machado et al., "Linux XIA", §3 (single component, fan-out, acyclic); codes and
//! their meaning as in AltraMayor/XIA-for-Linux, `net/xia/dag.c`.
//!
//! Hosts check the whole of every address they build, read or bind: [`Address::check`]. Routers
//! must not spend that time on each packet; they check the one row that they use,
//! [`candidate_edges`]. That suffices, because edges lead upwards: whatever the other rows say,
//! the walk ends after at most nine steps.

use arrayvec::ArrayVec;

use super::{Address, Edge, Edges, LastNode, Row};
use crate::numbers::MAX_FAN_OUT;
use crate::xid::Xid;

/// The rule that an address breaks. Rows and edges are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CheckError {
    /// −1: a node after a "nat" row, which ends an address.
    #[error("row {row} is a node behind the end of the address (type nat)")]
    NatMisplaced {
        /// The node.
        row: u8,
    },
    /// −2: a chosen bit, which only packets in flight may have.
    #[error("edge {edge} of row {row} is marked as chosen; only packets in flight have such edges")]
    ChosenEdge {
        /// Row that holds the edge.
        row: u8,
        /// Position of the edge.
        edge: u8,
    },
    /// −3: an edge after an empty edge.
    #[error("edge {edge} of row {row} comes after an empty edge")]
    GapInEdges {
        /// Row that holds the edge.
        row: u8,
        /// Position of the edge.
        edge: u8,
    },
    /// −4: an edge to a row which does not exist.
    #[error("edge {edge} of row {row} leads to row {target}, which does not exist")]
    EdgeOutOfRange {
        /// Row that holds the edge.
        row: u8,
        /// Position of the edge.
        edge: u8,
        /// Row it names.
        target: u8,
    },
    /// −5: an edge to the same or an earlier row.
    #[error("edge {edge} of row {row} leads back to row {target}; edges lead to later rows")]
    NotTopological {
        /// Row that holds the edge.
        row: u8,
        /// Position of the edge.
        edge: u8,
        /// Row it names.
        target: u8,
    },
    /// −6: a node to which no edge leads.
    #[error("no edge leads to row {row}")]
    Unreferenced {
        /// The node.
        row: u8,
    },
    /// −7: the last row has no edges.
    #[error("the last row has no edges, so the entry node leads nowhere")]
    NoEntry,
}

impl CheckError {
    /// The code of Linux XIA for this error, −1 to −7.
    pub const fn code(&self) -> i32 {
        match self {
            CheckError::NatMisplaced { .. } => -1,
            CheckError::ChosenEdge { .. } => -2,
            CheckError::GapInEdges { .. } => -3,
            CheckError::EdgeOutOfRange { .. } => -4,
            CheckError::NotTopological { .. } => -5,
            CheckError::Unreferenced { .. } => -6,
            CheckError::NoEntry => -7,
        }
    }
}

/// Why no edge can be tried at the last node of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EdgesError {
    /// The last node is a sink: the walk was over before the packet came.
    #[error("the last node is a sink, so the packet has nowhere left to go")]
    AtSink,
    /// There is no such node.
    #[error("the last node is row {row}, which does not exist")]
    NoSuchNode {
        /// The row.
        row: u8,
    },
    /// The row's edges break a rule.
    #[error("the edges at the last node are malformed: {0}")]
    Malformed(#[from] CheckError),
}

/// Why an address cannot be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SinkError {
    /// It is no sound graph.
    #[error("the address is malformed: {0}")]
    Malformed(#[from] CheckError),
    /// It has rows of type nat, so the last row is no node.
    #[error("row {row} has the type nat, which is no node")]
    Nat {
        /// The row.
        row: u8,
    },
    /// It has several sinks.
    #[error("the address has {count} sinks; an address to bind has exactly one")]
    Several {
        /// Number of sinks.
        count: u8,
    },
}

/// Rows that the edges of a node lead to, in order of priority: element `i` is edge `i`.
pub type Targets = ArrayVec<u8, MAX_FAN_OUT>;

impl Address {
    /// Checks the whole address; returns the number of its nodes.
    ///
    /// Rows of type nat at the end are allowed and not counted, as in a row array of fixed size;
    /// so `Ok(0)` is an empty address. Of several errors the first of these is reported: a node
    /// behind the end; row by row a bad edge (chosen bits first, then edge by edge); no entry; an
    /// unreferenced node.
    pub fn check(&self) -> Result<usize, CheckError> {
        let count = count_nodes(self.rows())?;
        let rows = &self.rows()[..count];
        let Some(last) = rows.last() else { return Ok(0) };
        for (index, row) in rows.iter().enumerate() {
            check_edges(&row.edges, index, count)?;
        }
        if last.has_no_edges() {
            return Err(CheckError::NoEntry);
        }
        check_references(rows)?;
        Ok(count)
    }

    /// True if [`Address::check`] finds no error and every row is a node.
    pub fn is_valid(&self) -> bool {
        self.check() == Ok(self.len())
    }

    /// The only sink, as `bind` needs it: the address must be valid and have exactly one.
    pub fn single_sink(&self) -> Result<Xid, SinkError> {
        let count = self.check()?;
        if count < self.len() {
            return Err(SinkError::Nat { row: count as u8 });
        }
        match self.sinks().count() {
            1 => Ok(self.final_xid()),
            count => Err(SinkError::Several { count: count as u8 }),
        }
    }

    /// The rows to try from `node`, see [`candidate_edges`].
    pub fn candidate_edges(&self, node: LastNode) -> Result<Targets, EdgesError> {
        let no_such_node = EdgesError::NoSuchNode { row: node.to_byte() };
        let row = node.edge_row(self.len()).ok_or(no_such_node)?;
        candidate_edges(&self.rows[row].edges, node, self.len())
    }
}

/// The rows to try from the last node of a packet, the only check of an address in flight.
///
/// `edges` is the edge field at `node` (of the last row for the entry node), `rows` the number of
/// rows of the address. The result has at least one element.
#[inline]
pub fn candidate_edges(edges: &Edges, node: LastNode, rows: usize) -> Result<Targets, EdgesError> {
    // A row behind the last, or the last itself, has no row that an edge could lead to.
    match sound_edges(edges, node.first_target(), rows) {
        Some(count) if count > 0 => {
            let mut targets = Targets::from(edges.map(|edge| edge.0));
            targets.truncate(count);
            Ok(targets)
        }
        _ => look_closely(edges, node, rows),
    }
}

/// The same, whatever is wrong.
#[cold]
fn look_closely(edges: &Edges, node: LastNode, rows: usize) -> Result<Targets, EdgesError> {
    let row = match node {
        LastNode::Entry => rows.saturating_sub(1),
        LastNode::Row(row) if usize::from(row) >= rows => {
            return Err(EdgesError::NoSuchNode { row });
        }
        LastNode::Row(row) if usize::from(row) + 1 == rows => return Err(EdgesError::AtSink),
        LastNode::Row(row) => usize::from(row),
    };
    check_edges(edges, row, rows)?;
    // No edge follows an empty one.
    let targets: Targets = edges.iter().map_while(|edge| edge.target()).collect();
    match (targets.is_empty(), node) {
        (false, _) => Ok(targets),
        (true, LastNode::Entry) => Err(CheckError::NoEntry.into()),
        (true, LastNode::Row(_)) => Err(EdgesError::AtSink),
    }
}

/// The number of rows before the first nat row; no node may follow it.
fn count_nodes(rows: &[Row]) -> Result<usize, CheckError> {
    let count = rows.iter().take_while(|row| !row.xid.kind.is_nat()).count();
    match rows[count..].iter().position(|row| !row.xid.kind.is_nat()) {
        Some(behind) => Err(CheckError::NatMisplaced { row: (count + behind) as u8 }),
        None => Ok(count),
    }
}

/// How many edges one edge field has, if each leads to the row `first` or a later one of `rows`, and [`check_edges`] finds
/// nothing else: in few instructions, all bytes at once, because it need not say what is wrong.
#[inline(always)]
pub(crate) fn sound_edges(edges: &Edges, first: usize, rows: usize) -> Option<usize> {
    /// Of each byte the lowest bit, and the highest: that of a chosen edge.
    const ONES: u32 = 0x0101_0101;
    const HIGH: u32 = 0x8080_8080;
    const NONE: u32 = u32::from_le_bytes([Edge::EMPTY.0; MAX_FAN_OUT]);
    if first.max(rows) > usize::from(Edge::EMPTY.0) {
        return None;
    }
    let bytes = u32::from_le_bytes(edges.map(|edge| edge.0));
    // Behind the last that is not empty. An empty one before it leads too far, and so does one that was chosen.
    let bits = u32::BITS - ((bytes ^ NONE).leading_zeros() & !(u8::BITS - 1));
    let of_these = HIGH & ((1_u64 << bits) - 1) as u32;
    // A byte with its highest bit keeps that if what is taken off is no more than the rest; no byte borrows from the next.
    let far_enough = (bytes | HIGH) - ONES * first as u32;
    let too_far = (bytes | HIGH) - ONES * rows as u32;
    let is_sound = far_enough & !too_far & !bytes & of_these == of_these;
    is_sound.then_some((bits / u8::BITS) as usize)
}

/// Checks one edge field. The last row's edges are the entry node's and may lead to any row.
fn check_edges(edges: &Edges, row: usize, rows: usize) -> Result<(), CheckError> {
    let at = row as u8;
    if let Some(edge) = edges.iter().position(|edge| edge.is_chosen()) {
        return Err(CheckError::ChosenEdge { row: at, edge: edge as u8 });
    }
    let is_last = row + 1 == rows;
    let mut ended = false;
    for (edge, target) in (0u8..).zip(edges.iter().map(|edge| edge.target())) {
        match target {
            None => ended = true,
            Some(_) if ended => return Err(CheckError::GapInEdges { row: at, edge }),
            Some(target) if usize::from(target) >= rows => {
                return Err(CheckError::EdgeOutOfRange { row: at, edge, target });
            }
            Some(target) if !is_last && target <= at => {
                return Err(CheckError::NotTopological { row: at, edge, target });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Every node needs an edge that leads to it. With edges in order this makes one component: the
/// source of the edge is an earlier row, which needs one itself, down to the entry node.
fn check_references(rows: &[Row]) -> Result<(), CheckError> {
    let mut unreferenced = (1u16 << rows.len()) - 1;
    for target in rows.iter().flat_map(|row| row.edges).filter_map(|edge| edge.target()) {
        unreferenced &= !(1 << target);
    }
    match unreferenced {
        0 => Ok(()),
        rows => Err(CheckError::Unreferenced { row: rows.trailing_zeros() as u8 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Edge;
    use crate::xid::XidType;

    #[test]
    fn edges_are_sound_exactly_if_a_close_look_finds_nothing() {
        let bytes = [0, 1, 2, 7, 8, 9, 0x7e, 0x7f, 0x80, 0xff];
        let nodes = |rows: usize| (0..=rows as u8 + 1).map(LastNode::Row).chain([LastNode::Entry]);
        for number in 0..10_usize.pow(MAX_FAN_OUT as u32) {
            let digit = |place| number / 10_usize.pow(place as u32) % 10;
            let edges = std::array::from_fn(|place| Edge::from_byte(bytes[digit(place)]));
            for (node, rows) in (1..=9).flat_map(|rows| nodes(rows).map(move |node| (node, rows))) {
                let (found, expected) =
                    (candidate_edges(&edges, node, rows), look_closely(&edges, node, rows));
                assert_eq!(found, expected, "{edges:?} {node:?} of {rows}");
            }
        }
    }

    fn address(rows: &[(XidType, [u8; MAX_FAN_OUT])]) -> Address {
        let row = |(kind, edges): &(XidType, [u8; MAX_FAN_OUT])| Row {
            xid: Xid::new(*kind, [1; 20]),
            edges: edges.map(Edge::from_byte),
        };
        Address::from_rows(&rows.iter().map(row).collect::<Vec<_>>()).unwrap()
    }

    const HID: XidType = XidType::HID;
    const NO: u8 = 0x7f;

    #[test]
    fn each_error_has_its_code_and_place() {
        let row = 0;
        let cases: [(&[_], _, _); 8] = [
            (
                &[(XidType::NAT, [0; 4]), (HID, [1, NO, NO, NO])],
                -1,
                CheckError::NatMisplaced { row: 1 },
            ),
            (&[(HID, [0x80, NO, NO, NO])], -2, CheckError::ChosenEdge { row, edge: 0 }),
            (&[(HID, [0, NO, 0xff, NO])], -2, CheckError::ChosenEdge { row, edge: 2 }),
            (&[(HID, [0, NO, NO, 0])], -3, CheckError::GapInEdges { row, edge: 3 }),
            (&[(HID, [0, 1, NO, NO])], -4, CheckError::EdgeOutOfRange { row, edge: 1, target: 1 }),
            (
                &[(HID, [1, 0, NO, NO]), (HID, [0, NO, NO, NO])],
                -5,
                CheckError::NotTopological { row, edge: 1, target: 0 },
            ),
            (
                &[(HID, [NO; 4]), (HID, [NO; 4]), (HID, [2, 0, NO, NO])],
                -6,
                CheckError::Unreferenced { row: 1 },
            ),
            (&[(HID, [1, NO, NO, NO]), (HID, [NO; 4])], -7, CheckError::NoEntry),
        ];
        for (rows, code, error) in cases {
            assert_eq!(address(rows).check(), Err(error));
            assert_eq!(error.code(), code);
        }
    }

    #[test]
    fn the_last_row_may_lead_to_any_row() {
        let rows = [(HID, [1, 2, NO, NO]), (HID, [2, NO, NO, NO]), (HID, [2, 1, 0, NO])];
        assert_eq!(address(&rows).check(), Ok(3));
    }

    #[test]
    fn nat_rows_at_the_end_are_not_counted_and_cannot_be_bound() {
        let rows = [(HID, [0, NO, NO, NO]), (XidType::NAT, [0; 4]), (XidType::NAT, [0; 4])];
        let padded = address(&rows);
        assert_eq!(padded.check(), Ok(1));
        assert!(!padded.is_valid());
        assert_eq!(padded.single_sink(), Err(SinkError::Nat { row: 1 }));
        assert_eq!(address(&rows[..2]).single_sink(), Err(SinkError::Nat { row: 1 }));
        assert_eq!(address(&rows[1..]).check(), Ok(0));
        assert_eq!(address(&rows[1..]).single_sink(), Err(SinkError::Nat { row: 0 }));
    }

    #[test]
    fn bind_needs_a_valid_address_with_one_sink() {
        let one = address(&[(HID, [1, NO, NO, NO]), (XidType::XDP, [0, NO, NO, NO])]);
        assert_eq!(one.single_sink(), Ok(one.rows()[1].xid));
        let two = address(&[(HID, [NO; 4]), (XidType::XDP, [0, 1, NO, NO])]);
        assert_eq!(two.check(), Ok(2));
        assert_eq!(two.single_sink(), Err(SinkError::Several { count: 2 }));
        let broken = address(&[(HID, [NO; 4])]);
        assert_eq!(broken.single_sink(), Err(SinkError::Malformed(CheckError::NoEntry)));
    }

    #[test]
    fn candidates_are_the_targets_in_order_whatever_other_rows_say() {
        let junk = [5, 0x85, 9, 3];
        let rows = [(HID, junk), (HID, [2, NO, NO, NO]), (HID, [1, 0, 2, NO])];
        let address = address(&rows);
        assert_eq!(address.candidate_edges(LastNode::Entry).unwrap()[..], [1, 0, 2]);
        assert_eq!(address.candidate_edges(LastNode::Row(1)).unwrap()[..], [2]);
        assert!(address.candidate_edges(LastNode::Row(0)).is_err());
    }

    #[test]
    fn no_candidates_at_a_sink_or_outside() {
        let rows = [(HID, [NO; 4]), (HID, [0, 1, NO, NO])];
        let address = address(&rows);
        assert_eq!(address.candidate_edges(LastNode::Row(0)), Err(EdgesError::AtSink));
        assert_eq!(address.candidate_edges(LastNode::Row(1)), Err(EdgesError::AtSink));
        let outside = EdgesError::NoSuchNode { row: 2 };
        assert_eq!(address.candidate_edges(LastNode::Row(2)), Err(outside));
    }
}
