//! When an origin has told a route: before or after it began anew.

use std::num::NonZeroU16;

/// Which of the times that an origin has told its routes. None is zero, which costs nothing and saves each destination four
/// bytes. When there are no more, those of the origin's routes are numbered anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(NonZeroU16);

impl Default for Generation {
    /// The first.
    fn default() -> Self {
        Self(NonZeroU16::MIN)
    }
}

impl Generation {
    /// The one behind it; none behind the last.
    pub(super) fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// Its number among these, which are in order, where all between two of them count as one.
    pub(super) fn among(self, known: &[Self]) -> Self {
        let before = known.iter().filter(|one| **one < self).count();
        let equal = known.iter().filter(|one| **one == self).count();
        // Of those between two known ones each is behind the first of them, and before the second.
        let number = 1 + 2 * before + equal.min(1);
        u16::try_from(number).ok().and_then(NonZeroU16::new).map_or(self, Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_anew_all_stand_as_they_stood() {
        let all: Vec<_> = (1..=40).map(|n| Generation(NonZeroU16::new(n).unwrap())).collect();
        let known = [all[9], all[19], all[39]];
        let anew: Vec<_> = all.iter().map(|one| one.among(&known)).collect();
        for (one, new) in all.iter().zip(&anew) {
            for (mark, new_mark) in known.iter().zip(known.map(|mark| mark.among(&known))) {
                assert_eq!(one.cmp(mark), new.cmp(&new_mark), "{one:?} {mark:?}");
            }
        }
        assert!(anew.iter().all(|one| one.0.get() < 10));
        assert_eq!(Generation(NonZeroU16::MAX).next(), None);
        // Known ones may be the same.
        assert!(all[3].among(&[all[5], all[5], all[5]]) < all[5].among(&[all[5], all[5], all[5]]));
    }
}
