//! Which of several routes to a destination is best.
//!
//! Reference: RFC 4271 §9.1.2 (phase 2), §9.1.2.2 (breaking ties); RFC 4456 §9 (reflected routes); RFC 5065 §5.3 (confederations); RFC 5004 is not
//! followed: the oldest route has no preference, so that the outcome does not depend on history. RFC 9494 §4.3 and §4.4: a
//! route of a speaker that is long away comes behind all others.
//!
//! Of a route to a network of this router's own and the best that peers have announced, the one whose protocol has the
//! lower administrative distance is best, as in the RIB. Others prefer their own always; but a route of RIP that the RIB
//! would not use while it had that of a peer would then keep the peer's from it, or not, depending on which came first.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use weft_routing::{Candidate, Candidates, Decide, OriginId};

use super::Path;
use super::attribute_sets::AttributeSets;
use super::next_hops::{NextHopId, NextHops};
use super::packed::Packed;
use crate::numbers::community::{BLACKHOLE, LLGR_STALE};
use crate::policy::Party;
use crate::to_rib::PROTOCOLS;
use crate::wire::{Neighbour, Origin};

/// Preferred to others if nobody says how much (RFC 4271 leaves it to the implementation; all take this).
pub(crate) const DEFAULT_LOCAL_PREF: u32 = 100;

/// What the decision knows of a peer, or of a protocol from which this router has networks of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// None of a peer.
    pub(crate) own: Option<Own>,
    /// Where it is.
    pub(crate) neighbour: Neighbour,
    /// Which system that is.
    pub(crate) system: u32,
    /// Whether it is a client of this route reflector.
    pub(crate) is_client: bool,
    /// Whether it is on a link of this router, so that what it announces has to be reached on one, too (RFC 4271 §5.1.3).
    pub(crate) is_direct: bool,
    /// Whether it was told that routes may live long here (RFC 9494).
    pub(crate) is_long_lived: bool,
    /// Whether packets for its routes that say so are dropped (RFC 7999).
    pub(crate) has_blackholes: bool,
    /// Its identifier.
    pub(crate) router_id: Ipv4Addr,
    /// The address of the session.
    pub(crate) address: IpAddr,
}

/// Whose routes to networks of this router's own are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// The name of the protocol.
    pub(crate) protocol: Rc<str>,
    /// Its administrative distance.
    pub(crate) distance: u32,
}

impl Source {
    /// A protocol from which this router has networks of its own.
    pub(crate) fn own(protocol: &str, distance: u32) -> Self {
        let nobody = Ipv4Addr::UNSPECIFIED;
        Self {
            own: Some(Own { protocol: protocol.into(), distance }),
            neighbour: Neighbour::Internal,
            system: 0,
            is_client: false,
            is_direct: false,
            is_long_lived: false,
            has_blackholes: false,
            router_id: nobody,
            address: nobody.into(),
        }
    }

    /// Whether it is in another autonomous system, and in no member of the same confederation (RFC 5065 §5.3: what those say
    /// is compared as if it came from this one).
    pub(crate) fn is_external(&self) -> bool {
        self.neighbour == Neighbour::External
    }

    /// The protocol, and its administrative distance; that of routes that live long is another one.
    pub(crate) fn protocol(&self) -> (&str, u32) {
        match &self.own {
            Some(Own { protocol, distance }) => (protocol, *distance),
            None => PROTOCOLS[usize::from(!self.is_external())],
        }
    }

    /// Whether a route of it with these communities lives only because there may be no other.
    pub(crate) fn is_stale(&self, communities: &[u32]) -> bool {
        self.is_long_lived && communities.contains(&LLGR_STALE)
    }

    /// Whether packets for a route of it with these communities are dropped.
    pub(crate) fn is_blackhole(&self, communities: &[u32]) -> bool {
        self.has_blackholes && communities.contains(&BLACKHOLE)
    }

    /// As which of [`PROTOCOLS`] the RIB is told of a route of this peer with these communities.
    pub(crate) fn place(&self, communities: &[u32]) -> usize {
        if self.is_stale(communities) { 2 } else { usize::from(!self.is_external()) }
    }

    /// The peer, if it is one.
    pub(crate) fn party(&self) -> Option<Party> {
        let Self { system, address, .. } = *self;
        let party = || Party { address, system, is_external: self.is_external() };
        self.own.is_none().then(party)
    }
}

/// A source, and whether it is as it was.
pub(crate) struct Known {
    pub(crate) source: Source,
    /// Grows whenever peers must hear again of what it has announced.
    pub(crate) edition: u32,
    /// They have not heard of all of it yet.
    pub(crate) has_moved: bool,
}

/// Everything that a decision depends on.
pub(crate) struct Decision<'a> {
    /// Of origins, by number.
    pub(crate) sources: &'a [Known],
    pub(crate) sets: &'a AttributeSets,
    pub(crate) next_hops: &'a NextHops,
}

/// What is compared first: whether its speaker is long away, degree of preference, length, origin. The lower the better.
pub(super) type First = (bool, Reverse<u32>, usize, Origin);
/// What is compared last: origin outside, interior cost, identifier, cluster list, address.
pub(super) type Last = (bool, u32, Ipv4Addr, usize, IpAddr, u32);

impl Decision<'_> {
    /// Whether it is a network of this router's own.
    pub(super) fn is_own(&self, one: &Candidate<Path>) -> bool {
        self.source(one.origin).own.is_some()
    }

    fn source(&self, origin: OriginId) -> &Source {
        &self.sources[usize::from(origin.0)].source
    }

    fn attributes(&self, one: &Candidate<Path>) -> &Packed {
        self.sets.get(one.route.accepted)
    }

    /// Whether packets for a route that is accepted are dropped.
    pub(crate) fn is_blackhole(&self, one: &Candidate<Path>) -> bool {
        let source = self.source(one.origin);
        source.has_blackholes && source.is_blackhole(self.attributes(one).communities())
    }

    /// RFC 4271 §9.1.2.1: the next hop must be resolvable; §6.3: that of a neighbour must be on a link, unless policy has
    /// said where packets go. What policy has not accepted cannot be used either. Packets that are dropped need no next hop
    /// (RFC 7999 §3.3).
    pub(crate) fn is_usable(&self, one: &Candidate<Path>) -> bool {
        if !one.route.is_accepted() {
            return false;
        }
        if self.is_blackhole(one) {
            return true;
        }
        let next_hop = self.sets.next_hop(one.route.accepted);
        let Some(reached) = self.next_hops.reached(next_hop) else { return false };
        let may_be_far = || {
            !self.source(one.origin).is_direct || self.sets.next_hop(one.route.received) != next_hop
        };
        reached.metric.is_some() && (reached.is_neighbour || may_be_far())
    }

    /// §9.1.1 and §9.1.2.2 a), b).
    pub(super) fn first(&self, one: &Candidate<Path>) -> First {
        let attributes = self.attributes(one);
        let preference = attributes.local_pref().unwrap_or(DEFAULT_LOCAL_PREF);
        let is_stale = self.source(one.origin).is_stale(attributes.communities());
        (is_stale, Reverse(preference), attributes.path().length(), attributes.origin())
    }

    /// §9.1.2.2 c): MEDs are compared among routes of one neighbouring system only, missing ones are lowest.
    fn med(&self, one: &Candidate<Path>) -> (Option<u32>, u32) {
        let attributes = self.attributes(one);
        (attributes.path().first(), attributes.med().unwrap_or(0))
    }

    /// §9.1.2.2 d) to g), RFC 4456 §9.
    pub(super) fn last(&self, one: &Candidate<Path>) -> Last {
        let (source, attributes) = (self.source(one.origin), self.attributes(one));
        let rare = attributes.rare();
        let metric = self.next_hops.metric(self.sets.next_hop(one.route.accepted));
        (
            !source.is_external(),
            metric.unwrap_or(u32::MAX),
            rare.originator_id.unwrap_or(source.router_id),
            rare.cluster_list.len(),
            source.address,
            one.path,
        )
    }
}

impl Decision<'_> {
    /// Those that are as good as any until the next hop counts: what is left when §9.1.2.2 has come to d), with their
    /// places.
    pub(super) fn rivals<'a>(
        &self,
        usable: impl Iterator<Item = (usize, &'a Candidate<Path>)>,
    ) -> Vec<(usize, &'a Candidate<Path>)> {
        let rivals: Vec<_> = usable.collect();
        let Some(first) = rivals.iter().map(|(_, one)| self.first(one)).min() else {
            return rivals;
        };
        let rivals: Vec<_> =
            rivals.into_iter().filter(|(_, one)| self.first(one) == first).collect();
        // A route goes if another one of the same neighbour has a lower MED, whether that one stays or not; so the
        // outcome does not depend on the order.
        let meds: Vec<_> = rivals.iter().map(|(_, one)| self.med(one)).collect();
        let stays = |med: &(Option<u32>, u32)| {
            !meds.iter().any(|other| other.0 == med.0 && other.1 < med.1)
        };
        rivals.into_iter().zip(&meds).filter(|(_, med)| stays(med)).map(|(one, _)| one).collect()
    }

    /// The next hops among which packets are shared out, of `most` paths at most, the best first: those that are as good
    /// as the best until only identifiers and addresses make a difference (§9.1.2.2 f), g)). Of several paths to one next
    /// hop one counts, and none of those whose packets are dropped. Whether they go through the same systems is not asked.
    pub(crate) fn next_hops(
        &self,
        candidates: Candidates<'_, Path>,
        most: usize,
    ) -> Vec<NextHopId> {
        let is_learned = |one| self.is_usable(one) && !self.is_own(one);
        let usable = candidates.enumerate().filter(|(_, one)| is_learned(one));
        let mut rivals: Vec<_> =
            self.rivals(usable).into_iter().map(|(_, one)| (self.last(one), one)).collect();
        rivals.sort_by_key(|(last, _)| *last);
        let best = rivals.first().map(|(last, _)| (last.0, last.1));
        let mut next_hops = Vec::new();
        for (last, one) in rivals {
            let next_hop = self.sets.next_hop(one.route.accepted);
            let is_as_good = Some((last.0, last.1)) == best;
            let leads = is_as_good && !self.is_blackhole(one);
            if leads && next_hops.len() < most && !next_hops.contains(&next_hop) {
                next_hops.push(next_hop);
            }
        }
        next_hops
    }
}

impl Decide<Path> for Decision<'_> {
    fn has_moved(&self, one: &Candidate<Path>) -> bool {
        self.sources[usize::from(one.origin.0)].has_moved
    }

    fn best(&self, candidates: Candidates<'_, Path>) -> Option<usize> {
        let mut usable = candidates.enumerate().filter(|(_, one)| self.is_usable(one));
        let only = usable.next()?;
        // Mostly there is no other.
        let Some(second) = usable.next() else { return Some(only.0) };
        let mut own: Option<(u32, OriginId, usize)> = None;
        let learned = [only, second].into_iter().chain(usable).filter(|(place, one)| {
            let Some(known) = &self.source(one.origin).own else { return true };
            let this = (known.distance, one.origin, *place);
            own = Some(own.map_or(this, |other| other.min(this)));
            false
        });
        let learned = self.rivals(learned).into_iter().min_by_key(|(_, one)| self.last(one));
        let beats = |one: &Candidate<Path>, distance| {
            let place = self.source(one.origin).place(self.attributes(one).communities());
            distance <= PROTOCOLS[place].1
        };
        match (own, learned) {
            (Some((distance, _, place)), Some((_, one))) if beats(one, distance) => Some(place),
            (Some((.., place)), None) => Some(place),
            (_, learned) => learned.map(|(place, _)| place),
        }
    }
}
