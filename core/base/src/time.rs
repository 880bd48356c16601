//! Time as components see it: monotonic nanoseconds, and wall time as a separate type.
//!
//! A component never reads a clock. The driver passes `now` with every input: the real driver reads
//! `CLOCK_MONOTONIC`, the simulator counts virtual nanoseconds from zero.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on the monotonic clock of one machine (or of one simulation), in nanoseconds.
///
/// 64 bits of nanoseconds last for 584 years; arithmetic saturates rather than wraps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The clock's origin: boot on a real machine, the start of a simulation.
    pub const ZERO: Self = Self(0);
    /// The end of time; a deadline that is never reached.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`, zero if `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A point in civil time: nanoseconds since the Unix epoch, UTC. For people and for files, never for
/// timers: it jumps when somebody sets the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The wall time `nanos` nanoseconds after 1970-01-01 00:00:00 UTC.
    #[must_use]
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970-01-01 00:00:00 UTC.
    #[must_use]
    pub const fn as_unix_nanos(self) -> u64 {
        self.0
    }
}

/// In UTC, to the millisecond: `2026-11-21T22:14:37.118Z`.
///
/// Reference: RFC 3339; the days are counted as in H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms".
impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0 / 1_000_000_000, self.0 / 1_000_000 % 1_000);
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Years begin in March here, so that leap days are at their ends; 400 years have 146,097 days.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Instant::ZERO + Duration::MAX, Instant::MAX);
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::ZERO - Instant::from_nanos(5), Duration::ZERO);
    }

    #[test]
    fn prints_seconds_with_nanoseconds() {
        assert_eq!(Instant::from_nanos(1_500_000_007).to_string(), "1.500000007s");
    }

    #[test]
    fn civil_time_is_that_of_rfc_3339() {
        let text = |seconds: u64| WallTime::from_unix_nanos(seconds * 1_000_000_000).to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(text(4_107_542_400), "2100-03-01T00:00:00.000Z");
        let exact = WallTime::from_unix_nanos(1_795_299_277_042_999_999).to_string();
        assert_eq!(exact, "2026-11-21T22:14:37.042Z");
        let late = WallTime::from_unix_nanos(u64::MAX).to_string();
        assert_eq!(late, "2554-07-21T23:34:33.709Z");
    }
}
