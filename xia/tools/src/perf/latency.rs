//! The distribution of times, in an amount of memory that does not grow with their number.
//!
//! Times are counted in buckets: each nanosecond up to 255 has one, and each power of two above is divided
//! into 128 equal ones. So a percentile is exact to less than one part in 128 (0.8 %), and never smaller than the
//! true one; the least and the largest time and the mean are exact.

use std::time::Duration;

/// Buckets of each power of two.
const PARTS: u64 = 128;
/// The bits that number the parts.
const PART_BITS: u32 = 7;
/// Times below have a bucket each.
const EXACT: u64 = 2 * PARTS;

/// Times, counted.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    least: u64,
    most: u64,
}

impl Latencies {
    /// Counts a time.
    pub fn note(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket(nanos);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.least = if self.total == 0 { nanos } else { self.least.min(nanos) };
        self.most = self.most.max(nanos);
        self.total += 1;
        self.sum += u128::from(nanos);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The least; zero if there is none.
    #[must_use]
    pub fn least(&self) -> Duration {
        Duration::from_nanos(self.least)
    }

    /// The largest; zero if there is none.
    #[must_use]
    pub fn most(&self) -> Duration {
        Duration::from_nanos(self.most)
    }

    /// The mean; zero if there is none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.total)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The time that so many of a thousand do not exceed: 500 is the median, 999 the 99.9th percentile. Zero
    /// if there is none.
    #[must_use]
    pub fn per_mille(&self, of_thousand: u16) -> Duration {
        let rank = (u128::from(self.total) * u128::from(of_thousand)).div_ceil(1000).max(1);
        let mut below = 0_u128;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below >= rank {
                return Duration::from_nanos(end(bucket).min(self.most));
            }
        }
        self.most()
    }
}

/// The bucket of a time in nanoseconds.
fn bucket(nanos: u64) -> usize {
    if nanos < EXACT {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let part = (nanos >> (power - PART_BITS)) - PARTS;
    let before = u64::from(power - PART_BITS - 1) * PARTS;
    (EXACT + before + part) as usize
}

/// The longest time in a bucket, in nanoseconds.
fn end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let above = bucket - EXACT;
    let (power, part) = (above / PARTS + 1, above % PARTS);
    let behind = u128::from(PARTS + part + 1) << power;
    u64::try_from(behind - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        times.iter().for_each(|nanos| latencies.note(Duration::from_nanos(*nanos)));
        latencies
    }

    #[test]
    fn short_times_are_exact() {
        let all: Vec<u64> = (1..=200).collect();
        let latencies = of(&all);
        for (of_thousand, expected) in [(0, 1), (5, 1), (500, 100), (990, 198), (1000, 200)] {
            assert_eq!(latencies.per_mille(of_thousand).as_nanos(), expected, "{of_thousand}");
        }
        assert_eq!(latencies.mean().as_nanos(), 100);
    }

    #[test]
    fn nothing_is_zero() {
        let none = Latencies::default();
        assert_eq!([none.least(), none.per_mille(500), none.mean()], [Duration::ZERO; 3]);
    }

    #[test]
    fn buckets_join_without_gaps() {
        assert_eq!((bucket(255), bucket(256), bucket(257), bucket(258)), (255, 256, 256, 257));
        for at in 0..bucket(u64::MAX) {
            assert_eq!(bucket(end(at)), at);
            assert_eq!(bucket(end(at) + 1), at + 1);
        }
        assert_eq!(end(bucket(u64::MAX)), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_percentile_is_that_of_the_sorted_times_to_one_part_in_128(
            mut times in proptest::collection::vec(prop_oneof![0_u64..1000, 0_u64..1 << 40, any::<u64>()], 1..300),
            of_thousand in 0_u16..=1000,
        ) {
            let latencies = of(&times);
            times.sort_unstable();
            let rank = (times.len() * usize::from(of_thousand)).div_ceil(1000).max(1);
            let exact = times[rank - 1];
            let found = latencies.per_mille(of_thousand).as_nanos() as u64;
            prop_assert!(found >= exact && found - exact <= exact / 128, "{found} for {exact}");
            prop_assert_eq!(latencies.least().as_nanos() as u64, times[0]);
            prop_assert_eq!(latencies.most().as_nanos() as u64, times[times.len() - 1]);
        }
    }
}
