//! Where an entry is: a hash table of entry numbers.
//!
//! Open addressing with linear probing. A slot is one word, half of it a part of the hash, so that a look-up
//! touches one cache line here and one of the entry, and deleting shifts slots back without a look at any
//! entry.

use weft_processor::prefetch_element;

/// The number of an entry; see [`store`](super::store).
pub(super) type EntryId = u32;

/// The smallest table.
const LEAST: usize = 64;

/// Entry numbers by hash.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Zero, or the tag in the high half and the entry's number plus one in the low half.
    slots: Vec<u64>,
    len: usize,
}

/// The part of a hash that slots keep.
#[inline]
pub(super) fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Index {
    /// The most bytes that it takes for each entry, if there are not very few: a quarter of the slots is in use
    /// right after it has grown.
    pub(super) const MOST_BYTES_EACH: usize = 4 * size_of::<u64>();

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// Has the slot brought near that is looked at first.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(last) = self.slots.len().checked_sub(1) {
            prefetch_element(&self.slots, tag(hash) as usize & last);
        }
    }

    /// The entry in the slot that is looked at first, or the next one, if it may be the one with this hash. For
    /// having its memory brought near, which entries of others are not worth.
    #[inline]
    pub(super) fn likely(&self, hash: u64) -> Option<EntryId> {
        if self.slots.is_empty() {
            return None;
        }
        let (tag, mask) = (tag(hash), self.mask());
        let first = tag as usize & mask;
        let slots = [self.slots[first], self.slots[(first + 1) & mask]];
        let found = slots.into_iter().find(|slot| *slot != 0 && (slot >> 32) as u32 == tag);
        found.map(|slot| slot as u32 - 1)
    }

    /// The entry with this hash for which `is_it` holds.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        mut is_it: impl FnMut(EntryId) -> bool,
    ) -> Option<EntryId> {
        if self.slots.is_empty() {
            return None;
        }
        let (tag, mask) = (tag(hash), self.mask());
        let mut at = tag as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == tag && is_it(slot as u32 - 1) {
                return Some(slot as u32 - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an entry that is not there.
    pub(super) fn insert(&mut self, hash: u64, entry: EntryId) {
        // Half of the slots stay empty, which keeps probes short.
        if 2 * (self.len + 1) > self.slots.len() {
            self.grow();
        }
        self.len += 1;
        self.place(u64::from(tag(hash)) << 32 | u64::from(entry + 1));
    }

    fn place(&mut self, slot: u64) {
        let mask = self.mask();
        let mut at = (slot >> 32) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(LEAST);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        old.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.place(slot));
    }

    /// Removes an entry that is there.
    pub(super) fn remove(&mut self, hash: u64, entry: EntryId) {
        if self.slots.is_empty() {
            return;
        }
        let mask = self.mask();
        let wanted = u64::from(tag(hash)) << 32 | u64::from(entry + 1);
        let mut hole = tag(hash) as usize & mask;
        while self.slots[hole] != wanted {
            if self.slots[hole] == 0 {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.len -= 1;
        let mut at = hole;
        loop {
            self.slots[hole] = 0;
            loop {
                at = (at + 1) & mask;
                let slot = self.slots[at];
                if slot == 0 {
                    return;
                }
                let home = (slot >> 32) as usize & mask;
                // Does the hole lie between its home and where it is?
                if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                    self.slots[hole] = slot;
                    hole = at;
                    break;
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few tags, so that most entries collide and every deletion shifts others.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((any::<bool>(), 0_u32..200, 0_u64..80), 0..400)) {
            let (mut index, mut model) = (Index::default(), BTreeMap::new());
            for (insert, entry, place) in steps {
                let hash = place << 33;
                if insert {
                    if let std::collections::btree_map::Entry::Vacant(vacant) = model.entry(entry) {
                        vacant.insert(hash);
                        index.insert(hash, entry);
                    }
                } else if let Some(hash) = model.remove(&entry) {
                    index.remove(hash, entry);
                }
                for entry in 0..200 {
                    let found = model.get(&entry).and_then(|hash| index.find(*hash, |id| id == entry));
                    prop_assert_eq!(found, model.contains_key(&entry).then_some(entry));
                }
                prop_assert_eq!(index.len, model.len());
                prop_assert_eq!(index.find(99 << 33, |_| true), None);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_removed() {
        let mut index = Index::default();
        index.remove(1 << 32, 0);
        index.insert(1 << 32, 0);
        index.remove(1 << 32, 1);
        assert_eq!((index.find(1 << 32, |_| true), index.len), (Some(0), 1));
        index.clear();
        assert_eq!((index.likely(1 << 32), index.slots.len()), (None, 0));
    }
}
