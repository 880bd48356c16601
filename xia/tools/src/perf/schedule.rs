//! When each datagram should leave.
//!
//! At a given rate, datagram n is due n intervals after the first, whatever happened to those before it: a
//! sender that was held up catches up, and the time that its datagrams waited is part of their latency. (Who
//! sends the next one only when the last one is through measures the good moments only, which is called
//! coordinated omission.)

use std::time::Duration;

const NANOS: u64 = 1_000_000_000;

/// How fast datagrams are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the node takes them.
    Unlimited,
    /// So many a second, at least one.
    Datagrams(u64),
    /// So many bits of payload a second, at least one.
    Bits(u64),
}

/// When datagrams of one size are due, exactly: no error adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The interval in nanoseconds, as a fraction.
    numerator: u128,
    denominator: u128,
}

impl Schedule {
    /// That of datagrams of `size` bytes; `None` if the pace is unlimited.
    #[must_use]
    pub fn new(pace: Pace, size: usize) -> Option<Self> {
        let (bits, rate) = match pace {
            Pace::Unlimited => return None,
            Pace::Datagrams(rate) => (1, rate),
            Pace::Bits(rate) => (size as u128 * 8, rate),
        };
        let (numerator, denominator) = (bits * u128::from(NANOS), u128::from(rate.max(1)));
        Some(Self { numerator, denominator })
    }

    /// When datagram `number` is due, after the first: the first whole nanosecond that is not before.
    #[must_use]
    pub fn due(&self, number: u64) -> Duration {
        let nanos = (u128::from(number) * self.numerator).div_ceil(self.denominator);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many are due in this time after the first, which is included, and before its end.
    #[must_use]
    pub fn count(&self, span: Duration) -> u64 {
        let scaled = span.as_nanos().saturating_mul(self.denominator);
        u64::try_from(scaled.div_ceil(self.numerator)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rate_of_bits_is_one_of_datagrams() {
        let bits = Schedule::new(Pace::Bits(8_000_000), 1000).unwrap();
        let datagrams = Schedule::new(Pace::Datagrams(1000), 1000).unwrap();
        for number in [0, 1, 7, 1 << 40] {
            assert_eq!(bits.due(number), datagrams.due(number));
        }
        assert_eq!(bits.due(3), Duration::from_millis(3));
        assert_eq!(Schedule::new(Pace::Unlimited, 1000), None);
    }

    #[test]
    fn the_count_is_of_those_that_are_due_before_the_end() {
        let schedule = Schedule::new(Pace::Datagrams(3), 1).unwrap();
        assert_eq!(schedule.count(Duration::ZERO), 0);
        assert_eq!(schedule.count(Duration::from_secs(1)), 3);
        assert_eq!(schedule.count(Duration::from_millis(1001)), 4);
    }

    proptest! {
        #[test]
        fn due_times_and_counts_agree(rate in 1..2 * NANOS, size in 1_usize..65_536, millis in 0_u64..100_000) {
            for pace in [Pace::Datagrams(rate), Pace::Bits(rate)] {
                let schedule = Schedule::new(pace, size).unwrap();
                let span = Duration::from_millis(millis);
                let count = schedule.count(span);
                // The due time is rounded up, by less than a nanosecond.
                prop_assert!(count == 0 || schedule.due(count - 1) <= span);
                prop_assert!(schedule.due(count) >= span);
            }
        }
    }
}
