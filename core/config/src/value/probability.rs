//! Probabilities: `1%` or `0.01`.

use std::fmt;

use super::decimal::{Decimal, Inexact};
use super::{FromWord, ToWord, ValueError};

/// A probability, exact to one part per billion. The default is 0, never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u32);

/// What [`Probability::parts_per_billion`] counts.
const BILLION: u32 = 1_000_000_000;

const FORM: ValueError =
    ValueError::Form("a percentage or a decimal fraction with a point, from 0 to 1");

impl Probability {
    /// Always.
    pub const ONE: Self = Self(BILLION);

    /// From parts per billion; `None` beyond 1.
    pub const fn from_parts_per_billion(parts: u32) -> Option<Self> {
        if parts <= BILLION { Some(Self(parts)) } else { None }
    }

    /// In parts per billion.
    pub const fn parts_per_billion(self) -> u32 {
        self.0
    }
}

/// A whole number without `%` is refused, as it was probably meant to be a percentage; only `0` has
/// the same meaning in both ways.
impl FromWord for Probability {
    const WHAT: &'static str = "a probability";
    const EXAMPLE: &'static str = "1%";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let (number, one) = match text.strip_suffix('%') {
            Some(number) => (number, BILLION / 100),
            None => (text, BILLION),
        };
        let decimal = Decimal::parse(number).ok_or(FORM)?;
        let too_great = || ValueError::OutOfRange { min: "0%".into(), max: "100%".into() };
        let parts = decimal.times(one.into()).map_err(|inexact| match inexact {
            Inexact::TooFine => ValueError::TooFine("one part per billion"),
            Inexact::TooGreat => too_great(),
        })?;
        if parts != 0 && !text.contains(['%', '.']) {
            return Err(ValueError::Other(format!(
                "a whole number is ambiguous, `{}%` is a percentage and `1.0` is certainty",
                crate::source::shown(number)
            )));
        }
        u32::try_from(parts).ok().and_then(Self::from_parts_per_billion).ok_or_else(too_great)
    }
}

/// In percent.
impl ToWord for Probability {
    fn to_word(&self) -> String {
        let percent = BILLION / 100;
        let whole = self.0 / percent;
        let fraction = format!("{:07}", self.0 % percent);
        match fraction.trim_end_matches('0') {
            "" => format!("{whole}%"),
            fraction => format!("{whole}.{fraction}%"),
        }
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::{reads, refuses};
    use proptest::prelude::*;

    #[test]
    fn percentages_and_fractions_are_exact() {
        reads("1%", Probability(10_000_000), "1%");
        reads("0.01", Probability(10_000_000), "1%");
        reads("0.5%", Probability(5_000_000), "0.5%");
        reads("0.0000001%", Probability(1), "0.0000001%");
        reads("0.000000001", Probability(1), "0.0000001%");
        reads("100%", Probability::ONE, "100%");
        reads("1.0", Probability::ONE, "100%");
        reads("0", Probability::default(), "0%");
        reads("0%", Probability::default(), "0%");
    }

    #[test]
    fn malformed_probabilities_are_refused_with_the_reason() {
        let form = "it must be a percentage or a decimal fraction with a point, from 0 to 1";
        for word in ["", "%", "-1%", "1 %", "1%%", "one", ".5"] {
            refuses::<Probability>(word, form);
        }
        refuses::<Probability>("101%", "it must be 0% to 100%");
        refuses::<Probability>("1.1", "it must be 0% to 100%");
        refuses::<Probability>("99999999999999999999%", "it must be 0% to 100%");
        refuses::<Probability>("0.0000000001", "it is finer than one part per billion");
        refuses::<Probability>(
            "1",
            "a whole number is ambiguous, `1%` is a percentage and `1.0` is certainty",
        );
    }

    proptest! {
        #[test]
        fn probabilities_round_trip(parts in 0..=BILLION) {
            let value = Probability(parts);
            prop_assert_eq!(Probability::from_word(&value.to_word()), Ok(value));
        }
    }
}
