//! The XIP header.
//!
//! Reference: Machado et al., "Linux XIA", §3; layout, checks and their order as in
//! AltraMayor/XIA-for-Linux, `include/net/xia_dag.h` and `net/xia/xip`.
//!
//! ```text
//!  0       1       2               4       5       6       7       8
//! +-------+-------+---------------+-------+-------+-------+-------+
//! |version| next  | payload       | hop   | num   | num   | last  |
//! | = 1   | header| length        | limit | dst   | src   | node  |
//! +-------+-------+---------------+-------+-------+-------+-------+
//! | destination address: num_dst rows of 28 bytes                 |
//! +---------------------------------------------------------------+
//! | source address: num_src rows of 28 bytes (may be none)        |
//! +---------------------------------------------------------------+
//! | payload                                                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! All numbers are in network byte order. There is no checksum and no fragmentation. The next
//! header is 0 in Linux XIA, where the sink's principal defines the payload; it is not looked at.
//! Forwarders change three things: the hop limit, the last node, and the chosen bit of the edges
//! they take. [`XipPacket`] reads and changes a packet in place, [`XipRepr`] is a header as a value.

mod check;
mod glance;
mod places;
mod repr;

use weft_base::Packet;

pub use check::HeaderError;
pub(crate) use glance::{Glance, Shape};
#[cfg(test)]
pub(crate) use places::WINDOW;
pub(crate) use places::{Window, XidPlaces};
pub use repr::{EmitError, XipRepr};

use crate::dag::check::candidate_edges;
use crate::dag::{Address, Edge, Edges, EdgesError, LastNode, NO_EDGES, ROW_LEN, Row, Targets};
use crate::numbers::{MAX_FAN_OUT, MAX_NODES};
use crate::xid::{XID_LEN, Xid};
use check::{check_header, header_len, payload_len, row_offset};

mod field {
    use std::ops::Range;

    pub(super) const VERSION: usize = 0;
    pub(super) const NEXT_HEADER: usize = 1;
    pub(super) const PAYLOAD_LEN: Range<usize> = 2..4;
    pub(super) const HOP_LIMIT: usize = 4;
    pub(super) const NUM_DST: usize = 5;
    pub(super) const NUM_SRC: usize = 6;
    pub(super) const LAST_NODE: usize = 7;
    pub(super) const ROWS: usize = 8;
}

/// Length in bytes of the header without addresses.
pub const FIXED_HEADER_LEN: usize = field::ROWS;

/// Shortest header: one destination row, no source.
pub const MIN_HEADER_LEN: usize = FIXED_HEADER_LEN + ROW_LEN;

/// Longest header: nine rows in each address.
pub const MAX_HEADER_LEN: usize = FIXED_HEADER_LEN + 2 * MAX_NODES * ROW_LEN;

/// An XIP packet in a buffer that has passed the receive checks.
///
/// The buffer may be longer than the packet (Ethernet padding); [`total_len`](Self::total_len)
/// says how long the packet is, and everything behind is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XipPacket<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> XipPacket<T> {
    /// Makes the receive checks of XIP, in the order of [`HeaderError`].
    ///
    /// The rows are not looked at: a forwarder checks those that it uses, see
    /// [`candidate_edges`](Self::candidate_edges).
    #[inline]
    pub fn new_checked(buffer: T) -> Result<XipPacket<T>, HeaderError> {
        check_header(buffer.as_ref())?;
        Ok(XipPacket { buffer })
    }

    /// A packet that has passed the receive checks before, and nothing of it was changed since but what forwarders
    /// change.
    #[inline]
    pub(crate) fn checked_before(buffer: T) -> XipPacket<T> {
        debug_assert!(check_header(buffer.as_ref()).is_ok());
        XipPacket { buffer }
    }

    /// The buffer, as it is now.
    pub fn into_inner(self) -> T {
        self.buffer
    }

    /// The buffer.
    pub fn inner(&self) -> &T {
        &self.buffer
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref()
    }

    /// The next header field; 0 unless the sender has its own ideas.
    pub fn next_header(&self) -> u8 {
        self.bytes()[field::NEXT_HEADER]
    }

    /// Length of the payload in bytes.
    #[inline]
    pub fn payload_len(&self) -> u16 {
        payload_len(self.bytes())
    }

    /// How many more times the packet may be forwarded.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.bytes()[field::HOP_LIMIT]
    }

    /// Number of rows of the destination address, 1 to 9.
    #[inline]
    pub fn destination_rows(&self) -> usize {
        usize::from(self.bytes()[field::NUM_DST])
    }

    /// Number of rows of the source address, 0 to 9.
    pub fn source_rows(&self) -> usize {
        usize::from(self.bytes()[field::NUM_SRC])
    }

    /// The last reached node of the destination address.
    #[inline]
    pub fn last_node(&self) -> LastNode {
        LastNode::from_byte(self.bytes()[field::LAST_NODE])
    }

    /// Length in bytes of the header, addresses included.
    #[inline]
    pub fn header_len(&self) -> usize {
        header_len(self.bytes())
    }

    /// Length in bytes of header and payload, without what the link has added.
    #[inline]
    pub fn total_len(&self) -> usize {
        self.header_len() + usize::from(self.payload_len())
    }

    /// The packet without what the link has added.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes()[..self.total_len()]
    }

    /// The payload, for the sink's principal to read.
    pub fn payload(&self) -> &[u8] {
        &self.bytes()[self.header_len()..self.total_len()]
    }

    /// The rows of the destination address as bytes.
    pub fn destination_bytes(&self) -> &[u8] {
        &self.bytes()[field::ROWS..row_offset(self.destination_rows())]
    }

    /// The rows of the source address as bytes; none if the packet has no source.
    pub fn source_bytes(&self) -> &[u8] {
        &self.bytes()[row_offset(self.destination_rows())..self.header_len()]
    }

    /// The destination address, unchecked.
    pub fn destination(&self) -> Address {
        Address::from_bytes(self.destination_bytes())
            .expect("the receive checks let only 1 to 9 destination rows pass")
    }

    /// The source address, unchecked; `None` if the packet has none.
    pub fn source(&self) -> Option<Address> {
        Address::from_bytes(self.source_bytes()).ok()
    }

    /// Row `index` of the destination address.
    pub fn destination_row(&self, index: usize) -> Option<Row> {
        self.destination_bytes().as_chunks::<ROW_LEN>().0.get(index).map(Row::from_bytes)
    }

    /// The XID in row `index` of the destination address.
    pub fn destination_xid(&self, index: usize) -> Option<Xid> {
        self.destination_row(index).map(|row| row.xid)
    }

    /// True if row `index` of the destination address is a sink: the last one, or without edges.
    #[inline]
    pub fn is_sink(&self, index: usize) -> bool {
        index + 1 == self.destination_rows()
            || self.destination_row(index).is_some_and(|row| row.has_no_edges())
    }

    /// The rows to try next, in order of priority; checks the edges at the last node.
    ///
    /// Element `i` is edge `i`; there is at least one. An error means that the packet cannot be
    /// forwarded by anyone.
    #[inline]
    pub fn candidate_edges(&self) -> Result<Targets, EdgesError> {
        let node = self.last_node();
        let edges = self.edge_offset().map_or(NO_EDGES, |offset| self.edges_at(offset));
        candidate_edges(&edges, node, self.destination_rows())
    }

    #[inline]
    fn edges_at(&self, offset: usize) -> Edges {
        let edges = self.bytes()[offset..].first_chunk::<MAX_FAN_OUT>();
        edges.map_or(NO_EDGES, |bytes| bytes.map(Edge::from_byte))
    }

    /// Where in the buffer the edges of the last node are.
    #[inline]
    fn edge_offset(&self) -> Option<usize> {
        let row = self.last_node().edge_row(self.destination_rows())?;
        Some(row_offset(row) + XID_LEN)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> XipPacket<T> {
    /// Sets how many more times the packet may be forwarded.
    #[inline]
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.buffer.as_mut()[field::HOP_LIMIT] = hop_limit;
    }

    /// Sets the last node; false, and no change, if the destination has no such node.
    #[must_use]
    pub fn set_last_node(&mut self, node: LastNode) -> bool {
        let exists = node.edge_row(self.destination_rows()).is_some();
        if exists {
            self.buffer.as_mut()[field::LAST_NODE] = node.to_byte();
        }
        exists
    }

    /// Marks edge `edge` (0 to 3) of the last node as chosen; returns the row it leads to. `None`,
    /// and no change, if there is no such edge.
    #[inline]
    pub fn mark_edge(&mut self, edge: usize) -> Option<u8> {
        if edge >= MAX_FAN_OUT {
            return None;
        }
        let at = self.edge_offset()? + edge;
        let found = Edge::from_byte(self.bytes()[at]);
        let target = found.target().filter(|row| usize::from(*row) < self.destination_rows())?;
        self.buffer.as_mut()[at] = found.chosen().to_byte();
        Some(target)
    }

    /// Goes along edge `edge` (0 to 3) of the last node: marks it as chosen and makes its target
    /// the last node. Returns that row; `None`, and no change, if there is no such edge.
    #[inline]
    pub fn take_edge(&mut self, edge: usize) -> Option<u8> {
        let target = self.mark_edge(edge)?;
        self.buffer.as_mut()[field::LAST_NODE] = target;
        Some(target)
    }

    /// The payload, to be changed in place.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let payload = self.header_len()..self.total_len();
        &mut self.buffer.as_mut()[payload]
    }
}

impl XipPacket<Packet> {
    /// Cuts off what the link has added behind the payload.
    pub fn trim(&mut self) {
        let len = self.total_len();
        self.buffer.truncate(len);
    }

    /// A copy in a frame of its own.
    #[must_use]
    pub fn duplicate(&self) -> XipPacket<Packet> {
        XipPacket { buffer: self.buffer.duplicate() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::CheckError;
    use crate::numbers::DEFAULT_HOP_LIMIT;
    use crate::xid::XidType;

    /// Entry → HID → XDP, no source, payload `hi`.
    fn packet() -> Vec<u8> {
        let path = [XidType::HID, XidType::XDP].map(|kind| Xid::new(kind, [0xaa; 20]));
        let repr = XipRepr::new(Address::scoping(&path).unwrap(), None, 2);
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes).unwrap();
        bytes.extend(b"hi");
        bytes
    }

    fn check(bytes: &[u8]) -> Option<HeaderError> {
        XipPacket::new_checked(bytes).err()
    }

    #[test]
    fn lengths_are_those_of_the_format() {
        assert_eq!((MIN_HEADER_LEN, MAX_HEADER_LEN), (36, 512));
        assert_eq!(packet().len(), 8 + 2 * 28 + 2);
    }

    /// Breaks every rule at once, then mends one after the other.
    #[test]
    fn receive_checks_are_made_in_order() {
        let mut bytes = packet();
        bytes[field::VERSION] = 2;
        bytes[field::NUM_DST] = 10;
        bytes[field::NUM_SRC] = 10;
        bytes[field::LAST_NODE] = 11;
        bytes[field::PAYLOAD_LEN].copy_from_slice(&[0, 3]);
        assert_eq!(check(&bytes[..7]), Some(HeaderError::TooShort { len: 7 }));
        assert_eq!(check(&bytes), Some(HeaderError::Version(2)));
        bytes[field::VERSION] = 1;
        assert_eq!(check(&bytes), Some(HeaderError::DestinationRows(10)));
        bytes[field::NUM_DST] = 0;
        assert_eq!(check(&bytes), Some(HeaderError::DestinationRows(0)));
        bytes[field::NUM_DST] = 2;
        assert_eq!(check(&bytes), Some(HeaderError::SourceRows(10)));
        bytes[field::NUM_SRC] = 1;
        assert_eq!(check(&bytes), Some(HeaderError::LastNode { last_node: 11, rows: 2 }));
        bytes[field::LAST_NODE] = 2;
        assert_eq!(check(&bytes), Some(HeaderError::LastNode { last_node: 2, rows: 2 }));
        bytes[field::LAST_NODE] = 1;
        assert_eq!(check(&bytes), Some(HeaderError::HeaderCut { header_len: 92, len: 66 }));
        bytes[field::NUM_SRC] = 0;
        assert_eq!(check(&bytes), Some(HeaderError::PayloadCut { total_len: 67, len: 66 }));
        bytes[field::PAYLOAD_LEN].copy_from_slice(&[0, 1]);
        assert_eq!(check(&bytes), None);
    }

    #[test]
    fn what_follows_the_payload_is_not_part_of_the_packet() {
        let mut bytes = packet();
        let len = bytes.len();
        bytes.extend([0; 14]);
        let mut packet = XipPacket::new_checked(bytes).unwrap();
        assert_eq!((packet.total_len(), packet.as_bytes().len()), (len, len));
        assert_eq!(packet.payload(), b"hi");
        assert_eq!(packet.payload_mut(), b"hi");
    }

    #[test]
    fn taking_an_edge_marks_it_and_moves_the_last_node() {
        let mut packet = XipPacket::new_checked(packet()).unwrap();
        assert_eq!(packet.last_node(), LastNode::Entry);
        assert_eq!(packet.take_edge(0), Some(0));
        assert_eq!(packet.last_node(), LastNode::Row(0));
        assert_eq!(packet.destination_row(1).unwrap().edges[0].to_byte(), 0x80);
        assert_eq!(packet.take_edge(0), Some(1));
        assert_eq!(packet.last_node(), LastNode::Row(1));
        assert_eq!(packet.destination_row(0).unwrap().edges[0].to_byte(), 0x81);
        assert_eq!(packet.candidate_edges(), Err(EdgesError::AtSink));
    }

    #[test]
    fn marking_an_edge_leaves_the_last_node_and_a_marked_edge_is_refused() {
        let mut packet = XipPacket::new_checked(packet()).unwrap();
        assert_eq!(packet.mark_edge(0), Some(0));
        assert_eq!(packet.last_node(), LastNode::Entry);
        let error = CheckError::ChosenEdge { row: 1, edge: 0 };
        assert_eq!(packet.candidate_edges(), Err(EdgesError::Malformed(error)));
    }

    #[test]
    fn edges_and_nodes_that_do_not_exist_change_nothing() {
        let before = packet();
        let mut packet = XipPacket::new_checked(before.clone()).unwrap();
        assert_eq!(packet.take_edge(1), None);
        assert_eq!(packet.take_edge(4), None);
        assert_eq!(packet.take_edge(usize::MAX), None);
        assert!(!packet.set_last_node(LastNode::Row(2)));
        assert_eq!(packet.as_bytes(), before);
        assert!(packet.set_last_node(LastNode::Row(0)));
        assert!(packet.set_last_node(LastNode::Entry));
        assert_eq!(packet.as_bytes(), before);
    }

    #[test]
    fn an_edge_that_leads_outside_is_not_taken() {
        let mut bytes = packet();
        let len = bytes.len();
        bytes[len - 2 - MAX_FAN_OUT] = 2;
        let mut packet = XipPacket::new_checked(bytes.clone()).unwrap();
        assert_eq!(packet.take_edge(0), None);
        assert_eq!(packet.mark_edge(0), None);
        assert_eq!(packet.as_bytes(), bytes);
    }

    #[test]
    fn the_hop_limit_is_set_in_place() {
        let mut packet = XipPacket::new_checked(packet()).unwrap();
        assert_eq!(packet.hop_limit(), DEFAULT_HOP_LIMIT);
        packet.set_hop_limit(3);
        assert_eq!(packet.hop_limit(), 3);
        assert_eq!(packet.as_bytes()[field::HOP_LIMIT], 3);
    }
}
