//! Entries with the same number of edges, in two tables without gaps for long ([`places`](super::places)).

use weft_processor::{give_back, make_room};

use super::entry::{Entry, Found};
use super::key::Key;
use super::places::Gaps;
use super::store::Cold;

/// Entries with the same number of edges.
#[derive(Debug)]
pub(super) struct Slab<const N: usize, A> {
    pub(super) entries: Vec<Entry<N, A>>,
    /// As many.
    pub(super) cold: Vec<Cold>,
    /// Places without an entry. Where each stands there, [`Cold::newer`] says.
    gaps: Gaps,
}

impl<const N: usize, A> Default for Slab<N, A> {
    fn default() -> Self {
        Self { entries: Vec::new(), cold: Vec::new(), gaps: Gaps::default() }
    }
}

impl<const N: usize, A: Copy> Slab<N, A> {
    /// What each takes.
    pub(super) const BYTES: usize = size_of::<Entry<N, A>>() + size_of::<Cold>();

    /// Puts an entry into a free place.
    pub(super) fn insert(&mut self, entry: Entry<N, A>, cold: Cold) -> usize {
        match self.gaps.take() {
            Some(place) => {
                (self.entries[place], self.cold[place]) = (entry, cold);
                place
            }
            None => {
                make_room(&mut self.entries, 1);
                make_room(&mut self.cold, 1);
                self.entries.push(entry);
                self.cold.push(cold);
                self.entries.len() - 1
            }
        }
    }

    pub(super) fn remove(&mut self, place: usize) {
        self.entries[place].hot.free();
        self.cold[place].newer = self.gaps.leave(place);
    }

    /// Bytes of places without an entry.
    pub(super) fn spare(&self) -> usize {
        self.gaps.len() * Self::BYTES
    }

    /// Moves the last entry into a place without one; returns from where and to where. Places without one that
    /// are last go. `None` if there is nothing to move.
    pub(super) fn close_gap(&mut self) -> Option<(usize, usize)> {
        while self.entries.last().is_some_and(|entry| !entry.hot.is_used()) {
            let at = self.cold[self.entries.len() - 1].newer;
            if let Some(moved) = self.gaps.forget(at) {
                self.cold[moved].newer = at;
            }
            self.shorten();
        }
        let to = self.gaps.take()?;
        let from = self.entries.len() - 1;
        (self.entries[to], self.cold[to]) = (self.entries[from], self.cold[from]);
        self.shorten();
        Some((from, to))
    }

    /// Removes the last place.
    fn shorten(&mut self) {
        self.entries.pop();
        self.cold.pop();
        give_back(&mut self.entries, 1);
        give_back(&mut self.cold, 1);
    }

    pub(super) fn is_live(&self, place: usize) -> bool {
        self.entries.get(place).is_some_and(|entry| entry.hot.is_used())
    }

    #[inline]
    pub(super) fn prefetch(&self, place: usize) {
        if let Some(entry) = self.entries.get(place) {
            entry.prefetch();
        }
    }

    #[inline]
    pub(super) fn is_for(&self, place: usize, key: &impl Key) -> bool {
        self.entries.get(place).is_some_and(|entry| entry.is_for(key))
    }

    /// Counts a use, if the entry is the one for `key`.
    #[inline]
    pub(super) fn use_for(&mut self, place: usize, key: &impl Key) -> Option<Found> {
        let entry = self.entries.get_mut(place)?;
        if !entry.is_for(key) {
            return None;
        }
        if entry.hot.count() {
            self.cold[place].carry();
        }
        Some(entry.hot.found())
    }

    pub(super) fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.entries.len()).filter(|place| self.entries[*place].hot.is_used())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::XidType;
    use crate::forward::dst::Way;
    use crate::forward::dst::entry::{HalfLine, Hot};
    use crate::forward::dst::index::Tag;
    use crate::forward::dst::key::FreeKey;
    use crate::xid::Xid;

    fn key(number: u8) -> FreeKey {
        FreeKey::new(&[Xid::new(XidType::AD, [number; 20])], true)
    }

    proptest! {
        /// The model: where each entry is.
        #[test]
        fn entries_stay_what_they_are_while_gaps_are_closed(
            steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 1..200)
        ) {
            let mut slab = Slab::<1, HalfLine>::default();
            let mut places: Vec<(u8, usize)> = Vec::new();
            let mut names = (0..=u8::MAX).cycle();
            for (step, which) in steps {
                match step {
                    0 | 1 => {
                        let name = names.next().unwrap();
                        let entry = Entry::new(Hot::new(key(name).kind(), Way::Through, 0), &key(name));
                        let place = slab.insert(entry, Cold::new(Tag::default()));
                        prop_assert!(places.iter().all(|(_, taken)| *taken != place));
                        places.push((name, place));
                    }
                    2 if !places.is_empty() => {
                        let (_, place) = places.swap_remove(which.index(places.len()));
                        slab.remove(place);
                    }
                    _ => match slab.close_gap() {
                        Some((from, to)) => {
                            let moved = places.iter_mut().find(|(_, place)| *place == from);
                            moved.unwrap().1 = to;
                        }
                        None => prop_assert_eq!((slab.spare(), slab.entries.len()), (0, places.len())),
                    },
                }
                prop_assert!(places.iter().all(|(name, place)| slab.is_for(*place, &key(*name))));
                prop_assert_eq!(slab.live().count(), places.len());
                let spare = slab.entries.len() - places.len();
                prop_assert_eq!(slab.spare(), spare * Slab::<1, HalfLine>::BYTES);
            }
        }
    }
}
