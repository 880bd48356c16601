//! Numbers that are free, of which the lowest is used first.
//!
//! What comes together is given numbers that follow one another, in a table that was emptied as in a new one: whatever
//! order they became free in. So routes that share attributes stay neighbours when a peering comes back.
//!
//! A bit of the lowest level is a number, a bit of each level above it says that a word below has a bit. So adding and
//! taking cost a few steps, and memory is one bit for each number, whether it is free or not.

/// Bits of a word, as a power of two.
const BITS: u32 = 6;
/// As many as numbers of 32 bits need.
const LEVELS: usize = 6;

/// A set of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeNumbers {
    levels: [Vec<u64>; LEVELS],
}

impl FreeNumbers {
    /// A number is free.
    pub(super) fn add(&mut self, number: u32) {
        let mut at = number;
        for level in &mut self.levels {
            let (word, bit) = ((at >> BITS) as usize, 1 << (at % u64::BITS));
            if word >= level.len() {
                level.resize(word + 1, 0);
            }
            let before = level[word];
            level[word] |= bit;
            if before != 0 {
                return;
            }
            at >>= BITS;
        }
    }

    /// The lowest free number, which is not free any more.
    pub(super) fn take(&mut self) -> Option<u32> {
        let mut number = 0;
        for level in self.levels.iter().rev() {
            let word = *level.get(number as usize)?;
            if word == 0 {
                return None;
            }
            number = number << BITS | word.trailing_zeros();
        }
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[(at >> BITS) as usize];
            *word &= !(1 << (at % u64::BITS));
            if *word != 0 {
                break;
            }
            at >>= BITS;
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_lowest_comes_first(
            steps in prop::collection::vec(prop::option::of(prop_oneof![0..200_u32, 0..3_000_000_u32]), 0..400)
        ) {
            let (mut free, mut model) = (FreeNumbers::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Some(number) => {
                        free.add(number);
                        model.insert(number);
                    }
                    None => prop_assert_eq!(free.take(), model.pop_first()),
                }
            }
            while let Some(number) = model.pop_first() {
                prop_assert_eq!(free.take(), Some(number));
            }
            prop_assert_eq!(free.take(), None);
        }
    }

    #[test]
    fn the_highest_number_is_one() {
        let mut free = FreeNumbers::default();
        // Bits up to it, not words of numbers: half a gigabyte would be needed for 32 bits.
        free.add((1 << 24) - 1);
        assert_eq!((free.take(), free.take()), (Some((1 << 24) - 1), None));
    }
}
