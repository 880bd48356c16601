//! Where an entry or an anchor is: a hash table of numbers.
//!
//! Open addressing by lines of the processor's caches: eight tags, which are parts of hashes, and the numbers of their
//! entries. All tags of a line are compared at once, so that neither where in its line an entry stands nor how many
//! others stand there is a branch that nobody can foresee. A look-up touches one line here and one of the entry, a look-up in
//! vain the one here alone, and deleting moves back what has passed a full line without a look at any entry.

use std::num::NonZeroU32;

use weft_processor::{make_room, places, prefetch_element};

/// The number of an entry; see [`store`](super::store).
pub(in crate::forward) type EntryId = u32;

/// Slots of a line.
const SLOTS: usize = 8;
/// Lines of the smallest table.
const LEAST: usize = 8;
/// The tag of an empty slot.
const EMPTY: u32 = 0;

/// Slots that are compared at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Line {
    tags: [u32; SLOTS],
    entries: [EntryId; SLOTS],
}

impl Line {
    /// The slots with this tag: a bit for each, the lowest for the first.
    #[inline]
    fn with(&self, tag: u32) -> u32 {
        places(&self.tags, tag)
    }

    fn has_room(&self) -> bool {
        self.with(EMPTY) != 0
    }

    fn put(&mut self, slot: usize, tag: u32, entry: EntryId) {
        (self.tags[slot], self.entries[slot]) = (tag, entry);
    }
}

/// The part of a hash that slots keep, never that of an empty one. It says where an entry may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::forward) struct Tag(NonZeroU32);

impl Tag {
    /// Of a key's hash.
    #[inline]
    pub(super) fn of(hash: u64) -> Self {
        Self::with((hash >> 32) as u32)
    }

    #[inline]
    fn with(bits: u32) -> Self {
        Self(NonZeroU32::new(bits).unwrap_or(NonZeroU32::MIN))
    }

    /// As slots have it.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0.get()
    }
}

impl Default for Tag {
    fn default() -> Self {
        Self(NonZeroU32::MIN)
    }
}

/// What is known of where an entry may be, before anything of it is read: the number of the one that it is, most likely, or one that
/// no entry has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::forward) struct Guess(EntryId);

impl Guess {
    /// It is not there.
    pub(in crate::forward) const NOTHING: Self = Self(EntryId::MAX);
    /// One would have to look further.
    const UNKNOWN: Self = Self(EntryId::MAX - 1);

    /// The number.
    #[inline]
    pub(super) fn entry(self) -> EntryId {
        self.0
    }
}

impl Default for Guess {
    fn default() -> Self {
        Self::NOTHING
    }
}

/// Entry numbers by hash.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// As many as a power of two says.
    lines: Vec<Line>,
    len: usize,
}

impl Index {
    /// The bytes that it takes for each entry right after it has grown: a quarter of the slots is in use then.
    const BYTES_EACH: usize = 4 * size_of::<Line>() / SLOTS;

    /// The bytes that it takes now, or will when a few entries more have come: it grows at once, and this does not.
    pub(super) fn bytes(&self) -> usize {
        (self.len * Self::BYTES_EACH).max(self.lines.len() * size_of::<Line>())
    }

    /// The line that comes first for a tag, if there are lines.
    #[inline]
    fn home(&self, tag: Tag) -> usize {
        tag.bits() as usize & self.lines.len().wrapping_sub(1)
    }

    #[inline]
    fn behind(&self, line: usize) -> usize {
        (line + 1) & (self.lines.len() - 1)
    }

    /// Has the line brought near that is looked at first.
    #[inline]
    pub(super) fn prefetch(&self, tag: Tag) {
        prefetch_element(&self.lines, self.home(tag));
    }

    /// What the line that is looked at first says.
    #[inline]
    pub(super) fn guess(&self, tag: Tag) -> Guess {
        let Some(line) = self.lines.get(self.home(tag)) else { return Guess::NOTHING };
        match line.with(tag.bits()) {
            0 if line.has_room() => Guess::NOTHING,
            0 => Guess::UNKNOWN,
            found => Guess(line.entries[found.trailing_zeros() as usize % SLOTS]),
        }
    }

    /// The entry with this tag for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, tag: Tag, mut is_it: impl FnMut(EntryId) -> bool) -> Option<EntryId> {
        let mut at = self.home(tag);
        loop {
            let line = self.lines.get(at)?;
            let mut found = line.with(tag.bits());
            while found != 0 {
                let entry = line.entries[found.trailing_zeros() as usize % SLOTS];
                if is_it(entry) {
                    return Some(entry);
                }
                found &= found - 1;
            }
            if line.has_room() {
                return None;
            }
            at = self.behind(at);
        }
    }

    /// Adds an entry that is not there.
    pub(super) fn insert(&mut self, tag: Tag, entry: EntryId) {
        // Half of the slots stay empty, so that few lines are full.
        if 2 * (self.len + 1) > self.lines.len() * SLOTS {
            self.resize((2 * self.lines.len()).max(LEAST));
        }
        self.len += 1;
        self.place(tag, entry);
    }

    fn place(&mut self, tag: Tag, entry: EntryId) {
        let mut at = self.home(tag);
        while !self.lines[at].has_room() {
            at = self.behind(at);
        }
        let slot = self.lines[at].with(EMPTY).trailing_zeros() as usize;
        self.lines[at].put(slot, tag.bits(), entry);
    }

    fn resize(&mut self, size: usize) {
        let mut lines = Vec::new();
        make_room(&mut lines, size);
        lines.resize(size, Line::default());
        let old = std::mem::replace(&mut self.lines, lines);
        for line in &old {
            for (tag, entry) in line.tags.into_iter().zip(line.entries) {
                if tag != EMPTY {
                    self.place(Tag::with(tag), entry);
                }
            }
        }
    }

    /// An entry that is there has another number now.
    pub(super) fn entry_moved(&mut self, tag: Tag, entry: EntryId, now: EntryId) {
        if let Some((line, slot)) = self.slot_of(tag, entry) {
            self.lines[line].entries[slot] = now;
        }
    }

    /// Removes an entry that is there.
    pub(super) fn remove(&mut self, tag: Tag, entry: EntryId) {
        let Some((mut hole, mut slot)) = self.slot_of(tag, entry) else { return };
        self.len -= 1;
        let mut at = hole;
        // Behind a line that has room nothing stands that belongs before it.
        while !self.lines[at].has_room() {
            at = self.behind(at);
            if let Some(found) = self.before(at, hole) {
                let (tag, entry) = (self.lines[at].tags[found], self.lines[at].entries[found]);
                self.lines[hole].put(slot, tag, entry);
                (hole, slot) = (at, found);
            }
        }
        self.lines[hole].put(slot, EMPTY, 0);
        // As full as after growing.
        if self.len == 0 {
            self.clear();
        } else if 8 * self.len < self.lines.len() * SLOTS && self.lines.len() > LEAST {
            self.resize(self.lines.len() / 2);
        }
    }

    /// A slot of the line `at` whose entry may as well stand in the line `hole`, which lies before it.
    fn before(&self, at: usize, hole: usize) -> Option<usize> {
        let distance = |from: usize| at.wrapping_sub(from) & (self.lines.len() - 1);
        let is_before =
            |tag: &u32| *tag != EMPTY && distance(self.home(Tag::with(*tag))) >= distance(hole);
        self.lines[at].tags.iter().position(is_before)
    }

    /// Where an entry stands.
    fn slot_of(&self, tag: Tag, entry: EntryId) -> Option<(usize, usize)> {
        let mut at = self.home(tag);
        loop {
            let line = self.lines.get(at)?;
            let mut slots = line.tags.iter().zip(line.entries);
            let found = slots.position(|(own, of)| (*own, of) == (tag.bits(), entry));
            match found {
                Some(slot) => return Some((at, slot)),
                None if line.has_room() => return None,
                None => at = self.behind(at),
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
        /// Few tags and fewer lines to begin with, so that most entries collide and every deletion moves others.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((any::<bool>(), 0_u32..200, 0_u64..80), 0..400)) {
            let (mut index, mut model) = (Index::default(), BTreeMap::new());
            for (insert, entry, place) in steps {
                let tag = Tag::of(((place << 20) | (place % 3)) << 32);
                if insert {
                    if let std::collections::btree_map::Entry::Vacant(vacant) = model.entry(entry) {
                        vacant.insert(tag);
                        index.insert(tag, entry);
                    }
                } else if let Some(tag) = model.remove(&entry) {
                    index.remove(tag, entry);
                }
                for entry in 0..200 {
                    let found = model.get(&entry).and_then(|tag| index.find(*tag, |id| id == entry));
                    prop_assert_eq!(found, model.contains_key(&entry).then_some(entry));
                }
                prop_assert_eq!(index.len, model.len());
                let least = (LEAST * SLOTS).max(8 * index.len);
                prop_assert!(index.lines.len() * SLOTS <= least && index.bytes() >= 32 * index.len);
                prop_assert_eq!(index.find(Tag::of(99 << 52), |_| true), None);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_removed() {
        let mut index = Index::default();
        let tag = Tag::of(1 << 32);
        index.remove(tag, 0);
        index.insert(tag, 0);
        index.remove(tag, 1);
        assert_eq!((index.find(tag, |_| true), index.len), (Some(0), 1));
        index.clear();
        assert_eq!((index.guess(tag), index.lines.len()), (Guess::NOTHING, 0));
    }
}
