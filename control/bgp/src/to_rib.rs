//! The RIB is told what is best, and asked how next hops are reached.
//!
//! Reference: Handley et al. (XORP), §5.1 (the RIB is a reader of the fanout queue like any peer), §5.2.1 (interest
//! registration).
//!
//! To the RIB there are two protocols, `ebgp` and `ibgp`, for they are trusted differently. A route that goes from one to
//! the other is told as the one before it is taken back from the other, so that it is never missing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use weft_base::Instant;
use weft_protocol::rib as interface;
use weft_routing::ip::{News, Version};
use weft_routing::{Hears, OriginId, ReaderId, Said};
use weft_runtime::{Action, Level};
use weft_xrl::{Call, Output, Reply, Request, XrlError};

use crate::routes::next_hops::Reached;
use crate::routes::{Path, Point, Routes};

/// Changes in one call.
const BATCH: usize = 4096;
/// Calls with changes under way.
const CALLS: usize = 3;
/// When the RIB is asked again that has refused.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a call may take: the RIB answers when it can take more.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long the RIB may have nothing to tell, in milliseconds.
const QUIET: u32 = 20_000;
/// The first number of a set of hops.
const FIRST_SET: u32 = 16;
/// The two protocols, and their administrative distances (those that XORP, and others, use).
pub(crate) const PROTOCOLS: [(&str, u32); 2] = [("ebgp", 20), ("ibgp", 200)];

/// What a call was about, in its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// To become one of the protocols.
    Open(usize),
    Change,
    End,
    Register,
    Invalid,
}

/// How far the RIB is with us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It is not there.
    #[default]
    Away,
    /// It was asked to take our routes.
    Opening,
    /// It takes them.
    There,
    /// It has refused, and is asked again then.
    Refused(Instant),
}

/// The way to the RIB.
#[derive(Debug, Default)]
pub(crate) struct ToRib {
    state: State,
    /// Among how many next hops packets to a destination are shared out; 0 is 1.
    multipath: usize,
    /// The numbers that the RIB has given to the protocols.
    origins: [Option<u32>; 2],
    /// Whether routes serve on that an earlier process has told, of each of the protocols.
    kept: [bool; 2],
    readers: Option<[ReaderId; 2]>,
    /// Which of the two protocols has told of a destination: their places stand for sources.
    said: [Said; 2],
    /// Whether it was said that everything is told.
    has_ended: bool,
    /// Calls with changes under way.
    changes: usize,
    /// Calls under way. Those of an earlier life of the RIB are forgotten.
    calls: BTreeMap<u64, About>,
    last_token: u64,
}

impl ToRib {
    /// Among how many next hops packets to a destination are shared out.
    pub(crate) fn set_multipath(&mut self, most: usize, routes: &mut Routes) {
        if std::mem::replace(&mut self.multipath, most) != most
            && let Some(readers) = self.readers
        {
            // All routes are told again; to the RIB most of them are the same.
            for (version, reader) in Version::ALL.into_iter().zip(readers) {
                routes.table.close_reader(version, reader);
            }
            self.readers = Some(self.open_readers(routes));
        }
    }

    fn open_readers(&self, routes: &mut Routes) -> [ReaderId; 2] {
        // With several next hops it matters when one comes or goes that is not the best.
        let hears = if self.multipath > 1 { Hears::All } else { Hears::Best };
        Version::ALL.map(|version| routes.table.open_reader(version, hears))
    }

    /// The RIB is there; told again when the Finder has come back, which changes nothing.
    pub(crate) fn born(&mut self, routes: &mut Routes, out: &mut Vec<Output>) {
        match self.state {
            State::Away | State::Refused(_) => self.begin(routes, out),
            State::Opening | State::There => {}
        }
    }

    /// Tells the RIB everything.
    fn begin(&mut self, routes: &mut Routes, out: &mut Vec<Output>) {
        self.away(routes);
        self.state = State::Opening;
        for (place, (protocol, distance)) in PROTOCOLS.into_iter().enumerate() {
            let request =
                interface::OpenOrigin { protocol: protocol.to_owned(), external: true, distance };
            self.call(About::Open(place), request, out);
        }
        routes.next_hops.ask_again();
        self.call(About::Invalid, interface::Invalid { wait: QUIET }, out);
    }

    /// The RIB is gone. What it said about next hops holds until the next one says something else.
    pub(crate) fn away(&mut self, routes: &mut Routes) {
        self.calls.clear();
        (self.changes, self.origins, self.has_ended) = (0, [None; 2], false);
        self.state = State::Away;
        self.said = Default::default();
        for (version, reader) in
            Version::ALL.into_iter().zip(self.readers.take().into_iter().flatten())
        {
            routes.table.close_reader(version, reader);
        }
    }

    fn call(&mut self, about: About, request: impl Request, out: &mut Vec<Output>) {
        self.last_token += 1;
        self.calls.insert(self.last_token, about);
        out.push(Call::new(self.last_token, interface::CLASS, request).within(PATIENCE).into());
    }

    /// Asks the RIB what is to be asked. Returns whether everything that was asked is answered.
    pub(crate) fn ask(&mut self, routes: &mut Routes, out: &mut Vec<Output>) -> bool {
        if !matches!(self.state, State::Opening | State::There) {
            return false;
        }
        let addresses = routes.next_hops.take_wanted();
        if !addresses.is_empty() {
            self.call(About::Register, interface::Register { addresses }, out);
        }
        !self.calls.values().any(|about| *about == About::Register)
    }

    /// Tells the RIB what it has not heard. `may_end` says whether peers have announced all that they had.
    pub(crate) fn tell(&mut self, may_end: bool, routes: &mut Routes, out: &mut Vec<Output>) {
        let (Some(readers), [Some(_), Some(_)]) = (self.readers, self.origins) else { return };
        for (version, reader) in Version::ALL.into_iter().zip(readers) {
            while self.changes < CALLS && routes.table.is_behind(version, reader) {
                for change in self.batch(version, reader, routes) {
                    self.changes += 1;
                    is_sent(&change, routes);
                    self.call(About::Change, change, out);
                }
            }
        }
        let is_behind = Version::ALL
            .into_iter()
            .zip(readers)
            .any(|(version, one)| routes.table.is_behind(version, one));
        if may_end && !self.has_ended && !is_behind && self.changes == 0 {
            self.has_ended = true;
            for origin in self.origins.into_iter().flatten() {
                self.call(About::End, interface::End { origin }, out);
            }
        }
    }

    /// The next changes: up to two calls, one for each protocol that has some.
    fn batch(
        &mut self,
        version: Version,
        reader: ReaderId,
        routes: &mut Routes,
    ) -> Vec<interface::Change> {
        let mut changes = self.origins.map(|origin| Change::new(origin.unwrap_or(0)));
        for _ in 0..BATCH {
            let Some(news) = routes.table.next(version, reader) else { break };
            self.note(version, &news, &mut changes, routes);
        }
        changes.into_iter().map(|change| change.request).filter(|one| !is_empty(one)).collect()
    }

    /// One change.
    fn note(
        &mut self,
        version: Version,
        news: &News<Path>,
        changes: &mut [Change; 2],
        routes: &Routes,
    ) {
        // It knows the router's own networks already.
        let learned = news.best.filter(|best| routes.source(best.origin).own.is_none());
        let now = learned.map(|best| {
            let protocol = usize::from(!routes.source(best.origin).is_external);
            (protocol, best.route)
        });
        let said = &mut self.said[version as usize];
        // The protocols' places are numbers of origins here.
        let protocol = now.map(|(protocol, _)| OriginId(u16::from(protocol > 0)));
        let before = said.set(news.number, protocol).map(|before| usize::from(before.0));
        let net = version.net(&news.prefix);
        if let Some((protocol, path)) = now {
            let next_hops = match self.multipath {
                0 | 1 => vec![routes.sets.next_hop(path.accepted)],
                most => routes.next_hops_to(version, news.number, most),
            };
            let gateways = next_hops.into_iter().map(|id| routes.next_hops.address(id)).collect();
            let metric = routes.sets.get(path.accepted).med.unwrap_or(0);
            changes[protocol].set(net, gateways, metric);
        }
        if let Some(before) = before.filter(|before| now.is_none_or(|(now, _)| now != *before)) {
            changes[before].request.gone.push(net);
        }
    }

    /// The RIB has answered, or did not.
    pub(crate) fn replied(
        &mut self,
        now: Instant,
        token: u64,
        result: Result<Reply, XrlError>,
        routes: &mut Routes,
        out: &mut Vec<Output>,
    ) {
        let Some(about) = self.calls.remove(&token) else { return };
        let done = result.and_then(|reply| self.answered(about, reply, routes, out));
        if let Err(error) = done {
            // If it is gone, the manager says so.
            let level = if error.is_gone() { Level::Debug } else { Level::Warning };
            let line = format!("the RIB does not take routes, and will be asked again: {error}");
            out.push(Output::World(Action::Report { level, line }));
            self.away(routes);
            self.state = State::Refused(now + AGAIN);
        }
    }

    fn answered(
        &mut self,
        about: About,
        reply: Reply,
        routes: &mut Routes,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        match about {
            About::Open(place) => {
                let interface::OpenOriginReply { origin, kept } =
                    reply.read::<interface::OpenOrigin>()?;
                self.origins[place] = Some(origin);
                self.kept[place] = kept == Some(true);
                if self.origins.iter().all(Option::is_some) {
                    self.state = State::There;
                    self.readers = Some(self.open_readers(routes));
                }
            }
            About::Change => self.changes -= 1,
            About::End => {}
            About::Register => {
                let ways = reply.read::<interface::Register>()?.ways;
                let news = ways.into_iter().map(|way| {
                    let metric = way.found.then_some(way.metric);
                    let reached = Reached { metric, is_neighbour: way.is_neighbour };
                    routes.next_hops.told(way.block, reached)
                });
                if news.fold(false, |any, news| any | news) {
                    routes.table.decide_again();
                }
            }
            About::Invalid => {
                let blocks = reply.read::<interface::Invalid>()?.blocks;
                blocks.iter().for_each(|block| routes.next_hops.invalid(block));
                self.call(About::Invalid, interface::Invalid { wait: QUIET }, out);
            }
        }
        Ok(())
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Refused(again) => Some(again),
            State::Away | State::Opening | State::There => None,
        }
    }

    /// Asks again if it is time.
    pub(crate) fn tick(&mut self, now: Instant, routes: &mut Routes, out: &mut Vec<Output>) {
        if self.deadline().is_some_and(|again| again <= now) {
            self.begin(routes, out);
        }
    }

    /// Whether it was said that everything is told.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether routes serve on that an earlier process has told; none if the RIB has not said so.
    pub(crate) fn has_kept(&self) -> Option<bool> {
        self.is_there().then(|| self.kept.contains(&true))
    }

    /// Whether the RIB takes routes.
    pub(crate) fn is_there(&self) -> bool {
        self.state == State::There
    }
}

/// A call in the making.
struct Change {
    request: interface::Change,
    /// The numbers of sets of gateways.
    sets: BTreeMap<Vec<IpAddr>, u32>,
}

impl Change {
    fn new(origin: u32) -> Self {
        let (hops, routes, gone) = (Vec::new(), Vec::new(), Vec::new());
        let request = interface::Change { origin, hops, routes, gone };
        Self { request, sets: BTreeMap::new() }
    }

    fn set(&mut self, net: ipnet::IpNet, gateways: Vec<IpAddr>, metric: u32) {
        // There are no more than routes in a call.
        let next = self.sets.len() as u32 + FIRST_SET;
        let hops = &mut self.request.hops;
        let set = match self.sets.get(&gateways) {
            Some(set) => *set,
            None => {
                let hop = |gateway: &IpAddr| interface::Hop {
                    set: next,
                    gateway: *gateway,
                    interface: 0,
                    weight: 1,
                };
                hops.extend(gateways.iter().map(hop));
                self.sets.insert(gateways, next);
                next
            }
        };
        self.request.routes.push(interface::Route { net, set, metric, tag: 0 });
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

fn is_empty(change: &interface::Change) -> bool {
    change.routes.is_empty() && change.gone.is_empty()
}
