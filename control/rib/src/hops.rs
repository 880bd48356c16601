//! Sets of next hops: where the packets of a route go.
//!
//! Reference: Handley et al. (XORP), §5.2 (the ExtInt stage: external routes lead where internal ones lead to their
//! next hop).
//!
//! Many routes share few sets, so a route has the number of one. A set that only names gateways leads where the
//! internal routes to the gateways lead ([`Reach`](crate::reach::Reach)), be it nowhere; its ways change with them, and with its ways
//! all its routes, of which none is touched.

use std::collections::BTreeMap;
use std::net::IpAddr;

use weft_routing::ip::Version;
use weft_runtime::MOST_WAYS;

/// Routes without ways: the numbers of their sets, which are always there.
pub(crate) const BLACKHOLE: SetId = SetId(0);
pub(crate) const UNREACHABLE: SetId = SetId(1);
/// The last of the sets without hops.
pub(crate) const PROHIBIT: SetId = SetId(2);

/// A set of next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SetId(pub(crate) u32);

impl SetId {
    /// Whether packets go nowhere.
    pub(crate) fn is_nowhere(self) -> bool {
        self <= PROHIBIT
    }
}

/// Where packets go, as a protocol tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop {
    /// The next router; none if the destination is on the link.
    pub(crate) gateway: Option<IpAddr>,
    /// The number of the interface; none if that follows from the gateway.
    pub(crate) interface: Option<u32>,
    /// Its share among the ways.
    pub(crate) weight: u32,
}

impl Hop {
    /// The gateway, if the way to it is to be found.
    pub(crate) fn far_gateway(&self) -> Option<IpAddr> {
        self.gateway.filter(|_| self.interface.is_none())
    }
}

/// A way that packets can take at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) interface: u32,
    pub(crate) weight: u32,
}

/// Where packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// One of these ways.
    Ways(Vec<Way>),
    /// Nowhere, as the routes with this set.
    Nowhere(SetId),
}

/// One set.
#[derive(Debug)]
struct HopSet {
    hops: Vec<Hop>,
    /// Where they lead now; nothing if that is nowhere, or not known.
    ways: Vec<Way>,
    /// As the routes of which set packets go nowhere now, if they do: one of those without hops.
    nowhere: Option<SetId>,
    /// How many routes have it.
    routes: usize,
    /// Whether its ways have changed, and not all who have to hear of it have.
    has_moved: bool,
}

/// All sets.
#[derive(Debug, Default)]
pub(crate) struct HopSets {
    /// By number; the first ones are those without hops.
    sets: Vec<HopSet>,
    numbers: BTreeMap<Vec<Hop>, SetId>,
    free: Vec<SetId>,
}

impl HopSets {
    pub(crate) fn new() -> Self {
        let mut sets = Self::default();
        for number in BLACKHOLE.0..=PROHIBIT.0 {
            sets.sets.push(HopSet {
                hops: Vec::new(),
                ways: Vec::new(),
                nowhere: Some(SetId(number)),
                // They are never given back.
                routes: 1,
                has_moved: false,
            });
        }
        sets
    }

    /// The set of these hops, and whether it is new: then its ways must be [found](Self::set_leads).
    pub(crate) fn intern(&mut self, mut hops: Vec<Hop>) -> (SetId, bool) {
        hops.sort_unstable();
        hops.dedup();
        if let Some(id) = self.numbers.get(&hops) {
            return (*id, false);
        }
        let (ways, nowhere) = (Vec::new(), None);
        let set = HopSet { hops: hops.clone(), ways, nowhere, routes: 0, has_moved: false };
        let id = match self.free.pop() {
            Some(id) => {
                self.sets[id.0 as usize] = set;
                id
            }
            None => {
                self.sets.push(set);
                SetId(u32::try_from(self.sets.len() - 1).expect("sets take more memory than that"))
            }
        };
        self.numbers.insert(hops, id);
        (id, true)
    }

    /// One route more has it.
    pub(crate) fn take(&mut self, id: SetId) {
        self.sets[id.0 as usize].routes += 1;
    }

    /// One route less has it.
    pub(crate) fn give(&mut self, id: SetId) {
        self.sets[id.0 as usize].routes -= 1;
    }

    /// Forgets a set that no route has; returns its hops if it did.
    pub(crate) fn forget(&mut self, id: SetId) -> Option<Vec<Hop>> {
        let set = &mut self.sets[id.0 as usize];
        if set.routes > 0 || set.hops.is_empty() {
            return None;
        }
        let hops = std::mem::take(&mut set.hops);
        set.ways.clear();
        set.nowhere = None;
        self.numbers.remove(&hops);
        self.free.push(id);
        Some(hops)
    }

    pub(crate) fn hops(&self, id: SetId) -> &[Hop] {
        &self.sets[id.0 as usize].hops
    }

    pub(crate) fn ways(&self, id: SetId) -> &[Way] {
        &self.sets[id.0 as usize].ways
    }

    /// As the routes of which set packets go nowhere, if they do: because the set has no hops, or because what leads to its
    /// gateways leads nowhere.
    pub(crate) fn nowhere(&self, id: SetId) -> Option<SetId> {
        self.sets[id.0 as usize].nowhere
    }

    /// Whether packets can follow a route with this set, be it nowhere.
    pub(crate) fn is_usable(&self, id: SetId) -> bool {
        self.nowhere(id).is_some() || !self.ways(id).is_empty()
    }

    /// Whether a route of this version of IP can have it: packets of IPv6 have no way by a gateway of IPv4, though those of
    /// IPv4 have one by a gateway of IPv6 (RFC 8950).
    pub(crate) fn can_serve(&self, id: SetId, version: Version) -> bool {
        let is_ipv4 = |hop: &Hop| hop.gateway.is_some_and(|gateway| gateway.is_ipv4());
        !version.is_ipv6() || !self.hops(id).iter().any(is_ipv4)
    }

    /// Whether it names interfaces, or leads nowhere by itself: then it needs no other route, and others may lead to gateways by
    /// it.
    pub(crate) fn is_direct(&self, id: SetId) -> bool {
        self.hops(id).iter().all(|hop| hop.interface.is_some())
    }

    /// Where the packets of a set go that needs no other route.
    pub(crate) fn lead(&self, id: SetId) -> Lead {
        self.nowhere(id).map_or_else(|| Lead::Ways(self.ways(id).to_vec()), Lead::Nowhere)
    }

    /// Says where the hops of a set lead now, none of them anywhere if nothing is known; true if that is news for a route.
    /// Gateways can multiply the ways: what is more than the kernel takes is left out. Packets go nowhere only if no hop leads
    /// anywhere else.
    pub(crate) fn set_leads(&mut self, id: SetId, leads: impl IntoIterator<Item = Lead>) -> bool {
        let (mut ways, mut nowhere) = (Vec::new(), None::<SetId>);
        for lead in leads {
            match lead {
                Lead::Ways(more) => ways.extend(more),
                Lead::Nowhere(how) => nowhere = Some(nowhere.map_or(how, |one| one.min(how))),
            }
        }
        ways.sort_unstable();
        ways.dedup();
        ways.truncate(MOST_WAYS);
        let nowhere = nowhere.filter(|_| ways.is_empty());
        let set = &mut self.sets[id.0 as usize];
        if set.ways == ways && set.nowhere == nowhere {
            return false;
        }
        (set.ways, set.nowhere) = (ways, nowhere);
        set.has_moved = set.routes > 0;
        set.has_moved
    }

    pub(crate) fn has_moved(&self, id: SetId) -> bool {
        self.sets[id.0 as usize].has_moved
    }

    /// All have heard of where sets lead.
    pub(crate) fn settle(&mut self) {
        self.sets.iter_mut().for_each(|set| set.has_moved = false);
    }
}
