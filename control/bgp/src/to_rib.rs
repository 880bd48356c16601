//! The RIB is told what is best, and asked how next hops are reached.
//!
//! Reference: Handley et al. (XORP), §5.1 (the RIB is a reader of the fanout queue like any peer), §5.2.1 (interest
//! registration).
//!
//! To the RIB there are three protocols: `ebgp` and `ibgp`, for they are trusted differently, and `bgp-long-lived`, for what
//! speakers that are long away have said is used only where nobody knows anything else (RFC 9494 §4.3). A route that goes from
//! one to another is told as the one before it is taken back from the other, so that it is never missing. Packets for a route
//! that says so (RFC 7999) are to be dropped there.

use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;
use weft_protocol::{
    Batch, Hop, Origin, OriginNumber, Origins, Resolve, Resolver, Route, To, rib as interface,
};
use weft_routing::ip::{IpRoutes, News, Version};
use weft_routing::{Candidate, Hears, OriginId, ReaderId, Said, Turns};
use weft_xrl::{Input, Lane, Output};

use crate::routes::next_hops::{Due, Reached};
use crate::routes::{Path, Point, Routes};

/// The numbers of the dialogues with the RIB.
const DIALOGUES: [u8; 2] = [0, 3];
/// The protocols, and their administrative distances: those that XORP, and others, use, and the highest with which a route
/// is used at all.
pub(crate) const PROTOCOLS: [(&str, u32); 3] =
    [("ebgp", 20), ("ibgp", 200), ("bgp-long-lived", 254)];

/// The way to the RIB.
#[derive(Debug)]
pub(crate) struct ToRib {
    origins: Origins,
    protocols: [OriginNumber; PROTOCOLS.len()],
    resolver: Resolver,
    /// Among how many next hops packets to a destination are shared out; 0 is 1.
    multipath: usize,
    readers: Option<[ReaderId; 4]>,
    /// Which of the protocols has told of a destination: their places stand for sources.
    said: [Said; 4],
    /// Of which version the RIB is told next.
    turns: Turns,
}

impl ToRib {
    /// The way to a RIB that is not there yet.
    pub(crate) fn new() -> Self {
        let [number, resolver] = DIALOGUES;
        let mut origins = Origins::new(number);
        let protocols = PROTOCOLS.map(|(protocol, distance)| {
            let protocol = protocol.to_owned();
            origins.open(Origin { protocol, external: true, distance }, &mut Vec::new()).0
        });
        let resolver = Resolver::new(resolver);
        let (readers, said) = (None, Default::default());
        Self { origins, protocols, resolver, multipath: 0, readers, said, turns: Turns::default() }
    }

    /// Among how many next hops packets to a destination are shared out.
    pub(crate) fn set_multipath(&mut self, most: usize, routes: &mut Routes) {
        if std::mem::replace(&mut self.multipath, most) == most {
            return;
        }
        // All routes are told again; to the RIB most of them are the same.
        for (version, reader) in Version::ALL.into_iter().zip(self.readers.into_iter().flatten()) {
            routes.table.tell_again(version, reader, self.hears());
        }
    }

    fn hears(&self) -> Hears {
        // With several next hops it matters when one comes or goes that is not the best.
        if self.multipath > 1 { Hears::All } else { Hears::Best }
    }

    fn open_readers(&self, routes: &mut Routes) -> [ReaderId; 4] {
        Version::ALL.map(|version| routes.table.open_reader(version, self.hears()))
    }

    fn close_readers(&mut self, routes: &mut Routes) {
        let readers = self.readers.take().into_iter().flatten();
        for (version, reader) in Version::ALL.into_iter().zip(readers) {
            routes.table.close_reader(version, reader);
        }
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        input: Input,
        routes: &mut Routes,
        out: &mut Vec<Output>,
    ) -> Option<Input> {
        let input = self.origins.hear(now, input, out);
        let input = input.and_then(|input| self.resolver.hear(now, input, routes, out));
        if self.origins.take_forgets() {
            self.said = Default::default();
            self.close_readers(routes);
        }
        if self.readers.is_none() && self.origins.is_open() {
            self.readers = Some(self.open_readers(routes));
        }
        input
    }

    /// Asks the RIB what is to be asked. Returns whether everything that was asked is answered.
    pub(crate) fn ask(&mut self, routes: &mut Routes, out: &mut Vec<Output>) -> bool {
        self.resolver.ask(routes, out)
    }

    /// Tells the RIB what it has not heard. `may_end` says whether peers have announced all that they had.
    pub(crate) fn tell(&mut self, may_end: bool, routes: &mut Routes, out: &mut Vec<Output>) {
        let Some(readers) = self.readers else { return };
        let all: [_; 4] = std::array::from_fn(|place| (Version::ALL[place], readers[place]));
        let is_behind = |routes: &Routes, (version, reader): &(Version, ReaderId)| {
            routes.table.is_behind(*version, *reader)
        };
        // However much there is to tell of one version, the others do not wait for it.
        while self.origins.may_tell()
            && let Some((version, reader)) = self.turns.next(&all, |one| is_behind(routes, one))
        {
            let batch = self.batch(version, routes, |table| table.next(version, reader));
            self.send(Lane::All, batch, routes, out);
        }
        // What is new does not wait until the RIB has taken more of what is not.
        for (version, reader) in all {
            if self.origins.may_tell_new(routes.table.new_waiting(version, reader)) {
                let batch = self.batch(version, routes, |table| table.next_new(version, reader));
                self.send(Lane::New, batch, routes, out);
            }
        }
        for (version, reader) in all {
            self.agrees(version, reader, routes);
        }
        if may_end && !all.iter().any(|one| is_behind(routes, one)) {
            self.origins.end(out);
        }
    }

    fn send(&mut self, lane: Lane, batch: Batch, routes: &mut Routes, out: &mut Vec<Output>) {
        batch.requests().for_each(|change| is_sent(change, routes));
        self.origins.tell(lane, batch, out);
    }

    /// Whether the RIB was told what is best, now and then, if there is nothing left to tell.
    fn agrees(&mut self, version: Version, reader: ReaderId, routes: &Routes) {
        let (said, table) = (&mut self.said[version as usize], &routes.table);
        let is_settled = !table.is_behind(version, reader) && !routes.have_moved();
        if is_settled && said.is_due(table.len(version)) {
            let all = table.all_news(version);
            said.compare(
                all.filter_map(|news| Some((news.prefix, protocol(&news.best?, routes)?))),
            );
        }
    }

    /// The next changes.
    fn batch(
        &mut self,
        version: Version,
        routes: &mut Routes,
        mut next: impl FnMut(&mut IpRoutes<Path>) -> Option<News<Path>>,
    ) -> Batch {
        let mut batch = self.origins.batch(version.is_multicast());
        for _ in 0..Batch::MOST {
            let Some(news) = next(&mut routes.table) else { break };
            self.note(version, &news, &mut batch, routes);
        }
        batch
    }

    /// One change.
    fn note(&mut self, version: Version, news: &News<Path>, batch: &mut Batch, routes: &Routes) {
        let protocol = news.best.and_then(|best| protocol(&best, routes));
        let route =
            protocol.and(news.best).map(|best| self.route(version, news.number, &best, routes));
        let before = self.said[version as usize].set((news.number, &news.prefix), protocol);
        batch.note(
            version.net(&news.prefix),
            protocol.map(|protocol| self.number(protocol)).zip(route.as_ref()),
            before.map(|before| self.number(before)),
        );
    }

    fn number(&self, protocol: OriginId) -> OriginNumber {
        self.protocols[usize::from(protocol.0)]
    }

    /// The route to the destination with this number, whose best path this is.
    fn route(
        &self,
        version: Version,
        number: u32,
        best: &Candidate<Path>,
        routes: &Routes,
    ) -> Route {
        let hop =
            |id| Hop { gateway: Some(routes.next_hops.address(id)), interface: None, weight: 1 };
        let accepted = best.route.accepted;
        let to = match self.multipath {
            _ if routes.is_blackhole(best) => To::Blackhole,
            0 | 1 => To::Hops(vec![hop(routes.sets.next_hop(accepted))]),
            most => {
                let all = routes.next_hops_to(version, number, most);
                To::Hops(all.into_iter().map(hop).collect())
            }
        };
        let attributes = routes.sets.get(accepted);
        let (metric, tag) = (attributes.med().unwrap_or(0), attributes.rare().tag);
        Route { to, metric, tag }
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.origins.deadline().into_iter().chain(self.resolver.deadline()).min()
    }

    /// Whether it was said that everything is told.
    pub(crate) fn has_ended(&self) -> bool {
        self.origins.has_ended()
    }

    /// Whether routes serve on that an earlier process has told; none if the RIB has not said so.
    pub(crate) fn has_kept(&self) -> Option<bool> {
        self.origins.has_kept()
    }

    /// Whether the RIB takes routes.
    pub(crate) fn is_there(&self) -> bool {
        self.origins.is_open()
    }
}

/// As a route of which of the protocols the RIB is told of this one, if it is: their places are numbers of origins here.
fn protocol(best: &Candidate<Path>, routes: &Routes) -> Option<OriginId> {
    let source = routes.source(best.origin);
    // It knows the router's own networks already.
    let is_learned = source.own.is_none();
    let communities = || routes.sets.get(best.route.accepted).communities();
    is_learned.then(|| OriginId(source.place(communities()) as u16))
}

impl Resolve for Routes {
    fn ask_again(&mut self) {
        self.next_hops.ask_again();
    }

    fn take_wanted(&mut self) -> Vec<IpAddr> {
        self.next_hops.take_wanted()
    }

    fn told(&mut self, _: &[IpAddr], ways: Vec<interface::Way>) {
        let mut due = Due::default();
        for way in ways {
            let metric = way.found.then_some(way.metric);
            let reached = Reached { metric, is_neighbour: way.is_neighbour };
            self.next_hops.told(way.block, reached, &mut due);
        }
        self.decide(due);
    }

    fn invalid(&mut self, blocks: &[IpNet]) {
        blocks.iter().for_each(|block| self.next_hops.invalid(block));
    }
}

/// For profiles: the RIB is told this now.
fn is_sent(change: &interface::Change, routes: &mut Routes) {
    if routes.profile.is_on(Point::Sent) {
        let told = change.routes.iter().map(|route| (route.net, false));
        for (net, gone) in told.chain(change.gone.iter().map(|net| (*net, true))) {
            routes.profile.mark(Point::Sent, gone, || net);
        }
    }
}
