//! When an owner is to tell everything anew because somebody else has deleted routes.
//!
//! Soon, for it can be many that are deleted one after the other; but who deletes all the time shall not keep the node busy: from
//! one time to the next it takes longer and longer, until nobody has deleted anything for a while.

use std::time::Duration;

use weft_base::Instant;

/// How long more may be deleted before the owner is told.
const SETTLE: Duration = Duration::from_millis(100);
/// The least time from one time to the next, at first and at last.
const PATIENCE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Amends {
    due: Option<Instant>,
    last: Option<Instant>,
    patience: Duration,
}

impl Amends {
    /// Somebody has deleted routes.
    pub(crate) fn deleted(&mut self, now: Instant) {
        if self.due.is_some() {
            return;
        }
        let [first, longest] = PATIENCE;
        let soon = now + SETTLE;
        match self.last.filter(|last| now < *last + 2 * self.patience) {
            Some(last) => {
                self.due = Some(soon.max(last + self.patience));
                self.patience = (2 * self.patience).min(longest);
            }
            None => (self.due, self.patience) = (Some(soon), first),
        }
    }

    /// Everything is told anew now, or nobody wants to know.
    pub(crate) fn over(&mut self) {
        self.due = None;
    }

    /// When the owner is to be told.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Whether it is time. It is said once.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due.take_if(|due| *due <= now).is_some();
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn who_deletes_all_the_time_is_waited_for_longer_and_longer() {
        let (mut amends, mut told) = (Amends::default(), Vec::new());
        for millis in (0..400_000).step_by(50) {
            amends.deleted(at(millis));
            if amends.take(at(millis)) {
                told.push(millis);
            }
        }
        let gaps: Vec<_> = told.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(told[0], 100);
        assert_eq!(gaps[..8], [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        // When there was rest for long enough, it is as at first.
        let later = 400_000 + 2 * 60_000;
        amends.take(at(later));
        amends.over();
        amends.deleted(at(later + 200_000));
        assert_eq!(amends.deadline(), Some(at(later + 200_100)));
    }

    #[test]
    fn what_is_told_anew_anyway_need_not_be_said() {
        let mut amends = Amends::default();
        amends.deleted(at(5));
        amends.over();
        assert!(!amends.take(at(1_000)) && amends.deadline().is_none());
    }
}
