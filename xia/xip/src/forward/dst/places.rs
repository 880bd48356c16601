//! Places in a table that are taken and left, and of which none is kept for long that nobody needs.
//!
//! What an item leaves is for the next one. But senders decide what is asked for: what was kept of many short decisions may be no
//! use for a few long ones. So the last item of a table can be moved into a gap, and the end goes back to the system.

use std::ops::{Index, IndexMut};

use weft_processor::{give_back, make_room};

/// The numbers of places without an item. Where each stands in this list, the table notes at the place.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<u32>);

impl Gaps {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A place that is taken now, if there is one.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.0.pop().map(|place| place as usize)
    }

    /// A place is left; where it stands here from now on.
    pub(super) fn leave(&mut self, place: usize) -> u32 {
        self.0.push(place as u32);
        (self.0.len() - 1) as u32
    }

    /// There is no longer such a place as the one that stands `at`. Returns the place that stands there now in its stead, if
    /// any does.
    pub(super) fn forget(&mut self, at: u32) -> Option<usize> {
        self.0.swap_remove(at as usize);
        self.0.get(at as usize).map(|place| *place as usize)
    }
}

/// What stands in the places of a [`Table`].
pub(super) trait Item: Copy {
    /// No item; the place stands `at` in the list of gaps.
    fn gap(at: u32) -> Self;

    /// Where the place stands in that list; `None` if there is an item.
    fn gap_at(&self) -> Option<u32>;
}

/// Items by the numbers of their places.
#[derive(Debug)]
pub(super) struct Table<T> {
    items: Vec<T>,
    gaps: Gaps,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { items: Vec::new(), gaps: Gaps::default() }
    }
}

impl<T: Item> Table<T> {
    /// Puts an item into a free place; returns which.
    pub(super) fn insert(&mut self, item: T) -> u32 {
        let place = match self.gaps.take() {
            Some(place) => {
                self.items[place] = item;
                place
            }
            None => {
                make_room(&mut self.items, 1);
                self.items.push(item);
                self.items.len() - 1
            }
        };
        place as u32
    }

    /// Takes out the item at a place, where one is.
    pub(super) fn remove(&mut self, place: u32) -> T {
        let gap = T::gap(self.gaps.leave(place as usize));
        std::mem::replace(&mut self.items[place as usize], gap)
    }

    /// What is at a place, if there is such a place.
    pub(super) fn get(&self, place: u32) -> Option<&T> {
        self.items.get(place as usize)
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.items.get_mut(place as usize)
    }

    /// How many items there are.
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.gaps.len()
    }

    /// Bytes of places without an item.
    pub(super) fn spare(&self) -> usize {
        self.gaps.len() * (size_of::<T>() + size_of::<u32>())
    }

    /// Moves the last item into a place without one; returns from where and to where. Places without one that are
    /// last go. `None` if there is nothing to move.
    pub(super) fn close_gap(&mut self) -> Option<(u32, u32)> {
        while let Some(at) = self.items.last().and_then(T::gap_at) {
            if let Some(moved) = self.gaps.forget(at) {
                self.items[moved] = T::gap(at);
            }
            self.shorten();
        }
        let to = self.gaps.take()?;
        let from = self.items.len() - 1;
        self.items[to] = self.items[from];
        self.shorten();
        Some((from as u32, to as u32))
    }

    /// Removes the last place.
    fn shorten(&mut self) {
        self.items.pop();
        give_back(&mut self.items, 1);
    }

    /// All items.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().filter(|item| item.gap_at().is_none())
    }
}

impl<T> Index<u32> for Table<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.items[place as usize]
    }
}

impl<T> IndexMut<u32> for Table<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Item for (u8, Option<u32>) {
        fn gap(at: u32) -> Self {
            (0, Some(at))
        }

        fn gap_at(&self) -> Option<u32> {
            self.1
        }
    }

    proptest! {
        /// The model: where each item is.
        #[test]
        fn items_stay_what_they_are_while_gaps_are_closed(
            steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 1..200)
        ) {
            let mut table = Table::default();
            let mut places: Vec<(u8, u32)> = Vec::new();
            let mut names = (0..=u8::MAX).cycle();
            for (step, which) in steps {
                match step {
                    0 | 1 => {
                        let name = names.next().unwrap();
                        let place = table.insert((name, None));
                        prop_assert!(places.iter().all(|(_, taken)| *taken != place));
                        places.push((name, place));
                    }
                    2 if !places.is_empty() => {
                        let (name, place) = places.swap_remove(which.index(places.len()));
                        prop_assert_eq!(table.remove(place), (name, None));
                    }
                    _ => match table.close_gap() {
                        Some((from, to)) => {
                            let moved = places.iter_mut().find(|(_, place)| *place == from);
                            moved.unwrap().1 = to;
                        }
                        None => prop_assert_eq!((table.spare(), table.items.len()), (0, places.len())),
                    },
                }
                prop_assert!(places.iter().all(|(name, place)| table[*place] == (*name, None)));
                prop_assert_eq!((table.len(), table.iter().count()), (places.len(), places.len()));
            }
        }
    }
}
