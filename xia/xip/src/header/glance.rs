//! A header at a glance: all that is needed to look for a decision, read and checked in one go.
//!
//! Reference: as for [`header`](super). The receive checks and those of the last node's edges say what is wrong with a
//! packet, one thing after the other. Hardly anything ever is; so a forwarder asks first whether everything is right, which
//! takes fewer instructions. It looks at a [`Window`], whose length is known, so that only what the packet says has to be
//! checked, and not each access.

use super::check::{header_len, payload_len};
use super::places::{edges_at, row_place};
use super::{FIXED_HEADER_LEN, Window, XidPlaces, field};
use crate::dag::check::sound_edges;
use crate::dag::{Edge, LastNode};
use crate::numbers::{MAX_FAN_OUT, MAX_NODES, XIP_VERSION};

/// What is seen of a packet that passes the receive checks and has an edge to try.
#[derive(Debug)]
pub(crate) struct Glance {
    /// As [`XipPacket::total_len`](super::XipPacket::total_len).
    pub(crate) total_len: usize,
    /// Where the XIDs stand that the last node's edges lead to, in the order that
    /// [`XipPacket::candidate_edges`](super::XipPacket::candidate_edges) has them.
    pub(crate) xids: XidPlaces,
    /// How many edges there are: at least one.
    pub(crate) edges: usize,
}

impl Glance {
    /// Looks at a packet that may have so many bytes. `None` if anything is wrong, or there is no edge to try.
    #[inline(always)]
    pub(crate) fn at(window: &Window, len: usize) -> Option<Self> {
        let fixed = window.first_chunk::<FIXED_HEADER_LEN>()?;
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
            & (total_len <= len);
        if !is_sound {
            return None;
        }
        let to = edges_at(window, row_place(row as u8))?;
        let edges = sound_edges(&to.map(Edge::from_byte), first, rows)?;
        (edges > 0).then_some(Self { total_len, xids: XidPlaces::of_rows(*to), edges })
    }
}

/// How the last header looked that was found right. Those that follow are most often like it in all that has to be checked but
/// the packet's length, and then nothing of them is checked again.
#[derive(Debug)]
pub(crate) struct Shape {
    /// [`Shape::checked`] of its fixed part.
    fixed: u64,
    header_len: usize,
    /// Where the row with the last node's edges is, and they.
    row: u8,
    to: [u8; MAX_FAN_OUT],
    xids: XidPlaces,
    edges: usize,
}

impl Default for Shape {
    /// Before any header came: one that none is like, sound or not.
    fn default() -> Self {
        Self {
            fixed: !Self::CHECKED,
            header_len: 0,
            row: 0,
            to: [0; MAX_FAN_OUT],
            xids: XidPlaces::default(),
            edges: 0,
        }
    }
}

impl Shape {
    /// Of the fixed part the bits that are checked of a header alone: version, numbers of rows, and last node.
    const CHECKED: u64 = {
        let mut bytes = [0; FIXED_HEADER_LEN];
        bytes[field::VERSION] = u8::MAX;
        bytes[field::NUM_DST] = u8::MAX;
        bytes[field::NUM_SRC] = u8::MAX;
        bytes[field::LAST_NODE] = u8::MAX;
        u64::from_ne_bytes(bytes)
    };

    #[inline(always)]
    fn checked(fixed: &[u8; FIXED_HEADER_LEN]) -> u64 {
        u64::from_ne_bytes(*fixed) & Self::CHECKED
    }

    /// As [`Glance::at`].
    #[inline(always)]
    pub(crate) fn glance(&mut self, window: &Window, len: usize) -> Option<Glance> {
        let fixed = window.first_chunk::<FIXED_HEADER_LEN>()?;
        let total_len = self.header_len + usize::from(payload_len(fixed));
        let to = edges_at(window, self.row)?;
        let differ = (Self::checked(fixed) ^ self.fixed)
            | u64::from(u32::from_ne_bytes(*to) ^ u32::from_ne_bytes(self.to));
        if differ == 0 && total_len <= len {
            return Some(Glance { total_len, xids: self.xids, edges: self.edges });
        }
        self.look(window, len)
    }

    /// The same of a header that may have another shape, which is remembered if it is right.
    #[inline(never)]
    fn look(&mut self, window: &Window, len: usize) -> Option<Glance> {
        let glance = Glance::at(window, len)?;
        let fixed = window.first_chunk::<FIXED_HEADER_LEN>()?;
        let last = LastNode::from_byte(fixed[field::LAST_NODE]);
        let row = row_place(last.edge_row(fixed[field::NUM_DST].into())? as u8);
        *self = Self {
            fixed: Self::checked(fixed),
            header_len: header_len(fixed),
            row,
            to: *edges_at(window, row)?,
            xids: glance.xids,
            edges: glance.edges,
        };
        Some(glance)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::XipPacket;
    use crate::dag::ROW_LEN;
    use crate::header::WINDOW;
    use crate::header::check::row_offset;
    use crate::xid::XID_LEN;

    /// The packet's length, and the XIDs.
    type Seen = (usize, Vec<Vec<u8>>);

    /// What is seen of a packet in a frame that had one with the longest header before.
    fn seen(look: impl FnOnce(&Window, usize) -> Option<Glance>, bytes: &[u8]) -> Option<Seen> {
        let before = header(MAX_NODES as u8);
        let mut window = [0; WINDOW];
        for frame in [&before, bytes] {
            window.iter_mut().zip(frame).for_each(|(place, byte)| *place = *byte);
        }
        let Glance { total_len, xids, edges } = look(&window, bytes.len())?;
        Some((total_len, (0..edges).map(|at| xids.xid(&window, at).to_vec()).collect()))
    }

    /// With so many rows, to the first of which the entry leads; sound if there may be so many.
    fn header(rows: u8) -> Vec<u8> {
        let mut bytes = vec![XIP_VERSION, 0, 0, 0, 64, rows, 0, LastNode::ENTRY_BYTE];
        bytes.resize(header_len(&bytes), Edge::EMPTY.to_byte());
        let end = bytes.len();
        bytes[end - MAX_FAN_OUT] = 0;
        bytes
    }

    fn seen_closely(bytes: &[u8]) -> Option<Seen> {
        let packet = XipPacket::new_checked(bytes).ok()?;
        let rows = packet.destination_bytes().as_chunks::<ROW_LEN>().0;
        let targets = packet.candidate_edges().ok()?;
        let xids = targets.iter().map(|row| rows[usize::from(*row)][..XID_LEN].to_vec());
        Some((packet.total_len(), xids.collect()))
    }

    /// Mostly this, and anything.
    fn mostly(byte: impl Strategy<Value = u8>) -> impl Strategy<Value = u8> {
        prop_oneof![9 => byte, 1 => any::<u8>()]
    }

    fn edge() -> impl Strategy<Value = u8> {
        prop_oneof![4 => 0..10_u8, 4 => Just(Edge::EMPTY.to_byte()), 1 => any::<u8>()]
    }

    prop_compose! {
        /// Headers most of whose fields are right, or nearly, and some of the payload.
        fn headers()(
            version in prop_oneof![8 => Just(XIP_VERSION), 1 => Just(0), 1 => any::<u8>()],
            (rows, source_rows) in (mostly(0..=10_u8), mostly(0..=10_u8)),
            last_node in mostly(prop_oneof![0..=10_u8, Just(LastNode::ENTRY_BYTE)]),
            payload in 0..300_u16,
            missing in -2..2_isize,
            edges in prop::collection::vec([edge(), edge(), edge(), edge()], 9),
        ) -> Vec<u8> {
            let [high, low] = payload.to_be_bytes();
            let mut bytes = vec![version, 0, high, low, 64, rows, source_rows, last_node];
            let len = header_len(&bytes) + usize::from(payload);
            bytes.resize(len.saturating_add_signed(-missing), 0);
            for (row, edges) in edges.iter().enumerate() {
                let at = row_offset(row);
                if let Some(place) = bytes.get_mut(at..at + ROW_LEN) {
                    place[0] = row as u8;
                    place[XID_LEN..].copy_from_slice(edges);
                }
            }
            bytes
        }
    }

    #[test]
    fn nothing_looks_like_a_header_before_one_came() {
        for len in [8, 46, 300] {
            let mut shape = Shape::default();
            assert_eq!(seen(|window, len| shape.glance(window, len), &vec![0; len]), None);
            assert!(shape.glance(&[0; WINDOW], len).is_none());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn a_glance_sees_what_a_close_look_does(bytes in headers()) {
            for len in [bytes.len(), bytes.len() / 2, 7, 0] {
                let bytes = &bytes[..len.min(bytes.len())];
                prop_assert_eq!(seen(Glance::at, bytes), seen_closely(bytes));
            }
        }

        /// Of headers that are the same but for one byte, or a few that are missing, or that a sound one follows.
        #[test]
        fn whatever_came_before_is_seen_as_if_it_had_not(
            headers in prop::collection::vec(headers(), 1..4),
            changes in prop::collection::vec((any::<prop::sample::Index>(), mostly(0..10_u8)), 1..6),
        ) {
            let mut shape = Shape::default();
            let mut seen = |bytes: &[u8]| seen(|window, len| shape.glance(window, len), bytes);
            for header in headers {
                prop_assert_eq!(seen(&header), seen_closely(&header));
                for (at, byte) in &changes {
                    let mut changed = header.clone();
                    if let Some(place) = changed.get_mut(at.index(header.len().clamp(1, 60))) {
                        *place = *byte;
                    }
                    let cut = &changed[..at.index(changed.len() + 1)];
                    for bytes in [&changed, cut, &header] {
                        prop_assert_eq!(seen(bytes), seen_closely(bytes));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_remembered_is_the_last_sound_header() {
        let mut shape = Shape::default();
        for rows in [2, 3] {
            for (rows_now, is_sound) in [(rows, true), (10, false)] {
                let glance = seen(|window, len| shape.glance(window, len), &header(rows_now));
                assert_eq!(glance.is_some(), is_sound);
                assert_eq!((shape.header_len, shape.edges), (row_offset(rows.into()), 1));
            }
        }
    }
}
