//! The routes of one address family, and how they are decided between.
//!
//! Reference: Handley et al. (XORP), §5.2: a single administrative distance decides between protocols (the merge
//! stages), external routes are used if internal ones lead to their next hop (the ExtInt stage); §5.2.1: the largest
//! block around an address for which the same route serves.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weft_routing::{
    BitString, Candidate, Candidates, Decide, Destination, OriginId, Prefix, PrefixIndex,
    PrefixTable, RouteError, RouteTable, Told,
};

use crate::hops::{HopSets, SetId, Way};
use crate::reach::{Reach, Session};

/// What a protocol tells of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) set: SetId,
    pub(crate) metric: u32,
    pub(crate) tag: u32,
}

/// An administrative distance with which a route is never used.
pub(crate) const NEVER: u32 = 255;

/// What the arbiter knows of an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) distance: u32,
    pub(crate) is_external: bool,
}

/// Decides between routes.
pub(crate) struct Arbiter<'a> {
    /// By the numbers of origins.
    pub(crate) origins: &'a [Standing],
    pub(crate) sets: &'a HopSets,
}

impl Arbiter<'_> {
    fn standing(&self, origin: OriginId) -> Standing {
        self.origins[usize::from(origin.0)]
    }

    /// The lower the better.
    fn rank(&self, one: &Candidate<Route>) -> (u32, u32, OriginId) {
        (self.standing(one.origin).distance, one.route.metric, one.origin)
    }

    fn is_usable(&self, one: &Candidate<Route>) -> bool {
        self.standing(one.origin).distance < NEVER && self.sets.is_usable(one.route.set)
    }

    /// Whether it may lead to gateways: internal, and in need of no other route itself, so that no two routes can
    /// hold up each other.
    pub(crate) fn leads(&self, origin: OriginId, set: SetId) -> bool {
        !self.standing(origin).is_external && self.sets.is_direct(set)
    }
}

impl Decide<Route> for Arbiter<'_> {
    fn best(&self, candidates: Candidates<'_, Route>) -> Option<usize> {
        candidates
            .best_by(|one| self.is_usable(one), |one, other| self.rank(one) < self.rank(other))
    }

    fn has_moved(&self, route: &Route) -> bool {
        self.sets.has_moved(route.set)
    }
}

/// How an address is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The block of addresses for which this holds.
    pub(crate) block: Prefix,
    /// Where packets go, and the metric; none if there is no route.
    pub(crate) way: Option<(Vec<Way>, u32)>,
}

/// A prefix of addresses of IP.
pub(crate) trait IpPrefix: Destination<Index = PrefixIndex> + BitString {
    /// The first and the last address.
    fn addresses(&self) -> RangeInclusive<IpAddr>;

    /// It, as one of either family.
    fn net(self) -> IpNet;
}

impl IpPrefix for Ipv4Net {
    fn addresses(&self) -> RangeInclusive<IpAddr> {
        self.network().into()..=self.broadcast().into()
    }

    fn net(self) -> IpNet {
        self.into()
    }
}

impl IpPrefix for Ipv6Net {
    fn addresses(&self) -> RangeInclusive<IpAddr> {
        self.network().into()..=self.broadcast().into()
    }

    fn net(self) -> IpNet {
        self.into()
    }
}

/// The routes of one family.
pub(crate) struct Family<D: Destination> {
    pub(crate) table: RouteTable<D, Route>,
    /// How many routes that lead to gateways each destination has.
    leading: PrefixTable<u32>,
    pub(crate) reach: Reach,
}

impl<D: IpPrefix> Family<D> {
    pub(crate) fn new() -> Self {
        Self { table: RouteTable::new(), leading: PrefixTable::new(), reach: Reach::default() }
    }

    /// Takes a route; true if gateways within its destination may be reached in another way now.
    pub(crate) fn set(
        &mut self,
        net: D,
        origin: OriginId,
        route: Route,
        arbiter: &Arbiter<'_>,
    ) -> (Told<Route>, bool) {
        let told = self.table.set(net, origin, 0, route, arbiter);
        let led = told.before.is_some_and(|before| arbiter.leads(origin, before.set));
        let leads = arbiter.leads(origin, route.set);
        self.count(&net, led, leads);
        (told, led || leads)
    }

    /// Takes a route back; true as above.
    ///
    /// # Errors
    /// The origin has told none.
    pub(crate) fn withdraw(
        &mut self,
        net: &D,
        origin: OriginId,
        arbiter: &Arbiter<'_>,
    ) -> Result<(Told<Route>, bool), RouteError> {
        let told = self.table.withdraw(net, origin, 0, arbiter)?;
        let led = told.before.is_some_and(|before| arbiter.leads(origin, before.set));
        self.count(net, led, false);
        Ok((told, led))
    }

    /// The routes to `net` that lead to gateways are different: finds out whose answers are, adds the sets of hops
    /// among them to `moved`, and calls `invalid` for what clients were told.
    pub(crate) fn led_elsewhere(
        &mut self,
        net: &D,
        arbiter: &Arbiter<'_>,
        moved: &mut BTreeSet<SetId>,
        mut invalid: impl FnMut(Session, IpNet),
    ) {
        let mut reach = std::mem::take(&mut self.reach);
        reach.changed(net.addresses(), |address| self.ask(address, arbiter), moved);
        let (address_of, prefix) = (|block: &Prefix| D::from_prefix(block), net.prefix());
        reach.invalidate(
            &prefix,
            |block| self.ask(*address_of(block).addresses().start(), arbiter),
            |session, block| invalid(session, address_of(&block).net()),
        );
        self.reach = reach;
    }

    /// Counts the routes that lead to gateways.
    pub(crate) fn count(&mut self, net: &D, led: bool, leads: bool) {
        if led == leads {
            return;
        }
        let prefix = net.prefix();
        let count = self.leading.get(&prefix).copied().unwrap_or(0);
        // One that led was counted.
        match if leads { count + 1 } else { count - 1 } {
            0 => drop(self.leading.remove(&prefix)),
            count => drop(self.leading.insert(prefix, count)),
        }
    }

    /// How an address is reached by internal routes.
    pub(crate) fn ask(&self, address: IpAddr, arbiter: &Arbiter<'_>) -> Answer {
        let name = prefix_of(address);
        let (shortest, way) = match self.leading.longest(&name) {
            Some((length, _)) => {
                let net = name.truncate(length);
                (length, self.leader(&net, arbiter))
            }
            None => (0, None),
        };
        // The more bits, the fewer routes lie within; at the latest the address stands alone.
        let (mut low, mut high) = (shortest, name.length());
        while low < high {
            let middle = low.midpoint(high);
            match self.is_overlaid(&name.truncate(middle), shortest) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Answer { block: name.truncate(low), way }
    }

    /// The way of the best route to `net` that leads to gateways.
    fn leader(&self, net: &Prefix, arbiter: &Arbiter<'_>) -> Option<(Vec<Way>, u32)> {
        let number = *self.table.index().table().get(net)?;
        let leads = |one: &&Candidate<Route>| {
            arbiter.leads(one.origin, one.route.set) && arbiter.is_usable(one)
        };
        let leaders = self.table.candidates(number).filter(leads);
        let best = leaders.min_by_key(|one| arbiter.rank(one))?;
        Some((arbiter.sets.ways(best.route.set).to_vec(), best.route.metric))
    }

    /// Whether a route that is longer than `length` leads into the block.
    fn is_overlaid(&self, block: &Prefix, length: u8) -> bool {
        let mut within = self.leading.iter_within(*block);
        within.any(|(prefix, _)| prefix.length() > length)
    }
}

/// An address as a string of bits.
pub(crate) fn prefix_of(address: IpAddr) -> Prefix {
    match address {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => address.into(),
    }
}
