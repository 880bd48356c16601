//! What changes cost: routes that are replaced, and decisions that become stale by it.

use std::collections::HashMap;
use std::time::Instant as Clock;

use foldhash::fast::FixedState;
use weft_base::{Instant, Packet, PortId, Random};
use weft_port::PortInfo;
use weft_xia_ad::Ad;
use weft_xia_hid::Hid;
use weft_xip::dag::ROW_LEN;
use weft_xip::forward::{CacheActivity, Egress, Forwarder, Framing, Limits, Verdicts};
use weft_xip::header::FIXED_HEADER_LEN;
use weft_xip::principal::{Input, Principal};
use weft_xip::words::WordError;
use weft_xip::{Address, Xid, XidType, XipRepr};

use super::world::IN;

/// Decisions in the cache.
pub(super) const ENTRIES: usize = 1_000_000;
/// Routes replaced in one go.
const UPDATES: usize = 100_000;
/// One change for so many of them is told at once, as a routing protocol tells them.
const AT_ONCE: usize = 64;

/// A router with a decision for each of a million domains. Behind some neighbours are few of them, behind
/// others many.
pub(super) struct Changes {
    forwarder: Forwarder,
    /// For each size of a group, its neighbour and its domains.
    groups: Vec<(Xid, Vec<Xid>)>,
    /// Domains of the other decisions, and the neighbours that they may lead to.
    rest: Vec<Xid>,
    spare: [Xid; 2],
    /// Which of them the routes on which decisions rest lead to, and which the others.
    via: [usize; 2],
    /// Domains that no packet went to.
    unused: Vec<Xid>,
    bare: HashMap<Xid, u32, FixedState>,
    links: HashMap<Xid, String>,
}

impl Changes {
    /// A router with groups of these sizes, and `entries` decisions in all.
    pub(super) fn new(sizes: &[usize], entries: usize) -> Result<Self, WordError> {
        let mut random = Random::from_seed(7);
        let mut name = |kind| {
            let mut id = [0; 20];
            random.fill(&mut id);
            Xid::new(kind, id)
        };
        let limits = Limits { cache: 1 << 30, ..Limits::default() };
        let mut changes = Self {
            forwarder: Forwarder::new(limits, Random::from_seed(2)),
            groups: sizes
                .iter()
                .map(|size| {
                    let domains = (0..*size).map(|_| name(XidType::AD)).collect();
                    (name(XidType::HID), domains)
                })
                .collect(),
            spare: [name(XidType::HID), name(XidType::HID)],
            via: [0, 0],
            rest: (sizes.iter().sum()..entries).map(|_| name(XidType::AD)).collect(),
            unused: (0..UPDATES).map(|_| name(XidType::AD)).collect(),
            bare: HashMap::default(),
            links: HashMap::new(),
        };
        changes.fill()?;
        Ok(changes)
    }

    fn fill(&mut self) -> Result<(), WordError> {
        let mut hid = Hid::new(Random::from_seed(1));
        let info = PortInfo { mac: [2; 6], mtu: 1500, local: None };
        let port = PortId(1);
        self.forwarder
            .add_port(port, Egress { framing: Framing::Ethernet { mac: [2; 6] }, mtu: 1500 });
        let up = Input::InterfaceUp { name: "port".to_owned(), port, info };
        hid.handle(Instant::ZERO, up, &mut Vec::new());
        let neighbours = self.groups.iter().map(|(neighbour, _)| *neighbour).chain(self.spare);
        for (number, neighbour) in neighbours.enumerate() {
            let link =
                format!("neighbour {neighbour} link 02:00:00:00:01:{number:02x} interface port");
            set(&mut hid, &link)?;
            self.links.insert(neighbour, link);
        }
        let mut ad = Ad::new(Random::from_seed(1));
        for (neighbour, domains) in &self.groups {
            domains.iter().for_each(|domain| ad.learn(*domain, &[*neighbour]));
        }
        for domain in self.rest.iter().chain(&self.unused) {
            ad.learn(*domain, &[self.spare[0]]);
        }
        self.forwarder.add_principal(Box::new(ad));
        self.forwarder.add_principal(Box::new(hid));
        let domains = self.groups.iter().flat_map(|(_, domains)| domains).chain(&self.rest);
        let domains: Vec<_> = domains.copied().collect();
        self.bare = domains.iter().copied().zip(0..).collect();
        self.decide(&domains);
        Ok(())
    }

    /// Sends a packet to each of the domains.
    fn decide(&mut self, domains: &[Xid]) {
        let mut bytes = packet_bytes();
        let (mut batch, mut verdicts) = (Vec::with_capacity(64), Verdicts::new());
        for domains in domains.chunks(64) {
            for domain in domains {
                bytes[FIXED_HEADER_LEN..][..ROW_LEN - 4].copy_from_slice(&domain.to_bytes());
                let mut packet = Packet::from_slice(&bytes);
                packet.meta.port = IN;
                batch.push(packet);
            }
            self.forwarder.route_batch(Instant::ZERO, &mut batch, &mut verdicts);
            verdicts.clear();
        }
    }

    /// Nanoseconds for replacing a route. On each rests a decision, or on none.
    pub(super) fn update(&mut self, is_used: bool) -> f64 {
        let domains: Vec<Xid> = if is_used {
            self.rest.iter().take(UPDATES).copied().collect()
        } else {
            self.unused.clone()
        };
        let turn = &mut self.via[usize::from(is_used)];
        *turn = 1 - *turn;
        let via = self.spare[*turn];
        let begin = Clock::now();
        for domains in domains.chunks(AT_ONCE) {
            let Some(mut ad) = self.forwarder.principal_mut(XidType::AD) else { continue };
            let found: Vec<_> =
                domains.iter().map(|domain| (*domain, std::slice::from_ref(&via))).collect();
            ad.learn_all(&found);
        }
        let nanoseconds = begin.elapsed().as_nanos() as f64 / domains.len() as f64;
        if is_used {
            self.decide(&domains);
        }
        nanoseconds
    }

    /// Nanoseconds for replacing a value in the bare table.
    pub(super) fn update_bare(&mut self, is_used: bool) -> f64 {
        let domains =
            if is_used { &self.rest[..UPDATES.min(self.rest.len())] } else { &self.unused };
        for domain in domains {
            self.bare.insert(*domain, 1);
        }
        let begin = Clock::now();
        for domain in domains {
            self.bare.insert(*domain, 2);
        }
        begin.elapsed().as_nanos() as f64 / domains.len() as f64
    }

    /// Microseconds for losing the neighbour behind which `entries` domains are.
    pub(super) fn invalidate(&mut self, entries: usize) -> Result<f64, String> {
        let (neighbour, domains) = self.group(entries);
        let link = self.links[&neighbour].clone();
        let words: Vec<_> = link.split(' ').collect();
        let stale = self.forwarder.cache_activity().get(CacheActivity::Stale);
        let begin = Clock::now();
        if let Some(mut hid) = self.forwarder.principal_mut(XidType::HID) {
            hid.delete(Instant::ZERO, &words, &mut Vec::new())
                .map_err(|error| error.to_string())?;
        }
        let microseconds = begin.elapsed().as_nanos() as f64 / 1e3;
        let stale = self.forwarder.cache_activity().get(CacheActivity::Stale) - stale;
        if stale != entries as u64 {
            return Err(format!("{stale} decisions were forgotten instead of {entries}"));
        }
        if let Some(mut hid) = self.forwarder.principal_mut(XidType::HID) {
            hid.set(Instant::ZERO, &words, &mut Vec::new()).map_err(|error| error.to_string())?;
        }
        self.decide(&domains);
        Ok(microseconds)
    }

    /// Microseconds for removing as many keys from the bare table.
    pub(super) fn remove_bare(&mut self, entries: usize) -> f64 {
        let (_, domains) = self.group(entries);
        let begin = Clock::now();
        for domain in &domains {
            self.bare.remove(domain);
        }
        let microseconds = begin.elapsed().as_nanos() as f64 / 1e3;
        self.bare.extend(domains.iter().map(|domain| (*domain, 1)));
        microseconds
    }

    fn group(&self, entries: usize) -> (Xid, Vec<Xid>) {
        let found = self.groups.iter().find(|(_, domains)| domains.len() == entries);
        found.cloned().unwrap_or((self.spare[0], Vec::new()))
    }

    /// Bytes of the cache for each decision, with all that it needs.
    pub(super) fn bytes_per_entry(&self) -> f64 {
        let size = self.forwarder.cache_size();
        size.bytes as f64 / size.entries as f64
    }
}

/// A packet to a domain.
fn packet_bytes() -> Vec<u8> {
    let any = Address::scoping(&[Xid::new(XidType::AD, [0; 20])]).expect("one node is an address");
    let repr = XipRepr::new(any, None, 0);
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes).expect("the buffer has the length that the header wants");
    bytes
}

fn set(principal: &mut dyn Principal, statement: &str) -> Result<(), WordError> {
    let words: Vec<_> = statement.split(' ').collect();
    principal.set(Instant::ZERO, &words, &mut Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_makes_as_many_decisions_stale_as_the_case_says() {
        let mut changes = Changes::new(&[1, 10], 200).unwrap();
        for _ in 0..2 {
            assert_eq!(changes.forwarder.cache_size().entries, 200);
            for entries in [1, 10] {
                assert!(changes.invalidate(entries).unwrap() > 0.0);
                assert!(changes.remove_bare(entries) > 0.0);
            }
            let stale =
                |changes: &Changes| changes.forwarder.cache_activity().get(CacheActivity::Stale);
            let before = stale(&changes);
            assert!(changes.update(false) > 0.0 && changes.update_bare(false) > 0.0);
            assert_eq!(stale(&changes), before, "nothing rests on them");
            assert!(changes.update(true) > 0.0 && changes.update_bare(true) > 0.0);
            assert_eq!(stale(&changes), before + 189);
        }
        assert_eq!(changes.forwarder.drops().total(), 0);
        assert!(changes.bytes_per_entry() > 64.0);
    }
}
