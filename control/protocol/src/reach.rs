//! How next hops are reached, for protocols with few of them.
//!
//! Reference: Handley et al. (XORP), §5.2.1 (interest registration).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Input, Output};

use crate::resolver::{Resolve, Resolver};
use crate::rib;

/// How an address is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// How far it is.
    pub metric: u32,
    /// Whether it is on a link of this router.
    pub is_neighbour: bool,
}

/// The addresses of interest, and how each is reached.
#[derive(Debug)]
pub struct Reach {
    resolver: Resolver,
    addresses: Addresses,
}

#[derive(Debug, Default)]
struct Addresses {
    wanted: BTreeSet<IpAddr>,
    /// Of what the RIB is to be asked.
    unasked: BTreeSet<IpAddr>,
    known: BTreeMap<IpAddr, Option<Reached>>,
    has_changed: bool,
}

impl Reach {
    /// No addresses, and the number of its [`Dialogue`](crate::Dialogue).
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self { resolver: Resolver::new(number), addresses: Addresses::default() }
    }

    /// These addresses are of interest, and no others.
    pub fn want(&mut self, wanted: BTreeSet<IpAddr>) {
        let addresses = &mut self.addresses;
        addresses.known.retain(|address, _| wanted.contains(address));
        addresses.unasked.extend(wanted.difference(&addresses.wanted));
        addresses.unasked.retain(|address| wanted.contains(address));
        addresses.wanted = wanted;
    }

    /// How an address is reached; none if it is not, or that is not known yet.
    #[must_use]
    pub fn of(&self, address: &IpAddr) -> Option<Reached> {
        self.addresses.known.get(address).copied().flatten()
    }

    /// Whether the RIB has said of all addresses whether they are reached.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.addresses.known.len() == self.addresses.wanted.len()
    }

    /// Whether something is reached in another way since this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.addresses.has_changed)
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.resolver.deadline()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        self.resolver.hear(now, input, &mut self.addresses, out)
    }

    /// Asks what is to be asked.
    pub fn ask(&mut self, out: &mut Vec<Output>) {
        self.resolver.ask(&mut self.addresses, out);
    }
}

impl Resolve for Addresses {
    fn ask_again(&mut self) {
        self.unasked = self.wanted.clone();
    }

    fn take_wanted(&mut self) -> Vec<IpAddr> {
        std::mem::take(&mut self.unasked).into_iter().collect()
    }

    fn told(&mut self, addresses: &[IpAddr], ways: Vec<rib::Way>) {
        for (address, way) in addresses.iter().zip(ways) {
            let (metric, is_neighbour) = (way.metric, way.is_neighbour);
            let reached = way.found.then_some(Reached { metric, is_neighbour });
            if self.wanted.contains(address) {
                let before = self.known.insert(*address, reached);
                self.has_changed |= before != Some(reached);
            }
        }
    }

    fn invalid(&mut self, blocks: &[IpNet]) {
        let within = |address: &&IpAddr| blocks.iter().any(|block| block.contains(*address));
        self.unasked.extend(self.wanted.iter().filter(within));
    }
}
