//! Seeded randomness, passed to components by whoever creates them.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number
//! Generators", 2021), whose sequence for a seed is fixed for good: a failing simulation seed replays
//! years later. It is not for secrets; keys are made from the operating system's generator.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic generator of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator that `seed` stands for, on every machine and in every version.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A generator for a part of the system named by `label`, independent of this one's sequence, so
    /// that adding a consumer does not shift what the others draw.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        // FNV-1a over the label, mixed with the parent's next number (the parent is not advanced).
        let hash = label.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::from_seed(self.clone().number() ^ hash)
    }

    /// The next 64 random bits.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `0..bound`; zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: the bias is below bound / 2^64, and the draw count does not vary.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// True in `numerator` of `denominator` cases; always if `numerator >= denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_never_changes() {
        let mut random = Random::from_seed(1);
        assert_eq!(random.number(), 0xcfc5_d07f_6f03_c29b);
        assert_eq!(random.number(), 0xbf42_4132_963f_e08d);
    }

    #[test]
    fn forks_depend_on_the_label_and_leave_the_parent_alone() {
        let mut parent = Random::from_seed(7);
        let (mut a, mut b) = (parent.fork("a"), parent.fork("b"));
        assert_ne!(a.number(), b.number());
        assert_eq!(parent.number(), Random::from_seed(7).number());
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = Random::from_seed(3);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[random.below(5) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(random.below(0), 0);
    }
}
