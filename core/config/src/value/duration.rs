//! Durations: `10ms`.

use std::time::Duration;

use super::scale::Scale;
use super::{FromWord, ToWord, ValueError};

const TIME: Scale = Scale {
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    form: "a number directly followed by a unit of time",
    resolution: "1ns",
};

/// A whole number of nanoseconds, at most 2^64 − 1 (584 years).
impl FromWord for Duration {
    const WHAT: &'static str = "a duration";
    const EXAMPLE: &'static str = "10ms";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        TIME.parse(text).map(Duration::from_nanos)
    }
}

/// Durations beyond 2^64 − 1 ns become that.
impl ToWord for Duration {
    fn to_word(&self) -> String {
        TIME.print(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::{reads, refuses};
    use proptest::prelude::*;

    #[test]
    fn durations_are_exact_in_every_unit() {
        reads("0s", Duration::ZERO, "0ns");
        reads("7ns", Duration::from_nanos(7), "7ns");
        reads("10us", Duration::from_micros(10), "10us");
        reads("1.5ms", Duration::from_micros(1500), "1500us");
        reads("90s", Duration::from_secs(90), "90s");
        reads("60s", Duration::from_secs(60), "1min");
        reads("0.5h", Duration::from_secs(1800), "30min");
        reads("18446744073709551615ns", Duration::from_nanos(u64::MAX), "18446744073709551615ns");
    }

    #[test]
    fn malformed_durations_are_refused_with_the_reason() {
        let form = "it must be a number directly followed by a unit of time";
        for word in ["", "ms", "-1ms", "1.ms", ".5s", "soon"] {
            refuses::<Duration>(word, form);
        }
        let units = "one of `ns`, `us`, `ms`, `s`, `min` or `h`";
        refuses::<Duration>("10", &format!("its unit is missing, {units}"));
        refuses::<Duration>("10MS", "its unit `MS` is unknown, did you mean `ms`?");
        refuses::<Duration>("10weeks", &format!("its unit `weeks` is unknown, it is {units}"));
        refuses::<Duration>("0.5ns", "it is finer than 1ns");
        refuses::<Duration>("5124096h", "it must be 0ns to 18446744073709551615ns");
    }

    proptest! {
        #[test]
        fn durations_round_trip(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(Duration::from_word(&duration.to_word()), Ok(duration));
        }

        #[test]
        fn any_word_is_read_or_refused(word in ".{0,40}|[0-9]{0,30}[.]?[0-9]{0,30}(ns|s|h|)") {
            let _ = Duration::from_word(&word);
        }
    }
}
