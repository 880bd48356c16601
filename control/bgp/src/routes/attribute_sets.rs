//! Attributes that routes share: stored once, and named by a number.
//!
//! A full table has some six prefixes to a set of attributes, and every peer that passes it on; a route that only holds
//! a number takes eight bytes.

use std::collections::HashMap;
use std::rc::Rc;

use weft_base::KeyedHash;

use super::next_hops::NextHopId;
use crate::wire::Attributes;

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
    attributes: Rc<Attributes>,
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
    numbers: HashMap<Rc<Attributes>, AttributesId, KeyedHash>,
}

impl AttributeSets {
    /// None yet; strangers choose attributes, so they are found by a secret key.
    pub(crate) fn new(key: KeyedHash) -> Self {
        Self { all: Vec::new(), free: Vec::new(), numbers: HashMap::with_hasher(key) }
    }

    /// The number of a set, which has one use more. `next_hop` is called if it is new.
    pub(crate) fn intern(
        &mut self,
        attributes: Attributes,
        next_hop: impl FnOnce(&Attributes) -> NextHopId,
    ) -> AttributesId {
        if let Some(id) = self.numbers.get(&attributes).copied() {
            self.take(id);
            return id;
        }
        let next_hop = next_hop(&attributes);
        let attributes = Rc::new(attributes);
        let entry = Some(Entry { attributes: Rc::clone(&attributes), next_hop, uses: 1 });
        let id = match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = entry;
                AttributesId(number)
            }
            None => {
                self.all.push(entry);
                // Each takes more than four bytes.
                AttributesId(self.all.len() as u32 - 1)
            }
        };
        self.numbers.insert(attributes, id);
        id
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
        self.numbers.remove(&entry.attributes);
        self.free.push(id.0);
        Some(entry.next_hop)
    }

    /// The attributes of a set that is in use.
    pub(crate) fn get(&self, id: AttributesId) -> &Attributes {
        &self.entry(id).attributes
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
        let entry = self.all[id.0 as usize].as_ref();
        entry.expect("whoever has the number of a set uses it")
    }

    fn entry_mut(&mut self, id: AttributesId) -> &mut Entry {
        let entry = self.all[id.0 as usize].as_mut();
        entry.expect("whoever has the number of a set uses it")
    }
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
        let first = sets.intern(attributes(1), |_| hop);
        let other = sets.intern(attributes(2), |_| NextHopId(8));
        assert_eq!(sets.intern(attributes(1), |_| unreachable!("it is known")), first);
        assert_ne!(first, other);
        assert_eq!((sets.get(first).med, sets.next_hop(other)), (Some(1), NextHopId(8)));
        assert_eq!(sets.give(first), None);
        assert_eq!((sets.give(first), sets.len()), (Some(hop), 1));
        // The number serves again.
        assert_eq!(sets.intern(attributes(3), |_| hop), first);
        assert_eq!(sets.get(first).med, Some(3));
        sets.take(AttributesId::NONE);
        assert_eq!(sets.give(AttributesId::NONE), None);
    }
}
