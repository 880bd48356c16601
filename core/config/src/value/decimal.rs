//! Exact decimal fractions.

use super::number::is_digits;

/// More decimal places are refused; keeps the arithmetic within 128 bits.
const MOST_PLACES: usize = 15;

/// A decimal number such as `12` or `1.5`, as written.
pub(super) struct Decimal<'t> {
    whole: &'t str,
    /// The digits behind the point, without trailing zeros.
    fraction: &'t str,
}

/// Why a multiple of a decimal number is no `u64`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inexact {
    TooGreat,
    TooFine,
}

impl<'t> Decimal<'t> {
    /// Digits, or digits, a point, and digits.
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_decimal = is_digits(whole) && is_digits(fraction);
        is_decimal.then(|| Self { whole, fraction: fraction.trim_end_matches('0') })
    }

    /// The product with `factor`, which must be a whole number.
    pub(super) fn times(&self, factor: u64) -> Result<u64, Inexact> {
        let places = u32::try_from(self.fraction.len()).unwrap_or(u32::MAX);
        if self.fraction.len() > MOST_PLACES {
            return Err(Inexact::TooFine);
        }
        let whole = parse_digits(self.whole).ok_or(Inexact::TooGreat)?;
        let fraction = parse_digits(self.fraction).ok_or(Inexact::TooFine)?;
        let scale = 10u128.pow(places);
        let scaled_fraction = fraction * u128::from(factor);
        if !scaled_fraction.is_multiple_of(scale) {
            return Err(Inexact::TooFine);
        }
        // `whole` and `factor` are below 2^64, and the fraction is below `factor`.
        let product = whole * u128::from(factor) + scaled_fraction / scale;
        u64::try_from(product).map_err(|_| Inexact::TooGreat)
    }
}

/// The value of digits, of none 0; `None` beyond 64 bits.
fn parse_digits(digits: &str) -> Option<u128> {
    if digits.is_empty() { Some(0) } else { digits.parse::<u64>().ok().map(u128::from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str, factor: u64) -> Result<u64, Inexact> {
        Decimal::parse(text).expect(text).times(factor)
    }

    #[test]
    fn products_are_exact_or_refused() {
        assert_eq!(times("12", 1), Ok(12));
        assert_eq!(times("1.5", 10), Ok(15));
        assert_eq!(times("0.10", 10), Ok(1));
        assert_eq!(times("1.000000000000000000000", 1), Ok(1));
        assert_eq!(times("0.25", 1 << 10), Ok(256));
        assert_eq!(times("0.15", 10), Err(Inexact::TooFine));
        assert_eq!(times("0.0000000000000001", u64::MAX), Err(Inexact::TooFine));
        assert_eq!(times("18446744073709551615", 1), Ok(u64::MAX));
        assert_eq!(times("18446744073709551616", 1), Err(Inexact::TooGreat));
        assert_eq!(times("18446744073709551615.999999999999999", u64::MAX), Err(Inexact::TooFine));
        assert_eq!(times("18446744073709551615.5", 2), Err(Inexact::TooGreat));
    }

    #[test]
    fn other_forms_are_no_decimals() {
        for text in ["", ".", "1.", ".5", "1.2.3", "-1", "+1", "1e3", "1,5", " 1"] {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
    }
}
