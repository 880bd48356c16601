//! Between two stages: what one tells the other must make sense.
//!
//! Reference: Handley et al. (XORP), §5.1 (the two rules of consistency, and the stage that checks them): what is deleted was
//! added before, and what is looked up agrees with what was told.
//!
//! There the stage is plumbed in where somebody looks for a bug. Here it stands between the stages wherever assertions are
//! compiled in, and so in every test; elsewhere nothing of it is left.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// All is compared when one of so many routes has changed, so that a change costs so many steps at most.
const SHARE: usize = 64;

/// What has passed from one stage to the next: by what it is about, what was told last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check<K, V> {
    told: BTreeMap<K, V>,
    /// How much has changed since all was compared.
    changes: usize,
}

impl<K, V> Default for Check<K, V> {
    fn default() -> Self {
        Self { told: BTreeMap::new(), changes: 0 }
    }
}

impl<K: Ord + Debug, V: PartialEq> Check<K, V> {
    /// This is told now, whether something was told before or not.
    pub fn tell(&mut self, key: K, now: V) {
        if cfg!(debug_assertions) {
            self.changes += 1;
            self.told.insert(key, now);
        }
    }

    /// This is told now, or that there is nothing any more; who tells it believes that something `was` told before.
    ///
    /// # Panics
    /// Something else was told before, where there are assertions.
    #[track_caller]
    pub fn change(&mut self, key: K, was: bool, now: Option<V>) {
        if cfg!(debug_assertions) {
            let is_there = self.told.contains_key(&key);
            let what = if now.is_some() { "added" } else { "deleted" };
            assert_eq!(is_there, was, "{key:?} is {what}: whether it was added before");
            self.changes += usize::from(is_there || now.is_some());
            match now {
                Some(now) => drop(self.told.insert(key, now)),
                None => drop(self.told.remove(&key)),
            }
        }
    }

    /// Who is told knows nothing any more.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether it is time to [compare](Self::compare), if there is nothing left to tell, and so much to compare with.
    #[must_use]
    pub fn is_due(&self, size: usize) -> bool {
        let most = size.max(self.told.len());
        cfg!(debug_assertions) && self.changes > 0 && self.changes.saturating_mul(SHARE) >= most
    }

    /// There is nothing left to tell, and this holds.
    ///
    /// # Panics
    /// Something else was told.
    #[track_caller]
    pub fn compare(&mut self, holds: impl IntoIterator<Item = (K, V)>) {
        let holds: BTreeMap<K, V> = holds.into_iter().collect();
        let is_other = |(key, _): &(&K, &V)| self.told.get(key) != holds.get(key);
        if let Some((key, _)) = self.told.iter().chain(&holds).find(is_other) {
            let [told, there] = [&self.told, &holds].map(|all| all.contains_key(key));
            panic!("{key:?} is not as it was told: told {told}, there {there}, or another one");
        }
        self.changes = 0;
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn what_makes_sense_passes() {
        let mut check = Check::default();
        check.change(1, false, None);
        check.change(1, false, Some('a'));
        check.change(1, true, Some('b'));
        check.change(2, false, Some('c'));
        check.change(2, true, None);
        assert!(check.is_due(100));
        check.compare([(1, 'b')]);
        assert!(!check.is_due(0), "nothing has changed since");
        check.tell(1, 'b');
        assert!(check.is_due(SHARE) && !check.is_due(SHARE + 1));
        check.forget();
        check.change(1, false, Some('a'));
    }

    #[test]
    #[should_panic(expected = "3 is deleted")]
    fn nothing_is_deleted_that_was_not_added() {
        Check::<_, char>::default().change(3, true, None);
    }

    #[test]
    #[should_panic(expected = "3 is added")]
    fn nothing_is_new_that_was_added_before() {
        let mut check = Check::default();
        check.tell(3, 'a');
        check.change(3, false, Some('b'));
    }

    #[test]
    fn what_holds_was_told() {
        for holds in [vec![], vec![(1, 'a'), (2, 'b')], vec![(1, 'b')], vec![(2, 'a')]] {
            let mut check = Check::default();
            check.tell(1, 'a');
            let compared = std::panic::catch_unwind(move || check.compare(holds));
            assert!(compared.is_err());
        }
    }
}
