//! In what a route that may be used comes behind the best one, for operators.
//!
//! Reference: RFC 4271 §9.1.2.2 in its steps, RFC 4456 §9, RFC 9494 §4.3; the decision itself is [`super::decision`]'s.

use std::cmp::Ordering;

use weft_routing::{Candidate, Candidates};

use super::Path;
use super::decision::Decision;

/// What is compared, by its name for operators.
type Compared = (&'static str, Ordering);

impl Decision<'_> {
    /// The first comparison in which `one` comes behind `best`, of all that there are to the destination.
    pub(super) fn lost_by(
        &self,
        one: &Candidate<Path>,
        best: &Candidate<Path>,
        candidates: Candidates<'_, Path>,
    ) -> &'static str {
        if self.is_own(one) || self.is_own(best) {
            return "administrative distance";
        }
        let (a, b) = (self.first(one), self.first(best));
        let first = [
            ("long-lived stale", a.0.cmp(&b.0)),
            ("local preference", a.1.cmp(&b.1)),
            ("length of the AS path", a.2.cmp(&b.2)),
            ("origin", a.3.cmp(&b.3)),
        ];
        if let Some(name) = decisive(&first) {
            return name;
        }
        let learned = candidates
            .enumerate()
            .filter(|(_, other)| self.is_usable(other) && !self.is_own(other));
        if !self.rivals(learned).iter().any(|(_, rival)| std::ptr::eq(*rival, one)) {
            return "med";
        }
        let (a, b) = (self.last(one), self.last(best));
        let last = [
            ("learned within the AS", a.0.cmp(&b.0)),
            ("metric to the next hop", a.1.cmp(&b.1)),
            ("router-id", a.2.cmp(&b.2)),
            ("length of the cluster list", a.3.cmp(&b.3)),
            ("address of the peer", a.4.cmp(&b.4)),
        ];
        decisive(&last).unwrap_or("path-id")
    }
}

/// The first comparison that makes a difference.
fn decisive(compared: &[Compared]) -> Option<&'static str> {
    compared.iter().find(|(_, order)| order.is_ne()).map(|(name, _)| *name)
}
