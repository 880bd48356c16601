//! The machine's monotonic clock.

use rustix::time::{ClockId, clock_gettime};
use weft_base::Instant;

/// The time since the machine started, without jumps (`CLOCK_MONOTONIC`): what processes are told. Not for protocols,
/// which take the time that they are given.
#[must_use]
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    #[test]
    fn time_goes_forward() {
        let before = super::now();
        while super::now() == before {}
        assert!(super::now() > before);
    }
}
