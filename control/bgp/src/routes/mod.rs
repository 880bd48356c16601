//! The routes of BGP: what peers have announced, what of it is accepted, and what is best.
//!
//! Reference: RFC 4271 §3.2 (Adj-RIBs-In, Loc-RIB) and §9.1; Handley et al. (XORP), §5.1 and Figures 4 to 6.
//!
//! The way of a route through the paper's stages: what a peer announces is its `received` attributes (Peer In); what
//! policy makes of them is `accepted` (the filter bank), and nothing while it comes and goes (damping, [`damped`]); it is
//! held back until the RIB has said how its next hop is reached (next-hop resolver, [`next_hops`]); the best of all is
//! found ([`decision`]), and readers hear of it at their own pace (fanout queue). The table is that of `weft_routing`,
//! whose text says what is different from the paper and why.

mod accepted;
pub(crate) mod attribute_sets;
pub(crate) mod conventions;
mod damped;
pub(crate) mod decision;
pub(crate) mod export;
mod lost;
pub(crate) mod next_hops;
pub(crate) mod packed;
pub(crate) mod path_ids;
mod revalidation;
mod rounds;

use std::collections::BTreeMap;

use weft_base::{Instant, KeyedHash};
use weft_routing::ip::{IpRoutes, Version};
use weft_routing::{Candidate, OriginId, Prefix};
use weft_xrl::profile::Profile;

use crate::damping::Damping;
use crate::validation::Validation;
use crate::wire::Attributes;
use accepted::AcceptedCounts;
use attribute_sets::{AttributeSets, AttributesId};
use decision::{Decision, Known, Source};
use next_hops::{Due, NextHopId, NextHops};
use path_ids::PathIds;
use revalidation::Revalidation;
use rounds::Round;

/// Destinations that one slice of background work visits: some tenths of a millisecond.
const SLICE: usize = 512;

weft_base::reasons! {
    /// Places that routes pass, for profiles.
    pub(crate) enum Point {
        Entered = "entered", "entering BGP";
        Queued = "queued", "queued for transmission to the RIB, and to peers";
        Sent = "sent", "sent to the RIB";
        Told = "told", "leaving to a peer";
    }
}

/// What is known of one path to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// As the peer has announced it.
    pub(crate) received: AttributesId,
    /// As it is used here.
    pub(crate) accepted: AttributesId,
}

impl Path {
    /// Whether it may be used.
    pub(crate) fn is_accepted(&self) -> bool {
        self.accepted != AttributesId::NONE
    }
}

/// A path that is gone without its peer having withdrawn it in this session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swept {
    pub(crate) origin: OriginId,
    pub(crate) version: Version,
    pub(crate) prefix: Prefix,
    pub(crate) path: u32,
}

/// All routes.
pub(crate) struct Routes {
    pub(crate) sets: AttributeSets,
    pub(crate) next_hops: NextHops,
    /// How paths are called where peers are told several.
    pub(crate) path_ids: PathIds,
    /// By the numbers of origins.
    sources: Vec<Known>,
    /// Those of which peers have to hear again.
    moved: Vec<OriginId>,
    /// The paths that sources have announced, the best to each destination first.
    pub(crate) table: IpRoutes<Path>,
    /// How many of them are accepted.
    accepted: AcceptedCounts,
    /// With whose routes there is something to be done.
    rounds: Vec<Round>,
    /// Who may announce what.
    pub(crate) validation: Validation,
    /// Of which routes that is to be looked at again.
    revalidation: Revalidation,
    /// Paths that are gone without their peers having said so, if somebody wants to hear of them.
    swept: Option<Vec<Swept>>,
    /// What is known of routes that come and go, of peers where they are damped.
    damping: BTreeMap<OriginId, Damping>,
    /// When what happens now happens.
    pub(crate) now: Instant,
    /// When routes pass which point.
    pub(crate) profile: Profile<Point>,
}

impl Routes {
    pub(crate) fn new(key: KeyedHash) -> Self {
        Self {
            sets: AttributeSets::new(key),
            next_hops: NextHops::default(),
            path_ids: PathIds::default(),
            sources: Vec::new(),
            moved: Vec::new(),
            table: IpRoutes::new(),
            accepted: AcceptedCounts::default(),
            rounds: Vec::new(),
            validation: Validation::default(),
            revalidation: Revalidation::default(),
            swept: None,
            damping: BTreeMap::new(),
            now: Instant::ZERO,
            profile: Profile::default(),
        }
    }

    /// Something happens now.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.now = now;
        self.profile.begin(now);
    }

    /// A new source of routes.
    pub(crate) fn add_source(&mut self, source: Source) -> OriginId {
        self.sources.push(Known { source, edition: 0, has_moved: false });
        self.table.add_origin()
    }

    /// How many sources there were.
    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// A source is another one now: its session was opened again. What it has announced already means something else to those
    /// who were told of it, whether it is announced again or not: they are told again.
    pub(crate) fn set_source(&mut self, origin: OriginId, source: Source) {
        let has_routes = Version::ALL.iter().any(|one| self.table.routes_of(*one, origin) > 0);
        let known = &mut self.sources[usize::from(origin.0)];
        if known.source == source {
            return;
        }
        // How far a protocol is trusted peers are not told.
        if has_routes && source.own.is_none() {
            (known.edition, known.has_moved) = (known.edition.wrapping_add(1), true);
            self.moved.push(origin);
        }
        known.source = source;
        self.table.decide_again();
    }

    /// Whether peers have not heard again of all that sources have announced which are others now.
    pub(crate) fn have_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Which of those with this number a source is.
    pub(crate) fn edition(&self, origin: OriginId) -> u32 {
        self.sources[usize::from(origin.0)].edition
    }

    pub(crate) fn source(&self, origin: OriginId) -> &Source {
        &self.sources[usize::from(origin.0)].source
    }

    /// The number of a set of attributes, which has one use more. They name their next hop.
    pub(crate) fn intern(&mut self, attributes: &Attributes) -> AttributesId {
        let next_hops = &mut self.next_hops;
        self.sets.intern(attributes, |attributes| {
            let next_hop = attributes.next_hop.as_ref();
            next_hops.take(next_hop.expect("whoever stores a route gives it a next hop"))
        })
    }

    /// A set of attributes has one use less.
    pub(crate) fn give(&mut self, id: AttributesId) {
        if let Some(next_hop) = self.sets.give(id) {
            self.next_hops.give(next_hop);
        }
    }

    /// The paths to the destination with this number that can be used.
    pub(crate) fn usable(
        &self,
        version: Version,
        number: u32,
    ) -> impl Iterator<Item = Candidate<Path>> + '_ {
        let decision = self.decision();
        let all = self.table.candidates(version, number).copied();
        all.filter(move |one| decision.is_usable(one))
    }

    /// Whether a path can be used.
    pub(crate) fn is_usable(&self, one: &Candidate<Path>) -> bool {
        self.decision().is_usable(one)
    }

    /// Whether packets for a path that is accepted are dropped.
    pub(crate) fn is_blackhole(&self, one: &Candidate<Path>) -> bool {
        self.decision().is_blackhole(one)
    }

    /// In what a path to the destination with this number comes behind the best one; nothing if it is that, or may not be
    /// used.
    pub(crate) fn lost_by(
        &self,
        (version, number): (Version, u32),
        one: &Candidate<Path>,
    ) -> Option<&'static str> {
        let decision = self.decision();
        let best = self.table.best(version, number)?;
        let is_behind = !std::ptr::eq(best, one) && decision.is_usable(one);
        let candidates = self.table.candidates(version, number);
        is_behind.then(|| decision.lost_by(one, best, candidates))
    }

    /// Where packets go to the destination with this number, of `most` next hops at most, the best first.
    pub(crate) fn next_hops_to(
        &self,
        version: Version,
        number: u32,
        most: usize,
    ) -> Vec<NextHopId> {
        self.decision().next_hops(self.table.candidates(version, number), most)
    }

    fn decision(&self) -> Decision<'_> {
        Decision { sources: &self.sources, sets: &self.sets, next_hops: &self.next_hops }
    }

    /// A source announces a path to a prefix.
    pub(crate) fn announce(
        &mut self,
        destination: (Version, &Prefix),
        origin: OriginId,
        path: u32,
        route: Path,
    ) {
        self.sets.take(route.received);
        self.sets.take(route.accepted);
        let noted = self.table.noted(destination.0);
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        let before = self.table.set(destination, origin, path, route, &decision);
        self.accepted.changed(destination.0, origin, before, Some(route));
        self.is_queued(destination, noted, false);
        if route.is_accepted() {
            let (version, prefix) = destination;
            let number = || Some((version, self.table.number(version, prefix)?));
            self.next_hops.hold(self.sets.next_hop(route.accepted), number);
        }
        before.into_iter().for_each(|before| self.forget(before));
    }

    /// A source withdraws a path to a prefix, if it has announced one.
    pub(crate) fn withdraw(
        &mut self,
        destination: (Version, &Prefix),
        origin: OriginId,
        path: u32,
    ) {
        let noted = self.table.noted(destination.0);
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        let before = self.table.withdraw(destination, origin, path, &decision);
        self.accepted.changed(destination.0, origin, before, None);
        self.is_queued(destination, noted, true);
        before.into_iter().for_each(|before| self.forget(before));
    }

    /// For profiles: whether readers are to hear of a destination, where so many changes were noted before.
    fn is_queued(&mut self, (version, prefix): (Version, &Prefix), noted: u64, gone: bool) {
        if self.table.noted(version) != noted {
            self.profile.mark(Point::Queued, gone, || version.net(prefix));
        }
    }

    /// The RIB has said how next hops are reached.
    pub(crate) fn decide(&mut self, due: Due) {
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        for (version, number) in due.held {
            self.table.decide(version, number, &decision);
        }
        if due.all {
            self.table.decide_again();
        }
    }

    fn forget(&mut self, path: Path) {
        self.give(path.received);
        self.give(path.accepted);
    }

    /// Takes the paths that are gone without their peers having said so, and says whether to go on remembering these.
    pub(crate) fn take_swept(&mut self, goes_on: bool) -> Vec<Swept> {
        let swept = goes_on.then(Vec::new);
        std::mem::replace(&mut self.swept, swept).unwrap_or_default()
    }

    /// Whether there is background work.
    pub(crate) fn has_work(&self) -> bool {
        self.table.has_work() || !self.rounds.is_empty() || self.revalidates()
    }

    /// Does a slice of background work.
    pub(crate) fn work(&mut self) {
        if !self.has_work() {
            return self.table.tidy();
        }
        self.go_round();
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        let mut gone = Vec::new();
        let accepted = &mut self.accepted;
        let swept = &mut self.swept;
        self.table.work(SLICE, &decision, |(version, prefix), one: &Candidate<Path>| {
            accepted.changed(version, one.origin, Some(one.route), None);
            if let Some(swept) = swept {
                swept.push(Swept { origin: one.origin, version, prefix, path: one.path });
            }
            gone.push(one.route);
        });
        gone.into_iter().for_each(|path| self.forget(path));
        if !self.table.has_work() {
            for origin in self.moved.drain(..) {
                self.sources[usize::from(origin.0)].has_moved = false;
            }
        }
    }
}
