//! XIP addresses: directed acyclic graphs of XIDs.
//!
//! Reference: Machado et al., "Linux XIA", §3 ("XIA in a nutshell"); byte layout as in
//! AltraMayor/XIA-for-Linux, `include/net/xia.h`.
//!
//! An address says what a sender wants and what to do when a router cannot help. Each node is an
//! XID and has up to four edges in order of priority; the walk begins at the *entry node*, which
//! has edges but no XID, and must end at a sink. A router stands at the packet's *last node*, the
//! one reached so far, and tries its edges one after the other: if an edge's XID is the router
//! itself, it marks the edge, makes that node the last node and goes on from there; if it knows a
//! way to that XID, it forwards the packet; otherwise it tries the next edge. No edge left means
//! that the address is unreachable from here.
//!
//! On the wire an address is an array of rows, one for each node, in topological order (edges
//! lead to later rows), so a walk ends after at most as many steps as there are rows. The final
//! sink is the last row. As it has no edges, its edge field is free, and that is **where the edges
//! of the entry node live**. The number 0x7e as last node stands for the entry node.
//!
//! ```text
//!  row   0            4                                24   25   26   27   28
//!       +------------+---------------------------------+----+----+----+----+
//!  0    | type       | identifier                      | e0 | e1 | e2 | e3 |
//!       +------------+---------------------------------+----+----+----+----+
//!  ...
//!       +------------+---------------------------------+----+----+----+----+
//!  n-1  | type       | identifier                      |   entry node's    |
//!       +------------+---------------------------------+----+----+----+----+
//!
//!  edge byte: 0x80 chosen bit | 7 bits: row of the target, 0x7f = no edge
//! ```
//!
//! [`Address`] holds what was read, right or wrong; [`check`] says whether it is a sound graph,
//! [`text`] gives the text form, [`build`] makes sound ones.

pub mod build;
pub mod check;
pub mod text;

use std::fmt;

pub use build::{BuildError, DagBuilder, DagNode};
pub use check::{CheckError, EdgesError, SinkError, Targets};

use crate::numbers::{MAX_FAN_OUT, MAX_NODES};
use crate::xid::{XID_LEN, Xid};

/// Length of a row in bytes: XID, then four edges.
pub const ROW_LEN: usize = XID_LEN + MAX_FAN_OUT;

/// One edge as on the wire: the row it leads to, and whether a forwarder has chosen it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge(u8);

impl Edge {
    /// No edge.
    pub const EMPTY: Edge = Edge(0x7f);

    const CHOSEN_BIT: u8 = 0x80;
    const INDEX_MASK: u8 = 0x7f;

    /// The edge to row `index`; only the low 7 bits count, and 0x7f is [`Edge::EMPTY`].
    pub const fn to(index: u8) -> Edge {
        Edge(index & Edge::INDEX_MASK)
    }

    /// The edge with this byte of the wire form.
    pub const fn from_byte(byte: u8) -> Edge {
        Edge(byte)
    }

    /// The byte of the wire form.
    pub const fn to_byte(self) -> u8 {
        self.0
    }

    /// True if there is no edge, whether or not the chosen bit is (wrongly) set.
    pub const fn is_empty(self) -> bool {
        self.0 & Edge::INDEX_MASK == Edge::EMPTY.0
    }

    /// True if a forwarder has taken this edge.
    pub const fn is_chosen(self) -> bool {
        self.0 & Edge::CHOSEN_BIT != 0
    }

    /// The same edge, marked as taken by a forwarder.
    pub const fn chosen(self) -> Edge {
        Edge(self.0 | Edge::CHOSEN_BIT)
    }

    /// The row the edge leads to, `None` if it is empty. Not checked against any address.
    pub const fn target(self) -> Option<u8> {
        if self.is_empty() { None } else { Some(self.0 & Edge::INDEX_MASK) }
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edge({:#04x})", self.0)
    }
}

/// The four edges of a node, highest priority first.
pub type Edges = [Edge; MAX_FAN_OUT];

/// Four empty edges.
pub const NO_EDGES: Edges = [Edge::EMPTY; MAX_FAN_OUT];

/// One row of an address: a node and its edges (in the last row: the entry node's edges).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The node.
    pub xid: Xid,
    /// Its edges.
    pub edges: Edges,
}

impl Row {
    /// All 28 bytes zero: fills the unused rows of a row array.
    pub const UNUSED: Row = Row { xid: Xid::NAT, edges: [Edge(0); MAX_FAN_OUT] };

    /// Reads the 28 bytes of the wire form.
    pub fn from_bytes(bytes: &[u8; ROW_LEN]) -> Row {
        let mut xid = [0; XID_LEN];
        xid.copy_from_slice(&bytes[..XID_LEN]);
        let edges = std::array::from_fn(|slot| Edge(bytes[XID_LEN + slot]));
        Row { xid: Xid::from_bytes(&xid), edges }
    }

    /// The 28 bytes of the wire form.
    pub fn to_bytes(&self) -> [u8; ROW_LEN] {
        let mut bytes = [0; ROW_LEN];
        bytes[..XID_LEN].copy_from_slice(&self.xid.to_bytes());
        for (byte, edge) in bytes[XID_LEN..].iter_mut().zip(self.edges) {
            *byte = edge.to_byte();
        }
        bytes
    }

    /// True if the row has no edge at all.
    pub fn has_no_edges(&self) -> bool {
        self.edges.iter().all(|edge| edge.is_empty())
    }
}

/// How far a packet has come through its destination address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LastNode {
    /// Nothing reached yet: the entry node.
    #[default]
    Entry,
    /// The node in this row.
    Row(u8),
}

impl LastNode {
    /// The number of the entry node on the wire.
    pub const ENTRY_BYTE: u8 = 0x7e;

    /// The last node with this byte of the wire form.
    pub const fn from_byte(byte: u8) -> LastNode {
        if byte == LastNode::ENTRY_BYTE { LastNode::Entry } else { LastNode::Row(byte) }
    }

    /// The byte of the wire form.
    pub const fn to_byte(self) -> u8 {
        match self {
            LastNode::Entry => LastNode::ENTRY_BYTE,
            LastNode::Row(row) => row,
        }
    }

    /// The first row that this node's edges may lead to.
    pub(crate) const fn first_target(self) -> usize {
        match self {
            LastNode::Entry => 0,
            LastNode::Row(row) => row as usize + 1,
        }
    }

    /// The row whose edge field holds this node's edges, in an address of `rows` rows; `None` if
    /// there is no such row.
    pub const fn edge_row(self, rows: usize) -> Option<usize> {
        match self {
            LastNode::Entry => rows.checked_sub(1),
            LastNode::Row(row) if (row as usize) < rows => Some(row as usize),
            LastNode::Row(_) => None,
        }
    }
}

/// More or fewer rows than an address can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address has 1 to {MAX_NODES} rows, not {0}")]
pub struct RowCountError(pub usize);

/// An address as it stands in a packet: one to nine rows, not necessarily a sound graph.
///
/// A plain value of 256 bytes without heap memory. An *empty* address (the source of a packet
/// which wants no answer) is `None::<Address>`.
///
/// ```
/// use weft_xip::{Address, Xid, XidType};
///
/// let host = Xid::new(XidType::HID, [0xaa; 20]);
/// let socket = Xid::new(XidType::XDP, [0xbb; 20]);
/// let address = Address::scoping(&[host, socket]).unwrap();
/// assert_eq!(address.to_string(), format!("hid-{}-1:xdp-{}-0", "aa".repeat(20), "bb".repeat(20)));
/// assert_eq!(address.to_string().parse(), Ok(address));
/// assert_eq!(address.check(), Ok(2));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    // Rows from `count` on are `Row::UNUSED`, so that the derived comparisons hold.
    count: u8,
    rows: [Row; MAX_NODES],
}

impl Address {
    /// The address with these rows, the last one holding the entry node's edges.
    ///
    /// Nothing but the number of rows is checked, see [`Address::check`].
    pub fn from_rows(rows: &[Row]) -> Result<Address, RowCountError> {
        if rows.is_empty() || rows.len() > MAX_NODES {
            return Err(RowCountError(rows.len()));
        }
        let mut address = Address { count: rows.len() as u8, rows: [Row::UNUSED; MAX_NODES] };
        address.rows[..rows.len()].copy_from_slice(rows);
        Ok(address)
    }

    /// Reads rows of 28 bytes; the length must be a multiple of that.
    ///
    /// Nothing but the number of rows is checked, see [`Address::check`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Address, RowCountError> {
        let (rows, rest) = bytes.as_chunks::<ROW_LEN>();
        if !rest.is_empty() || rows.is_empty() || rows.len() > MAX_NODES {
            return Err(RowCountError(bytes.len().div_ceil(ROW_LEN)));
        }
        let mut address = Address { count: rows.len() as u8, rows: [Row::UNUSED; MAX_NODES] };
        for (row, bytes) in address.rows.iter_mut().zip(rows) {
            *row = Row::from_bytes(bytes);
        }
        Ok(address)
    }

    /// The rows, in the order of the wire form.
    pub fn rows(&self) -> &[Row] {
        &self.rows[..usize::from(self.count)]
    }

    /// Number of rows, 1 to 9.
    #[expect(clippy::len_without_is_empty, reason = "an address has at least one row")]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Length of the wire form in bytes.
    pub fn wire_len(&self) -> usize {
        self.len() * ROW_LEN
    }

    /// The row `index`.
    pub fn row(&self, index: usize) -> Option<&Row> {
        self.rows().get(index)
    }

    /// The last row: the final sink, with the entry node's edges.
    fn last_row(&self) -> &Row {
        &self.rows[self.len() - 1]
    }

    /// The edges of the entry node.
    pub fn entry_edges(&self) -> Edges {
        self.last_row().edges
    }

    /// The edges of a node, `None` if there is no such node. The final sink has none of its own.
    pub fn edges(&self, node: LastNode) -> Option<Edges> {
        match node {
            LastNode::Entry => Some(self.entry_edges()),
            LastNode::Row(row) if usize::from(row) + 1 == self.len() => Some(NO_EDGES),
            LastNode::Row(row) => self.row(usize::from(row)).map(|row| row.edges),
        }
    }

    /// The XID of the last row, the ultimate intent.
    pub fn final_xid(&self) -> Xid {
        self.last_row().xid
    }

    /// True if a walk ends at row `index`: the last row, and every row without edges.
    pub fn is_sink(&self, index: usize) -> bool {
        index + 1 == self.len() || self.row(index).is_some_and(Row::has_no_edges)
    }

    /// The sinks with their row numbers. One in the paper, but there may be several in practice.
    pub fn sinks(&self) -> impl Iterator<Item = (usize, Xid)> + '_ {
        self.rows()
            .iter()
            .enumerate()
            .filter(|(index, _)| self.is_sink(*index))
            .map(|(index, row)| (index, row.xid))
    }

    /// The same address as it was before it travelled: no edge is marked as chosen.
    ///
    /// Receivers use it to compare a destination with the one that was sent.
    pub fn without_marks(mut self) -> Address {
        let count = self.len();
        for edge in self.rows[..count].iter_mut().flat_map(|row| &mut row.edges) {
            *edge = Edge(edge.0 & Edge::INDEX_MASK);
        }
        self
    }

    /// Writes the rows to the front of `bytes`; returns how many bytes, `None` if they do not fit.
    pub fn emit(&self, bytes: &mut [u8]) -> Option<usize> {
        let bytes = bytes.get_mut(..self.wire_len())?;
        for (bytes, row) in bytes.chunks_exact_mut(ROW_LEN).zip(self.rows()) {
            bytes.copy_from_slice(&row.to_bytes());
        }
        Some(self.wire_len())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}
