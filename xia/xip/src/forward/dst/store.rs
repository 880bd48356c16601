//! The entries of the cache, by the number of their edges.
//!
//! Keys of one XID to four differ in size by a factor of four, and most are short: so each number of edges
//! has a list of its own. An entry with one edge is one cache line.

use weft_processor::{prefetch, prefetch_element};

use super::Way;
use super::forest::{LeafId, NO_LEAF};
use super::index::{EntryId, tag};
use super::key::{Key, XidWords};
use crate::numbers::MAX_FAN_OUT;

/// An entry's neighbour in a queue if there is none.
pub(super) const NOBODY: EntryId = EntryId::MAX;

/// Whether another engine has an entry, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Offloaded {
    #[default]
    No,
    /// It was used, so it will be offered.
    Wanted,
    Yes,
}

/// What is known of an entry besides its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    /// Packets for which it was used.
    pub(super) hits: u64,
    /// What is to be done.
    pub(super) way: Way,
    /// The high half of the key's hash.
    tag: u32,
    /// The first of its leaves in the forest.
    pub(super) leaf: LeafId,
    /// Its neighbours in the queue it stands in.
    pub(super) newer: EntryId,
    pub(super) older: EntryId,
    /// The edge that the decision is about: 0 to 3.
    pub(super) slot: u8,
    /// Uses since the replacement looked at it last, up to [`MOST_WARMTH`].
    pub(super) warmth: u8,
    /// Which share of the cache it counts for, and in which of its queues it stands.
    pub(super) share: u8,
    pub(super) is_main: bool,
    pub(super) offloaded: Offloaded,
    /// Whether it is for packets that came in on a port.
    received: bool,
    /// False if the place is free.
    is_used: bool,
}

/// Where [`Meta::warmth`] ends.
const MOST_WARMTH: u8 = 3;

/// A cache line for one edge, two for two or three, three for four.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry<const N: usize> {
    meta: Meta,
    key: [XidWords; N],
}

const _: () = assert!(size_of::<Entry<1>>() == 64, "an entry with one edge fits a cache line");

/// Entries with the same number of edges.
#[derive(Debug, Default)]
struct Slab<const N: usize> {
    entries: Vec<Entry<N>>,
    free: Vec<u32>,
}

impl<const N: usize> Slab<N> {
    /// Puts an entry into a free place.
    fn insert(&mut self, meta: Meta, words: &[XidWords]) -> usize {
        let entry = Entry { meta, key: std::array::from_fn(|at| words[at]) };
        match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place as usize
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.entries[place].meta.is_used = false;
        self.free.push(place as u32);
    }

    /// All lines of an entry that has several.
    #[inline]
    fn prefetch(&self, place: usize) {
        if let Some(entry) = self.entries.get(place) {
            prefetch(&entry.meta);
            entry.key.iter().for_each(prefetch);
        }
    }

    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.entries.len()).filter(|place| self.entries[*place].meta.is_used)
    }
}

/// All entries. An entry's number is one less than the number of its edges, in the two high bits, and its place
/// in that list.
#[derive(Debug, Default)]
pub(super) struct Store {
    one: Slab<1>,
    two: Slab<2>,
    three: Slab<3>,
    four: Slab<MAX_FAN_OUT>,
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
            1 => size_of::<Entry<1>>(),
            2 => size_of::<Entry<2>>(),
            3 => size_of::<Entry<3>>(),
            _ => size_of::<Entry<MAX_FAN_OUT>>(),
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
    pub(super) fn insert(&mut self, key: &Key, hash: u64, way: Way, slot: u8) -> EntryId {
        let words = key.words();
        let meta = Meta {
            hits: 0,
            way,
            tag: tag(hash),
            leaf: NO_LEAF,
            newer: NOBODY,
            older: NOBODY,
            slot,
            warmth: 0,
            share: 0,
            is_main: false,
            offloaded: Offloaded::No,
            received: key.received,
            is_used: true,
        };
        let place = match words.len() {
            1 => self.one.insert(meta, words),
            2 => self.two.insert(meta, words),
            3 => self.three.insert(meta, words),
            _ => self.four.insert(meta, words),
        };
        number(words.len(), place)
    }

    pub(super) fn remove(&mut self, id: EntryId) {
        match edges(id) {
            1 => self.one.remove(place(id)),
            2 => self.two.remove(place(id)),
            3 => self.three.remove(place(id)),
            _ => self.four.remove(place(id)),
        }
    }

    #[inline]
    pub(super) fn meta(&self, id: EntryId) -> &Meta {
        match edges(id) {
            1 => &self.one.entries[place(id)].meta,
            2 => &self.two.entries[place(id)].meta,
            3 => &self.three.entries[place(id)].meta,
            _ => &self.four.entries[place(id)].meta,
        }
    }

    #[inline]
    pub(super) fn meta_mut(&mut self, id: EntryId) -> &mut Meta {
        match edges(id) {
            1 => &mut self.one.entries[place(id)].meta,
            2 => &mut self.two.entries[place(id)].meta,
            3 => &mut self.three.entries[place(id)].meta,
            _ => &mut self.four.entries[place(id)].meta,
        }
    }

    /// Whether there is an entry with this number.
    #[inline]
    pub(super) fn is_live(&self, id: EntryId) -> bool {
        self.meta(id).is_used
    }

    /// Has an entry brought near.
    #[inline]
    pub(super) fn prefetch(&self, id: EntryId) {
        match edges(id) {
            1 => prefetch_element(&self.one.entries, place(id)),
            2 => self.two.prefetch(place(id)),
            3 => self.three.prefetch(place(id)),
            _ => self.four.prefetch(place(id)),
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

    /// Whether an entry is the one for `key`.
    #[inline]
    pub(super) fn is_for(&self, id: EntryId, key: &Key) -> bool {
        self.words(id) == key.words() && self.meta(id).received == key.received
    }

    /// Counts a use.
    #[inline]
    pub(super) fn used(&mut self, id: EntryId) -> (Way, u8) {
        let meta = self.meta_mut(id);
        meta.hits += 1;
        meta.warmth = (meta.warmth + 1).min(MOST_WARMTH);
        (meta.way, meta.slot)
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

impl Meta {
    /// A hash that has the same tag as that of the key.
    pub(super) fn hash(&self) -> u64 {
        u64::from(self.tag) << 32
    }

    pub(super) fn received(&self) -> bool {
        self.received
    }
}
