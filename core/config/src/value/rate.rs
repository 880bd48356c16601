//! Bit rates: `200Mbit/s`.

use std::fmt;

use super::scale::Scale;
use super::{FromWord, ToWord, ValueError};

const RATE: Scale = Scale {
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Kibit/s", 1 << 10),
        ("Mbit/s", 1_000_000),
        ("Mibit/s", 1 << 20),
        ("Gbit/s", 1_000_000_000),
        ("Gibit/s", 1 << 30),
        ("Tbit/s", 1_000_000_000_000),
        ("Tibit/s", 1 << 40),
    ],
    form: "a number directly followed by a unit of bits per second",
    resolution: "1bit/s",
};

/// A bit rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// From bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// In bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
}

impl FromWord for Rate {
    const WHAT: &'static str = "a rate";
    const EXAMPLE: &'static str = "200Mbit/s";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        RATE.parse(text).map(Self)
    }
}

impl ToWord for Rate {
    fn to_word(&self) -> String {
        RATE.print(self.0)
    }
}

impl fmt::Display for Rate {
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
    fn rates_have_decimal_and_binary_prefixes() {
        reads("9600bit/s", Rate(9600), "9600bit/s");
        reads("64kbit/s", Rate(64_000), "64kbit/s");
        reads("1.5Mbit/s", Rate(1_500_000), "1500kbit/s");
        reads("200Mbit/s", Rate(200_000_000), "200Mbit/s");
        reads("2Mibit/s", Rate(2 << 20), "2Mibit/s");
        reads("1Tbit/s", Rate(1_000_000_000_000), "1Tbit/s");
    }

    #[test]
    fn malformed_rates_are_refused_with_the_reason() {
        let all = "`bit/s`, `kbit/s`, `Kibit/s`, `Mbit/s`, `Mibit/s`, `Gbit/s`, `Gibit/s`, `Tbit/s` or `Tibit/s`";
        refuses::<Rate>("200", &format!("its unit is missing, one of {all}"));
        refuses::<Rate>("200mbit/s", "its unit `mbit/s` is unknown, did you mean `Mbit/s`?");
        refuses::<Rate>("200Mbit", &format!("its unit `Mbit` is unknown, it is one of {all}"));
        refuses::<Rate>("0.5bit/s", "it is finer than 1bit/s");
        refuses::<Rate>(
            "fast",
            "it must be a number directly followed by a unit of bits per second",
        );
    }

    proptest! {
        #[test]
        fn rates_round_trip(bits: u64) {
            prop_assert_eq!(Rate::from_word(&Rate(bits).to_word()), Ok(Rate(bits)));
        }
    }
}
