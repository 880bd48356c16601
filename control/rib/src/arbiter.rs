//! Which of several routes to a destination is used.
//!
//! Reference: Handley et al. (XORP), §5.2: a single administrative distance decides between protocols (the merge
//! stages), external routes are used if internal ones lead to their next hop (the ExtInt stage).

use weft_routing::{Candidate, Candidates, Decide, OriginId};

use crate::hops::{HopSets, SetId};

/// What a protocol tells of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) set: SetId,
    pub(crate) metric: u32,
    pub(crate) tag: u32,
}

/// An administrative distance with which a route is never used.
pub(crate) const NEVER: u32 = 255;

/// What the arbiter knows of an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) distance: u32,
    pub(crate) is_external: bool,
}

/// Decides between routes.
pub(crate) struct Arbiter<'a> {
    /// By the numbers of origins.
    pub(crate) origins: &'a [Standing],
    pub(crate) sets: &'a HopSets,
}

impl Arbiter<'_> {
    fn standing(&self, origin: OriginId) -> Standing {
        self.origins[usize::from(origin.0)]
    }

    /// The lower the better.
    pub(crate) fn rank(&self, one: &Candidate<Route>) -> (u32, u32, OriginId) {
        (self.standing(one.origin).distance, one.route.metric, one.origin)
    }

    pub(crate) fn is_usable(&self, one: &Candidate<Route>) -> bool {
        self.standing(one.origin).distance < NEVER && self.sets.is_usable(one.route.set)
    }

    /// Whether it may lead to gateways: internal, and in need of no other route itself, so that no two routes can
    /// hold up each other.
    pub(crate) fn leads(&self, origin: OriginId, set: SetId) -> bool {
        !self.standing(origin).is_external && self.sets.is_direct(set)
    }
}

impl Decide<Route> for Arbiter<'_> {
    fn best(&self, candidates: Candidates<'_, Route>) -> Option<usize> {
        candidates
            .best_by(|one| self.is_usable(one), |one, other| self.rank(one) < self.rank(other))
    }

    fn has_moved(&self, one: &Candidate<Route>) -> bool {
        self.sets.has_moved(one.route.set)
    }
}
