//! Zipf-distributed numbers: rank `r` of `n` is drawn with a probability proportional to `1 / r^s`.
//!
//! Reference: Machado et al., "Linux XIA", §6.3.1: all packet writers choose their destinations so.
//! Drawn by inversion: the table of cumulative probabilities is searched for a uniform number, which is
//! exact for every exponent, zero (all ranks alike) included.

use weft_base::Random;

/// A Zipf distribution over the ranks `0..n`, the most frequent first.
pub(in crate::bench) struct Zipf {
    /// Probability of this rank or a lower one.
    cumulative: Vec<f64>,
}

impl Zipf {
    /// The distribution with this exponent (0 or more) over `ranks` ranks (1 or more).
    pub(in crate::bench) fn new(ranks: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=ranks.max(1))
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|value| *value /= sum);
        Self { cumulative }
    }

    /// Draws a rank.
    pub(in crate::bench) fn draw(&self, random: &mut Random) -> usize {
        let uniform = uniform(random);
        let rank = self.cumulative.partition_point(|up_to| *up_to <= uniform);
        // The last sum may be a rounding error below 1.
        rank.min(self.cumulative.len() - 1)
    }
}

/// A uniform number of the 2^53 evenly spaced ones in [0, 1).
fn uniform(random: &mut Random) -> f64 {
    (random.number() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn frequencies(ranks: usize, exponent: f64) -> Vec<f64> {
        let (zipf, mut random) = (Zipf::new(ranks, exponent), Random::from_seed(5));
        let mut counts = vec![0.0; ranks];
        for _ in 0..DRAWS {
            counts[zipf.draw(&mut random)] += 1.0 / DRAWS as f64;
        }
        counts
    }

    #[test]
    fn frequencies_follow_the_law() {
        for exponent in [0.0, 0.8, 1.0, 1.5] {
            let measured = frequencies(10, exponent);
            let sum: f64 = (1..=10).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for (rank, frequency) in (1..).zip(measured) {
                let law = f64::from(rank).powf(-exponent) / sum;
                // Four standard deviations of a count of 200,000 draws are below 0.0045.
                assert!((frequency - law).abs() < 0.0045, "{exponent} {rank} {frequency} {law}");
            }
        }
    }

    #[test]
    fn a_seed_always_draws_the_same() {
        let zipf = Zipf::new(1000, 1.0);
        let draw = |seed| {
            let mut random = Random::from_seed(seed);
            (0..50).map(|_| zipf.draw(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn one_rank_is_always_drawn() {
        let mut random = Random::from_seed(1);
        assert_eq!(Zipf::new(1, 1.0).draw(&mut random), 0);
    }
}
