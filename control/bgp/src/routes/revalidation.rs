//! The RPKI says something else of some prefixes: what is accepted of the routes to them, and within them, is found anew in the
//! background, where policies ask for it.
//!
//! Reference: RFC 6811 §4 (changes take effect on what was received); Handley et al. (XORP), §5.1.2 (work in slices).

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use weft_routing::ip::{IpRoutes, Version, split_for};
use weft_routing::{OriginId, Prefix};

use super::{Path, Routes, SLICE};
use crate::incoming::{Accepted, Announcer};

/// Which routes are to be looked at.
#[derive(Debug, Default)]
pub(super) struct Revalidation {
    /// Prefixes that they are within.
    nets: BTreeSet<(Version, Prefix)>,
    /// The one that was begun with, and the last destination within it that was looked at.
    begun: Option<((Version, Prefix), Prefix)>,
}

impl Revalidation {
    /// The next destination to be looked at.
    fn next(&mut self, table: &IpRoutes<Path>) -> Option<(Version, u32)> {
        loop {
            let (net, last) = match self.begun.take() {
                Some((net, last)) => (net, Some(last)),
                None => (self.nets.pop_first()?, None),
            };
            if let Some((found, number)) = table.next_within(net.0, &net.1, last.as_ref()) {
                self.begun = Some((net, found));
                return Some((net.0, number));
            }
        }
    }
}

impl Routes {
    /// Routes to these prefixes, and within them, are to be looked at again.
    pub(crate) fn revalidate(&mut self, nets: impl IntoIterator<Item = IpNet>) {
        let both = |net| [false, true].map(|multicast| split_for(net, multicast));
        self.revalidation.nets.extend(nets.into_iter().flat_map(both));
    }

    /// Whether there are such routes.
    pub(crate) fn revalidates(&self) -> bool {
        !self.revalidation.nets.is_empty() || self.revalidation.begun.is_some()
    }

    /// Looks at some of them again: at those of peers whose policies ask for it.
    pub(crate) fn go_on_revalidating(&mut self, asking: &BTreeMap<OriginId, &Announcer>) {
        for _ in 0..SLICE {
            let Some(place) = self.revalidation.next(&self.table) else { return };
            let all = self.table.candidates(place.0, place.1);
            let own = all.filter_map(|one| Some((*asking.get(&one.origin)?, one.path, one.route)));
            for (announcer, path, old) in own.collect::<Vec<_>>() {
                // What is the same for one peer need not be for another.
                let mut known = Accepted::default();
                let new = self.accept_anew(announcer, place, (path, old), &mut known);
                self.change(place, announcer.origin, path, (old, new));
                known.give(self);
            }
        }
    }
}
