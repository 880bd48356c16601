//! The routes of all families, of all protocols, and where they lead. Those for multicast lead nobody else anywhere: gateways
//! are reached, and clients are answered, by the others alone.
//!
//! Reference: Handley et al. (XORP), §5.2.
//!
//! Nothing here knows of calls or of the FEA: protocols' routes go in, readers get what is decided out.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use weft_routing::ip::{IpRoutes, Version};
use weft_routing::{Candidate, OriginId, Prefix, TOGETHER};
use weft_xrl::profile::Profile;

use crate::arbiter::{Arbiter, Route, Standing};
use crate::hops::{Hop, HopSets, Lead, SetId, Way};
use crate::leads::{Answer, Leads, name_of};
use crate::reach::{Reach, Session};

/// Destinations that one slice of background work visits: some tenths of a millisecond.
const SLICE: usize = 512;

weft_base::reasons! {
    /// Places that routes pass, for profiles.
    pub(crate) enum Point {
        Arrived = "arrived", "arriving at the RIB";
        Queued = "queued", "queued for transmission to the FEA";
        Sent = "sent", "sent to the FEA";
    }
}

/// All of it.
pub(crate) struct Tables {
    pub(crate) sets: HopSets,
    /// By the numbers of origins.
    standings: Vec<Standing>,
    /// What origins have told, what is used first.
    pub(crate) routes: IpRoutes<Route>,
    /// Of IPv4 and of IPv6.
    leads: [Leads; 2],
    /// Of IPv4 and of IPv6.
    reach: [Reach; 2],
    /// What clients were told and holds no longer.
    invalid: Vec<(Session, IpNet)>,
    /// When routes pass which point.
    pub(crate) profile: Profile<Point>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            sets: HopSets::new(),
            standings: Vec::new(),
            routes: IpRoutes::new(),
            leads: Default::default(),
            reach: Default::default(),
            invalid: Vec::new(),
            profile: Profile::default(),
        }
    }

    /// A new origin.
    pub(crate) fn add_origin(&mut self, standing: Standing) -> OriginId {
        self.standings.push(standing);
        self.routes.add_origin()
    }

    /// An origin is trusted otherwise.
    pub(crate) fn set_standing(&mut self, origin: OriginId, standing: Standing) {
        self.standings[usize::from(origin.0)] = standing;
        self.routes.decide_again();
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let led = self.destinations_of(origin, |route| arbiter.leads(origin, route.set));
        // Gateways and answers go by these routes, and are not decided again with them.
        for (version, net) in led.into_iter().filter(|(version, _)| !version.is_multicast()) {
            self.lead_elsewhere(version, &net);
        }
    }

    /// The destinations of those routes of an origin that count.
    fn destinations_of(
        &self,
        origin: OriginId,
        counts: impl Fn(&Route) -> bool,
    ) -> Vec<(Version, Prefix)> {
        let mut found = Vec::new();
        for version in
            Version::ALL.into_iter().filter(|one| self.routes.routes_of(*one, origin) > 0)
        {
            for number in 0..self.routes.end_of_numbers(version) {
                let mut all = self.routes.candidates(version, number);
                if all.any(|one| one.origin == origin && counts(&one.route)) {
                    found.push((version, self.routes.news(version, number).prefix));
                }
            }
        }
        found
    }

    /// Whether an origin has routes.
    pub(crate) fn has_routes_of(&self, origin: OriginId) -> bool {
        Version::ALL.into_iter().any(|version| self.routes.routes_of(version, origin) > 0)
    }

    /// Whether an origin has a route to exactly this.
    pub(crate) fn has_route(&self, (version, net): (Version, Prefix), origin: OriginId) -> bool {
        let number = self.routes.number(version, &net);
        number.is_some_and(|number| {
            self.routes.candidates(version, number).any(|one| one.origin == origin)
        })
    }

    /// Whether an origin has told a route to exactly this since it began anew.
    pub(crate) fn has_told(&self, (version, net): (Version, Prefix), origin: OriginId) -> bool {
        let number = self.routes.number(version, &net);
        number.is_some_and(|number| {
            let mut all = self.routes.candidates(version, number);
            all.any(|one| one.origin == origin && !self.routes.is_stale(version, one))
        })
    }

    /// How many routes an origin may be reckoned to have when it tells one to this. Those from before it began anew give way
    /// when it has told everything, and do not count; but no more of them may pile up than it may have.
    pub(crate) fn reckon(&self, place: (Version, Prefix), origin: OriginId, most: usize) -> usize {
        let sum = |count: &dyn Fn(Version) -> usize| Version::ALL.into_iter().map(count).sum();
        let fresh = sum(&|version| self.routes.fresh_routes_of(version, origin));
        let all: usize = sum(&|version| self.routes.routes_of(version, origin));
        let is_there = self.has_route(place, origin);
        if is_there { fresh } else { fresh.max(all.saturating_sub(most)) }
    }

    /// Takes those routes of an origin away that do not stay.
    pub(crate) fn withdraw_unless(
        &mut self,
        origin: OriginId,
        stays: impl Fn((Version, &Prefix)) -> bool,
    ) {
        let mut gone = self.destinations_of(origin, |_| true);
        gone.retain(|(version, net)| !stays((*version, net)));
        for net in gone {
            self.withdraw(net, origin);
        }
    }

    /// The origin tells its routes anew.
    pub(crate) fn begin(&mut self, origin: OriginId) {
        Version::ALL.into_iter().for_each(|version| self.routes.renew(version, origin));
    }

    /// It has told them.
    pub(crate) fn end(&mut self, origin: OriginId) {
        Version::ALL.into_iter().for_each(|version| self.routes.sweep(version, origin));
    }

    /// The set of these hops, which has one use more: whoever asks [gives it back](Self::give) when its routes have it.
    pub(crate) fn set_of(&mut self, hops: Vec<Hop>) -> SetId {
        let (set, is_new) = self.sets.intern(hops);
        if is_new {
            let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
            for gateway in self.sets.hops(set).iter().filter_map(Hop::far_gateway) {
                let (version, name) = (Version::of(gateway), name_of(gateway));
                let leads = &self.leads[version as usize];
                let ask = || leads.ask(version, &name, &self.routes, &arbiter);
                self.reach[version as usize].need(name, set, ask);
            }
            self.find_ways(set);
        }
        self.sets.take(set);
        set
    }

    /// A set has one use less. It is forgotten with the last.
    pub(crate) fn give(&mut self, set: SetId) {
        self.sets.give(set);
        for gateway in self.sets.forget(set).iter().flatten().filter_map(Hop::far_gateway) {
            self.reach[Version::of(gateway) as usize].forget(&name_of(gateway), set);
        }
    }

    /// An origin tells a route.
    pub(crate) fn set(
        &mut self,
        (version, net): (Version, Prefix),
        origin: OriginId,
        route: Route,
    ) {
        self.sets.take(route.set);
        let noted = self.routes.noted(version);
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let before = self.routes.set((version, &net), origin, 0, route, &arbiter);
        if self.routes.noted(version) != noted {
            self.profile.mark(Point::Queued, false, || version.net(&net));
        }
        let led = before.is_some_and(|before| arbiter.leads(origin, before.set));
        let leads = arbiter.leads(origin, route.set);
        self.count(version, &net, led, leads);
        if let Some(before) = before {
            self.give(before.set);
        }
    }

    /// Routes to these will be told or taken back soon, and what is known of the first few comes closer to the processor;
    /// all are of one version, or those of others are left out.
    pub(crate) fn approach(&self, nets: impl Iterator<Item = (Version, Prefix)>) {
        let mut nets = nets.take(TOGETHER).peekable();
        let Some((version, _)) = nets.peek().copied() else { return };
        self.routes.approach(version, nets.filter(|net| net.0 == version).map(|net| net.1));
    }

    /// An origin takes a route back; false if it has told none.
    pub(crate) fn withdraw(&mut self, (version, net): (Version, Prefix), origin: OriginId) -> bool {
        let noted = self.routes.noted(version);
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let gone = self.routes.withdraw((version, &net), origin, 0, &arbiter);
        if self.routes.noted(version) != noted {
            self.profile.mark(Point::Queued, true, || version.net(&net));
        }
        if let Some(gone) = gone {
            self.is_gone((version, &net), origin, gone);
        }
        gone.is_some()
    }

    /// A route of an origin is not there any more.
    fn is_gone(&mut self, (version, net): (Version, &Prefix), origin: OriginId, route: Route) {
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let led = arbiter.leads(origin, route.set);
        self.count(version, net, led, false);
        self.give(route.set);
    }

    /// A route of an origin led to gateways, or leads there now, or both.
    fn count(&mut self, version: Version, net: &Prefix, led: bool, leads: bool) {
        if version.is_multicast() {
            return;
        }
        self.leads[version as usize].count(net, led, leads);
        if led || leads {
            self.lead_elsewhere(version, net);
        }
    }

    /// The routes to `net` that lead to gateways are different: finds out whose answers are, too.
    fn lead_elsewhere(&mut self, version: Version, net: &Prefix) {
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let (leads, routes) = (&self.leads[version as usize], &self.routes);
        let (reach, invalid) = (&mut self.reach[version as usize], &mut self.invalid);
        let ask = |name: &Prefix| leads.ask(version, name, routes, &arbiter);
        let mut moved = BTreeSet::new();
        reach.changed(net, ask, &mut moved);
        reach.invalidate(
            net,
            |block| ask(&name_of(*version.addresses(block).start())),
            |session, block| invalid.push((session, version.net(&block))),
        );
        moved.into_iter().for_each(|set| self.find_ways(set));
    }

    /// Finds where the hops of a set lead now. If that is elsewhere, its routes are decided again.
    fn find_ways(&mut self, set: SetId) {
        let leads: Vec<_> =
            self.sets.hops(set).iter().filter_map(|hop| self.lead_of(hop)).collect();
        if self.sets.set_leads(set, leads) {
            self.routes.decide_again();
        }
    }

    /// Where a hop leads; none if that is not known.
    fn lead_of(&self, hop: &Hop) -> Option<Lead> {
        let weight = hop.weight;
        if let Some(interface) = hop.interface {
            return Some(Lead::Ways(vec![Way { gateway: hop.gateway, interface, weight }]));
        }
        let gateway = hop.gateway?;
        let answer = self.reach[Version::of(gateway) as usize].answer(&name_of(gateway))?;
        let (lead, _) = answer.way.as_ref()?;
        // A gateway on the link is the next router itself.
        let way = |way: &Way| Way { gateway: way.gateway.or(Some(gateway)), weight, ..*way };
        Some(match lead {
            Lead::Ways(ways) => Lead::Ways(ways.iter().map(way).collect()),
            Lead::Nowhere(how) => Lead::Nowhere(*how),
        })
    }

    /// Tells a client how an address is reached, and from now on when that changes.
    pub(crate) fn register(&mut self, session: Session, address: IpAddr) -> (IpNet, Answer) {
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let version = Version::of(address);
        let leads = &self.leads[version as usize];
        let answer = leads.ask(version, &name_of(address), &self.routes, &arbiter);
        self.reach[version as usize].tell(session, answer.clone());
        (version.net(&answer.block), answer)
    }

    /// A client needs not hear of this block any more.
    pub(crate) fn deregister(&mut self, session: Session, block: IpNet) {
        let (version, block) = weft_routing::ip::split(block);
        self.reach[version as usize].silence(session, &block);
    }

    /// A client is gone.
    pub(crate) fn left(&mut self, session: Session) {
        self.reach.iter_mut().for_each(|reach| reach.left(session));
    }

    /// What clients were told and holds no longer.
    pub(crate) fn take_invalid(&mut self) -> Vec<(Session, IpNet)> {
        std::mem::take(&mut self.invalid)
    }

    /// Whether there is background work.
    pub(crate) fn has_work(&self) -> bool {
        self.routes.has_work() || self.routes.is_untidy()
    }

    /// Does a slice of background work.
    pub(crate) fn work(&mut self) {
        if !self.routes.has_work() {
            return self.routes.tidy();
        }
        let arbiter = Arbiter { origins: &self.standings, sets: &self.sets };
        let mut gone = Vec::new();
        self.routes.work(SLICE, &arbiter, |net, one: &Candidate<Route>| {
            gone.push((net, one.origin, one.route));
        });
        for ((version, net), origin, route) in gone {
            self.is_gone((version, &net), origin, route);
        }
        if !self.routes.has_work() {
            self.sets.settle();
        }
    }
}
