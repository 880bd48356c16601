//! The routes to one destination, and how the best is found.
//!
//! Reference: Handley et al. (XORP), §5.1.1 (the decision process knows nothing but how to compare) and §5.2 (the RIB's
//! decision by administrative distance).

use super::generation::Generation;
use super::nets::{Further, NONE};

/// Who tells routes: a peer, a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u16);

impl OriginId {
    pub(super) fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// A route to a destination, one of several perhaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<R> {
    /// Who tells it.
    pub origin: OriginId,
    /// In which generation of its origin it was told last.
    pub(super) generation: Generation,
    /// On which of the origin's paths (RFC 7911, the path identifier); 0 if it has only one.
    pub path: u32,
    /// What it says.
    pub route: R,
}

impl<R: PartialEq> Candidate<R> {
    /// Whether both are the same to whoever reads.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        (self.origin, self.path) == (other.origin, other.path) && self.route == other.route
    }
}

/// How the best route to a destination is found.
pub trait Decide<R> {
    /// The place of the best among these; none if none of them can be used. There is at least one.
    ///
    /// What it says must not depend on their order, or on anything that changes without
    /// [`RouteTable::decide_again`](super::RouteTable::decide_again).
    fn best(&self, candidates: Candidates<'_, R>) -> Option<usize>;

    /// Whether readers must hear of a route that says the same as before, because what it says, or who says it, means
    /// something else: asked of the best while all destinations are decided again.
    fn has_moved(&self, candidate: &Candidate<R>) -> bool {
        let _ = candidate;
        false
    }
}

/// The routes to one destination, the best first if there is one.
#[derive(Clone, Debug)]
pub struct Candidates<'a, R> {
    pub(super) first: Option<&'a Candidate<R>>,
    pub(super) next: u32,
    pub(super) further: &'a [Further<R>],
}

impl<'a, R> Iterator for Candidates<'a, R> {
    type Item = &'a Candidate<R>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.next == NONE {
            return None;
        }
        let further = &self.further[self.next as usize];
        self.next = further.next;
        Some(&further.candidate)
    }
}

impl<R> Candidates<'_, R> {
    /// The place of the first that no other is better than, of those that can be used.
    #[must_use]
    pub fn best_by(
        self,
        usable: impl Fn(&Candidate<R>) -> bool,
        is_better: impl Fn(&Candidate<R>, &Candidate<R>) -> bool,
    ) -> Option<usize> {
        let mut best: Option<(usize, &Candidate<R>)> = None;
        for (place, one) in self.enumerate().filter(|(_, one)| usable(one)) {
            if best.is_none_or(|(_, best)| is_better(one, best)) {
                best = Some((place, one));
            }
        }
        best.map(|(place, _)| place)
    }
}
