//! What is done with all that a peer has announced, in the background, one destination after the other.
//!
//! Reference: Handley et al. (XORP), §8.1 (policies change while routes flow), §5.1.2 (work in slices); RFC 9494 §4.2 (routes
//! of a peer that is away live long).
//!
//! Another policy takes effect: what is accepted is found anew from what was received. A route that is announced meanwhile
//! goes through the new policy at once. What was told of a route before is known to whoever told it, so that no withdrawal
//! needs the policy of then: only differences go out.
//!
//! A peer does not come back: its routes are marked with the community LLGR_STALE, by which they are the last that are used
//! ([`super::decision`]), and are told to those who know what that means ([`super::export`]). Those that are marked with
//! NO_LLGR go. If it is back before all are marked, that goes on with those that it has not announced again.

use std::collections::BTreeMap;

use weft_routing::ip::Version;
use weft_routing::{Candidate, OriginId};

use super::attribute_sets::AttributesId;
use super::decision::Decision;
use super::{Path, Routes, SLICE, conventions};
use crate::incoming::{Accepted, Announcer};
use crate::numbers::community::{LLGR_STALE, NO_LLGR};

/// What is done.
#[derive(Debug)]
enum Task {
    /// What is accepted is found anew: who announced the routes, with the new policy.
    Refilter(Announcer),
    /// Routes of the version of IP where it begins live long.
    LiveLong,
}

/// How far it has come with a peer.
#[derive(Debug)]
pub(super) struct Round {
    origin: OriginId,
    task: Task,
    /// The next destination.
    place: (Version, u32),
}

/// What was found in a slice, of which it is a user.
#[derive(Default)]
struct Found {
    accepted: Accepted,
    /// The same sets of attributes with the mark, by those without it.
    marked: BTreeMap<AttributesId, AttributesId>,
}

impl Found {
    fn give(self, routes: &mut Routes) {
        self.accepted.give(routes);
        for (plain, marked) in self.marked {
            routes.give(plain);
            routes.give(marked);
        }
    }
}

impl Routes {
    /// Has it found anew what is accepted of what this peer has announced.
    pub(crate) fn refilter(&mut self, announcer: Announcer) {
        let origin = announcer.origin;
        self.stop_refiltering(origin);
        self.rounds.push(Round {
            origin,
            task: Task::Refilter(announcer),
            place: (Version::V4, 0),
        });
    }

    /// A peer that is away does not come back soon: all routes of this version that it has announced live long.
    pub(crate) fn live_long(&mut self, version: Version, origin: OriginId) {
        self.stop_living(version, origin);
        self.rounds.push(Round { origin, task: Task::LiveLong, place: (version, 0) });
    }

    fn stop_living(&mut self, version: Version, origin: OriginId) {
        self.rounds.retain(|one| {
            !(matches!(one.task, Task::LiveLong) && (one.origin, one.place.0) == (origin, version))
        });
    }

    /// Stale routes of a peer go: there is nothing left to live long.
    pub(crate) fn sweep(&mut self, version: Version, origin: OriginId) {
        self.stop_living(version, origin);
        self.table.sweep(version, origin);
    }

    /// Nothing is found anew any more of what this peer has announced, perhaps in another session. Returns whether that was not
    /// done yet.
    pub(crate) fn stop_refiltering(&mut self, origin: OriginId) -> bool {
        let before = self.rounds.len();
        self.rounds.retain(|one| one.origin != origin || matches!(one.task, Task::LiveLong));
        self.rounds.len() < before
    }

    /// There is no such peer any more: nothing is done with its routes.
    pub(crate) fn stop_rounds(&mut self, origin: OriginId) {
        self.rounds.retain(|one| one.origin != origin);
    }

    /// Does some of it.
    pub(super) fn go_round(&mut self) {
        let Some(mut round) = self.rounds.pop() else { return };
        let mut found = Found::default();
        for _ in 0..SLICE {
            let (version, number) = round.place;
            if number >= self.table.end_of_numbers(version) {
                match (&round.task, version.next()) {
                    (Task::Refilter(_), Some(next)) => round.place = (next, 0),
                    _ => return found.give(self),
                }
                continue;
            }
            self.visit(&round, &mut found);
            round.place.1 += 1;
        }
        found.give(self);
        self.rounds.push(round);
    }

    fn visit(&mut self, round: &Round, found: &mut Found) {
        let (version, number) = round.place;
        // RFC 9494 §4.2: routes are marked that are stale, and no others.
        let is_meant = |one: &Candidate<Path>| match round.task {
            Task::Refilter(_) => true,
            Task::LiveLong => self.table.is_stale(version, one),
        };
        let all = self.table.candidates(version, number);
        let own = all.filter(|one| one.origin == round.origin && is_meant(one));
        let own: Vec<_> = own.map(|one| (one.path, one.route)).collect();
        for (path, old) in own {
            let new = match &round.task {
                Task::Refilter(announcer) => {
                    let one = (path, old);
                    Some(self.accept_anew(announcer, round.place, one, &mut found.accepted))
                }
                Task::LiveLong => self.marked(old, found),
            };
            match new {
                Some(new) => self.change(round.place, round.origin, path, (old, new)),
                None => {
                    let prefix = self.table.news(version, number).prefix;
                    self.withdraw((version, &prefix), round.origin, path);
                }
            }
        }
    }

    /// A path that this peer has announced, with what is accepted of it now.
    pub(super) fn accept_anew(
        &mut self,
        announcer: &Announcer,
        (version, number): (Version, u32),
        (path, old): (u32, Path),
        known: &mut Accepted,
    ) -> Path {
        let net = self.table.net(version, number);
        let accepted = match self.is_damped(announcer.origin, &(version, net, path)) {
            true => AttributesId::NONE,
            false => announcer.accept(old.received, (version, net), known, self),
        };
        Path { accepted, ..old }
    }

    /// A route has other attributes, which somebody else uses, too.
    pub(super) fn change(
        &mut self,
        place: (Version, u32),
        origin: OriginId,
        path: u32,
        (old, new): (Path, Path),
    ) {
        if old == new {
            return;
        }
        self.sets.take(new.received);
        self.sets.take(new.accepted);
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        self.table.change(place, origin, path, new, &decision);
        self.accepted.changed(place.0, origin, Some(old), Some(new));
        if new.is_accepted() {
            self.next_hops.hold(self.sets.next_hop(new.accepted), || Some(place));
        }
        self.forget(old);
    }

    /// A route that lives long; none if it may not.
    fn marked(&mut self, route: Path, found: &mut Found) -> Option<Path> {
        let may_not = |id: AttributesId| {
            id != AttributesId::NONE && self.sets.get(id).communities().contains(&NO_LLGR)
        };
        if may_not(route.received) || may_not(route.accepted) {
            return None;
        }
        Some(Path {
            received: self.mark(route.received, found),
            accepted: self.mark(route.accepted, found),
        })
    }

    /// The same attributes with the mark.
    fn mark(&mut self, id: AttributesId, found: &mut Found) -> AttributesId {
        if id == AttributesId::NONE {
            return id;
        }
        if let Some(marked) = found.marked.get(&id) {
            return *marked;
        }
        let mut attributes = self.sets.get(id).unpack();
        conventions::add_community(&mut attributes, LLGR_STALE);
        let marked = self.intern(&attributes);
        self.sets.take(id);
        found.marked.insert(id, marked);
        marked
    }
}
