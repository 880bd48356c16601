//! What a decision is found by: the XIDs that the last node's edges lead to.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2. A key holds XIDs, not rows, so that different addresses
//! share entries; whether the packet came in on a port is a part of it.

use arrayvec::ArrayVec;
use weft_base::KeyedHash;

use crate::numbers::MAX_FAN_OUT;
use crate::xid::XID_LEN;
use crate::{Targets, Xid, XipPacket};

/// The 24 bytes of an XID as words, which compare and hash faster than bytes.
pub(super) type XidWords = [u64; 3];

/// The XIDs at the ends of the edges, in their order, and whether the packet was received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key {
    words: [XidWords; MAX_FAN_OUT],
    edges: u8,
    pub(super) received: bool,
}

impl Key {
    /// Becomes the key for a packet whose last node has edges to these rows; returns its hash. What it has no edges for keeps
    /// old words, which nobody looks at.
    #[inline]
    pub(crate) fn set<T: AsRef<[u8]>>(
        &mut self,
        packet: &XipPacket<T>,
        targets: &Targets,
        received: bool,
        hash: &KeyedHash,
    ) -> u64 {
        self.edges = targets.len() as u8;
        self.received = received;
        let mut state = self.first_state(hash);
        for (words, row) in self.words.iter_mut().zip(targets) {
            *words = to_words(packet.existing_xid_bytes(*row));
            state = hash.mix(state, *words);
        }
        state
    }

    /// The key of these XIDs, of which there are 1 to 4.
    pub(crate) fn of_xids(xids: &[Xid], received: bool) -> Self {
        let mut key = Self { words: [[0; 3]; MAX_FAN_OUT], edges: xids.len() as u8, received };
        for (words, xid) in key.words.iter_mut().zip(xids) {
            *words = to_words(&xid.to_bytes());
        }
        key
    }

    /// The words of every XID.
    #[inline]
    pub(super) fn words(&self) -> &[XidWords] {
        &self.words[..usize::from(self.edges)]
    }

    /// The number of XIDs.
    #[inline]
    pub(super) fn edges(&self) -> usize {
        usize::from(self.edges)
    }

    /// The words of the first XIDs, for a key that has so many.
    #[inline]
    pub(super) fn first<const N: usize>(&self) -> &[XidWords; N] {
        const { assert!(N <= MAX_FAN_OUT) };
        self.words.first_chunk().expect("there is room for as many as this, which is checked above")
    }

    /// The hash, as [`Key::set`] returns it.
    pub(super) fn hash(&self, hash: &KeyedHash) -> u64 {
        let start = self.first_state(hash);
        self.words().iter().fold(start, |state, words| hash.mix(state, *words))
    }

    /// The hash before any XID.
    #[inline]
    fn first_state(&self, hash: &KeyedHash) -> u64 {
        hash.start() ^ u64::from(self.received)
    }
}

/// The XIDs that words stand for.
pub(super) fn xids(words: &[XidWords]) -> ArrayVec<Xid, MAX_FAN_OUT> {
    words.iter().map(to_xid).collect()
}

#[inline]
fn to_words(bytes: &[u8; XID_LEN]) -> XidWords {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_ne_bytes(words[at]))
}

fn to_xid(words: &XidWords) -> Xid {
    let mut bytes = [0; XID_LEN];
    for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
    Xid::from_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::XidType;

    #[test]
    fn words_and_xids_are_the_same_thing() {
        let xid = Xid::new(XidType::HID, std::array::from_fn(|n| n as u8));
        let key = Key::of_xids(&[xid, Xid::NAT], true);
        assert_eq!(xids(key.words())[..], [xid, Xid::NAT]);
    }
}
