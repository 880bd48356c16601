//! How unstable a route is: a number that grows with each change and halves in a fixed time.
//!
//! Reference: RFC 2439 §2.3 (a figure of merit that decays), §4.5 (how that is computed). In place of the RFC's tables with an
//! entry for each step of time, a decay is the product of at most sixteen roots of a half: whole numbers that are the same
//! on every machine, for every half-life, without a table for each.

use std::time::Duration;

/// 2 to the powers -1/2, -1/4, -1/8 and so on, as fractions of 2^32.
const ROOTS: [u64; 16] = roots();

const fn roots() -> [u64; 16] {
    let mut all = [0; 16];
    let (mut last, mut place) = (1u64 << 31, 0);
    while place < all.len() {
        last = (last << 32).isqrt();
        all[place] = last;
        place += 1;
    }
    all
}

/// A penalty, with sixteen bits behind the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Penalty(u32);

impl Penalty {
    /// The highest that there is. RFC 7196: at least this, so that thresholds beyond the usual ones are reached.
    pub(crate) const MOST: u32 = 50_000;

    /// This many points, [`Self::MOST`] at most.
    pub(crate) fn new(points: u32) -> Self {
        Self(points.min(Self::MOST) << 16)
    }

    /// In points.
    pub(crate) fn points(self) -> u32 {
        self.0 >> 16
    }

    /// With so many points more.
    pub(crate) fn add(self, points: u32) -> Self {
        Self(self.0.saturating_add(Self::new(points).0).min(Self::new(Self::MOST).0))
    }

    /// What is left of it after this time: half of it after each `half_life`, which is not zero.
    pub(crate) fn after(self, span: Duration, half_life: Duration) -> Self {
        let (span, half_life) = (span.as_nanos(), half_life.as_nanos().max(1));
        let halves = span / half_life;
        if halves >= 32 {
            return Self(0);
        }
        // Less than one, with sixteen bits behind the point.
        let part = ((span % half_life) << 16) / half_life;
        let mut left = u64::from(self.0);
        for (place, root) in ROOTS.iter().enumerate() {
            if part >> (15 - place) & 1 == 1 {
                // Both factors have 32 bits.
                left = (left * root) >> 32;
            }
        }
        // It only has become smaller.
        Self((left >> halves) as u32)
    }

    /// How long it takes, in whole seconds and `most` at most, until less than so many points are left.
    pub(crate) fn time_until(self, points: u32, half_life: Duration, most: Duration) -> Duration {
        let is_below =
            |seconds: u64| self.after(Duration::from_secs(seconds), half_life) < Self(points << 16);
        let (mut low, mut high) = (0, most.as_secs());
        while low < high {
            let middle = low + (high - low) / 2;
            match is_below(middle) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Duration::from_secs(low)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HALF_LIFE: Duration = Duration::from_secs(900);

    #[test]
    fn a_half_is_left_after_each_half_life() {
        let full = Penalty::new(1000);
        for (halves, left) in [(0, 1000), (1, 500), (2, 250), (3, 125)] {
            assert_eq!(full.after(HALF_LIFE * halves, HALF_LIFE).points(), left);
        }
        // 1000 / 2^(1/2) = 707.1, 1000 / 2^(3/2) = 353.6.
        assert_eq!(full.after(HALF_LIFE / 2, HALF_LIFE).points(), 707);
        assert_eq!(full.after(HALF_LIFE * 3 / 2, HALF_LIFE).points(), 353);
        assert_eq!(full.after(HALF_LIFE * 32, HALF_LIFE), Penalty::default());
        assert_eq!(full.after(Duration::MAX, Duration::ZERO), Penalty::default());
        assert_eq!(Penalty::new(40_000).add(20_000), Penalty::new(Penalty::MOST));
        assert_eq!(Penalty::new(u32::MAX).points(), Penalty::MOST);
    }

    /// 6000 is 750 after three half-lives, and less a second later.
    #[test]
    fn when_a_route_can_be_used_again_is_known_at_once() {
        let most = Duration::from_secs(86_400);
        let until = |points, below| Penalty::new(points).time_until(below, HALF_LIFE, most);
        assert_eq!(until(6000, 750).as_secs(), 3 * 900 + 1);
        assert_eq!(until(749, 750), Duration::ZERO);
        let short = Duration::from_secs(3600);
        assert_eq!(Penalty::new(50_000).time_until(750, HALF_LIFE, short), short);
    }

    proptest! {
        /// The decay that RFC 2439 approximates by its tables, in floating point.
        #[test]
        fn decay_is_that_of_the_formula(
            points in 1u32..=Penalty::MOST,
            half_life in 60u64..=2700,
            millis in 0u64..=20_000_000,
        ) {
            let span = Duration::from_millis(millis);
            let left = Penalty::new(points).after(span, Duration::from_secs(half_life));
            let halves = span.as_secs_f64() / half_life as f64;
            let exact = f64::from(points) * (-halves).exp2();
            let (left, slack) = (f64::from(left.0) / 65_536.0, exact * 2e-5 + 0.001);
            prop_assert!((left - exact).abs() <= slack, "{left} instead of {exact}");
        }

        #[test]
        fn the_time_until_a_threshold_is_the_least(
            points in 1u32..=Penalty::MOST,
            below in 1u32..=Penalty::MOST,
            half_life in 60u64..=2700,
        ) {
            let (full, half_life) = (Penalty::new(points), Duration::from_secs(half_life));
            let time = full.time_until(below, half_life, half_life * 32);
            let left = |time| full.after(time, half_life);
            prop_assert!(left(time) < Penalty::new(below));
            let second = Duration::from_secs(1);
            prop_assert!(time < second || left(time - second) >= Penalty::new(below));
        }
    }
}
