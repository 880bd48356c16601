//! Where in a header the XIDs of some destination rows stand, and what is read of a packet to find them.
//!
//! Reference: as for [`header`](super).

use super::row_offset;
use crate::dag::ROW_LEN;
use crate::numbers::{MAX_FAN_OUT, MAX_NODES};
use crate::xid::XID_LEN;

/// Bytes of a [`Window`].
pub(crate) const WINDOW: usize = u8::MAX as usize + ROW_LEN;

/// The beginning of a packet, and of what its frame has behind it if it is short. Whatever row begins at a distance that is a
/// byte lies in it, so nobody has to check.
pub(crate) type Window = [u8; WINDOW];

/// The distance in bytes of a destination row from the beginning of the header. What is no row has any.
#[inline]
pub(super) fn row_place(row: u8) -> u8 {
    const {
        assert!(row_offset(MAX_NODES - 1) <= u8::MAX as usize, "all rows begin in a window");
    }
    row.wrapping_mul(ROW_LEN as u8).wrapping_add(row_offset(0) as u8)
}

/// The edges of the row at a place, which are always there.
#[inline]
pub(super) fn edges_at(window: &Window, row: u8) -> Option<&[u8; MAX_FAN_OUT]> {
    window[usize::from(row)..][..ROW_LEN].last_chunk()
}

/// The places of as many XIDs as a node has edges at most. One number and no array: that stays in a register of the processor,
/// whichever place is asked for. They are worked out once for headers that look alike, and not from a row for each packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct XidPlaces(u32);

impl XidPlaces {
    /// Of the XIDs in these rows. What is no row, behind the last edge, has any place.
    #[inline]
    pub(crate) fn of_rows(rows: [u8; MAX_FAN_OUT]) -> Self {
        // The lowest byte is the first.
        Self(u32::from_le_bytes(rows.map(row_place)))
    }

    /// As one number.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// What is one number.
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// One of them, which counts from 0.
    #[inline]
    fn place(self, at: usize) -> u8 {
        (self.0 >> (u8::BITS as usize * (at % MAX_FAN_OUT))) as u8
    }

    /// The bytes of the XID at one of them, in a packet or in a window, where they need no check; anything if they are not
    /// there.
    #[inline]
    pub(crate) fn xid(self, bytes: &[u8], at: usize) -> &[u8; XID_LEN] {
        let begin = usize::from(self.place(at));
        let xid = bytes.get(begin..begin + XID_LEN);
        xid.and_then(|xid| xid.first_chunk()).unwrap_or(&[0; XID_LEN])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_all_places_are_in_a_window() {
        let window: Window = std::array::from_fn(|at| at as u8);
        for place in 0..=u8::MAX {
            let edges = edges_at(&window, place).unwrap();
            assert_eq!(edges[0], window[usize::from(place) + XID_LEN]);
            assert_eq!(XidPlaces(place.into()).xid(&window, 0)[0], place);
        }
    }

    #[test]
    fn xids_of_all_rows_have_their_places() {
        let window: Window = std::array::from_fn(|at| at as u8);
        for row in 0..MAX_NODES {
            let mut rows = [0x7f; MAX_FAN_OUT];
            for at in 0..rows.len() {
                rows[at] = row as u8;
                let xid = XidPlaces::of_rows(rows).xid(&window, at);
                assert_eq!(xid[..], window[row_offset(row)..][..XID_LEN]);
            }
        }
    }
}
