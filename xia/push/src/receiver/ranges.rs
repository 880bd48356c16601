//! A set of byte ranges, kept as few as possible.

use std::collections::BTreeMap;

/// Ranges that neither touch nor overlap, by their start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds `start..end`.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) {
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.0.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.0.insert(start, end);
    }

    /// Takes out all bytes from `end` on.
    pub(super) fn cut(&mut self, end: u64) {
        drop(self.0.split_off(&end));
        if let Some(mut last) = self.0.last_entry()
            && *last.get() > end
        {
            last.insert(end);
        }
    }

    /// Whether all of `start..end` is in the set.
    pub(super) fn contains(&self, start: u64, end: u64) -> bool {
        self.0.range(..=start).next_back().is_some_and(|(_, other_end)| *other_end >= end)
    }

    /// Whether any byte of `start..end` is in the set.
    pub(super) fn overlaps(&self, start: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, other_end)| *other_end > start)
    }

    /// Where the bytes that follow from the start of the object end.
    pub(super) fn prefix_end(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }

    /// How many bytes are in the set.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(start, end)| (*start, *end))
    }

    /// The end of the last range.
    pub(super) fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(_, end)| *end)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_become_one() {
        let mut ranges = Ranges::default();
        ranges.insert(10, 20);
        ranges.insert(30, 40);
        assert_eq!(ranges.prefix_end(), 0);
        ranges.insert(0, 10);
        ranges.insert(20, 30);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 40)]);
        assert_eq!((ranges.prefix_end(), ranges.end(), ranges.bytes()), (40, 40, 40));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list_of_bytes(
            inserts in prop::collection::vec((0u64..60, 1u64..9), 0..20), start in 0u64..60, len in 1u64..9
        ) {
            let mut ranges = Ranges::default();
            let mut naive = [false; 80];
            for (start, len) in inserts {
                ranges.insert(start, start + len);
                naive[start as usize..(start + len) as usize].fill(true);
            }
            let window = &naive[start as usize..(start + len) as usize];
            prop_assert_eq!(ranges.contains(start, start + len), window.iter().all(|bit| *bit));
            prop_assert_eq!(ranges.overlaps(start, start + len), window.iter().any(|bit| *bit));
            prop_assert_eq!(ranges.bytes(), naive.iter().filter(|bit| **bit).count() as u64);
            prop_assert_eq!(ranges.prefix_end(), naive.iter().take_while(|bit| **bit).count() as u64);
            let all: Vec<_> = ranges.iter().collect();
            prop_assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0));
            ranges.cut(start);
            let left = naive[..start as usize].iter().filter(|bit| **bit).count();
            prop_assert_eq!(ranges.bytes(), left as u64);
            prop_assert!(ranges.end() <= start);
        }
    }
}
