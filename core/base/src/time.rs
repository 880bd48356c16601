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
}
