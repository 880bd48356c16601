//! Small arrays of changing length in one large one: a node's children, a node's values.
//!
//! An array is named by its place and its length, which its owner keeps: 4 bytes and a count that
//! follows from the owner's bits. Its room is rounded up to one of a few sizes, so that most changes stay
//! in place; room that is given back serves the next array of its size.

use weft_processor::{make_room, prefetch_element};

/// Room is one of these. Up to 8 it is exact, for most nodes are small.
const SIZES: [usize; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64];

/// For each length up to 64 the index of its room in [`SIZES`]; that of 0 is never asked for.
const CLASSES: [u8; 65] = {
    let mut classes = [0; 65];
    let (mut length, mut class) = (1, 0);
    while length <= 64 {
        if SIZES[class] < length {
            class += 1;
        }
        classes[length] = class as u8;
        length += 1;
    }
    classes
};

/// Arrays of up to 64 items.
#[derive(Clone, Debug)]
pub(super) struct Blocks<T> {
    items: Vec<T>,
    /// For each size the places of free blocks.
    free: [Vec<u32>; SIZES.len()],
}

impl<T: Default> Blocks<T> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), free: std::array::from_fn(|_| Vec::new()) }
    }

    /// The item at a place.
    #[inline]
    pub(super) fn get(&self, place: u32) -> &T {
        &self.items[place as usize]
    }

    /// The item at a place, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }

    /// The item at a place will be needed soon.
    #[inline]
    pub(super) fn prefetch(&self, place: u32) {
        prefetch_element(&self.items, place as usize);
    }

    /// Puts `item` in front of the item with index `at` of the array of `length` items at `block`, or
    /// behind all of them; returns where the array is now.
    pub(super) fn insert(&mut self, block: u32, length: usize, at: usize, item: T) -> u32 {
        let block = self.resize(block, length, length + 1);
        let start = block as usize;
        self.items[start + at..=start + length].rotate_right(1);
        self.items[start + at] = item;
        block
    }

    /// Takes the item with index `at` out of the array of `length` items at `block`; returns where the
    /// array is now, and the item.
    pub(super) fn remove(&mut self, block: u32, length: usize, at: usize) -> (u32, T) {
        let start = block as usize;
        let item = std::mem::take(&mut self.items[start + at]);
        self.items[start + at..start + length].rotate_left(1);
        (self.resize(block, length, length - 1), item)
    }

    /// Gives the array of `old` items room for `new` ones. Places without items hold default values.
    fn resize(&mut self, block: u32, old: usize, new: usize) -> u32 {
        let (from, to) = (class(old), class(new));
        if from == to {
            return block;
        }
        let target = to.map_or(0, |class| self.take(class));
        for index in 0..old.min(new) {
            let item = std::mem::take(&mut self.items[block as usize + index]);
            self.items[target as usize + index] = item;
        }
        if let Some(class) = from {
            self.free[class].push(block);
        }
        target
    }

    /// Room of this class.
    fn take(&mut self, class: usize) -> u32 {
        if let Some(block) = self.free[class].pop() {
            return block;
        }
        let start = self.items.len();
        let end = start + SIZES[class];
        make_room(&mut self.items, SIZES[class]);
        self.items.resize_with(end, T::default);
        u32::try_from(start).expect("4 billion items do not fit into memory")
    }

    /// The memory taken, in bytes.
    pub(super) fn memory(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        self.items.capacity() * size_of::<T>() + free * size_of::<u32>()
    }

    /// How many places there are, those of free blocks included.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.items.len()
    }

    /// How many of them belong to free blocks.
    #[cfg(test)]
    pub(super) fn free_places(&self) -> usize {
        self.free.iter().zip(SIZES).map(|(blocks, size)| blocks.len() * size).sum()
    }
}

/// The class of room for `length` items; `None` if there are none.
fn class(length: usize) -> Option<usize> {
    (length > 0).then(|| usize::from(CLASSES[length]))
}

/// How many places an array of `length` items takes.
#[cfg(test)]
pub(super) fn room(length: usize) -> usize {
    class(length).map_or(0, |class| SIZES[class])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gets_the_smallest_room() {
        for length in 1..=64 {
            let smallest = SIZES.into_iter().find(|size| *size >= length);
            assert_eq!(Some(room(length)), smallest);
        }
        assert_eq!(room(0), 0);
    }

    #[test]
    fn items_keep_their_order_and_room_is_used_again() {
        let mut blocks = Blocks::<u32>::new();
        for _ in 0..10 {
            let mut block = 0;
            for item in 0..64 {
                // In front of the first half, behind the second.
                let at = if item % 2 == 0 { 0 } else { item };
                block = blocks.insert(block, item, at, item as u32);
            }
            for index in 0..32 {
                assert_eq!(*blocks.get(block + index), 62 - 2 * index);
                assert_eq!(*blocks.get(block + 32 + index), 2 * index + 1);
            }
            *blocks.get_mut(block) = 100;
            for length in (1..=64).rev() {
                let (place, item) = blocks.remove(block, length, 0);
                assert!(length < 64 || item == 100);
                block = place;
            }
        }
        assert_eq!(blocks.places(), SIZES.iter().sum::<usize>());
        assert_eq!(blocks.free_places(), blocks.places());
        assert!(blocks.items.iter().all(|item| *item == 0));
        assert!(blocks.memory() >= blocks.places() * 4);
    }
}
