//! A guard in front of an origin that is not trusted: what it may not tell is refused and counted.
//!
//! Reference: Handley et al. (XORP), §5.1 (a stage that checks the rules between two others) and §7 (code that is not
//! trusted).
//!
//! A guard knows nothing of routes, only of their destinations. Whoever has the table asks it for each route; what it lets
//! pass goes on as from any origin. Taking back is always let pass if something was told, so that an origin that tells
//! too fast leaves nothing behind; that way it makes no more changes than it was let tell.

use weft_base::{Counters, Instant};

use crate::Prefix;

weft_base::reasons! {
    /// Why a guard has refused something.
    pub enum Refusal {
        Outside = "outside", "routes outside of the prefixes that are allowed";
        TooMany = "too-many", "new routes beyond the number that is allowed";
        TooFast = "too-fast", "routes beyond the rate that is allowed";
        NotTold = "not-told", "routes taken back that nobody had told";
    }
}

/// What an origin may tell. `F` are the families of its destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance<F> {
    /// One of these must hold a destination; any if there are none.
    pub within: Vec<(F, Prefix)>,
    /// Routes at a time.
    pub most: usize,
    /// Routes told in a second, in the long run. So many as there may be can be told at once.
    pub rate: u32,
}

impl<F: PartialEq> Allowance<F> {
    /// Whether a destination is one of which the origin may speak.
    #[must_use]
    pub fn holds(&self, family: F, destination: &Prefix) -> bool {
        let holds = |(of, prefix): &(F, Prefix)| *of == family && prefix.contains(destination);
        self.within.is_empty() || self.within.iter().any(holds)
    }

    /// Whether something may be told that another allowance refuses.
    #[must_use]
    pub fn exceeds(&self, other: &Self) -> bool
    where
        F: Copy,
    {
        let is_wider = match self.within.is_empty() {
            true => !other.within.is_empty(),
            false => self.within.iter().any(|(family, prefix)| !other.holds(*family, prefix)),
        };
        is_wider || self.most > other.most || self.rate > other.rate
    }
}

/// Nanoseconds in a second: one change is worth as many units of credit.
const CHANGE: u64 = 1_000_000_000;

/// A guard; see the module's text.
#[derive(Debug)]
pub struct Guard<F> {
    allowance: Allowance<F>,
    /// What may be told at once, in units.
    credit: u64,
    /// When that was reckoned.
    reckoned: Instant,
    refused: Counters<Refusal>,
}

impl<F: PartialEq> Guard<F> {
    /// A guard that has let pass nothing yet.
    #[must_use]
    pub fn new(now: Instant, allowance: Allowance<F>) -> Self {
        let credit = full(&allowance);
        Self { allowance, credit, reckoned: now, refused: Counters::new() }
    }

    /// What may be told.
    #[must_use]
    pub fn allowance(&self) -> &Allowance<F> {
        &self.allowance
    }

    /// Something else may be told from now on.
    pub fn allow(&mut self, allowance: Allowance<F>) {
        self.credit = self.credit.min(full(&allowance));
        self.allowance = allowance;
    }

    /// What was refused.
    #[must_use]
    pub fn refused(&self) -> &Counters<Refusal> {
        &self.refused
    }

    /// The origin tells a route. `count` says how many it has; `is_new`, whether this is one more.
    ///
    /// # Errors
    /// It is refused, and was counted.
    pub fn tells(
        &mut self,
        now: Instant,
        (family, destination): (F, &Prefix),
        count: usize,
        is_new: bool,
    ) -> Result<(), Refusal> {
        let elapsed = u64::try_from(now.since(self.reckoned).as_nanos()).unwrap_or(u64::MAX);
        let earned = elapsed.saturating_mul(self.allowance.rate.into());
        self.credit = self.credit.saturating_add(earned).min(full(&self.allowance));
        self.reckoned = now;
        let refusal = if !self.allowance.holds(family, destination) {
            Refusal::Outside
        } else if is_new && count >= self.allowance.most {
            Refusal::TooMany
        } else if self.credit < CHANGE {
            Refusal::TooFast
        } else {
            self.credit -= CHANGE;
            return Ok(());
        };
        self.refused.add(refusal, 1);
        Err(refusal)
    }

    /// The origin takes a route back that it has not told.
    pub fn was_not_told(&mut self) {
        self.refused.add(Refusal::NotTold, 1);
    }
}

/// The most that may be told at once.
fn full<F>(allowance: &Allowance<F>) -> u64 {
    let changes = (allowance.most as u64).max(allowance.rate.into()).max(1);
    changes.saturating_mul(CHANGE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use proptest::prelude::*;
    use weft_base::Reason;

    use super::*;

    fn prefix(number: u8) -> Prefix {
        Prefix::new(&[10, number], 16).unwrap()
    }

    fn guard(most: usize, rate: u32) -> Guard<u8> {
        let within = vec![(4, Prefix::new(&[10, 0], 9).unwrap())];
        Guard::new(Instant::ZERO, Allowance { within, most, rate })
    }

    #[test]
    fn prefixes_count_with_their_family() {
        let mut guard = guard(9, 9);
        let mut tells =
            |family, number| guard.tells(Instant::ZERO, (family, &prefix(number)), 0, true);
        assert_eq!(tells(4, 127), Ok(()));
        assert_eq!(tells(4, 128), Err(Refusal::Outside));
        assert_eq!(tells(6, 127), Err(Refusal::Outside));
        let shorter = Prefix::new(&[10], 8).unwrap();
        assert!(guard.tells(Instant::ZERO, (4, &shorter), 0, true).is_err(), "it holds more");
        guard.allow(Allowance { within: Vec::new(), most: 9, rate: 9 });
        assert_eq!(guard.tells(Instant::ZERO, (6, &shorter), 0, true), Ok(()));
        assert_eq!(guard.refused().get(Refusal::Outside), 3);
    }

    #[test]
    fn as_many_as_there_may_be_can_be_told_at_once_and_then_so_many_a_second() {
        let mut guard = guard(5, 2);
        let mut told = |milliseconds| {
            let now = Instant::ZERO + Duration::from_millis(milliseconds);
            (0..100).filter(|_| guard.tells(now, (4, &prefix(0)), 1, false).is_ok()).count()
        };
        assert_eq!([0, 499, 500, 1500, 60_000].map(&mut told), [5, 0, 1, 2, 5]);
        assert_eq!(guard.refused().get(Refusal::TooFast), 500 - 13);
    }

    #[test]
    fn an_allowance_exceeds_another_if_anything_more_may_be_told() {
        let all = Allowance { within: Vec::<(u8, Prefix)>::new(), most: 5, rate: 2 };
        let some = guard(5, 2).allowance().clone();
        assert!(all.exceeds(&some) && !some.exceeds(&all) && !some.exceeds(&some));
        assert!(Allowance { most: 6, ..some.clone() }.exceeds(&some));
        assert!(Allowance { rate: 3, ..some.clone() }.exceeds(&some));
        let family = Allowance { within: vec![(6, some.within[0].1)], ..some.clone() };
        assert!(family.exceeds(&some));
    }

    proptest! {
        /// Whatever is told: a table behind the guard has what is allowed, and what was refused was counted.
        #[test]
        fn a_table_behind_it_never_has_what_is_not_allowed(
            steps in prop::collection::vec((any::<u8>(), any::<bool>(), 0u64..400), 0..200),
            most in 0usize..12, rate in 0u32..20,
        ) {
            let (mut guard, mut table) = (guard(most, rate), BTreeSet::new());
            let (mut now, mut passed, mut refused) = (Instant::ZERO, 0u64, 0u64);
            for (number, tells, pause) in steps {
                now += Duration::from_millis(pause);
                let is_new = !table.contains(&number);
                if tells {
                    let result = guard.tells(now, (4, &prefix(number)), table.len(), is_new);
                    match result {
                        Ok(()) => { table.insert(number); passed += 1; }
                        Err(_) => refused += 1,
                    }
                } else if !table.remove(&number) {
                    guard.was_not_told();
                    refused += 1;
                }
                prop_assert!(table.len() <= most && table.iter().all(|one| *one < 128));
                let burst = (most as u64).max(rate.into()).max(1);
                let seconds = now.since(Instant::ZERO).as_millis() as u64;
                prop_assert!(passed * 1000 <= burst * 1000 + seconds * u64::from(rate));
            }
            let counted: u64 = Refusal::ALL.iter().map(|one| guard.refused().get(*one)).sum();
            prop_assert_eq!(counted, refused);
        }
    }
}
