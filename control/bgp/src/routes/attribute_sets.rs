//! Attributes that routes share: stored once, and named by a number.
//!
//! A full table has some six prefixes to a set of attributes, and every peer that passes it on; a route that only holds
//! a number takes eight bytes.

use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::HashTable;
use weft_base::KeyedHash;

use super::next_hops::NextHopId;
use super::packed::{Packed, pack};
use crate::wire::{Attributes, RareBox};

/// A set of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AttributesId(u32);

impl AttributesId {
    /// None: of a route that may not be used.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// One set.
#[derive(Debug)]
struct Entry {
    set: Packed,
    /// Where its packets go.
    next_hop: NextHopId,
    /// How many routes, and others, have it.
    uses: u32,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct AttributeSets {
    all: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Their numbers, found by what is in the sets.
    numbers: HashTable<u32>,
    key: KeyedHash,
    /// Empty between calls; kept for its memory.
    words: Vec<u32>,
}

impl AttributeSets {
    /// None yet; strangers choose attributes, so they are found by a secret key.
    pub(crate) fn new(key: KeyedHash) -> Self {
        let (all, free, numbers) = (Vec::new(), Vec::new(), HashTable::new());
        Self { all, free, numbers, key, words: Vec::new() }
    }

    /// The number of a set, which has one use more. `next_hop` is called if it is new.
    pub(crate) fn intern(
        &mut self,
        attributes: &Attributes,
        next_hop: impl FnOnce(&Attributes) -> NextHopId,
    ) -> AttributesId {
        let mut words = std::mem::take(&mut self.words);
        pack(attributes, &mut words);
        let rare = &attributes.rare;
        let hash = hash(&self.key, (&words, rare));
        let all = &self.all;
        let is_it = |number: &u32| of(all, *number).set.is(&words, rare);
        let id = match self.numbers.find(hash, is_it).copied() {
            Some(number) => {
                let id = AttributesId(number);
                self.take(id);
                id
            }
            None => {
                let set = Packed::new(&words, rare.clone());
                self.insert(hash, Entry { set, next_hop: next_hop(attributes), uses: 1 })
            }
        };
        self.words = words;
        id
    }

    fn insert(&mut self, its_hash: u64, entry: Entry) -> AttributesId {
        let number = match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = Some(entry);
                number
            }
            None => {
                self.all.push(Some(entry));
                // Each takes more than four bytes.
                self.all.len() as u32 - 1
            }
        };
        let Self { numbers, all, key, .. } = self;
        numbers.insert_unique(its_hash, number, |number| hash(key, of(all, *number).set.parts()));
        AttributesId(number)
    }

    /// One use more. Nothing has any number of uses.
    pub(crate) fn take(&mut self, id: AttributesId) {
        if id != AttributesId::NONE {
            self.entry_mut(id).uses += 1;
        }
    }

    /// One use less; returns the next hop of a set that nobody uses any more.
    pub(crate) fn give(&mut self, id: AttributesId) -> Option<NextHopId> {
        if id == AttributesId::NONE {
            return None;
        }
        let entry = self.entry_mut(id);
        entry.uses -= 1;
        if entry.uses > 0 {
            return None;
        }
        let entry = self.all[id.0 as usize].take()?;
        let its_hash = hash(&self.key, entry.set.parts());
        if let Ok(found) = self.numbers.find_entry(its_hash, |number| *number == id.0) {
            found.remove();
        }
        self.free.push(id.0);
        Some(entry.next_hop)
    }

    /// A set that is in use.
    pub(crate) fn get(&self, id: AttributesId) -> &Packed {
        &self.entry(id).set
    }

    /// Where packets go by a set that is in use.
    pub(crate) fn next_hop(&self, id: AttributesId) -> NextHopId {
        self.entry(id).next_hop
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn entry(&self, id: AttributesId) -> &Entry {
        of(&self.all, id.0)
    }

    fn entry_mut(&mut self, id: AttributesId) -> &mut Entry {
        let entry = self.all[id.0 as usize].as_mut();
        entry.expect("whoever has the number of a set uses it")
    }
}

/// The set with this number, of all.
fn of(all: &[Option<Entry>], number: u32) -> &Entry {
    all[number as usize].as_ref().expect("whoever has the number of a set uses it")
}

fn hash(key: &KeyedHash, (words, rare): (&[u32], &RareBox)) -> u64 {
    let mut hasher = key.build_hasher();
    for pair in words.chunks(2) {
        let high = pair.get(1).copied().unwrap_or_default();
        hasher.write_u64(u64::from(high) << 32 | u64::from(pair[0]));
    }
    rare.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use weft_base::Random;

    use super::*;

    fn attributes(med: u32) -> Attributes {
        Attributes { med: Some(med), ..Attributes::default() }
    }

    #[test]
    fn sets_are_stored_once_and_go_with_their_last_use() {
        let mut sets = AttributeSets::new(KeyedHash::new(&mut Random::from_seed(1)));
        let hop = NextHopId(7);
        let first = sets.intern(&attributes(1), |_| hop);
        let other = sets.intern(&attributes(2), |_| NextHopId(8));
        assert_eq!(sets.intern(&attributes(1), |_| unreachable!("it is known")), first);
        assert_ne!(first, other);
        assert_eq!((sets.get(first).med(), sets.next_hop(other)), (Some(1), NextHopId(8)));
        assert_eq!(sets.give(first), None);
        assert_eq!((sets.give(first), sets.len()), (Some(hop), 1));
        // The number serves again.
        assert_eq!(sets.intern(&attributes(3), |_| hop), first);
        assert_eq!(sets.get(first).med(), Some(3));
        sets.take(AttributesId::NONE);
        assert_eq!(sets.give(AttributesId::NONE), None);
    }
}
