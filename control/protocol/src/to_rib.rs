//! The RIB is told routes.
//!
//! Reference: Handley et al. (XORP), §5.2 (origins).
//!
//! What was set is kept, so that a RIB that comes back is told everything. A route that was set and changed several
//! times before it was told is told once, as it is at last. One that goes from one origin to another is told as the one
//! before it is taken back from the other, so that it is never missing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Input, Output, Reply, XrlError};

use crate::dialogue::{Dialogue, Heard};
use crate::rib;

/// Changes in one call.
const BATCH: usize = 4096;
/// Calls with changes under way.
const CALLS: usize = 3;
/// The first number of a set of hops.
const FIRST_SET: u32 = 16;

/// A protocol, as the RIB knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its name, such as `rip`.
    pub protocol: String,
    /// Whether its next routers may be far away.
    pub external: bool,
    /// Its administrative distance.
    pub distance: u32,
}

/// One of the origins of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OriginNumber(usize);

/// Where packets go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The next router; none if the destination is on the link itself.
    pub gateway: Option<IpAddr>,
    /// The number of the interface; none if it follows from the gateway.
    pub interface: Option<u32>,
    /// Its share among the hops, from 1 to 256.
    pub weight: u32,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    /// To one of these.
    Hops(Vec<Hop>),
    /// Nowhere, without a word.
    Blackhole,
    /// Nowhere, and senders are told that there is no way.
    Unreachable,
    /// Nowhere, and senders are told that it is not allowed.
    Prohibit,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub to: To,
    /// How far that is.
    pub metric: u32,
    /// A mark for policies; 0 without one.
    pub tag: u32,
}

/// What a call was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Open(OriginNumber),
    Change,
    End,
}

/// An origin, and how far the RIB is with it.
#[derive(Debug)]
struct Opened {
    origin: Origin,
    /// The number that the RIB has given to it.
    number: Option<u32>,
    /// Whether it was said that everything is told.
    has_ended: bool,
}

/// The way to the RIB.
#[derive(Debug)]
pub struct ToRib {
    dialogue: Dialogue<About>,
    origins: Vec<Opened>,
    routes: BTreeMap<IpNet, (OriginNumber, Route)>,
    /// What the RIB believes: of which origin.
    told: BTreeMap<IpNet, OriginNumber>,
    /// Of what it was not told how it is now.
    changed: BTreeSet<IpNet>,
    /// Calls with changes under way.
    under_way: usize,
}

impl ToRib {
    /// The way to the RIB, with the number of its [`Dialogue`].
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self {
            dialogue: Dialogue::new(rib::CLASS, number),
            origins: Vec::new(),
            routes: BTreeMap::new(),
            told: BTreeMap::new(),
            changed: BTreeSet::new(),
            under_way: 0,
        }
    }

    /// One more origin. It stays, with or without routes; the same protocol again is the same one, perhaps with
    /// another distance.
    pub fn open(&mut self, origin: Origin, out: &mut Vec<Output>) -> OriginNumber {
        let known = self.origins.iter().position(|one| one.origin.protocol == origin.protocol);
        let place = OriginNumber(known.unwrap_or(self.origins.len()));
        if known.is_none() {
            self.origins.push(Opened { origin, number: None, has_ended: false });
        } else if self.origins[place.0].origin == origin {
            return place;
        } else {
            self.origins[place.0] = Opened { origin, number: None, has_ended: false };
            // Whoever opens an origin again tells everything again.
            let own = self.routes.iter().filter(|(_, (of, _))| *of == place);
            self.changed.extend(own.map(|(net, _)| *net));
        }
        if self.dialogue.is_there() {
            self.ask_to_open(place, out);
        }
        place
    }

    fn ask_to_open(&mut self, place: OriginNumber, out: &mut Vec<Output>) {
        let Origin { protocol, external, distance } = self.origins[place.0].origin.clone();
        let request = rib::OpenOrigin { protocol, external, distance };
        self.dialogue.call(About::Open(place), request, out);
    }

    /// There is this route now, in place of the one before.
    pub fn set(&mut self, net: IpNet, origin: OriginNumber, route: Route) {
        let now = (origin, route);
        if self.routes.get(&net) != Some(&now) {
            self.routes.insert(net, now);
            self.changed.insert(net);
        }
    }

    /// There is no route any more.
    pub fn withdraw(&mut self, net: &IpNet) {
        if self.routes.remove(net).is_some() {
            self.changed.insert(*net);
        }
    }

    /// How many routes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Whether the RIB is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.dialogue.is_there()
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        let (heard, input) = self.dialogue.hear(now, input, out);
        match heard {
            Some(Heard::Began) => {
                self.forget();
                (0..self.origins.len())
                    .for_each(|place| self.ask_to_open(OriginNumber(place), out));
            }
            Some(Heard::Ended) => self.forget(),
            Some(Heard::Answered(about, reply)) => {
                if let Err(error) = self.answered(about, reply) {
                    self.dialogue.failed(now, &error, out);
                    self.forget();
                }
            }
            Some(Heard::Refused(_, error)) => {
                self.dialogue.failed(now, &error, out);
                self.forget();
            }
            None => {}
        }
        input
    }

    /// The RIB knows nothing.
    fn forget(&mut self) {
        for one in &mut self.origins {
            (one.number, one.has_ended) = (None, false);
        }
        self.told.clear();
        self.changed = self.routes.keys().copied().collect();
        self.under_way = 0;
    }

    fn answered(&mut self, about: About, reply: Reply) -> Result<(), XrlError> {
        match about {
            About::Open(place) => {
                let rib::OpenOriginReply { origin, .. } = reply.read::<rib::OpenOrigin>()?;
                self.origins[place.0].number = Some(origin);
            }
            About::Change => self.under_way -= 1,
            About::End => {}
        }
        Ok(())
    }

    /// Tells the RIB what it has not heard. `may_end` says whether the protocol has found all that it had before it was
    /// started: then routes of an earlier life that were not told again go.
    pub fn tell(&mut self, may_end: bool, out: &mut Vec<Output>) {
        if !self.dialogue.is_there() || self.origins.iter().any(|one| one.number.is_none()) {
            return;
        }
        while self.under_way < CALLS && !self.changed.is_empty() {
            for request in self.batch() {
                self.under_way += 1;
                self.dialogue.call(About::Change, request, out);
            }
        }
        if !may_end || !self.changed.is_empty() || self.under_way > 0 {
            return;
        }
        for one in self.origins.iter_mut().filter(|one| !one.has_ended) {
            one.has_ended = true;
            if let Some(origin) = one.number {
                self.dialogue.call(About::End, rib::End { origin }, out);
            }
        }
    }

    /// The next changes: a call for each origin that has some. What goes to another origin is taken back behind these.
    fn batch(&mut self) -> Vec<rib::Change> {
        let numbers = || self.origins.iter().map(|one| one.number.unwrap_or(0));
        let mut changes: Vec<_> = numbers().map(Change::new).collect();
        let mut moved: Vec<_> = numbers().map(Change::new).collect();
        for _ in 0..BATCH {
            let Some(net) = self.changed.pop_first() else { break };
            let before = match self.routes.get(&net) {
                Some((origin, route)) => {
                    changes[origin.0].set(net, route);
                    let before = self.told.insert(net, *origin);
                    before.filter(|before| before != origin).map(|before| &mut moved[before.0])
                }
                None => self.told.remove(&net).map(|before| &mut changes[before.0]),
            };
            if let Some(before) = before {
                before.request.gone.push(net);
            }
        }
        let requests = changes.into_iter().chain(moved).map(|change| change.request);
        requests.filter(|one| !one.routes.is_empty() || !one.gone.is_empty()).collect()
    }
}

/// A call in the making.
struct Change<'a> {
    request: rib::Change,
    /// The numbers of sets of hops.
    sets: BTreeMap<&'a [Hop], u32>,
}

impl<'a> Change<'a> {
    fn new(origin: u32) -> Self {
        let (hops, routes, gone) = (Vec::new(), Vec::new(), Vec::new());
        Self { request: rib::Change { origin, hops, routes, gone }, sets: BTreeMap::new() }
    }

    fn set(&mut self, net: IpNet, route: &'a Route) {
        let set = match &route.to {
            To::Blackhole => 0,
            To::Unreachable => 1,
            To::Prohibit => 2,
            To::Hops(hops) => self.set_of(hops),
        };
        let Route { metric, tag, .. } = *route;
        self.request.routes.push(rib::Route { net, set, metric, tag });
    }

    fn set_of(&mut self, hops: &'a [Hop]) -> u32 {
        // There are no more than routes in a call.
        let next = self.sets.len() as u32 + FIRST_SET;
        let told = &mut self.request.hops;
        *self.sets.entry(hops).or_insert_with(|| {
            told.extend(hops.iter().map(|hop| rib::Hop {
                set: next,
                gateway: hop.gateway.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                interface: hop.interface.unwrap_or(0),
                weight: hop.weight,
            }));
            next
        })
    }
}
