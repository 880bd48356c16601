//! Which answers of a principal may have changed.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2 (the dependency forest keeps the routing cache in step
//! with the tables).
//!
//! The forwarder keeps what it has worked out from the answers of
//! [`Principal::lookup`](crate::principal::Principal::lookup). Whoever changes a table tells with it of
//! which XIDs the answer may be another one now. To tell of too many is safe: the forwarder asks about each
//! that it has kept, and what is answered as before stays. To tell of too few is a fault.

use crate::Xid;

/// XIDs of one principal whose answers may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This one.
    Xid(Xid),
    /// All from the first to the last, both included: a prefix, for instance.
    Range(Xid, Xid),
    /// All of the principal's type.
    All,
}

/// Changes remembered one by one; for more, a look at everything costs less.
const MOST: usize = 4096;

/// The changes of a table since they were asked for.
#[derive(Clone, Debug, Default)]
pub struct ChangeLog {
    changes: Vec<Change>,
}

impl ChangeLog {
    /// Notes a change. When there are very many, nobody listens or everything changes; either way they
    /// become [`Change::All`].
    pub fn note(&mut self, change: Change) {
        if self.changes.len() == MOST || change == Change::All {
            self.changes.clear();
            self.changes.push(Change::All);
        } else if self.changes.first() != Some(&Change::All) {
            self.changes.push(change);
        }
    }

    /// Moves the changes behind those in `out`.
    pub fn drain(&mut self, out: &mut Vec<Change>) {
        out.append(&mut self.changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::XidType;

    fn change(id: u8) -> Change {
        Change::Xid(Xid::new(XidType::AD, [id; 20]))
    }

    fn drained(log: &mut ChangeLog) -> Vec<Change> {
        let mut out = Vec::new();
        log.drain(&mut out);
        out
    }

    #[test]
    fn changes_are_told_once_in_order() {
        let mut log = ChangeLog::default();
        log.note(change(1));
        log.note(change(2));
        assert_eq!(drained(&mut log), [change(1), change(2)]);
        assert_eq!(drained(&mut log), []);
    }

    #[test]
    fn everything_covers_what_came_before_and_comes_after() {
        let mut log = ChangeLog::default();
        log.note(change(1));
        log.note(Change::All);
        log.note(change(2));
        assert_eq!(drained(&mut log), [Change::All]);
    }

    #[test]
    fn a_log_that_nobody_reads_stays_small() {
        let mut log = ChangeLog::default();
        (0..10 * MOST).for_each(|n| log.note(change(n as u8)));
        assert_eq!(drained(&mut log), [Change::All]);
    }
}
