//! The stage between what a peer announces and what is accepted of it where routes that come and go are not used.
//!
//! Reference: RFC 2439 §4.8; Handley et al. (XORP), §5.1.1 (an optional stage: whoever is behind it sees withdrawals).
//!
//! A damped route is one that is not accepted. What was received stays, so that it is found anew what is accepted when the
//! route has been still.

use weft_base::Instant;
use weft_routing::ip::{Version, split};
use weft_routing::{OriginId, Prefix};

use super::attribute_sets::AttributesId;
use super::{Path, Routes, SLICE};
use crate::config::Damping as Config;
use crate::damping::{Damping, Event, Key};
use crate::incoming::{Accepted, Announcer};

impl Routes {
    /// How routes of a peer are damped from now on, if they are. Returns whether that is something else than before: then it
    /// is to be found anew what is accepted, for what was known of its routes is forgotten.
    pub(crate) fn set_damping(&mut self, origin: OriginId, config: Option<Config>) -> bool {
        if self.damping.get(&origin).map(Damping::config) == config {
            return false;
        }
        self.damping.remove(&origin);
        self.damping.extend(config.map(|config| (origin, Damping::new(config))));
        true
    }

    /// Forgets what is known of routes of a peer, as [`Self::set_damping`] does; false if they are not damped.
    pub(crate) fn forget_damping(&mut self, origin: OriginId) -> bool {
        let damping = self.damping.get_mut(&origin);
        damping.map(|damping| *damping = Damping::new(damping.config())).is_some()
    }

    /// What is known of a peer's routes, if they are damped.
    pub(crate) fn damping(&self, origin: OriginId) -> Option<&Damping> {
        self.damping.get(&origin)
    }

    /// A peer announces a path to a destination with these attributes, or withdraws it. Returns whether it is not to be used.
    pub(crate) fn happens(
        &mut self,
        (version, prefix): (Version, &Prefix),
        origin: OriginId,
        path: u32,
        received: Option<AttributesId>,
    ) -> bool {
        if !self.damping.contains_key(&origin) {
            return false;
        }
        let number = self.table.number(version, prefix);
        let before = number.and_then(|number| self.path((version, number), origin, path));
        let event = match (before, received) {
            (Some(_), None) => Event::Withdrawn,
            // That its speaker is back is no change.
            (Some(before), Some(now))
                if before.received != now && !self.is_marked(origin, before) =>
            {
                Event::Changed
            }
            _ => Event::Announced,
        };
        let (now, net) = (self.now, version.net(prefix));
        let damping = self.damping.get_mut(&origin);
        damping.is_some_and(|damping| damping.happened(now, (version, net, path), event))
    }

    fn is_marked(&self, origin: OriginId, path: Path) -> bool {
        self.source(origin).is_stale(self.sets.get(path.received).communities())
    }

    /// What a peer has announced on a path to the destination with this number.
    fn path(&self, place: (Version, u32), origin: OriginId, path: u32) -> Option<Path> {
        let mut all = self.table.candidates(place.0, place.1);
        all.find(|one| one.origin == origin && one.path == path).map(|one| one.route)
    }

    /// Whether a route is not used because it has come and gone too often.
    pub(crate) fn is_damped(&self, origin: OriginId, route: &Key) -> bool {
        self.damping.get(&origin).is_some_and(|damping| damping.is_damped(route))
    }

    /// When routes may be used again, or forgotten.
    pub(crate) fn damping_deadline(&self) -> Option<Instant> {
        self.damping.values().filter_map(Damping::deadline).min()
    }

    /// Of whose routes that may be so now.
    pub(crate) fn damping_due(&self) -> Vec<OriginId> {
        let is_due = |damping: &Damping| damping.deadline().is_some_and(|due| due <= self.now);
        self.damping.iter().filter(|(_, one)| is_due(one)).map(|(origin, _)| *origin).collect()
    }

    /// Uses routes of a peer again that have been still, some at a time; while it is away they only stand as others do when
    /// it announces them again.
    pub(crate) fn use_again(&mut self, origin: OriginId, announcer: Option<&Announcer>) {
        let Some(damping) = self.damping.get_mut(&origin) else { return };
        let again = damping.tick(self.now, SLICE);
        let Some(announcer) = announcer else { return };
        let mut known = Accepted::default();
        for (version, net, path) in again {
            let (_, prefix) = split(net);
            let Some(number) = self.table.number(version, &prefix) else { continue };
            let place = (version, number);
            let Some(old) = self.path(place, origin, path) else { continue };
            let accepted = announcer.accept(old.received, (version, net), &mut known, self);
            self.change(place, origin, path, (old, Path { accepted, ..old }));
        }
        known.give(self);
    }
}
