//! Where in a header the XIDs of some destination rows stand.
//!
//! Reference: as for [`header`](super).

use super::row_offset;
use crate::dag::ROW_LEN;
use crate::numbers::MAX_FAN_OUT;

/// A place is a multiple of this, in bytes.
const UNIT: usize = 4;

/// The places of as many XIDs as a node has edges at most. One number and no array: that stays in a register of the processor,
/// whichever place is asked for. They are worked out once for headers that look alike, and not from a row for each packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct XidPlaces(u32);

impl XidPlaces {
    /// Of the XIDs in these rows. What is no row, behind the last edge, has any place.
    #[inline]
    pub(crate) fn of_rows(rows: [u8; MAX_FAN_OUT]) -> Self {
        const FIRST: u8 = (row_offset(0) / UNIT) as u8;
        const APART: u8 = (ROW_LEN / UNIT) as u8;
        const { assert!(row_offset(0).is_multiple_of(UNIT) && ROW_LEN.is_multiple_of(UNIT)) };
        // The lowest byte is the first.
        Self(u32::from_le_bytes(rows.map(|row| row.wrapping_mul(APART).wrapping_add(FIRST))))
    }

    /// The place of one of them, which counts from 0, as the distance in bytes from the beginning of the header.
    #[inline]
    pub(super) fn offset(self, at: usize) -> usize {
        UNIT * usize::from((self.0 >> (u8::BITS as usize * (at % MAX_FAN_OUT))) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::MAX_NODES;

    #[test]
    fn xids_of_all_rows_have_their_places() {
        for row in 0..MAX_NODES {
            let mut rows = [0x7f; MAX_FAN_OUT];
            for at in 0..rows.len() {
                rows[at] = row as u8;
                assert_eq!(XidPlaces::of_rows(rows).offset(at), row_offset(row));
            }
        }
    }
}
