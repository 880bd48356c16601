//! Which routes lead to gateways, and how an address is reached by them.
//!
//! Reference: Handley et al. (XORP), §5.2 (the ExtInt stage) and §5.2.1: the answer holds for the largest block around an
//! address into which no more specific route leads.
//!
//! A route to nowhere counts, too. That of a single address leads there: packets of routes whose next hop an operator has set
//! aside so are dropped (RFC 5635 §3). A larger one, such as stands around all networks of a site, says that what has no route of
//! its own within is not reached: neither by it, so that backups serve, nor by a shorter one.

use std::net::IpAddr;

use weft_routing::ip::{IpRoutes, Version};
use weft_routing::{Candidate, Prefix, PrefixTable};

use crate::arbiter::{Arbiter, Route};
use crate::hops::Lead;

/// How an address is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The block of addresses for which this holds.
    pub(crate) block: Prefix,
    /// Where packets go, and the metric; none if there is no route.
    pub(crate) way: Option<(Lead, u32)>,
}

/// The destinations of one version of IP to which there are routes that lead to gateways, and how many.
#[derive(Debug, Default)]
pub(crate) struct Leads(PrefixTable<u32>);

impl Leads {
    /// A route of an origin to `net` leads to gateways now, or has done so.
    pub(crate) fn count(&mut self, net: &Prefix, led: bool, leads: bool) {
        if led == leads {
            return;
        }
        let count = self.0.get(net).copied().unwrap_or(0);
        // One that led was counted.
        match if leads { count + 1 } else { count - 1 } {
            0 => drop(self.0.remove(net)),
            count => drop(self.0.insert(*net, count)),
        }
    }

    /// How an address, which `name` is in bits, is reached.
    pub(crate) fn ask(
        &self,
        version: Version,
        name: &Prefix,
        routes: &IpRoutes<Route>,
        arbiter: &Arbiter<'_>,
    ) -> Answer {
        let longest = self.0.longest(name).map(|(length, _)| length);
        let way = self.way(version, name, longest, routes, arbiter);
        let shortest = longest.unwrap_or(0);
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

    /// The way by the longest destination, of this length or less, to which a route that leads to gateways can be used. Others,
    /// whose distance forbids it, hide nothing.
    fn way(
        &self,
        version: Version,
        name: &Prefix,
        mut longest: Option<u8>,
        routes: &IpRoutes<Route>,
        arbiter: &Arbiter<'_>,
    ) -> Option<(Lead, u32)> {
        while let Some(length) = longest {
            if let Some(way) = leader((version, &name.truncate(length)), routes, arbiter) {
                return way.reaches(length == name.length()).then_some((way.lead, way.metric));
            }
            let shorter = length.checked_sub(1)?;
            longest = self.0.longest(&name.truncate(shorter)).map(|(length, _)| length);
        }
        None
    }

    /// Whether a route that is longer than `length` leads into the block.
    fn is_overlaid(&self, block: &Prefix, length: u8) -> bool {
        let mut within = self.0.iter_within(*block);
        within.any(|(prefix, _)| prefix.length() > length)
    }
}

/// A way that leads to gateways.
struct Leader {
    lead: Lead,
    metric: u32,
}

impl Leader {
    /// Whether anything is reached by it, if it is that of a single address, or of more.
    fn reaches(&self, is_single: bool) -> bool {
        is_single || matches!(self.lead, Lead::Ways(_))
    }
}

/// The way of the best route to a destination that leads to gateways.
fn leader(
    (version, net): (Version, &Prefix),
    routes: &IpRoutes<Route>,
    arbiter: &Arbiter<'_>,
) -> Option<Leader> {
    let number = routes.number(version, net)?;
    let leads = |one: &&Candidate<Route>| {
        arbiter.leads(one.origin, one.route.set) && arbiter.is_usable(one)
    };
    let leaders = routes.candidates(version, number).filter(leads);
    let best = leaders.min_by_key(|one| arbiter.rank(one))?;
    Some(Leader { lead: arbiter.sets.lead(best.route.set), metric: best.route.metric })
}

/// An address in bits.
pub(crate) fn name_of(address: IpAddr) -> Prefix {
    match address {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => address.into(),
    }
}
