//! What a hit reads and writes of an entry: its key, what it says, and how often it was used.
//!
//! It lies apart from all else that is known of the entry, so that a hit touches half a cache line for a key of one XID, one line
//! for two and two for more: what the caches hold of it, and the pages that the processor knows the places of, go twice as far.

use std::mem::offset_of;
use std::num::NonZeroU64;

use weft_base::Reason;
use weft_processor::prefetch;

use super::key::{Key, Kind, XidWords};
use super::{DropReason, HopId, Way};
use crate::numbers::MAX_FAN_OUT;
use crate::principal::SocketId;

/// What an entry says: [`Hot::bits`] and [`Hot::which`] in one number, which is never zero, so that an `Option` of it is one,
/// too. It goes from one function to another in a register; in memory it would be written in parts and read as a whole, which
/// has to be waited for.
#[derive(Clone, Copy, Debug)]
pub(in crate::forward) struct Found(NonZeroU64);

impl Found {
    const BITS: u32 = 8;
    const WHICH: u32 = 32;

    #[inline]
    fn new(which: u32, bits: u8) -> Self {
        let rest = u64::from(which) << Self::WHICH | u64::from(bits) << Self::BITS;
        Self(NonZeroU64::MIN | rest)
    }

    #[inline]
    fn bits(self) -> u8 {
        (self.0.get() >> Self::BITS) as u8
    }

    #[inline]
    fn which(self) -> u32 {
        (self.0.get() >> Self::WHICH) as u32
    }

    /// The neighbour that the packet goes to, if it goes to one: what most packets do, and known without a look at the
    /// other ways.
    #[inline]
    pub(in crate::forward) fn hop(&self) -> Option<HopId> {
        (self.bits() & WHAT == FORWARD).then(|| HopId::of(self.which()))
    }

    /// What is to be done.
    #[inline]
    pub(in crate::forward) fn way(&self) -> Way {
        match self.bits() & WHAT {
            THROUGH => Way::Through,
            DELIVER => Way::Deliver(SocketId(self.which())),
            FORWARD => Way::Forward(HopId::of(self.which())),
            SEVERAL => Way::Several,
            _ => Way::Drop(DropReason::ALL[self.which() as usize]),
        }
    }

    /// The edge that it is about.
    #[inline]
    pub(in crate::forward) fn slot(&self) -> u8 {
        (self.bits() & SLOT) >> SLOT_SHIFT
    }
}

/// Of [`Hot::bits`], what is to be done: [`Way`] without what belongs to it.
const WHAT: u8 = 7;
const THROUGH: u8 = 0;
const DELIVER: u8 = 1;
const FORWARD: u8 = 2;
const SEVERAL: u8 = 3;
const DROP: u8 = 4;
/// The edge.
const SLOT: u8 = 3 << SLOT_SHIFT;
const SLOT_SHIFT: u32 = 3;
/// Uses since the replacement looked at it last, up to three.
const WARMTH: u8 = 3 << WARMTH_SHIFT;
const WARMTH_SHIFT: u32 = 5;
/// Another engine has it, or will be offered it.
const TOLD: u8 = 1 << 7;

/// What a hit needs to know of an entry besides its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    /// The socket, the next hop or the reason that belongs to what is to be done.
    which: u32,
    /// How often it was used, without what was carried over.
    uses: u16,
    /// Of which kind its key is; [`Kind::NONE`] if the place is free.
    kind: Kind,
    bits: u8,
}

impl Hot {
    /// Of an entry that was not used yet.
    pub(super) fn new(kind: Kind, way: Way, slot: u8) -> Self {
        let (what, which) = match way {
            Way::Through => (THROUGH, 0),
            Way::Deliver(socket) => (DELIVER, socket.0),
            Way::Forward(hop) => (FORWARD, hop.number()),
            Way::Several => (SEVERAL, 0),
            Way::Drop(reason) => (DROP, reason.index() as u32),
        };
        Self { which, uses: 0, kind, bits: what | slot << SLOT_SHIFT & SLOT }
    }

    /// Of a place that is free.
    pub(super) fn free(&mut self) {
        self.kind = Kind::NONE;
    }

    /// Whether there is an entry at all.
    pub(super) fn is_used(&self) -> bool {
        self.kind != Kind::NONE
    }

    /// What it says.
    #[inline]
    pub(super) fn found(&self) -> Found {
        Found::new(self.which, self.bits)
    }

    /// How often it was used, without what was carried over.
    pub(super) fn uses(&self) -> u16 {
        self.uses
    }

    /// Counts a use. Returns whether the count has begun anew, so that one has to be carried over.
    #[inline]
    #[must_use]
    pub(super) fn count(&mut self) -> bool {
        self.uses = self.uses.wrapping_add(1);
        // Some are as warm as can be: which, nobody can foresee, so it is no branch.
        self.bits += u8::from(self.bits & WARMTH != WARMTH) << WARMTH_SHIFT;
        self.uses == 0
    }

    /// Whether it is for packets that came in on a port.
    pub(super) fn received(&self) -> bool {
        self.kind.received()
    }

    /// Uses since the replacement looked at it last, up to three.
    pub(super) fn warmth(&self) -> u8 {
        (self.bits & WARMTH) >> WARMTH_SHIFT
    }

    /// Sets what [`Hot::warmth`] says.
    pub(super) fn set_warmth(&mut self, warmth: u8) {
        self.bits = self.bits & !WARMTH | warmth << WARMTH_SHIFT & WARMTH;
    }

    /// Whether another engine has it, or will be offered it.
    #[inline]
    pub(super) fn is_told(&self) -> bool {
        self.bits & TOLD != 0
    }

    /// Sets what [`Hot::is_told`] says.
    pub(super) fn set_told(&mut self, told: bool) {
        self.bits = self.bits & !TOLD | if told { TOLD } else { 0 };
    }
}

/// Aligns to half a cache line what is as long, or three times that.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct HalfLine;

/// Aligns to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct WholeLine;

/// An entry with so many XIDs, aligned as `A` is, so that it touches as few cache lines as can be. In the order in which it is
/// written here, so that the first line has [`Hot`] and the last one the key's end, and both can be asked for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Entry<const N: usize, A> {
    pub(super) hot: Hot,
    pub(super) key: [XidWords; N],
    aligned: [A; 0],
}

const _: () = assert!(size_of::<Entry<1, HalfLine>>() == 32, "two of them share a cache line");
const _: () = assert!(size_of::<Entry<2, WholeLine>>() == 64, "it is a cache line");
const _: () = assert!(size_of::<Entry<3, HalfLine>>() == 96, "it touches two, wherever it begins");
const _: () = assert!(size_of::<Entry<MAX_FAN_OUT, WholeLine>>() == 128, "it is two");
const _: () = assert!(offset_of!(Entry<MAX_FAN_OUT, WholeLine>, hot) == 0, "its first line has it");

impl<const N: usize, A> Entry<N, A> {
    pub(super) fn new(hot: Hot, key: &impl Key) -> Self {
        Self { hot, key: std::array::from_fn(|at| key.words(at)), aligned: [] }
    }

    /// Has all lines brought near.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.hot);
        if N > 2 {
            prefetch(&self.key[N - 1][2]);
        }
    }

    /// Whether it is the one for `key`. All words are compared whether the first are equal or not: as a rule, they are.
    #[inline]
    pub(super) fn is_for(&self, key: &impl Key) -> bool {
        let kind = self.hot.kind.difference(key.kind());
        let differ = (0..N).fold(kind, |differ, at| {
            let [[a, b, c], [x, y, z]] = [self.key[at], key.words(at)];
            differ | (a ^ x) | (b ^ y) | (c ^ z)
        });
        differ == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::dst::key::FreeKey;
    use crate::{Xid, XidType};

    /// Each part of the bits says what was put there, whatever is put into the others.
    #[test]
    fn an_entry_says_what_it_was_told() {
        let key = FreeKey::new(&[Xid::new(XidType::AD, [7; 20])], true);
        let hop = HopId::of(0x89ab_cdef);
        let mut ways = vec![Way::Through, Way::Deliver(SocketId(u32::MAX)), Way::Forward(hop)];
        ways.push(Way::Several);
        ways.extend(DropReason::ALL.iter().map(|reason| Way::Drop(*reason)));
        for (way, slot) in ways.iter().flat_map(|way| (0..4).map(move |slot| (*way, slot))) {
            let mut hot = Hot::new(key.kind(), way, slot);
            assert_eq!((hot.warmth(), hot.is_told(), hot.uses()), (0, false, 0));
            for uses in 1..=5 {
                hot.set_told(uses % 2 == 0);
                assert!(!hot.count());
                assert_eq!(u16::from(hot.warmth()), uses.min(3));
                assert_eq!((hot.uses(), hot.is_told()), (uses, uses % 2 == 0));
                assert_eq!((hot.found().way(), hot.found().slot()), (way, slot));
                assert_eq!(hot.found().hop(), (way == Way::Forward(hop)).then_some(hop));
                assert!(hot.is_used() && hot.received());
            }
            for warmth in 0..4 {
                hot.set_warmth(warmth);
                assert_eq!(hot.warmth(), warmth);
                assert_eq!((hot.found().way(), hot.found().slot()), (way, slot));
            }
            hot.free();
            assert!(!hot.is_used());
        }
    }

    #[test]
    fn a_count_that_begins_anew_says_so() {
        let key = FreeKey::new(&[Xid::NAT], false);
        let mut hot = Hot::new(key.kind(), Way::Through, 0);
        assert_eq!((0..1 << 17).filter(|_| hot.count()).count(), 2);
        assert_eq!(hot.uses(), 0);
    }
}
