//! What a reader of a table has said of destinations, by their numbers: nothing, or from which origin the route came.
//!
//! Reference: Handley et al. (XORP), §5.1 (what is deleted was added before). Two bytes for a destination, so that a reader
//! knows whether a withdrawal is due, and to whom, without a copy of the table. A reader that becomes two, because one of
//! its peers is slower than the others, shares with the other what both have said: a copy costs a pointer for each
//! block of destinations, and one of a block when one of them says something else.

use std::rc::Rc;

use crate::{Check, OriginId, Prefix};

/// Nothing was said.
const NOTHING: u16 = u16::MAX;
/// Destinations of a block: two kilobytes.
const BLOCK: usize = 1024;

/// What one reader has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    blocks: Vec<Rc<[u16; BLOCK]>>,
    /// The same by destinations: their numbers are used again.
    check: Check<Prefix, OriginId>,
}

impl Said {
    /// From which origin the route came that was said last; none if it was withdrawn, or nothing was ever said.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<OriginId> {
        let place = number as usize;
        let said = self.blocks.get(place / BLOCK).map(|block| block[place % BLOCK]);
        said.filter(|said| *said != NOTHING).map(OriginId)
    }

    /// Remembers what is said now of a destination; returns what was said before.
    ///
    /// # Panics
    /// It was said of another destination with this number, where there are assertions.
    #[track_caller]
    pub fn set(
        &mut self,
        (number, destination): (u32, &Prefix),
        origin: Option<OriginId>,
    ) -> Option<OriginId> {
        let place = number as usize;
        let before = self.get(number);
        self.check.change(*destination, before.is_some(), origin);
        if before == origin {
            return before;
        }
        if place / BLOCK >= self.blocks.len() {
            // Those between have said as much: nothing.
            let nothing = Rc::new([NOTHING; BLOCK]);
            self.blocks.resize(place / BLOCK + 1, nothing);
        }
        let block = Rc::make_mut(&mut self.blocks[place / BLOCK]);
        block[place % BLOCK] = origin.map_or(NOTHING, |origin| origin.0);
        before
    }

    /// Of how many destinations a route was said, those from one origin left out. This looks at all destinations, at two bytes
    /// of each.
    #[must_use]
    pub fn count_without(&self, origin: OriginId) -> usize {
        let all = self.blocks.iter().flat_map(|block| block.iter());
        all.filter(|said| **said != NOTHING && **said != origin.0).count()
    }

    /// As [`Check::is_due`].
    #[must_use]
    pub fn is_due(&self, size: usize) -> bool {
        self.check.is_due(size)
    }

    /// As [`Check::compare`].
    ///
    /// # Panics
    /// Something else was said.
    #[track_caller]
    pub fn compare(&mut self, holds: impl IntoIterator<Item = (Prefix, OriginId)>) {
        self.check.compare(holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_remembered() {
        let mut sent = Said::default();
        let five = (5, &prefix(5));
        assert_eq!(sent.set(five, None), None);
        assert_eq!(sent.set(five, Some(OriginId(1))), None);
        assert_eq!(sent.set(five, Some(OriginId(2))), Some(OriginId(1)));
        assert_eq!((sent.get(5), sent.get(4), sent.get(6)), (Some(OriginId(2)), None, None));
        sent.set((7, &prefix(7)), Some(OriginId(3)));
        assert_eq!([1, 2].map(|origin| sent.count_without(OriginId(origin))), [2, 1]);
        sent.set((7, &prefix(7)), None);
        assert_eq!(sent.set(five, None), Some(OriginId(2)));
        assert_eq!(sent.get(5), None);
    }

    #[test]
    fn of_two_that_were_one_each_has_its_own_last_word_and_both_share_the_rest() {
        let mut one = Said::default();
        let number = |block: usize| (block * BLOCK) as u32;
        for block in [0, 1, 4] {
            one.set((number(block), &prefix(block as u8)), Some(OriginId(1)));
        }
        let mut other = one.clone();
        let shared = |one: &Said, other: &Said| -> Vec<bool> {
            let pairs = one.blocks.iter().zip(&other.blocks);
            pairs.map(|(one, other)| Rc::ptr_eq(one, other)).collect()
        };
        assert_eq!(shared(&one, &other), [true; 5]);
        // What was said already changes nothing.
        other.set((number(4), &prefix(4)), Some(OriginId(1)));
        assert_eq!(other.set((number(1), &prefix(1)), None), Some(OriginId(1)));
        assert_eq!(shared(&one, &other), [true, false, true, true, true]);
        assert_eq!([&one, &other].map(|said| said.get(number(1))), [Some(OriginId(1)), None]);
        assert_eq!([&one, &other].map(|said| said.count_without(OriginId(2))), [3, 2]);
        assert_eq!(other.get(number(2)), None, "nobody has said anything of it");
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "is deleted")]
    fn a_number_that_is_used_again_is_another_destination() {
        let mut sent = Said::default();
        sent.set((5, &prefix(5)), Some(OriginId(1)));
        // That the first one is gone was never said.
        sent.set((5, &prefix(6)), None);
    }

    fn prefix(number: u8) -> Prefix {
        Prefix::new(&[10, number], 16).unwrap()
    }
}
