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

/// What a key is besides its XIDs, in one byte, which is compared as such: how many they are, and whether the packet was
/// received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind(u8);

impl Kind {
    /// Bits that the number of XIDs has, the lowest ones.
    const EDGES: u32 = 3;
    /// The packet was received.
    const RECEIVED: u8 = 1 << Self::EDGES;
    /// No key is of this kind.
    pub(super) const NONE: Self = Self(u8::MAX);

    #[inline]
    fn new(edges: usize, received: bool) -> Self {
        const { assert!(MAX_FAN_OUT < Self::RECEIVED as usize) };
        Self(edges as u8 | u8::from(received) << Self::EDGES)
    }

    #[inline]
    fn edges(self) -> usize {
        usize::from(self.0 & (Self::RECEIVED - 1))
    }

    /// Whether the packet came in on a port.
    pub(super) fn received(self) -> bool {
        self.0 & Self::RECEIVED != 0
    }

    /// Zero if both are the same.
    #[inline]
    pub(super) fn difference(self, other: Self) -> u64 {
        u64::from(self.0 ^ other.0)
    }
}

/// The XIDs at the ends of the edges, in their order, and whether the packet was received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key {
    words: [XidWords; MAX_FAN_OUT],
    kind: Kind,
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
        self.kind = Kind::new(targets.len(), received);
        let mut state = self.first_state(hash);
        for (words, row) in self.words.iter_mut().zip(targets) {
            *words = to_words(packet.existing_xid_bytes(*row));
            state = hash.mix(state, *words);
        }
        state
    }

    /// The key of these XIDs, of which there are 1 to 4.
    pub(crate) fn of_xids(xids: &[Xid], received: bool) -> Self {
        let mut key = Self { words: [[0; 3]; MAX_FAN_OUT], kind: Kind::new(xids.len(), received) };
        for (words, xid) in key.words.iter_mut().zip(xids) {
            *words = to_words(&xid.to_bytes());
        }
        key
    }

    /// The words of every XID.
    #[inline]
    pub(super) fn words(&self) -> &[XidWords] {
        &self.words[..self.kind.edges()]
    }

    /// How many XIDs there are, and whether the packet was received.
    #[inline]
    pub(super) fn kind(&self) -> Kind {
        self.kind
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
        hash.start() ^ u64::from(self.kind.0)
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
