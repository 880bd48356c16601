//! Packets by the principal LPM with a full table, as a router has it that takes what BGP knows without a TCP/IP stack.
//!
//! Reference: Machado et al., "Linux XIA", §5.1, and §6.3.1 for how many prefixes there are. They are IPv4's, as long as
//! those of the Internet, each behind one of four neighbours; a destination lies in one of them, drawn by Zipf's law.
//!
//! With a decision in the cache the peer is a hash table with the same keys, as for other principals. Without one it is the
//! longest match in a binary tree (the crate prefix-trie) with addresses of 32 bits, which knows nothing of the other 128,
//! and then a hash table of neighbours.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use prefix_trie::PrefixMap;
use weft_base::{Packet, Random};
use weft_xia_lpm::Lpm;
use weft_xip::forward::Forwarder;
use weft_xip::prefixes::{Lead, PrefixNews};
use weft_xip::principal::Principal;
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use super::bare::{self, WholeKeys};
use super::cases::{Cache, Mode};
use super::stopwatch::Stopwatch;
use super::traffic::{Form, Traffic};
use super::world::{self, NEIGHBOURS, Names};
use super::zipf::Zipf;
use super::{PEER_BATCH, time_packets};
use crate::bench::xip_forward::prefixes::{Prefix, prefixes};

/// Packets have one edge, and its XID lies in a prefix.
const FORM: Form = Form::Fallback(0);

/// A router with a full table, and the same table by itself.
pub(super) struct FullTable {
    /// As a router's, but its domains are identifiers that each lie in a prefix.
    names: Names,
    router: Forwarder,
    /// Whether it has a decision for each of these.
    is_warm: bool,
    tree: PrefixMap<(u32, u8), Xid>,
    hosts: HashMap<Xid, u32, FixedState>,
    zipf: Zipf,
    whole: WholeKeys,
}

impl FullTable {
    /// A table of so many prefixes.
    pub(super) fn new(count: usize) -> Result<Self, WordError> {
        let mut random = Random::from_seed(3);
        let domain = world::name(XidType::AD, &mut random);
        let mut names = Names::new(vec![domain], &mut random);
        let mut router = world::router(&names)?;
        let prefixes = prefixes(count, &mut random);
        names.gateways = prefixes
            .iter()
            .map(|_| names.neighbours[random.below(NEIGHBOURS as u64) as usize])
            .collect();
        names.domains = prefixes.iter().map(identifier).collect();
        let mut lpm = Lpm::new(random);
        let mut tree = PrefixMap::new();
        for (prefix, gateway) in prefixes.iter().zip(&names.gateways) {
            let (bits, length) = (&prefix.address.octets(), prefix.length);
            let lead = Some(Lead::Via(std::slice::from_ref(gateway)));
            lpm.learn_prefix(PrefixNews::Lead { bits, length, lead })
                .map_err(|error| WordError::new(error.to_string()))?;
            tree.insert((prefix.address.to_bits(), length), *gateway);
        }
        router.add_principal(Box::new(lpm));
        let hosts = names.neighbours.iter().copied().zip(1..).collect();
        let zipf = Zipf::new(count, 1.0);
        let whole = WholeKeys::default();
        Ok(Self { names, router, is_warm: false, tree, hosts, zipf, whole })
    }

    /// The forwarder's nanoseconds per packet.
    pub(super) fn route(
        &mut self,
        cache: Cache,
        mode: Mode,
        packets: usize,
        run: usize,
    ) -> Result<f64, String> {
        self.prepare(cache);
        let mut drawn = Drawn::new(&self.names, &self.zipf, cache, run);
        time_packets(&mut self.router, mode, packets, || drawn.packet())
    }

    /// Brings the router's cache into the state that a case wants.
    fn prepare(&mut self, cache: Cache) {
        match cache {
            Cache::Warm if self.is_warm => {}
            Cache::Warm => {
                self.router.set_cache_limit(world::CACHE);
                world::warm(&mut self.router, FORM, &self.names);
                self.is_warm = true;
            }
            Cache::Missing => {
                self.router.set_cache_limit(world::CACHE);
                self.router.flush_cache();
                self.is_warm = false;
            }
            Cache::Off => {
                self.router.set_cache_limit(0);
                self.is_warm = false;
            }
        }
    }

    /// The peer's nanoseconds per packet.
    pub(super) fn look_up(&mut self, cache: Cache, mode: Mode, packets: usize, run: usize) -> f64 {
        if cache == Cache::Warm {
            let mut traffic = Traffic::new(FORM, &self.names, &self.zipf, run as u64);
            return self.whole.look_up(FORM, &self.names, &mut traffic, mode, packets);
        }
        let mut drawn = Drawn::new(&self.names, &self.zipf, cache, run);
        let mut stopwatch = Stopwatch::new(PEER_BATCH);
        let mut addresses = Vec::with_capacity(PEER_BATCH);
        for _ in 0..packets / PEER_BATCH {
            addresses.clear();
            addresses.extend((0..PEER_BATCH).map(|_| address(&self.names.domains[drawn.rank()])));
            stopwatch.time(|| bare::look_up(&addresses, mode, |address| self.find(*address)));
        }
        stopwatch.median()
    }

    fn find(&self, address: u32) -> u32 {
        let gateway = self.tree.get_lpm(&(address, 32)).map(|(_, gateway)| gateway);
        gateway.and_then(|gateway| self.hosts.get(gateway)).copied().unwrap_or_default()
    }
}

/// An identifier that lies in a prefix: an IPv4 address, and zeros.
fn identifier(prefix: &Prefix) -> Xid {
    let mut id = [0; 20];
    id[..4].copy_from_slice(&prefix.destination().octets());
    Xid::new(XidType::LPM, id)
}

/// The address in it.
fn address(xid: &Xid) -> u32 {
    let [a, b, c, d, ..] = xid.id;
    u32::from_be_bytes([a, b, c, d])
}

/// Destinations: by Zipf's law, or each once, so that no decision serves a second time.
struct Drawn<'a> {
    traffic: Traffic<'a>,
    count: usize,
    next: Option<usize>,
}

impl<'a> Drawn<'a> {
    fn new(names: &'a Names, zipf: &'a Zipf, cache: Cache, run: usize) -> Self {
        let traffic = Traffic::new(FORM, names, zipf, run as u64);
        let next = (cache == Cache::Missing).then_some(0);
        Self { traffic, count: names.domains.len(), next }
    }

    fn rank(&mut self) -> usize {
        match &mut self.next {
            Some(next) => {
                let rank = *next % self.count;
                *next += 1;
                rank
            }
            None => self.traffic.rank(),
        }
    }

    fn packet(&mut self) -> Packet {
        let rank = self.rank();
        self.traffic.packet_to(rank)
    }
}

#[cfg(test)]
mod tests {
    use weft_xip::forward::{Activity, CacheActivity};

    use super::*;

    /// The router sends each packet to the neighbour that the peer finds, and decides as often as the case says.
    #[test]
    fn packets_leave_by_the_longest_prefix_as_the_peer_finds_it() {
        let mut table = FullTable::new(2000).unwrap();
        for domain in &table.names.domains {
            let gateway = *table.tree.get_lpm(&(address(domain), 32)).unwrap().1;
            let principal = table.router.principal(XidType::LPM).unwrap();
            let answer = principal.lookup(domain, &mut Vec::new());
            assert_eq!(answer, weft_xip::principal::Answer::Redirect(gateway));
        }
        for cache in [Cache::Missing, Cache::Warm, Cache::Off, Cache::Warm] {
            for mode in [Mode::Single, Mode::Batch] {
                table.prepare(cache);
                let counts = |router: &Forwarder| {
                    let forwarded = router.activity().get(Activity::Forwarded);
                    [forwarded, router.cache_activity().get(CacheActivity::Miss)]
                };
                let before = counts(&table.router);
                assert!(table.route(cache, mode, 1024, 1).unwrap() > 0.0);
                assert!(table.look_up(cache, mode, 1024, 1) > 0.0);
                let [forwarded, missed] = counts(&table.router);
                assert_eq!(forwarded - before[0], 1024, "{cache:?} {mode:?}");
                let decided = if cache == Cache::Missing { 1024 } else { 0 };
                assert_eq!(missed - before[1], decided, "{cache:?} {mode:?}");
            }
        }
    }
}
