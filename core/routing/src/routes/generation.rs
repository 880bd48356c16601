//! When an origin has told a route: before or after it began anew.

use std::num::NonZeroU16;

/// Which of the times that an origin has told its routes. They follow one another in a circle, so that of two it can be said
/// which is the older one while they are less than half a circle apart. None is zero, which costs nothing and saves each
/// destination four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(NonZeroU16);

impl Default for Generation {
    /// The first.
    fn default() -> Self {
        Self(NonZeroU16::MIN)
    }
}

impl Generation {
    /// The one behind it.
    pub(super) fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(NonZeroU16::MIN))
    }

    /// Whether it is older.
    pub(super) fn is_before(self, other: Self) -> bool {
        // The place in the circle, in which zero is left out: at its seam they seem one further apart.
        self.0.get().wrapping_sub(other.0.get()) > u16::MAX / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_ones_are_known_all_around_the_circle() {
        let mut one = Generation::default();
        for _ in 0..70_000 {
            let (near, mut far) = (one.next(), one);
            (0..100).for_each(|_| far = far.next());
            assert!(one.is_before(near) && one.is_before(far) && near.is_before(far));
            assert!(!near.is_before(one) && !far.is_before(one) && !one.is_before(one));
            one = near;
        }
    }
}
