//! The routes of both families, of all protocols, and where they lead.
//!
//! Reference: Handley et al. (XORP), §5.2.
//!
//! Nothing here knows of calls or of the FEA: protocols' routes go in, readers get what is decided out.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weft_routing::{Candidate, OriginId, ReaderId, RouteError};

use crate::family::{Answer, Arbiter, Family, IpPrefix, Route, Standing};
use crate::hops::{Hop, HopSets, SetId, Way};
use crate::reach::Session;

/// Destinations that one slice of background work visits: some tenths of a millisecond.
const SLICE: usize = 4096;

/// All of it.
pub(crate) struct Tables {
    pub(crate) sets: HopSets,
    /// By the numbers of origins, which are the same in both families.
    standings: Vec<Standing>,
    v4: Family<Ipv4Net>,
    v6: Family<Ipv6Net>,
    /// What clients were told and holds no longer.
    invalid: Vec<(Session, IpNet)>,
}

/// Of IP: which of the two families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// What a reader hears: a destination, and what is decided now, if anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    /// The destination's number, by which readers keep what they have said of it.
    pub(crate) number: u32,
    pub(crate) net: IpNet,
    pub(crate) best: Option<Candidate<Route>>,
}

/// The one of the two families that a network is of.
macro_rules! in_family {
    ($self:ident, $net:expr, $family:ident, $own:ident => $body:expr) => {
        match $net {
            IpNet::V4($own) => {
                let $family = &mut $self.v4;
                $body
            }
            IpNet::V6($own) => {
                let $family = &mut $self.v6;
                $body
            }
        }
    };
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            sets: HopSets::new(),
            standings: Vec::new(),
            v4: Family::new(),
            v6: Family::new(),
            invalid: Vec::new(),
        }
    }

    /// A new origin.
    pub(crate) fn add_origin(&mut self, standing: Standing) -> OriginId {
        let origin = self.v4.table.add_origin();
        let same = self.v6.table.add_origin();
        // Origins are never removed, so that both families number them alike.
        debug_assert_eq!(origin, same);
        self.standings.push(standing);
        origin
    }

    /// An origin is trusted otherwise.
    pub(crate) fn set_standing(&mut self, origin: OriginId, standing: Standing) {
        self.standings[usize::from(origin.0)] = standing;
        self.v4.table.decide_again();
        self.v6.table.decide_again();
    }

    /// The origin tells its routes anew.
    pub(crate) fn begin(&mut self, origin: OriginId) {
        self.v4.table.renew(origin);
        self.v6.table.renew(origin);
    }

    /// It has told them.
    pub(crate) fn end(&mut self, origin: OriginId) {
        self.v4.table.sweep(origin);
        self.v6.table.sweep(origin);
    }

    /// How many routes an origin has, IPv4 and IPv6.
    pub(crate) fn routes_of(&self, origin: OriginId) -> (usize, usize) {
        (self.v4.table.routes_of(origin), self.v6.table.routes_of(origin))
    }

    /// How many destinations have a route, IPv4 and IPv6.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.v4.table.len(), self.v6.table.len())
    }

    /// The set of these hops. Whoever asks takes it for a route or has it [forgotten](Self::forget).
    pub(crate) fn set_of(&mut self, hops: Vec<Hop>) -> SetId {
        let (set, is_new) = self.sets.intern(hops);
        if is_new {
            let gateways: Vec<_> =
                self.sets.hops(set).iter().filter_map(Hop::far_gateway).collect();
            let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
            for gateway in gateways {
                match gateway {
                    IpAddr::V4(_) => need(&mut self.v4, gateway, set, &arbiter),
                    IpAddr::V6(_) => need(&mut self.v6, gateway, set, &arbiter),
                }
            }
            self.find_ways(set);
        }
        set
    }

    /// Forgets a set if no route has it.
    pub(crate) fn forget(&mut self, set: SetId) {
        for gateway in self.sets.forget(set).iter().flatten().filter_map(Hop::far_gateway) {
            match gateway {
                IpAddr::V4(_) => self.v4.reach.forget(gateway, set),
                IpAddr::V6(_) => self.v6.reach.forget(gateway, set),
            }
        }
    }

    /// An origin tells a route.
    pub(crate) fn set(&mut self, net: IpNet, origin: OriginId, route: Route) {
        self.sets.take(route.set);
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let (told, leads) =
            in_family!(self, net, family, net => family.set(net, origin, route, &arbiter));
        if leads {
            self.lead_elsewhere(net);
        }
        if let Some(before) = told.before {
            self.give(before.set);
        }
    }

    /// An origin takes a route back.
    ///
    /// # Errors
    /// It has told none.
    pub(crate) fn withdraw(&mut self, net: IpNet, origin: OriginId) -> Result<(), RouteError> {
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let (told, led) =
            in_family!(self, net, family, net => family.withdraw(&net, origin, &arbiter))?;
        if led {
            self.lead_elsewhere(net);
        }
        if let Some(before) = told.before {
            self.give(before.set);
        }
        Ok(())
    }

    fn give(&mut self, set: SetId) {
        self.sets.give(set);
        self.forget(set);
    }

    /// The routes to `net` that lead to gateways are different.
    fn lead_elsewhere(&mut self, net: IpNet) {
        let mut moved = BTreeSet::new();
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let invalid = &mut self.invalid;
        let invalid = |session, block| invalid.push((session, block));
        in_family!(self, net, family, net => family.led_elsewhere(&net, &arbiter, &mut moved, invalid));
        moved.into_iter().for_each(|set| self.find_ways(set));
    }

    /// Finds where the hops of a set lead now. If that is elsewhere, its routes are decided again.
    fn find_ways(&mut self, set: SetId) {
        let ways = self.sets.hops(set).iter().flat_map(|hop| self.ways_of(hop)).collect();
        if self.sets.set_ways(set, ways) {
            self.v4.table.decide_again();
            self.v6.table.decide_again();
        }
    }

    fn ways_of(&self, hop: &Hop) -> Vec<Way> {
        let weight = hop.weight;
        if let Some(interface) = hop.interface {
            return vec![Way { gateway: hop.gateway, interface, weight }];
        }
        let Some(gateway) = hop.gateway else { return Vec::new() };
        let answer = match gateway {
            IpAddr::V4(_) => self.v4.reach.answer(gateway),
            IpAddr::V6(_) => self.v6.reach.answer(gateway),
        };
        let ways = answer.and_then(|answer| answer.way.as_ref()).map_or(&[][..], |(ways, _)| ways);
        // A gateway on the link is the next router itself.
        let way = |way: &Way| Way { gateway: way.gateway.or(Some(gateway)), weight, ..*way };
        ways.iter().map(way).collect()
    }

    /// Tells a client how an address is reached, and from now on when that changes.
    pub(crate) fn register(&mut self, session: Session, address: IpAddr) -> (IpNet, Answer) {
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        match address {
            IpAddr::V4(_) => register(&mut self.v4, session, address, &arbiter),
            IpAddr::V6(_) => register(&mut self.v6, session, address, &arbiter),
        }
    }

    /// A client needs not hear of this block any more.
    pub(crate) fn deregister(&mut self, session: Session, block: IpNet) {
        use weft_routing::BitString;
        in_family!(self, block, family, block => family.reach.silence(session, &block.prefix()));
    }

    /// A client is gone.
    pub(crate) fn left(&mut self, session: Session) {
        self.v4.reach.left(session);
        self.v6.reach.left(session);
    }

    /// What clients were told and holds no longer.
    pub(crate) fn take_invalid(&mut self) -> Vec<(Session, IpNet)> {
        std::mem::take(&mut self.invalid)
    }

    /// Whether there is background work.
    pub(crate) fn has_work(&self) -> bool {
        self.v4.table.has_work() || self.v6.table.has_work()
    }

    /// Does a slice of it.
    pub(crate) fn work(&mut self) {
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let mut gone: Vec<(IpNet, OriginId, Route)> = Vec::new();
        let mut note = |net, one: &Candidate<Route>| gone.push((net, one.origin, one.route));
        if self.v4.table.has_work() {
            self.v4.table.work(SLICE, &arbiter, |net, one| note(net.net(), one));
        } else {
            self.v6.table.work(SLICE, &arbiter, |net, one| note(net.net(), one));
        }
        for (net, origin, route) in gone {
            let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
            if arbiter.leads(origin, route.set) {
                in_family!(self, net, family, net => family.count(&net, true, false));
                self.lead_elsewhere(net);
            }
            self.give(route.set);
        }
        if !self.has_work() {
            self.sets.settle();
        }
    }

    /// A new reader, who will hear of everything that is decided.
    pub(crate) fn open_reader(&mut self, version: Version) -> ReaderId {
        match version {
            Version::V4 => self.v4.table.open_reader(),
            Version::V6 => self.v6.table.open_reader(),
        }
    }

    pub(crate) fn close_reader(&mut self, version: Version, reader: ReaderId) {
        match version {
            Version::V4 => self.v4.table.close_reader(reader),
            Version::V6 => self.v6.table.close_reader(reader),
        }
    }

    /// The next destination that this reader must hear of.
    pub(crate) fn next(&mut self, version: Version, reader: ReaderId) -> Option<News> {
        fn next<D: IpPrefix>(family: &mut Family<D>, reader: ReaderId) -> Option<News> {
            let number = family.table.next(reader)?;
            let net = family.table.destination(number).net();
            Some(News { number, net, best: family.table.best(number).copied() })
        }
        match version {
            Version::V4 => next(&mut self.v4, reader),
            Version::V6 => next(&mut self.v6, reader),
        }
    }

    /// Whether this reader has something to hear.
    pub(crate) fn is_behind(&self, version: Version, reader: ReaderId) -> bool {
        match version {
            Version::V4 => self.v4.table.is_behind(reader),
            Version::V6 => self.v6.table.is_behind(reader),
        }
    }

    /// How many changes wait to be heard.
    pub(crate) fn waiting(&self) -> usize {
        self.v4.table.waiting() + self.v6.table.waiting()
    }

    /// The family of IPv4.
    pub(crate) fn v4(&self) -> &Family<Ipv4Net> {
        &self.v4
    }

    /// The family of IPv6.
    pub(crate) fn v6(&self) -> &Family<Ipv6Net> {
        &self.v6
    }
}

fn need<D: IpPrefix>(family: &mut Family<D>, gateway: IpAddr, set: SetId, arbiter: &Arbiter<'_>) {
    let mut reach = std::mem::take(&mut family.reach);
    reach.need(gateway, set, || family.ask(gateway, arbiter));
    family.reach = reach;
}

fn register<D: IpPrefix>(
    family: &mut Family<D>,
    session: Session,
    address: IpAddr,
    arbiter: &Arbiter<'_>,
) -> (IpNet, Answer) {
    let answer = family.ask(address, arbiter);
    family.reach.tell(session, answer.clone());
    (D::from_prefix(&answer.block).net(), answer)
}
