//! What a reader of a table has said of destinations, by their numbers: nothing, or from which origin the route came.
//!
//! Reference: Handley et al. (XORP), §5.1 (what is deleted was added before). Two bytes for a destination, so that a reader
//! knows whether a withdrawal is due, and to whom, without a copy of the table; and readers that have said the same of
//! many destinations share these ([`Blocks`]).

use crate::{Blocks, Check, OriginId, Prefix, Shared};

/// Nothing was said.
const NOTHING: u16 = u16::MAX;
/// Destinations of a block: half a kilobyte.
const BLOCK: usize = 256;

/// What was said of some destinations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origins([u16; BLOCK]);

impl Default for Origins {
    fn default() -> Self {
        Self([NOTHING; BLOCK])
    }
}

/// What one reader has said.
#[derive(Clone, Debug, Default)]
pub struct Said {
    blocks: Blocks<Origins>,
    /// The same by destinations: their numbers are used again.
    check: Check<Prefix, OriginId>,
}

impl Said {
    /// From which origin the route came that was said last; none if it was withdrawn, or nothing was ever said.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<OriginId> {
        let place = number as usize;
        let said = self.blocks.get(place / BLOCK).map(|block| block.0[place % BLOCK]);
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
        if before != origin {
            let block = self.blocks.change(place / BLOCK, |_| {});
            block.0[place % BLOCK] = origin.map_or(NOTHING, |origin| origin.0);
        }
        before
    }

    /// Shares with others what they have said, too, of what has changed since the last time.
    pub fn share(&mut self, shared: &mut Shared<Origins>) {
        self.blocks.share(shared, drop);
    }

    /// Of how many destinations a route was said, those from one origin left out. This looks at all destinations, at two bytes
    /// of each.
    #[must_use]
    pub fn count_without(&self, origin: OriginId) -> usize {
        let all = self.blocks.iter().flat_map(|block| &block.0);
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
    fn of_two_that_were_one_each_has_its_own_last_word() {
        let mut one = Said::default();
        for (number, net) in [(0, 0), (1, 1), (300, 2), (1000, 3)] {
            one.set((number, &prefix(net)), Some(OriginId(1)));
        }
        let mut other = one.clone();
        assert_eq!(other.set((300, &prefix(2)), None), Some(OriginId(1)));
        other.set((1, &prefix(1)), Some(OriginId(2)));
        let said = |said: &Said| [0, 1, 300, 1000, 2000].map(|number| said.get(number));
        let [first, second] = [1, 2].map(|origin| Some(OriginId(origin)));
        assert_eq!(said(&one), [first, first, first, first, None]);
        assert_eq!(said(&other), [first, second, None, first, None]);
        assert_eq!([&one, &other].map(|said| said.count_without(OriginId(2))), [4, 2]);
    }

    #[test]
    fn those_who_have_said_the_same_share_it() {
        let mut shared = Shared::default();
        let mut readers = [Said::default(), Said::default()];
        for said in &mut readers {
            said.set((1000, &prefix(1)), Some(OriginId(1)));
            said.share(&mut shared);
        }
        let [one, other] = readers.each_ref().map(|said| said.blocks.get(1000 / BLOCK).unwrap());
        assert!(std::ptr::eq(one, other));
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
