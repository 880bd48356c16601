//! Another policy takes effect: what is accepted of a peer's routes is found anew from what was received, in the background.
//!
//! Reference: Handley et al. (XORP), §8.1 (policies change while routes flow), §5.1.2 (work in slices).
//!
//! A route that is announced meanwhile goes through the new policy at once. What was told of a route before is known to
//! whoever told it, so that no withdrawal needs the policy of then: only differences go out.

use weft_routing::OriginId;
use weft_routing::ip::Version;

use super::decision::Decision;
use super::{Path, Routes, SLICE};
use crate::incoming::{Accepted, Announcer};

/// How far it has come with a peer.
#[derive(Debug)]
pub(super) struct Refilter {
    /// Who announced the routes, with the new policy.
    announcer: Announcer,
    /// The next destination.
    place: (Version, u32),
}

impl Routes {
    /// Has it found anew what is accepted of what this peer has announced.
    pub(crate) fn refilter(&mut self, announcer: Announcer) {
        self.stop_refilter(announcer.origin);
        self.refilters.push(Refilter { announcer, place: (Version::V4, 0) });
    }

    /// A new session with this peer begins, perhaps with a policy that came while there was none: what was to be found by
    /// the one of before is announced anew, or goes.
    pub(crate) fn stop_refilter(&mut self, origin: OriginId) {
        self.refilters.retain(|one| one.announcer.origin != origin);
    }

    /// Does some of it.
    pub(super) fn refilter_some(&mut self) {
        let Some(mut refilter) = self.refilters.pop() else { return };
        let mut known = Accepted::default();
        for _ in 0..SLICE {
            let (version, number) = refilter.place;
            if number >= self.table.end_of_numbers(version) {
                match version {
                    Version::V4 => refilter.place = (Version::V6, 0),
                    Version::V6 => return known.give(self),
                }
                continue;
            }
            self.refilter_one(version, number, &refilter.announcer, &mut known);
            refilter.place.1 += 1;
        }
        known.give(self);
        self.refilters.push(refilter);
    }

    fn refilter_one(
        &mut self,
        version: Version,
        number: u32,
        announcer: &Announcer,
        known: &mut Accepted,
    ) {
        let own =
            self.table.candidates(version, number).filter(|one| one.origin == announcer.origin);
        let own: Vec<_> = own.map(|one| (one.path, one.route)).collect();
        for (path, old) in own {
            let net = self.table.net(version, number);
            let accepted = announcer.accept(old.received, net, known, self);
            if accepted == old.accepted {
                continue;
            }
            self.sets.take(accepted);
            let route = Path { accepted, ..old };
            let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
            let decision = Decision { sources, sets, next_hops };
            let place = (version, number);
            self.table.change(place, announcer.origin, path, route, &decision);
            self.give(old.accepted);
        }
    }
}
