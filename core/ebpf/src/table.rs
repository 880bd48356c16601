//! The programs that weft embeds, by name: what each takes and what it counts.
//!
//! A program that is added gets a line in [`PROGRAMS`], a variant of [`Program`], and a place in what
//! [`Attachment`](crate::Attachment) loads.

use std::fmt;

use crate::{LossProbability, LossSequence, LossStatistics};

/// The name of the program that loses packets.
pub(crate) const LOSS: &str = "loss";

/// What is known of an embedded program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramKind {
    /// Its name in configurations and calls.
    pub name: &'static str,
    /// What it does, in a few words.
    pub help: &'static str,
    /// Its parameters: name and meaning.
    pub parameters: &'static [(&'static str, &'static str)],
    /// What it counts: name and meaning.
    pub counters: &'static [(&'static str, &'static str)],
}

/// All of them, in order of names.
pub const PROGRAMS: &[ProgramKind] = &[ProgramKind {
    name: LOSS,
    help: "drops packets at random: which ones follows from the seed",
    parameters: &[
        ("rate", "how likely each packet is to be dropped, in parts per billion"),
        ("seed", "what the sequence of drops follows from"),
    ],
    counters: &[("seen", "packets that passed the hook"), ("dropped", "packets that were dropped")],
}];

/// A program with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Drops the packets of a sequence.
    Loss(LossSequence),
}

impl Program {
    /// The program that loses packets.
    #[must_use]
    pub const fn loss(rate: LossProbability, seed: u64) -> Self {
        Self::Loss(LossSequence::new(seed, rate))
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Loss(_) => LOSS,
        }
    }

    /// Its parameters in words, such as `rate 5% seed 7`.
    #[must_use]
    pub fn parameters(&self) -> String {
        match self {
            Self::Loss(sequence) => {
                format!("rate {} seed {}", sequence.probability(), sequence.seed())
            }
        }
    }

    /// Whether a running program with the parameters of `self` can take those of `other`, going on where
    /// it is; else it must begin anew.
    #[must_use]
    pub fn can_become(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Loss(now), Self::Loss(then)) => now.seed() == then.seed(),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.parameters())
    }
}

/// What a program has counted, in the order of [`ProgramKind::counters`].
pub(crate) fn counted(statistics: LossStatistics) -> Vec<(&'static str, u64)> {
    vec![("seen", statistics.seen), ("dropped", statistics.dropped)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_counts_what_the_table_says() {
        let counted = counted(LossStatistics { seen: 2, dropped: 1 });
        let told: Vec<_> = counted.iter().map(|(name, _)| *name).collect();
        let said: Vec<_> = PROGRAMS[0].counters.iter().map(|(name, _)| *name).collect();
        assert_eq!(told, said);
        assert!(PROGRAMS.is_sorted_by_key(|kind| kind.name));
    }

    #[test]
    fn the_rate_can_change_and_the_seed_cannot() {
        let rare = Program::loss(LossProbability::from_fraction(0.05).unwrap(), 7);
        assert!(rare.can_become(&Program::loss(LossProbability::ALWAYS, 7)));
        assert!(!rare.can_become(&Program::loss(LossProbability::ALWAYS, 8)));
        assert_eq!(rare.to_string(), "loss rate 5% seed 7");
        assert_eq!(rare.name(), PROGRAMS[0].name);
    }
}
