//! Switches and whole numbers.

use super::{FromWord, ToWord, ValueError};
use crate::suggest::suggest;

const ON: [&str; 3] = ["on", "true", "yes"];
const OFF: [&str; 3] = ["off", "false", "no"];

/// `on`, `true`, `yes`; `off`, `false`, `no`.
impl FromWord for bool {
    const WHAT: &'static str = "a switch";
    const EXAMPLE: &'static str = "on";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let accepted = [ON, OFF].concat();
        match text {
            text if ON.contains(&text) => Ok(true),
            text if OFF.contains(&text) => Ok(false),
            _ => Err(ValueError::NotOneOf {
                suggestion: suggest(text, accepted.iter().copied()),
                accepted,
            }),
        }
    }
}

impl ToWord for bool {
    fn to_word(&self) -> String {
        if *self { ON[0] } else { OFF[0] }.to_owned()
    }
}

/// Whether `text` is one or more decimal digits; the parsers of the standard library accept more.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl FromWord for $type {
            const WHAT: &'static str = "a whole number";
            const EXAMPLE: &'static str = "7";

            fn from_word(text: &str) -> Result<Self, ValueError> {
                let digits = if <$type>::MIN < 0 { text.strip_prefix('-').unwrap_or(text) } else { text };
                if !is_digits(digits) {
                    return Err(ValueError::Form("decimal digits without a unit"));
                }
                // Digits alone fail only by being out of range.
                text.parse().map_err(|_| ValueError::OutOfRange {
                    min: <$type>::MIN.to_string(),
                    max: <$type>::MAX.to_string(),
                })
            }
        }

        impl ToWord for $type {
            fn to_word(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

// `MIN < 0` is never true for the unsigned ones, which is the point.
#[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
mod whole {
    use super::*;
    whole_numbers!(u8 u16 u32 u64 usize i32 i64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::{reads, refuses};
    use proptest::prelude::*;

    #[test]
    fn switches_have_three_words_for_each_position() {
        for word in ON {
            reads(word, true, "on");
        }
        for word in OFF {
            reads(word, false, "off");
        }
        let accepted = "it is one of `on`, `true`, `yes`, `off`, `false` or `no`";
        refuses::<bool>("1", accepted);
    }

    #[test]
    fn whole_numbers_are_digits_within_the_range_of_the_type() {
        reads("0", 0u8, "0");
        reads("255", 255u8, "255");
        reads("-1", -1i32, "-1");
        refuses::<u8>("256", "it must be 0 to 255");
        refuses::<u16>("99999999999999999999999999", "it must be 0 to 65535");
        for word in ["", "-1", "+1", "1.5", "0x10", "1_000", "10ms", "١"] {
            refuses::<u16>(word, "it must be decimal digits without a unit");
        }
        refuses::<i64>("--1", "it must be decimal digits without a unit");
    }

    proptest! {
        #[test]
        fn whole_numbers_round_trip(a: u64, b: i64) {
            prop_assert_eq!(u64::from_word(&a.to_word()), Ok(a));
            prop_assert_eq!(i64::from_word(&b.to_word()), Ok(b));
        }
    }
}
