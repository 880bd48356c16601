//! Numbers with units, kept exactly as integers of the smallest unit.
//!
//! Reference for the units: The International System of Units (SI brochure), §3 (decimal prefixes);
//! IEC 80000-13 (binary prefixes, bit and byte).

use super::ValueError;
use super::decimal::{Decimal, Inexact};
use crate::suggest::suggest;

/// The units of one kind of quantity.
pub(super) struct Scale {
    /// Names with their multiples of the smallest unit, which comes first; sorted by multiple.
    pub(super) units: &'static [(&'static str, u64)],
    /// The form of a value, to follow "it must be".
    pub(super) form: &'static str,
    /// One smallest unit.
    pub(super) resolution: &'static str,
}

impl Scale {
    /// The exact value of a word such as `1.5ms`, in the smallest unit.
    pub(super) fn parse(&self, text: &str) -> Result<u64, ValueError> {
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(number_end);
        let decimal = Decimal::parse(number).ok_or(ValueError::Form(self.form))?;
        let factor = self.units.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor);
        let factor = factor.ok_or_else(|| self.wrong_unit(unit))?;
        decimal.times(factor).map_err(|inexact| match inexact {
            Inexact::TooFine => ValueError::TooFine(self.resolution),
            Inexact::TooGreat => {
                ValueError::OutOfRange { min: self.print(0), max: self.print(u64::MAX) }
            }
        })
    }

    /// The value in the greatest unit of which it is a whole multiple.
    pub(super) fn print(&self, value: u64) -> String {
        let divides = |unit: &&(_, u64)| value != 0 && value.is_multiple_of(unit.1);
        let (name, factor) = self.units.iter().rev().find(divides).unwrap_or(&self.units[0]);
        format!("{}{name}", value / factor)
    }

    fn wrong_unit(&self, unit: &str) -> ValueError {
        let units: Vec<_> = self.units.iter().map(|&(name, _)| name).collect();
        if unit.is_empty() {
            return ValueError::MissingUnit(units);
        }
        let suggestion = suggest(unit, units.iter().copied());
        ValueError::UnknownUnit { unit: unit.to_owned(), suggestion, units }
    }
}
