//! Which packets of a link are dropped.
//!
//! Reference: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
//! OOPSLA 2014 (SplitMix64).
//!
//! The n-th packet (from 0) is dropped when the upper 32 bits of the n-th output of SplitMix64 for
//! the seed, taken as a fraction of 2^32, lie below the probability. Output n can be computed without
//! the ones before it, so no state but a counter is needed. `bpf/loss.bpf.c` has the same function.

use std::fmt;

/// Parts of a probability of one.
const BILLION: u32 = 1_000_000_000;

/// How likely each packet is to be dropped, in parts per billion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LossProbability {
    parts_per_billion: u32,
}

/// The number is no probability.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a loss probability of {value} is not possible: it must lie between 0 and 1")]
pub struct ProbabilityError {
    value: f64,
}

impl LossProbability {
    /// No packet is dropped.
    pub const NEVER: Self = Self { parts_per_billion: 0 };
    /// Every packet is dropped.
    pub const ALWAYS: Self = Self { parts_per_billion: BILLION };

    /// `parts` of a billion packets, 0 to 1,000,000,000.
    ///
    /// # Errors
    /// If there are more parts than a billion.
    pub fn from_parts_per_billion(parts: u32) -> Result<Self, ProbabilityError> {
        if parts > BILLION {
            return Err(ProbabilityError { value: f64::from(parts) / f64::from(BILLION) });
        }
        Ok(Self { parts_per_billion: parts })
    }

    /// A fraction between 0 and 1, rounded to the nearest part per billion.
    ///
    /// # Errors
    /// If the fraction is not between 0 and 1.
    pub fn from_fraction(fraction: f64) -> Result<Self, ProbabilityError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(ProbabilityError { value: fraction });
        }
        // The product is at most a billion: the conversion is exact after rounding.
        Self::from_parts_per_billion((fraction * f64::from(BILLION)).round() as u32)
    }

    /// Parts per billion, 0 to 1,000,000,000.
    pub const fn parts_per_billion(self) -> u32 {
        self.parts_per_billion
    }

    /// What the upper 32 bits of a random number must stay below: parts per 2^32, rounded to the
    /// nearest.
    pub(super) const fn threshold(self) -> u64 {
        (((self.parts_per_billion as u64) << 32) + BILLION as u64 / 2) / BILLION as u64
    }

    /// The probability that has this threshold, rounded to the nearest part per billion.
    pub(super) const fn from_threshold(threshold: u64) -> Self {
        let threshold = if threshold > 1 << 32 { 1 << 32 } else { threshold };
        let parts = (threshold * BILLION as u64 + (1 << 31)) >> 32;
        Self { parts_per_billion: parts as u32 }
    }
}

impl fmt::Display for LossProbability {
    /// As a percentage, with as many digits as it takes: `0.5%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PERCENT: u32 = BILLION / 100;
        let (whole, rest) = (self.parts_per_billion / PERCENT, self.parts_per_billion % PERCENT);
        if rest == 0 {
            return write!(f, "{whole}%");
        }
        let digits = format!("{rest:07}");
        write!(f, "{whole}.{}%", digits.trim_end_matches('0'))
    }
}

/// The decisions of one attachment: which packets, counted from 0, are dropped.
///
/// Two links whose seeds were drawn at random have independent sequences. Seeds that differ by a
/// small multiple of 0x9e3779b97f4a7c15 give shifted copies of one sequence: derive the seeds of the
/// links of a lab with a hash or a generator, not with that constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossSequence {
    seed: u64,
    probability: LossProbability,
}

impl LossSequence {
    /// The sequence of a link with this seed and probability.
    pub const fn new(seed: u64, probability: LossProbability) -> Self {
        Self { seed, probability }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// How likely each packet is to be dropped.
    pub const fn probability(&self) -> LossProbability {
        self.probability
    }

    /// Whether the `n`-th packet after attaching, counted from 0, is dropped.
    pub const fn drops(&self, n: u64) -> bool {
        splitmix64(self.seed, n) >> 32 < self.probability.threshold()
    }
}

/// The `n`-th output, counted from 0, of a SplitMix64 generator that was seeded with `seed`.
const fn splitmix64(seed: u64, n: u64) -> u64 {
    let z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // First outputs for the seed 1234567: Rosetta Code, "Pseudo-random numbers/Splitmix64".
    #[test]
    fn published_outputs_of_splitmix64() {
        let outputs: Vec<u64> = (0..5).map(|n| splitmix64(1_234_567, n)).collect();
        assert_eq!(
            outputs,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn never_and_always_have_no_exception() {
        for seed in 0..1000 {
            assert!(!LossSequence::new(seed, LossProbability::NEVER).drops(seed));
            assert!(LossSequence::new(seed, LossProbability::ALWAYS).drops(seed));
        }
        assert_eq!(LossProbability::ALWAYS.threshold(), 1 << 32);
    }

    #[test]
    fn the_share_of_drops_is_the_probability() {
        // 300 of a million are three standard deviations. The seeds are fixed, so that the answer is
        // the same forever.
        for seed in [0, 1, u64::MAX] {
            let loss = LossSequence::new(seed, LossProbability::from_fraction(0.01).unwrap());
            let dropped = (0..1_000_000).filter(|&n| loss.drops(n)).count();
            assert!((9_700..10_300).contains(&dropped), "{dropped} of a million for seed {seed}");
        }
    }

    #[test]
    fn probabilities_are_written_as_percentages() {
        let text = |parts| LossProbability::from_parts_per_billion(parts).unwrap().to_string();
        assert_eq!(text(0), "0%");
        assert_eq!(text(5_000_000), "0.5%");
        assert_eq!(text(12_345_678), "1.2345678%");
        assert_eq!(text(1_000_000_000), "100%");
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for fraction in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(LossProbability::from_fraction(fraction).is_err(), "{fraction}");
        }
        assert!(LossProbability::from_parts_per_billion(1_000_000_001).is_err());
        let message = LossProbability::from_fraction(1.5).unwrap_err().to_string();
        assert!(message.contains("1.5") && message.contains("between 0 and 1"), "{message}");
    }

    proptest! {
        #[test]
        fn thresholds_give_their_probability_back(parts in 0u32..=1_000_000_000) {
            let probability = LossProbability::from_parts_per_billion(parts).unwrap();
            prop_assert_eq!(LossProbability::from_threshold(probability.threshold()), probability);
        }

        #[test]
        fn any_threshold_is_some_probability(threshold: u64) {
            let probability = LossProbability::from_threshold(threshold);
            prop_assert!(probability <= LossProbability::ALWAYS);
        }

        #[test]
        fn a_more_likely_loss_drops_all_that_a_less_likely_one_drops(
            seed: u64,
            n: u64,
            mut parts: [u32; 2],
        ) {
            parts = parts.map(|parts| parts % 1_000_000_001);
            parts.sort_unstable();
            let [rare, frequent] = parts.map(|parts| {
                LossSequence::new(seed, LossProbability::from_parts_per_billion(parts).unwrap())
            });
            prop_assert!(!rare.drops(n) || frequent.drops(n));
        }

        #[test]
        fn fractions_round_to_the_nearest_part(parts in 0u32..=1_000_000_000) {
            let probability = LossProbability::from_fraction(f64::from(parts) / 1e9).unwrap();
            prop_assert_eq!(probability.parts_per_billion(), parts);
        }
    }
}
