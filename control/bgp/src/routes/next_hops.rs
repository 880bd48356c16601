//! The routers that routes lead to, and how far they are.
//!
//! Reference: RFC 4271 §5.1.3 (a route that leads to this router itself is not used), §9.1.2.1 (nor is one whose next hop
//! cannot be resolved) and §9.1.2.2 e) (the interior cost); Handley et al. (XORP), §5.1.1 (next-hop resolvers ask the RIB and hold routes until it answers), §5.2.1 (an
//! answer holds for a block of addresses, so that most questions need not be asked).
//!
//! Which destinations wait for an answer is noted, as long as they are few: they are decided when it comes, and the walk
//! through all need not find them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_routing::ip::Version;

use crate::wire::NextHop;

/// Destinations that are noted at most while they wait for a next hop.
const MOST_HELD: usize = 512;

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NextHopId(pub(crate) u32);

/// What the RIB says about a block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The cost of the way there; none if there is no way.
    pub(crate) metric: Option<u32>,
    /// Whether it is on a link of this router.
    pub(crate) is_neighbour: bool,
}

#[derive(Debug)]
struct Known {
    address: IpAddr,
    /// None until the RIB has said it.
    reached: Option<Reached>,
    /// How many sets of attributes have it.
    uses: u32,
    /// The destinations with routes that wait for it; if one more than the most, there are others.
    held: Vec<(Version, u32)>,
}

/// What is to be decided when the RIB has answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// All destinations.
    pub(crate) all: bool,
    /// These, in any case.
    pub(crate) held: Vec<(Version, u32)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct NextHops {
    all: Vec<Known>,
    free: Vec<u32>,
    numbers: BTreeMap<IpAddr, NextHopId>,
    /// What the RIB has said and holds, by the last address of the block, for blocks do not overlap.
    blocks: BTreeMap<IpAddr, (IpNet, Reached)>,
    /// What it is to be asked.
    wanted: BTreeSet<IpAddr>,
    /// The addresses of this router.
    own: BTreeSet<IpAddr>,
}

impl NextHops {
    /// The number of a next hop, which has one use more.
    pub(crate) fn take(&mut self, next_hop: &NextHop) -> NextHopId {
        let address = address(next_hop);
        if let Some(id) = self.numbers.get(&address) {
            self.all[id.0 as usize].uses += 1;
            return *id;
        }
        let reached = self.known(&address).or_else(|| self.block_of(address));
        if reached.is_none() {
            self.wanted.insert(address);
        }
        let known = Known { address, reached, uses: 1, held: Vec::new() };
        let id = match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = known;
                NextHopId(number)
            }
            None => {
                self.all.push(known);
                // Each takes more than four bytes.
                NextHopId(self.all.len() as u32 - 1)
            }
        };
        self.numbers.insert(address, id);
        id
    }

    /// One use less.
    pub(crate) fn give(&mut self, id: NextHopId) {
        let known = &mut self.all[id.0 as usize];
        known.uses -= 1;
        if known.uses == 0 {
            let address = known.address;
            known.held = Vec::new();
            self.numbers.remove(&address);
            self.wanted.remove(&address);
            self.free.push(id.0);
        }
    }

    /// The address of a next hop that is in use.
    pub(crate) fn address(&self, id: NextHopId) -> IpAddr {
        self.all[id.0 as usize].address
    }

    /// Whether it is an address of this router.
    pub(crate) fn is_own(&self, address: &IpAddr) -> bool {
        self.own.contains(address)
    }

    /// How a next hop is reached; none until that is known.
    pub(crate) fn reached(&self, id: NextHopId) -> Option<Reached> {
        self.all[id.0 as usize].reached
    }

    /// The cost of the way to a next hop; none if there is none, or it is not known.
    pub(crate) fn metric(&self, id: NextHopId) -> Option<u32> {
        self.reached(id).and_then(|reached| reached.metric)
    }

    /// There is a route to a destination by this next hop, which waits if it is not known how that is reached.
    pub(crate) fn hold(
        &mut self,
        id: NextHopId,
        destination: impl FnOnce() -> Option<(Version, u32)>,
    ) {
        let known = &mut self.all[id.0 as usize];
        if known.reached.is_none() && known.held.len() <= MOST_HELD {
            known.held.extend(destination());
        }
    }

    /// How an address is reached that the RIB is not asked for.
    fn known(&self, address: &IpAddr) -> Option<Reached> {
        let own = || self.own.contains(address).then_some(NOWHERE);
        is_here(address).then_some(HERE).or_else(own)
    }

    /// These are the addresses of this router now: no packets can be sent on to them. Adds to what is due.
    pub(crate) fn set_own(&mut self, own: BTreeSet<IpAddr>, due: &mut Due) {
        let before = std::mem::replace(&mut self.own, own);
        for address in before.symmetric_difference(&self.own) {
            let Some(id) = self.numbers.get(address) else { continue };
            let reached = self.known(address).or_else(|| self.block_of(*address));
            match reached {
                Some(_) => drop(self.wanted.remove(address)),
                None => drop(self.wanted.insert(*address)),
            }
            let known = &mut self.all[id.0 as usize];
            due.all |= known.reached != reached;
            known.reached = reached;
        }
    }

    fn block_of(&self, address: IpAddr) -> Option<Reached> {
        let (_, (block, reached)) = self.blocks.range(address..).next()?;
        block.contains(&address).then_some(*reached)
    }

    /// Takes what the RIB is to be asked.
    pub(crate) fn take_wanted(&mut self) -> Vec<IpAddr> {
        std::mem::take(&mut self.wanted).into_iter().collect()
    }

    /// The RIB has said how a block of addresses is reached; adds to what is due if a next hop is reached otherwise than
    /// before.
    pub(crate) fn told(&mut self, block: IpNet, reached: Reached, due: &mut Due) {
        self.forget(&block);
        self.blocks.insert(block.broadcast(), (block, reached));
        let within = self.numbers.range(block.network()..=block.broadcast());
        let others = within.filter(|(address, _)| !is_here(address) && !self.own.contains(address));
        for id in others.map(|(_, id)| *id) {
            let known = &mut self.all[id.0 as usize];
            let before = known.reached.replace(reached);
            due.all |= match before {
                None => known.held.len() > MOST_HELD,
                Some(before) => before != reached,
            };
            due.held.append(&mut known.held);
            self.wanted.remove(&known.address);
        }
    }

    /// What the RIB has said about a block holds no longer. Until it says something else, next hops are reached as they
    /// were.
    pub(crate) fn invalid(&mut self, block: &IpNet) {
        self.forget(block);
        let within = self.numbers.range(block.network()..=block.broadcast());
        let others = within.map(|(address, _)| *address);
        self.wanted.extend(others.filter(|one| !is_here(one) && !self.own.contains(one)));
    }

    /// Another RIB: everything is to be asked again.
    pub(crate) fn ask_again(&mut self) {
        self.blocks.clear();
        let all = self.numbers.keys().copied();
        self.wanted = all.filter(|one| !is_here(one) && !self.own.contains(one)).collect();
    }

    /// Forgets all blocks that overlap with this one.
    fn forget(&mut self, block: &IpNet) {
        let from = self.blocks.range(block.network()..);
        let overlapping = from.take_while(|(_, (other, _))| other.network() <= block.broadcast());
        let overlapping: Vec<_> = overlapping
            .filter(|(_, (other, _))| other.contains(block) || block.contains(other))
            .map(|(last, _)| *last)
            .collect();
        for last in overlapping {
            self.blocks.remove(&last);
        }
    }
}

/// How this router is reached by itself.
const HERE: Reached = Reached { metric: Some(0), is_neighbour: true };

/// How it is that no packets can be sent there.
const NOWHERE: Reached = Reached { metric: None, is_neighbour: false };

/// Whether it stands for this router, as of networks of its own.
fn is_here(address: &IpAddr) -> bool {
    address.is_unspecified()
}

/// Where packets are sent: of the two addresses of RFC 2545 the global one, unless there is none.
pub(crate) fn address(next_hop: &NextHop) -> IpAddr {
    match next_hop {
        NextHop::V4(address) => (*address).into(),
        NextHop::V6 { global, link_local } => match link_local {
            Some(link_local) if global.is_unspecified() => (*link_local).into(),
            _ => (*global).into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(text: &str) -> NextHop {
        NextHop::V4(text.parse().unwrap())
    }

    fn block(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    const NEAR: Reached = Reached { metric: Some(0), is_neighbour: true };

    /// Whether everything is decided again when the RIB says this.
    fn told(hops: &mut NextHops, text: &str, reached: Reached) -> bool {
        let mut due = Due::default();
        hops.told(block(text), reached, &mut due);
        due.all
    }

    #[test]
    fn few_that_wait_are_decided_by_themselves() {
        let mut hops = NextHops::default();
        let (few, many) = (hops.take(&hop("10.0.0.1")), hops.take(&hop("10.1.0.1")));
        hops.hold(few, || Some((Version::V4, 7)));
        hops.hold(few, || Some((Version::V6, 8)));
        let mut due = Due::default();
        hops.told(block("10.0.0.0/16"), NEAR, &mut due);
        assert_eq!(due, Due { all: false, held: vec![(Version::V4, 7), (Version::V6, 8)] });
        // Nobody waits for what is known.
        hops.hold(few, || panic!("it is known how that is reached"));
        assert!(!told(&mut hops, "10.0.0.0/16", NEAR));
        assert!(told(&mut hops, "10.0.0.0/16", NOWHERE), "which routes use it is not known");
        (0..=MOST_HELD as u32).for_each(|number| hops.hold(many, || Some((Version::V4, number))));
        assert!(told(&mut hops, "10.1.0.0/16", NEAR));
    }

    /// The example of Figure 8: 128.16.0.0/16, /18, 128.16.128.0/17, 128.16.192.0/18.
    #[test]
    fn an_answer_serves_the_block_that_it_holds_for() {
        let mut hops = NextHops::default();
        let first = hops.take(&hop("128.16.32.1"));
        assert_eq!(hops.metric(first), None);
        assert_eq!(hops.take_wanted(), ["128.16.32.1".parse::<IpAddr>().unwrap()]);
        told(&mut hops, "128.16.0.0/18", NEAR);
        assert_eq!(hops.metric(first), Some(0));
        // No question is needed for another one in the block, but for one outside.
        let second = hops.take(&hop("128.16.32.7"));
        assert_eq!((hops.metric(second), hops.take_wanted().len()), (Some(0), 0));
        let third = hops.take(&hop("128.16.160.1"));
        assert_eq!(hops.take_wanted().len(), 1);
        told(&mut hops, "128.16.128.0/18", NOWHERE);
        assert_eq!(hops.reached(third), Some(NOWHERE));
        hops.take(&hop("128.16.192.1"));
        assert_eq!(hops.take_wanted().len(), 1, "the block ends before it");
    }

    #[test]
    fn this_router_is_reached_whatever_the_rib_says() {
        let mut hops = NextHops::default();
        let here = hops.take(&hop("0.0.0.0"));
        told(&mut hops, "0.0.0.0/0", NOWHERE);
        hops.invalid(&block("0.0.0.0/0"));
        hops.ask_again();
        assert_eq!((hops.metric(here), hops.take_wanted().len()), (Some(0), 0));
    }

    #[test]
    fn packets_are_not_sent_on_to_this_router() {
        let mut hops = NextHops::default();
        let own = |hops: &mut NextHops, all: &[&str]| {
            let mut due = Due::default();
            hops.set_own(all.iter().map(|one| one.parse().unwrap()).collect(), &mut due);
            due.all
        };
        let (first, second) = (hops.take(&hop("10.0.0.1")), hops.take(&hop("10.0.0.2")));
        hops.take_wanted();
        told(&mut hops, "10.0.0.0/8", NEAR);
        assert!(own(&mut hops, &["10.0.0.1"]));
        assert_eq!((hops.metric(first), hops.metric(second)), (None, Some(0)));
        assert!(!own(&mut hops, &["10.0.0.1", "10.0.0.7"]));
        let third = hops.take(&hop("10.0.0.7"));
        // Whatever the RIB says of the network there, which it is not asked.
        hops.invalid(&block("10.0.0.0/8"));
        assert_eq!(hops.take_wanted().len(), 1);
        told(&mut hops, "10.0.0.0/16", NEAR);
        assert_eq!((hops.metric(first), hops.metric(third)), (None, None));
        hops.ask_again();
        assert_eq!(hops.take_wanted().len(), 1);
        told(&mut hops, "10.0.0.0/16", NEAR);
        assert!(own(&mut hops, &[]));
        assert_eq!((hops.metric(first), hops.metric(third)), (Some(0), Some(0)));
    }

    #[test]
    fn what_holds_no_longer_is_asked_again_and_serves_meanwhile() {
        let mut hops = NextHops::default();
        let first = hops.take(&hop("10.0.0.1"));
        hops.take_wanted();
        told(&mut hops, "10.0.0.0/8", NEAR);
        hops.invalid(&block("10.0.0.0/8"));
        assert_eq!((hops.metric(first), hops.take_wanted().len()), (Some(0), 1));
        assert!(!told(&mut hops, "10.0.0.0/16", NEAR), "nothing is different");
        assert!(told(&mut hops, "10.0.0.0/24", NOWHERE));
        hops.ask_again();
        assert_eq!((hops.metric(first), hops.take_wanted().len()), (None, 1));
        hops.give(first);
        hops.ask_again();
        assert!(hops.take_wanted().is_empty());
    }
}
