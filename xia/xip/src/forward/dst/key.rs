//! What a decision is found by: the XIDs that the last node's edges lead to.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2. A key holds XIDs, not rows, so that different addresses
//! share entries; whether the packet came in on a port is a part of it.

use arrayvec::ArrayVec;
use weft_base::KeyedHash;

use crate::header::XidPlaces;
use crate::numbers::MAX_FAN_OUT;
use crate::xid::XID_LEN;
use crate::{Targets, Xid};

/// The 24 bytes of an XID as words, which compare and hash faster than bytes.
pub(in crate::forward) type XidWords = [u64; 3];

/// What a key is besides its XIDs, in one byte, which is compared as such: how many they are, and whether the packet was
/// received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::forward) struct Kind(u8);

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

    /// How many XIDs there are.
    #[inline]
    pub(super) fn edges(self) -> usize {
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

/// The XIDs at the ends of the edges, in their order, and whether the packet was received; wherever they stand.
pub(in crate::forward) trait Key {
    /// How many XIDs there are, 1 to 4, and whether the packet was received.
    fn kind(&self) -> Kind;

    /// The words of an XID, which counts from 0; any words if there are not so many.
    fn words(&self, at: usize) -> XidWords;

    /// The hash, with this key. Called, and not put where it is needed, it would wait for the key to get to memory and back.
    #[inline(always)]
    fn hash(&self, hash: &KeyedHash) -> u64 {
        let kind = self.kind();
        let mix = |state, at| hash.mix(state, self.words(at));
        let first = mix(hash.start() ^ u64::from(kind.0), 0);
        // A way of its own for each number: a loop over what are so few has as many jumps as turns.
        match kind.edges() {
            0..=1 => first,
            2 => mix(first, 1),
            3 => mix(mix(first, 1), 2),
            MAX_FAN_OUT.. => mix(mix(mix(first, 1), 2), 3),
        }
    }
}

/// Where in a packet its key stands.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::forward) struct KeyPlace {
    /// The kind above as many places of XIDs as it says. One number: two that are written one after the other have to be waited
    /// for by who reads both at once.
    bits: u64,
}

impl KeyPlace {
    /// Of a packet whose last node has so many edges, to XIDs at these places.
    #[inline]
    pub(in crate::forward) fn new(xids: XidPlaces, edges: usize, received: bool) -> Self {
        let kind = Kind::new(edges, received);
        Self { bits: u64::from(kind.0) << u32::BITS | u64::from(xids.bits()) }
    }

    /// Of a packet whose last node has edges to these rows of its destination.
    pub(in crate::forward) fn of(targets: &Targets, received: bool) -> Self {
        let mut rows = [0; MAX_FAN_OUT];
        rows[..targets.len()].copy_from_slice(targets);
        Self::new(XidPlaces::of_rows(rows), targets.len(), received)
    }

    #[inline]
    fn kind(self) -> Kind {
        Kind((self.bits >> u32::BITS) as u8)
    }

    #[inline]
    fn xids(self) -> XidPlaces {
        XidPlaces::from_bits(self.bits as u32)
    }

    /// The key of the packet with these bytes, where it stays.
    #[inline]
    pub(in crate::forward) fn of_packet(self, bytes: &[u8]) -> PacketKey<'_> {
        PacketKey { bytes, place: self }
    }
}

/// A key in a packet.
#[derive(Debug)]
pub(in crate::forward) struct PacketKey<'a> {
    bytes: &'a [u8],
    place: KeyPlace,
}

impl Key for PacketKey<'_> {
    #[inline]
    fn kind(&self) -> Kind {
        self.place.kind()
    }

    #[inline]
    fn words(&self, at: usize) -> XidWords {
        to_words(self.place.xids().xid(self.bytes, at))
    }
}

/// A key that is in no packet.
#[derive(Clone, Debug)]
pub(in crate::forward) struct FreeKey {
    xids: ArrayVec<XidWords, MAX_FAN_OUT>,
    kind: Kind,
}

impl FreeKey {
    /// Of these XIDs, of which there are 1 to 4.
    pub(in crate::forward) fn new(xids: &[Xid], received: bool) -> Self {
        let kind = Kind::new(xids.len(), received);
        Self { xids: xids.iter().map(|xid| to_words(&xid.to_bytes())).collect(), kind }
    }
}

impl Key for FreeKey {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn words(&self, at: usize) -> XidWords {
        self.xids.get(at).copied().unwrap_or_default()
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
    use weft_base::Random;

    use super::*;
    use crate::header::Glance;
    use crate::{Address, XidType, XipPacket, XipRepr};

    fn xid(first: u8) -> Xid {
        Xid::new(XidType::HID, std::array::from_fn(|n| first + n as u8))
    }

    #[test]
    fn words_and_xids_are_the_same_thing() {
        let key = FreeKey::new(&[xid(0), Xid::NAT], true);
        assert_eq!(xids(&[key.words(0), key.words(1)])[..], [xid(0), Xid::NAT]);
    }

    #[test]
    fn a_key_is_the_same_wherever_it_stands() {
        let hash = KeyedHash::new(&mut Random::from_seed(1));
        let all = [xid(0), xid(30), xid(60), xid(90)];
        for count in 1..=all.len() {
            // Its edges lead to the last node first.
            let path: Vec<_> = all[..count].iter().rev().copied().collect();
            let address = Address::refinement(&path).unwrap();
            let mut bytes = vec![0; 300];
            XipRepr::new(address, None, 0).emit(&mut bytes).unwrap();
            let packet = XipPacket::new_checked(&bytes[..]).unwrap();
            let targets = packet.candidate_edges().unwrap();
            let window = bytes.first_chunk().unwrap();
            let Glance { xids, edges, .. } = Glance::at(window, bytes.len()).unwrap();
            for received in [false, true] {
                let free = FreeKey::new(&all[..count], received);
                let place = KeyPlace::new(xids, edges, received);
                let same = KeyPlace::of(&targets, received);
                for key in [place.of_packet(window), same.of_packet(packet.inner())] {
                    assert_eq!(key.kind().difference(free.kind()), 0);
                    assert_eq!((key.kind().edges(), key.kind().received()), (count, received));
                    assert!((0..count).all(|at| key.words(at) == free.words(at)));
                    assert_eq!(key.hash(&hash), free.hash(&hash));
                }
            }
        }
    }
}
