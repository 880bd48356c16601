//! When an owner is to tell everything anew because the kernel may have something else than it was told: somebody else has
//! deleted routes, or a link was lost or is back.
//!
//! At once for a link, and soon where others delete, for it can be many that are deleted one after the other. But who deletes all the
//! time, or a link that flaps, shall not keep the node busy: from one time to the next it takes longer and longer, until there was
//! rest for a while.

use std::time::Duration;

use weft_base::Instant;

/// How long more may be deleted before the owner is told.
const SETTLE: Duration = Duration::from_millis(100);
/// The least time from one time to the next, at first and at last.
const PATIENCE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Why the kernel may have something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Others have deleted routes.
    Deleted,
    /// A link is lost, and the routes that lead there are.
    Lost,
    /// A link is back, and the kernel may take what it has refused. Of its own, so that a link that is lost and back once is
    /// waited for neither time.
    Found,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Amends([Pace; 3]);

/// When the owner is told for one cause.
#[derive(Debug, Default)]
struct Pace {
    due: Option<Instant>,
    last: Option<Instant>,
    patience: Duration,
}

impl Amends {
    /// The kernel may have something else.
    pub(crate) fn needed(&mut self, cause: Cause, now: Instant) {
        let settle = if cause == Cause::Deleted { SETTLE } else { Duration::ZERO };
        self.0[cause as usize].needed(now, now + settle);
    }

    /// Everything is told anew now, or nobody wants to know.
    pub(crate) fn over(&mut self) {
        self.0.iter_mut().for_each(|pace| pace.due = None);
    }

    /// When the owner is to be told.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.iter().filter_map(|pace| pace.due).min()
    }

    /// Whether it is time. It is said once.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        // Of each cause it is said now.
        self.0.iter_mut().map(|pace| pace.take(now)).filter(|is_due| *is_due).count() > 0
    }
}

impl Pace {
    fn needed(&mut self, now: Instant, soon: Instant) {
        if self.due.is_some() {
            return;
        }
        let last = self.last.filter(|last| now < *last + 2 * self.patience);
        if last.is_none() {
            self.patience = Duration::ZERO;
        }
        self.due = Some(last.map_or(soon, |last| soon.max(last + self.patience)));
    }

    fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due.take_if(|due| *due <= now).is_some();
        if is_due {
            let [first, longest] = PATIENCE;
            (self.last, self.patience) = (Some(now), (2 * self.patience).clamp(first, longest));
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
            amends.needed(Cause::Deleted, at(millis));
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
        amends.needed(Cause::Deleted, at(later + 200_000));
        assert_eq!(amends.deadline(), Some(at(later + 200_100)));
    }

    #[test]
    fn what_is_told_anew_anyway_need_not_be_said() {
        let mut amends = Amends::default();
        amends.needed(Cause::Deleted, at(5));
        amends.over();
        assert!(!amends.take(at(1_000)) && amends.deadline().is_none());
    }

    #[test]
    fn a_link_is_waited_for_when_it_flaps_and_not_when_it_is_lost_once() {
        let (mut amends, mut told) = (Amends::default(), Vec::new());
        for millis in (0..20_000).step_by(500) {
            amends.needed(Cause::Lost, at(millis));
            if amends.take(at(millis)) {
                told.push(millis);
            }
        }
        assert_eq!(told, [0, 1_000, 3_000, 7_000, 15_000]);
        amends.needed(Cause::Found, at(20_000));
        assert!(amends.take(at(20_000)), "what others are waited for makes no difference");
    }
}
