//! A header at a glance: all that is needed to look for a decision, read and checked in one go.
//!
//! Reference: as for [`header`](super). The receive checks and those of the last node's edges say what is wrong with a
//! packet, one thing after the other. Hardly anything ever is; so a forwarder asks first whether everything is right, which
//! takes fewer instructions.

use super::check::{header_len, payload_len, row_offset};
use super::{FIXED_HEADER_LEN, field};
use crate::dag::check::sound_edges;
use crate::dag::{Edge, LastNode};
use crate::numbers::{MAX_FAN_OUT, MAX_NODES, XIP_VERSION};
use crate::xid::XID_LEN;

/// What is seen of a packet that passes the receive checks and has an edge to try.
#[derive(Debug)]
pub(crate) struct Glance {
    /// As [`XipPacket::total_len`](super::XipPacket::total_len).
    pub(crate) total_len: usize,
    /// The rows that the last node's edges lead to, as
    /// [`XipPacket::candidate_edges`](super::XipPacket::candidate_edges) has them. Behind the last is anything.
    pub(crate) rows: [u8; MAX_FAN_OUT],
    /// How many edges there are: at least one.
    pub(crate) edges: usize,
}

impl Glance {
    /// Looks at the bytes of a packet. `None` if anything is wrong, or there is no edge to try.
    #[inline(always)]
    pub(crate) fn at(bytes: &[u8]) -> Option<Self> {
        let fixed = bytes.first_chunk::<FIXED_HEADER_LEN>()?;
        let [rows, source_rows] = [field::NUM_DST, field::NUM_SRC].map(|at| usize::from(fixed[at]));
        let last = usize::from(fixed[field::LAST_NODE]);
        // The row that has the edges, and the first that they may lead to.
        let is_entry = last == usize::from(LastNode::ENTRY_BYTE);
        let (row, first) = if is_entry { (rows.wrapping_sub(1), 0) } else { (last, last + 1) };
        let total_len = header_len(fixed) + usize::from(payload_len(fixed));
        // One jump for all of it.
        let is_sound = (fixed[field::VERSION] == XIP_VERSION)
            & (rows <= MAX_NODES)
            & (source_rows <= MAX_NODES)
            & (row < rows)
            & (total_len <= bytes.len());
        if !is_sound {
            return None;
        }
        let to = bytes.get(row_offset(row) + XID_LEN..)?.first_chunk::<MAX_FAN_OUT>()?;
        let edges = sound_edges(&to.map(Edge::from_byte), first, rows)?;
        (edges > 0).then_some(Self { total_len, rows: *to, edges })
    }
}

/// How the last header looked that was found right. Those that follow it are most often alike in all that has to be checked but for
/// the packet's length, and then nothing of it is checked again.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// [`Shape::CHECKED`] of its fixed part. The version of no header is 0.
    fixed: u64,
    header_len: usize,
    /// Where the last node's edges are, and they.
    edges_at: usize,
    to: [u8; MAX_FAN_OUT],
    edges: usize,
}

impl Shape {
    /// Of the fixed part what is checked: version, numbers of rows, and last node.
    const CHECKED: u64 = {
        let mut bytes = [0; FIXED_HEADER_LEN];
        bytes[field::VERSION] = u8::MAX;
        bytes[field::NUM_DST] = u8::MAX;
        bytes[field::NUM_SRC] = u8::MAX;
        bytes[field::LAST_NODE] = u8::MAX;
        u64::from_ne_bytes(bytes)
    };

    /// As [`Glance::at`].
    #[inline(always)]
    pub(crate) fn glance(&mut self, bytes: &[u8]) -> Option<Glance> {
        let fixed = bytes.first_chunk::<FIXED_HEADER_LEN>()?;
        let total_len = self.header_len + usize::from(payload_len(fixed));
        let to = bytes.get(self.edges_at..)?.first_chunk::<MAX_FAN_OUT>()?;
        let is_alike = (u64::from_ne_bytes(*fixed) & Self::CHECKED == self.fixed)
            & (*to == self.to)
            & (total_len <= bytes.len());
        if is_alike {
            return Some(Glance { total_len, rows: self.to, edges: self.edges });
        }
        self.look(bytes)
    }

    /// The same of a header that may have another shape, which is remembered.
    #[inline(never)]
    fn look(&mut self, bytes: &[u8]) -> Option<Glance> {
        let glance = Glance::at(bytes)?;
        let fixed = bytes.first_chunk::<FIXED_HEADER_LEN>()?;
        let row = LastNode::from_byte(fixed[field::LAST_NODE]).edge_row(fixed[field::NUM_DST].into())?;
        *self = Self {
            fixed: u64::from_ne_bytes(*fixed) & Self::CHECKED,
            header_len: header_len(fixed),
            edges_at: row_offset(row) + XID_LEN,
            to: glance.rows,
            edges: glance.edges,
        };
        Some(glance)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Targets, XipPacket};

    fn seen(bytes: &[u8]) -> Option<(usize, Targets)> {
        let Glance { total_len, rows, edges } = Glance::at(bytes)?;
        Some((total_len, rows[..edges].iter().copied().collect()))
    }

    fn seen_closely(bytes: &[u8]) -> Option<(usize, Targets)> {
        let packet = XipPacket::new_checked(bytes).ok()?;
        Some((packet.total_len(), packet.candidate_edges().ok()?))
    }

    /// Mostly this, and anything.
    fn mostly(byte: impl Strategy<Value = u8>) -> impl Strategy<Value = u8> {
        prop_oneof![9 => byte, 1 => any::<u8>()]
    }

    fn edge() -> impl Strategy<Value = u8> {
        prop_oneof![4 => 0..10_u8, 4 => Just(Edge::EMPTY.to_byte()), 1 => any::<u8>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        /// Of packets most of whose fields are right, or nearly.
        #[test]
        fn a_glance_sees_what_a_close_look_does(
            version in mostly(Just(XIP_VERSION)),
            (rows, source_rows) in (mostly(0..=10_u8), mostly(0..=10_u8)),
            last_node in mostly(prop_oneof![0..=10_u8, Just(LastNode::ENTRY_BYTE)]),
            payload in 0..300_u16,
            missing in -2..2_isize,
            edges in prop::collection::vec([edge(), edge(), edge(), edge()], 9),
        ) {
            let [high, low] = payload.to_be_bytes();
            let mut bytes = vec![version, 0, high, low, 64, rows, source_rows, last_node];
            let len = header_len(&bytes) + usize::from(payload);
            bytes.resize(len.saturating_add_signed(-missing), 0);
            for (row, edges) in edges.iter().enumerate() {
                let at = row_offset(row) + XID_LEN;
                if let Some(place) = bytes.get_mut(at..at + MAX_FAN_OUT) {
                    place.copy_from_slice(edges);
                }
            }
            for len in [bytes.len(), bytes.len() / 2, 7, 0] {
                let bytes = &bytes[..len.min(bytes.len())];
                prop_assert_eq!(seen(bytes), seen_closely(bytes));
            }
        }
    }
}
