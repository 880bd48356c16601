//! What a reader of a table has said of destinations, by their numbers: nothing, or from which origin the route came.
//!
//! Reference: Handley et al. (XORP), §5.1 (what is deleted was added before). Two bytes for a destination, so that a reader
//! knows whether a withdrawal is due, and to whom, without a copy of the table.
//!
//! These bytes lie in blocks, which readers share that have said the same. A reader that becomes two, because one of its
//! peers is slower than the others, shares all of them with the other one; of many readers that tell a table by different
//! policies, most say the same of most destinations, and find that out ([`Said::share`]). A block is copied when one of them
//! says something else.

use std::collections::HashSet;
use std::rc::Rc;

use crate::{Check, OriginId, Prefix};

/// Nothing was said.
const NOTHING: u16 = u16::MAX;
/// Destinations of a block: half a kilobyte.
const BLOCK: usize = 256;
/// Blocks that are kept at least before those are looked for that nobody uses.
const FEW: usize = 64;

type Block = [u16; BLOCK];

/// What one reader has said.
#[derive(Clone, Debug, Default)]
pub struct Said {
    blocks: Vec<Rc<Block>>,
    /// A bit for each of them that has changed since others were asked for the same one.
    changed: Vec<u64>,
    /// The same by destinations: their numbers are used again.
    check: Check<Prefix, OriginId>,
}

/// What readers have said, for those who say the same.
#[derive(Debug, Default)]
pub struct Shared {
    blocks: HashSet<Rc<Block>>,
    /// So many there were that somebody used.
    used: usize,
}

impl Shared {
    /// The same block, of others if they have it.
    fn find(&mut self, block: &Rc<Block>) -> Rc<Block> {
        if let Some(same) = self.blocks.get(block) {
            return Rc::clone(same);
        }
        if self.blocks.len() >= 2 * self.used + FEW {
            self.blocks.retain(|block| Rc::strong_count(block) > 1);
            self.used = self.blocks.len();
        }
        self.blocks.insert(Rc::clone(block));
        Rc::clone(block)
    }

    /// Forgets all: nobody says the same as others any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
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
        let block = place / BLOCK;
        if block >= self.blocks.len() {
            // Those between have said as much: nothing.
            let nothing = Rc::new([NOTHING; BLOCK]);
            self.blocks.resize(block + 1, nothing);
            self.changed.resize(block / 64 + 1, 0);
        }
        Rc::make_mut(&mut self.blocks[block])[place % BLOCK] =
            origin.map_or(NOTHING, |origin| origin.0);
        self.changed[block / 64] |= 1 << (block % 64);
        before
    }

    /// Shares with others what they have said, too, of what has changed since the last time.
    pub fn share(&mut self, shared: &mut Shared) {
        for (place, changed) in self.changed.iter_mut().enumerate() {
            while *changed != 0 {
                let block = &mut self.blocks[64 * place + changed.trailing_zeros() as usize];
                *block = shared.find(block);
                *changed &= *changed - 1;
            }
        }
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

    /// Which blocks are one and the same.
    fn common(one: &Said, other: &Said) -> Vec<bool> {
        let pairs = one.blocks.iter().zip(&other.blocks);
        pairs.map(|(one, other)| Rc::ptr_eq(one, other)).collect()
    }

    fn first_of(block: usize) -> u32 {
        (block * BLOCK) as u32
    }

    #[test]
    fn of_two_that_were_one_each_has_its_own_last_word_and_both_share_the_rest() {
        let mut one = Said::default();
        for block in [0, 1, 4] {
            one.set((first_of(block), &prefix(block as u8)), Some(OriginId(1)));
        }
        let mut other = one.clone();
        assert_eq!(common(&one, &other), [true; 5]);
        // What was said already changes nothing.
        other.set((first_of(4), &prefix(4)), Some(OriginId(1)));
        assert_eq!(other.set((first_of(1), &prefix(1)), None), Some(OriginId(1)));
        assert_eq!(common(&one, &other), [true, false, true, true, true]);
        assert_eq!([&one, &other].map(|said| said.get(first_of(1))), [Some(OriginId(1)), None]);
        assert_eq!([&one, &other].map(|said| said.count_without(OriginId(2))), [3, 2]);
        assert_eq!(other.get(first_of(2)), None, "nobody has said anything of it");
    }

    #[test]
    fn those_who_have_said_the_same_share_it_until_one_says_something_else() {
        let mut shared = Shared::default();
        let [mut one, mut other] = [Said::default(), Said::default()];
        let [first, second, far] = [(0, &prefix(0)), (1, &prefix(1)), (first_of(70), &prefix(70))];
        for said in [&mut one, &mut other] {
            said.set(first, Some(OriginId(1)));
            said.set(far, Some(OriginId(2)));
            said.share(&mut shared);
        }
        assert!(common(&one, &other)[0] && common(&one, &other)[70]);
        one.set(second, Some(OriginId(1)));
        one.share(&mut shared);
        assert_eq!((common(&one, &other)[0], other.get(1)), (false, None));
        other.set(second, Some(OriginId(1)));
        other.share(&mut shared);
        assert!(common(&one, &other)[0]);
        assert_eq!([one.get(first.0), one.get(far.0)], [Some(OriginId(1)), Some(OriginId(2))]);
    }

    #[test]
    fn what_nobody_says_any_more_is_forgotten() {
        let (mut shared, mut said) = (Shared::default(), Said::default());
        for number in 0..10 * BLOCK as u32 {
            let net = Prefix::new(&number.to_be_bytes(), 32).unwrap();
            // No two blocks say the same.
            said.set((number, &net), Some(OriginId((number / BLOCK as u32) as u16)));
            said.share(&mut shared);
            assert!(shared.blocks.len() <= 2 * 10 + FEW + 1, "{}", shared.blocks.len());
        }
        shared.clear();
        assert!(said.blocks.iter().all(|block| Rc::strong_count(block) == 1));
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
