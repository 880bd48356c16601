//! Which of several gateways a packet is sent over.
//!
//! Reference: Thaler, Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", IEEE/ACM Transactions on
//! Networking 6(1), 1998 (rendezvous or highest random weight); RFC 2992 and RFC 2991 (what is lost when packets of
//! one flow take several ways, and what moves when a way comes or goes).
//!
//! Each gateway of a route has a weight for each sequence of edges, and the heaviest is taken. So
//!
//! * packets with the same edges go the same way and keep their order;
//! * a gateway that goes moves what went over it, evenly, and nothing else; one that comes takes its share from
//!   all others, evenly;
//! * the way depends on nothing but the edges, the gateways and the seed: it is the same for a packet that is decided
//!   and for one that the routing cache, or the kernel, knows.
//!
//! The edges are those that the routing cache has as its key: the finest that it can tell apart. Two conversations of
//! which a router sees the same edges go the same way there: all that lead over one domain and nothing else, for
//! instance.
//!
//! Nodes that weigh alike would send on over one way what came over one: behind a node that has sent half
//! of the addresses one way, a second one would have nothing left to divide. So each has a seed of its own, which is
//! the same after a restart ([`Forwarder::set_spread`](super::Forwarder::set_spread)).

use std::cmp::Reverse;

use arrayvec::ArrayVec;
use weft_base::{KeyedHash, Random};

use crate::Xid;
use crate::principal::Branch;
use crate::table::gateways::MAX_GATEWAYS;

/// What gateways weigh; see the module's text.
#[derive(Clone, Debug)]
pub struct Spread {
    hash: KeyedHash,
}

impl Spread {
    /// The weights that `seed` stands for.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { hash: KeyedHash::new(&mut Random::from_seed(seed)) }
    }

    /// What a gateway weighs for packets with edges to these XIDs, in this order.
    #[must_use]
    pub fn weight(&self, edges: &[Xid], gateway: &Xid) -> u64 {
        self.weight_of(self.flow(edges), gateway)
    }

    fn flow(&self, edges: &[Xid]) -> u64 {
        edges.iter().fold(self.hash.start(), |hash, xid| self.hash.mix(hash, words(xid)))
    }

    fn weight_of(&self, flow: u64, gateway: &Xid) -> u64 {
        let once = self.hash.mix(flow, words(gateway));
        // Gateways whose last bytes are the same differ enough in the second round only.
        self.hash.mix(once, [once, flow, once.rotate_left(32)])
    }

    /// The gateways among these branches, the heaviest first; no more than the most that a route has.
    pub(super) fn order(&self, edges: &[Xid], branches: &[Branch]) -> ArrayVec<Xid, MAX_GATEWAYS> {
        let flow = self.flow(edges);
        let gateways = branches.iter().filter_map(Branch::target).take(MAX_GATEWAYS);
        let weighed = gateways.map(|gateway| (Reverse(self.weight_of(flow, &gateway)), gateway));
        let mut all: ArrayVec<_, MAX_GATEWAYS> = weighed.collect();
        all.sort_unstable();
        all.into_iter().map(|(_, gateway)| gateway).collect()
    }
}

/// The 24 bytes of an XID as words, the same on every machine.
fn words(xid: &Xid) -> [u64; 3] {
    let bytes = xid.to_bytes();
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::XidType;
    use crate::xid::ID_LEN;

    /// XIDs that differ in few bits: those of keys differ in many.
    fn xid(kind: XidType, number: u32) -> Xid {
        let mut id = [0; ID_LEN];
        id[..4].copy_from_slice(&number.to_be_bytes());
        Xid::new(kind, id)
    }

    fn gateways(count: u32) -> Vec<Xid> {
        (0..count).map(|number| xid(XidType::HID, number)).collect()
    }

    fn chosen(spread: &Spread, edges: &[Xid], gateways: &[Xid]) -> Xid {
        let branches: Vec<_> = gateways.iter().copied().map(Branch::To).collect();
        spread.order(edges, &branches)[0]
    }

    #[test]
    fn each_gateway_has_its_share() {
        const EACH: u32 = 4000;
        for count in [2, 3, 8, 16] {
            let (spread, gateways) = (Spread::new(u64::from(count)), gateways(count));
            let mut shares: BTreeMap<Xid, u32> = BTreeMap::new();
            for destination in 0..EACH * count {
                let edges = [xid(XidType::XDP, destination), xid(XidType::AD, destination % 7)];
                *shares.entry(chosen(&spread, &edges, &gateways)).or_default() += 1;
            }
            assert_eq!(shares.len(), gateways.len());
            // Five standard deviations.
            let deviation = 5.0 * f64::from(EACH).sqrt();
            for share in shares.values() {
                assert!((f64::from(*share) - f64::from(EACH)).abs() < deviation, "{shares:?}");
            }
        }
    }

    #[test]
    fn nodes_weigh_differently_and_one_node_always_alike() {
        let gateways = gateways(2);
        let of = |seed| {
            let spread = Spread::new(seed);
            let edges = (0..4000).map(|number| [xid(XidType::AD, number)]);
            edges.map(|edges| chosen(&spread, &edges, &gateways)).collect::<Vec<_>>()
        };
        let (one, again, other) = (of(1), of(1), of(2));
        assert_eq!(one, again);
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!((1800..2200).contains(&same), "{same} of 4000 go the same way at both");
    }

    /// What a node has chosen must not change with the version of weft: its neighbours would see packets of one
    /// conversation out of order.
    #[test]
    fn the_weights_never_change() {
        let weight = Spread::new(1).weight(&[xid(XidType::AD, 1)], &xid(XidType::HID, 2));
        assert_eq!(weight, 0x9b39_06e9_6056_1ff3);
    }

    proptest! {
        #[test]
        fn a_gateway_that_goes_moves_only_what_went_over_it(
            seed in any::<u64>(), count in 2_u32..=16, gone in 0_u32..16,
            destinations in prop::collection::vec(any::<u32>(), 1..200),
        ) {
            let (spread, all) = (Spread::new(seed), gateways(count));
            let gone = all[(gone % count) as usize];
            let left: Vec<_> = all.iter().copied().filter(|gateway| *gateway != gone).collect();
            for destination in destinations {
                let edges = [xid(XidType::XDP, destination), xid(XidType::AD, 5)];
                let (before, after) = (chosen(&spread, &edges, &all), chosen(&spread, &edges, &left));
                prop_assert_eq!(before == gone, before != after);
                // The next choice is known before, and the order in which gateways are given does not matter.
                let branches: Vec<_> = all.iter().rev().copied().map(Branch::To).collect();
                let order = spread.order(&edges, &branches);
                prop_assert_eq!(*order.iter().find(|gateway| **gateway != gone).unwrap(), after);
            }
        }
    }
}
