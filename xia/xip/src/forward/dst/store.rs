//! The entries of the cache, by the number of their edges.
//!
//! Keys of one XID to four differ in size by a factor of four, and most are short: so each number of edges
//! has a list of its own. What a hit needs ([`Entry`]) lies in one table, what else is known ([`Cold`]) in another.

use weft_processor::prefetch_element;

use super::Way;
use super::entry::{Entry, Found, HalfLine, Hot, WholeLine};
use super::forest::{LeafId, NO_LEAF};
use super::index::{EntryId, Tag};
use super::key::{Key, XidWords};
use super::slab::Slab;
use crate::numbers::MAX_FAN_OUT;

/// An entry's neighbour in a queue if there is none.
pub(super) const NOBODY: EntryId = EntryId::MAX;

/// Whether another engine has an entry, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offloaded {
    No,
    /// It was used, so it will be offered.
    Wanted,
    Yes,
}

/// What is known of an entry that no hit needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cold {
    /// What the index finds it by.
    pub(super) tag: Tag,
    /// The first of its leaves in the forest.
    pub(super) leaf: LeafId,
    /// Its neighbours in the queue it stands in. Of a place without an entry: where it stands in the list of these.
    pub(super) newer: EntryId,
    pub(super) older: EntryId,
    /// How often [`Hot`]'s count of uses has begun anew, the lowest digits first: with that count it is a number of 64 bits.
    carried: [u16; 3],
    /// Which share of the cache it counts for.
    pub(super) share: u8,
    bits: u8,
}

/// Of [`Cold::bits`]: it stands in the main queue of its share.
const MAIN: u8 = 1;
/// Another engine has it, and is told, too ([`Hot::is_told`]).
const OFFLOADED: u8 = 1 << 1;

impl Cold {
    pub(super) fn new(tag: Tag) -> Self {
        Self {
            tag,
            leaf: NO_LEAF,
            newer: NOBODY,
            older: NOBODY,
            carried: [0; 3],
            share: 0,
            bits: 0,
        }
    }

    /// In which queue of its share it stands.
    pub(super) fn is_main(&self) -> bool {
        self.bits & MAIN != 0
    }

    /// Sets what [`Cold::is_main`] says.
    pub(super) fn set_main(&mut self, is_main: bool) {
        self.bits = self.bits & !MAIN | if is_main { MAIN } else { 0 };
    }

    #[cold]
    pub(super) fn carry(&mut self) {
        for digit in &mut self.carried {
            *digit = digit.wrapping_add(1);
            if *digit != 0 {
                break;
            }
        }
    }

    /// Of its uses, all that [`Hot`] does not have.
    fn carried(&self) -> u64 {
        let [a, b, c] = self.carried.map(u64::from);
        a << 16 | b << 32 | c << 48
    }
}

/// All entries. An entry's number is one less than the number of its edges, in the two high bits, and its place
/// in that list.
#[derive(Debug, Default)]
pub(super) struct Store {
    one: Slab<1, HalfLine>,
    two: Slab<2, WholeLine>,
    three: Slab<3, HalfLine>,
    four: Slab<MAX_FAN_OUT, WholeLine>,
}

const PLACE_BITS: u32 = 30;

#[inline]
fn number(edges: usize, place: usize) -> EntryId {
    ((edges - 1) as u32) << PLACE_BITS | place as u32
}

#[inline]
fn place(id: EntryId) -> usize {
    (id & ((1 << PLACE_BITS) - 1)) as usize
}

#[inline]
fn edges(id: EntryId) -> usize {
    (id >> PLACE_BITS) as usize + 1
}

impl Store {
    /// The bytes that an entry takes, by its number.
    pub(super) fn bytes(id: EntryId) -> usize {
        match edges(id) {
            1 => Slab::<1, HalfLine>::BYTES,
            2 => Slab::<2, WholeLine>::BYTES,
            3 => Slab::<3, HalfLine>::BYTES,
            _ => Slab::<MAX_FAN_OUT, WholeLine>::BYTES,
        }
    }

    /// The number of edges of an entry, by its number.
    #[inline]
    pub(super) fn edges(id: EntryId) -> usize {
        edges(id)
    }

    /// The next place in a list, 0 to 3, that may have an entry; `None` if there is none.
    pub(super) fn turn(&self, list: usize, hand: &mut usize) -> Option<EntryId> {
        let places = match list {
            0 => self.one.entries.len(),
            1 => self.two.entries.len(),
            2 => self.three.entries.len(),
            _ => self.four.entries.len(),
        };
        *hand = (*hand + 1).checked_rem(places)?;
        Some(number(list + 1, *hand))
    }

    /// Adds an entry, which stands in no queue and has no leaves yet. A key without edges is not for here.
    pub(super) fn insert(&mut self, key: &impl Key, tag: Tag, way: Way, slot: u8) -> EntryId {
        let edges = key.kind().edges();
        let (hot, cold) = (Hot::new(key.kind(), way, slot), Cold::new(tag));
        let place = match edges {
            1 => self.one.insert(Entry::new(hot, key), cold),
            2 => self.two.insert(Entry::new(hot, key), cold),
            3 => self.three.insert(Entry::new(hot, key), cold),
            _ => self.four.insert(Entry::new(hot, key), cold),
        };
        number(edges, place)
    }

    pub(super) fn remove(&mut self, id: EntryId) {
        match edges(id) {
            1 => self.one.remove(place(id)),
            2 => self.two.remove(place(id)),
            3 => self.three.remove(place(id)),
            _ => self.four.remove(place(id)),
        }
    }

    /// Bytes of places without an entry.
    pub(super) fn spare(&self) -> usize {
        self.one.spare() + self.two.spare() + self.three.spare() + self.four.spare()
    }

    /// Moves the last entry of a list into a place that another has left, so that the list becomes shorter, and its memory goes
    /// back to the system; one of those with most bytes to spare. Returns the number that it had, and its new one. `None` if there is
    /// nothing to move.
    pub(super) fn close_gap(&mut self) -> Option<(EntryId, EntryId)> {
        loop {
            let spare = [self.one.spare(), self.two.spare(), self.three.spare(), self.four.spare()];
            let (list, bytes) = (1..).zip(spare).max_by_key(|(_, bytes)| *bytes)?;
            let moved = match list {
                _ if bytes == 0 => return None,
                1 => self.one.close_gap(),
                2 => self.two.close_gap(),
                3 => self.three.close_gap(),
                _ => self.four.close_gap(),
            };
            // If there was nothing to move, the list has no gaps now.
            if let Some((from, to)) = moved {
                return Some((number(list, from), number(list, to)));
            }
        }
    }

    /// What a hit needs to know of an entry.
    #[inline]
    pub(super) fn hot(&self, id: EntryId) -> &Hot {
        match edges(id) {
            1 => &self.one.entries[place(id)].hot,
            2 => &self.two.entries[place(id)].hot,
            3 => &self.three.entries[place(id)].hot,
            _ => &self.four.entries[place(id)].hot,
        }
    }

    #[inline]
    pub(super) fn hot_mut(&mut self, id: EntryId) -> &mut Hot {
        match edges(id) {
            1 => &mut self.one.entries[place(id)].hot,
            2 => &mut self.two.entries[place(id)].hot,
            3 => &mut self.three.entries[place(id)].hot,
            _ => &mut self.four.entries[place(id)].hot,
        }
    }

    /// What else is known of it.
    #[inline]
    pub(super) fn cold(&self, id: EntryId) -> &Cold {
        match edges(id) {
            1 => &self.one.cold[place(id)],
            2 => &self.two.cold[place(id)],
            3 => &self.three.cold[place(id)],
            _ => &self.four.cold[place(id)],
        }
    }

    #[inline]
    pub(super) fn cold_mut(&mut self, id: EntryId) -> &mut Cold {
        match edges(id) {
            1 => &mut self.one.cold[place(id)],
            2 => &mut self.two.cold[place(id)],
            3 => &mut self.three.cold[place(id)],
            _ => &mut self.four.cold[place(id)],
        }
    }

    /// Packets for which an entry was used.
    pub(super) fn hits(&self, id: EntryId) -> u64 {
        self.cold(id).carried() | u64::from(self.hot(id).uses())
    }

    /// Whether another engine has an entry.
    pub(super) fn offloaded(&self, id: EntryId) -> Offloaded {
        match (self.hot(id).is_told(), self.cold(id).bits & OFFLOADED != 0) {
            (false, _) => Offloaded::No,
            (true, false) => Offloaded::Wanted,
            (true, true) => Offloaded::Yes,
        }
    }

    /// Sets what [`Store::offloaded`] says.
    pub(super) fn set_offloaded(&mut self, id: EntryId, offloaded: Offloaded) {
        self.hot_mut(id).set_told(offloaded != Offloaded::No);
        let bits = &mut self.cold_mut(id).bits;
        *bits = *bits & !OFFLOADED | if offloaded == Offloaded::Yes { OFFLOADED } else { 0 };
    }

    /// Whether there is an entry with this number.
    #[inline]
    pub(super) fn is_live(&self, id: EntryId) -> bool {
        match edges(id) {
            1 => self.one.is_live(place(id)),
            2 => self.two.is_live(place(id)),
            3 => self.three.is_live(place(id)),
            _ => self.four.is_live(place(id)),
        }
    }

    /// Has brought near what a hit needs of an entry, if there is one with this number.
    #[inline]
    pub(super) fn prefetch(&self, id: EntryId) {
        // Those with one edge have the lowest numbers, which are their places.
        if let Some(entry) = self.one.entries.get(id as usize) {
            return entry.prefetch();
        }
        match edges(id) {
            1 => {}
            2 => self.two.prefetch(place(id)),
            3 => self.three.prefetch(place(id)),
            _ => self.four.prefetch(place(id)),
        }
    }

    /// Has brought near what else is known of it.
    pub(super) fn prefetch_cold(&self, id: EntryId) {
        match edges(id) {
            1 => prefetch_element(&self.one.cold, place(id)),
            2 => prefetch_element(&self.two.cold, place(id)),
            3 => prefetch_element(&self.three.cold, place(id)),
            _ => prefetch_element(&self.four.cold, place(id)),
        }
    }

    /// The XIDs of an entry's key.
    #[inline]
    pub(super) fn words(&self, id: EntryId) -> &[XidWords] {
        match edges(id) {
            1 => &self.one.entries[place(id)].key,
            2 => &self.two.entries[place(id)].key,
            3 => &self.three.entries[place(id)].key,
            _ => &self.four.entries[place(id)].key,
        }
    }

    /// Whether an entry is the one for `key`, and still there.
    #[inline]
    pub(super) fn is_for(&self, id: EntryId, key: &impl Key) -> bool {
        match edges(id) {
            1 => self.one.is_for(place(id), key),
            2 => self.two.is_for(place(id), key),
            3 => self.three.is_for(place(id), key),
            _ => self.four.is_for(place(id), key),
        }
    }

    /// Counts a use, if there is an entry with this number, and it is the one for `key`: what is to be done, and the edge that it is about.
    #[inline]
    pub(super) fn use_for(&mut self, id: EntryId, key: &impl Key) -> Option<Found> {
        // Most have one edge, and then the number is the place; a jump that can be foreseen is better than one by a table.
        if (id as usize) < self.one.entries.len() {
            return self.one.use_for(id as usize, key);
        }
        match edges(id) {
            1 => None,
            2 => self.two.use_for(place(id), key),
            3 => self.three.use_for(place(id), key),
            _ => self.four.use_for(place(id), key),
        }
    }

    /// Counts a use.
    #[inline]
    pub(super) fn used(&mut self, id: EntryId) -> Found {
        if self.hot_mut(id).count() {
            self.cold_mut(id).carry();
        }
        self.hot(id).found()
    }

    /// The numbers of all entries.
    pub(super) fn ids(&self) -> impl Iterator<Item = EntryId> + '_ {
        let one = self.one.live().map(|place| number(1, place));
        let two = self.two.live().map(|place| number(2, place));
        let three = self.three.live().map(|place| number(3, place));
        let four = self.four.live().map(|place| number(4, place));
        one.chain(two).chain(three).chain(four)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::XidType;
    use crate::forward::dst::key::FreeKey;
    use crate::xid::Xid;

    /// Whether they are counted as they are in batches or one by one, and past the count that lies with the key.
    #[test]
    fn all_uses_are_counted() {
        for edges in 1..=MAX_FAN_OUT {
            let xids: Vec<_> = (0..edges).map(|at| Xid::new(XidType::AD, [at as u8; 20])).collect();
            let (key, other) = (FreeKey::new(&xids, true), FreeKey::new(&xids, false));
            let mut store = Store::default();
            let id = store.insert(&key, Tag::default(), Way::Through, 0);
            for _ in 0..100_000 {
                assert!(store.use_for(id, &key).is_some() && store.use_for(id, &other).is_none());
                store.used(id);
            }
            assert_eq!(store.hits(id), 200_000, "{edges} edges");
        }
    }

    #[test]
    fn a_digit_that_is_full_is_carried_to_the_next() {
        let mut cold = Cold::new(Tag::default());
        cold.carried = [u16::MAX, u16::MAX, 6];
        cold.carry();
        assert_eq!(cold.carried(), 7 << 48);
        cold.carry();
        assert_eq!(cold.carried(), 7 << 48 | 1 << 16);
    }

    #[test]
    fn what_another_engine_has_is_known_whatever_else_is() {
        let key = FreeKey::new(&[Xid::NAT], true);
        let mut store = Store::default();
        let id = store.insert(&key, Tag::default(), Way::Through, 0);
        for main in [false, true] {
            for state in [Offloaded::Wanted, Offloaded::Yes, Offloaded::No, Offloaded::Yes] {
                store.cold_mut(id).set_main(main);
                store.set_offloaded(id, state);
                assert_eq!((store.offloaded(id), store.cold(id).is_main()), (state, main));
                assert_eq!(store.hot(id).is_told(), state != Offloaded::No);
            }
        }
    }
}
