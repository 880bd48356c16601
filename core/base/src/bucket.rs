//! A limit on how often something may be done.

use std::time::Duration;

use crate::Instant;

/// So much may be done at once, and then so much in a time: the generic cell rate algorithm (ITU-T
/// I.371, annex A, the virtual scheduling form), which needs one number only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    /// When everything may be done at once again.
    full: Instant,
}

impl Bucket {
    /// Takes one of `burst`, which is at least 1, if there is one left; one comes back each `interval`.
    pub fn take(&mut self, now: Instant, interval: Duration, burst: u32) -> bool {
        let begin = self.full.max(now);
        let allowed = begin.since(now) <= interval * burst.saturating_sub(1);
        if allowed {
            self.full = begin + interval;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_each_interval() {
        let mut bucket = Bucket::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut taken = |ms| bucket.take(at(ms), Duration::from_millis(10), 3);
        assert_eq!([0, 0, 0, 0].map(&mut taken), [true, true, true, false]);
        assert_eq!([9, 10, 10, 20].map(&mut taken), [false, true, false, true]);
        assert_eq!([50, 50, 50, 50].map(&mut taken), [true, true, true, false]);
    }
}
