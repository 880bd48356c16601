//! A forwarder whose tables change at random, and what must hold after every step.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::AddAssign;

use weft_base::{Instant, LinkAddress, Packet, PortId, Random, Token};
use weft_xip::forward::{
    CacheActivity, CachedDecision, Decision, Egress, Forwarder, Framing, Limits, Verdicts,
};
use weft_xip::node::Registry;
use weft_xip::offload::{Edges, Offload};
use weft_xip::principal::NextHop;
use weft_xip::{Xid, XidType};

use super::copy::Copy;
use super::model::{Derivation, derive};
use super::neighbours::{Frame, Hosts, Link};

const REDIRECTS: usize = 3;
/// Small enough that entries are evicted now and then.
const CACHE: usize = 12_000;
pub(super) const MTU: usize = 1500;
/// Packets of which one may come again.
const RECENT: usize = 12;
/// The most packets that come together: more than the forwarder asks for memory at once.
const MOST_TOGETHER: u64 = 20;
pub(super) const INTERFACES: [(&str, PortId); 2] = [("a", PortId(1)), ("b", PortId(2))];

/// What the sequences have met.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) stale: u64,
    pub(super) evicted: u64,
    /// Entries that outlived a change, counted at each.
    pub(super) survived: u64,
    /// Entries that rest on a choice between gateways, counted after each step, and those of them that took more
    /// than one try.
    pub(super) chosen: u64,
    pub(super) tried: u64,
    /// Decisions that were given to another engine, and those of them that were changed there.
    pub(super) offloaded: u64,
    pub(super) rewritten: u64,
    /// Decisions that lead to a host which the router has found by itself, counted after each step; and changes of any
    /// kind after which one of these was gone or did not lead there any more.
    pub(super) found: u64,
    pub(super) lost: u64,
    /// Decisions for which another engine had no place.
    pub(super) refused: u64,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.stale += other.stale;
        self.evicted += other.evicted;
        self.survived += other.survived;
        self.chosen += other.chosen;
        self.tried += other.tried;
        self.offloaded += other.offloaded;
        self.rewritten += other.rewritten;
        self.found += other.found;
        self.lost += other.lost;
        self.refused += other.refused;
    }
}

pub(super) struct World {
    seed: u64,
    pub(super) now: Instant,
    pub(super) random: Random,
    pub(super) registry: Registry,
    pub(super) forwarder: Forwarder,
    /// Ports that principals have asked for and that are not open yet.
    pub(super) asked: Vec<(XidType, Token, Option<Link>)>,
    /// Ports of principals that are open.
    pub(super) open: Vec<Open>,
    pub(super) last_port: u32,
    /// The hardware addresses of [`INTERFACES`].
    pub(super) macs: [[u8; 6]; INTERFACES.len()],
    pub(super) hosts: Hosts,
    /// Frames between hosts and router.
    pub(super) frames: VecDeque<Frame>,
    /// Packets that may come again.
    recent: Vec<Vec<u8>>,
    survived: u64,
    chosen: u64,
    tried: u64,
    found: u64,
    lost: u64,
    copy: Copy,
    /// What the copy had no place for, and the router has not heard that yet.
    refused: Vec<Edges>,
    refusals: u64,
    /// What the latest change does not concern.
    unrelated: HashSet<Vec<Xid>>,
}

/// A port of a principal.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) kind: XidType,
    pub(super) port: PortId,
    /// Where hosts hear what leaves there.
    pub(super) link: Option<Link>,
}

type Kept = HashMap<(Vec<Xid>, bool), (Derivation, CachedDecision)>;

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::from_seed(seed);
        let limits = Limits { redirects: REDIRECTS, cache: CACHE, ..Limits::default() };
        let forwarder = Forwarder::new(limits, random.fork("forwarder"));
        random.number();
        let registry = weft::principals();
        let mut world = Self {
            seed,
            now: Instant::ZERO,
            hosts: Hosts::new(&registry, &random),
            macs: [[2; 6]; INTERFACES.len()],
            frames: VecDeque::new(),
            random,
            registry,
            forwarder,
            asked: Vec::new(),
            open: Vec::new(),
            last_port: 10,
            recent: vec![Vec::new(); RECENT],
            survived: 0,
            chosen: 0,
            tried: 0,
            found: 0,
            lost: 0,
            copy: Copy::default(),
            refused: Vec::new(),
            refusals: 0,
            unrelated: HashSet::new(),
        };
        world.forwarder.set_offloading(Some(Copy::room()));
        for (_, port) in INTERFACES {
            let egress = Egress { framing: Framing::Ethernet { mac: [2; 6] }, mtu: MTU };
            world.forwarder.add_port(port, egress);
        }
        let names: Vec<_> = world.registry.names().collect();
        names.into_iter().for_each(|name| world.load(name));
        (0..world.hosts.len()).for_each(|host| world.begin_host(host));
        world.carry();
        world
    }

    pub(super) fn run(mut self, steps: u64) -> Seen {
        let mut kept = Kept::new();
        let mut evicted = 0;
        for step in 0..steps {
            let what = if self.random.chance(2, 3) {
                let together = if self.random.chance(1, 8) { MOST_TOGETHER } else { 1 };
                let count = 1 + self.random.below(together) as usize;
                self.packets(count);
                None
            } else {
                Some(self.change())
            };
            let all = self.forwarder.cache_activity().get(CacheActivity::Evicted);
            let has_evicted = std::mem::replace(&mut evicted, all) < all;
            kept = self.check(step, what.as_deref(), kept, has_evicted);
            self.check_copy(step);
        }
        let activity = self.forwarder.cache_activity();
        Seen {
            hits: activity.get(CacheActivity::Hit),
            misses: activity.get(CacheActivity::Miss),
            stale: activity.get(CacheActivity::Stale),
            evicted: activity.get(CacheActivity::Evicted),
            survived: self.survived,
            chosen: self.chosen,
            tried: self.tried,
            offloaded: self.copy.told,
            rewritten: activity.get(CacheActivity::Rewritten),
            found: self.found,
            lost: self.lost,
            refused: self.refusals,
        }
    }

    /// Checks what the module's text says; `change` is what was changed, none if a packet came.
    fn check(&mut self, step: u64, change: Option<&str>, before: Kept, has_evicted: bool) -> Kept {
        let place = || format!("seed {}, step {step}, after {change:?}", self.seed);
        let size = self.forwarder.cache_size();
        assert!(size.bytes + size.spare <= CACHE, "{}: {size:?}", place());
        let mut now = Kept::with_capacity(before.len() + 1);
        for entry in self.forwarder.cached() {
            let derivation = derive(&self.forwarder, &entry.edges, REDIRECTS);
            assert_eq!(derivation.decision, (entry.decision, entry.slot), "{}: {entry:?}", place());
            self.chosen += u64::from(derivation.has_chosen());
            self.tried += u64::from(derivation.has_tried);
            self.found += u64::from(self.is_found(entry.decision));
            now.insert((entry.edges.clone(), entry.received), (derivation, entry));
        }
        self.unrelated.clear();
        let gone = |key: &(Vec<Xid>, bool), decision| {
            now.get(key).is_none_or(|(derivation, _)| derivation.decision.0 != decision)
        };
        let was_lost = before.iter().any(|(key, (derivation, _))| {
            self.is_found(derivation.decision.0) && gone(key, derivation.decision.0)
        });
        self.lost += u64::from(was_lost && change.is_some());
        if change.is_none() {
            // Packets change nothing of what they do not need the room of.
            for (key, (derivation, entry)) in &before {
                match now.get(key) {
                    None => assert!(has_evicted, "{}: {entry:?}", place()),
                    Some((same, found)) => {
                        assert_eq!(same, derivation, "{}", place());
                        let is_new = has_evicted && found.hits < entry.hits;
                        assert!(found.hits >= entry.hits || is_new, "{}: {entry:?}", place());
                    }
                }
            }
        } else {
            for (key, (derivation, entry)) in &before {
                let same = derive(&self.forwarder, &key.0, REDIRECTS) == *derivation;
                let found = now.get(key).map(|(_, entry)| entry);
                match found {
                    // What the other engine had is decided anew.
                    Some(found) if !same => {
                        let was_told = self.copy.has(&key.0)
                            || self.refused.iter().any(|edges| edges[..] == key.0);
                        assert!(found.hits == 0 && was_told, "{}: {entry:?}", place());
                    }
                    // What is decided anew may take more room than before.
                    None if same && has_evicted => {}
                    found => assert_eq!(found, same.then_some(entry), "{}: {entry:?}", place()),
                }
                self.survived += u64::from(same);
                if same {
                    self.unrelated.insert(key.0.clone());
                }
            }
            assert!(now.keys().all(|key| before.contains_key(key)), "{}", place());
        }
        now
    }

    /// Whether this leads to a host that nobody has told the router of.
    fn is_found(&self, decision: Decision) -> bool {
        let mac = match decision {
            Decision::Forward(NextHop { link: LinkAddress::Mac(mac), .. }) => mac,
            _ => return false,
        };
        self.hosts.are_at(mac)
    }

    /// Lets the other engine follow; what it does then is what the tables say.
    fn check_copy(&mut self, step: u64) {
        let place = format!("seed {}, step {step}", self.seed);
        let mut changes = Vec::new();
        self.forwarder.drain_offloads(usize::MAX, &mut changes);
        for change in changes.drain(..) {
            if let Offload::Set { edges, .. } = &change {
                let is_needless = self.unrelated.contains(&edges[..]) && self.copy.has(edges);
                assert!(!is_needless, "{place}: {edges:?} is told again for nothing");
            }
            let is_crowded = self.random.chance(1, 10);
            self.refused.extend(self.copy.apply(change, is_crowded));
        }
        // It may have been told the same again meanwhile, when that is heard.
        if self.random.chance(1, 2) {
            self.refusals += self.refused.len() as u64;
            self.refused.drain(..).for_each(|edges| self.forwarder.offload_refused(&edges));
            self.forwarder.drain_offloads(usize::MAX, &mut changes);
            for change in changes {
                self.copy.apply(change, false);
            }
        }
        for (edges, decision, slot) in self.copy.decisions() {
            let (now, now_slot) = derive(&self.forwarder, edges, REDIRECTS).decision;
            match (decision, now) {
                (None, Decision::Deliver(_) | Decision::Several) => {
                    assert_eq!(slot, now_slot, "{place}: {edges:?}");
                }
                // A neighbour that there was no room for.
                (None, Decision::Forward(hop)) => {
                    assert!(!self.copy.knows(&hop), "{place}: {edges:?}")
                }
                (None, now) => panic!("{place}: {edges:?}: {now:?} is not to be passed on"),
                (Some(decision), now) => {
                    assert_eq!((decision, slot), (now, now_slot), "{place}: {edges:?}")
                }
            }
        }
        // What it has no place for is believed to be there until that is heard.
        let believed = self.forwarder.cache_size().offloaded;
        let refused: HashSet<_> = self.refused.iter().collect();
        let missing = refused.into_iter().filter(|edges| !self.copy.has(edges)).count();
        let few = believed.saturating_sub(missing);
        assert!((few..=believed).contains(&self.copy.len()), "{place}: {believed} {missing}");
    }

    /// Routes some packets and returns what became of them.
    fn packets(&mut self, count: usize) -> Verdicts {
        let mut packets: Vec<_> = (0..count).map(|_| self.packet()).collect();
        let mut verdicts = Verdicts::new();
        self.forwarder.route_batch(self.now, &mut packets, &mut verdicts);
        verdicts
    }

    /// A packet like one that came lately, or another one.
    fn packet(&mut self) -> Packet {
        let place = self.random.below(RECENT as u64) as usize;
        if self.random.chance(1, 3) || self.recent[place].is_empty() {
            self.recent[place] = self.new_packet();
        }
        let mut packet = Packet::from_slice(&self.recent[place]);
        packet.meta.port = match self.random.below(6) {
            0 => PortId::NONE,
            number => PortId(1 + number as u32 % 2),
        };
        packet
    }

    /// Has a twin without cache do the same, and compares what leaves.
    pub(super) fn compare_with_a_router_without_cache(mut self, steps: u64) {
        let mut twin = World::new(self.seed);
        twin.forwarder.set_cache_limit(0);
        for step in 0..steps {
            if self.random.chance(1, 3) {
                twin.random.chance(1, 3);
                assert_eq!(self.change(), twin.change());
                continue;
            }
            twin.random.chance(1, 3);
            let count = 1 + self.random.below(12) as usize;
            twin.random.below(12);
            let (with, without) = (self.packets(count), twin.packets(count));
            assert_eq!(with, without, "seed {}, step {step}", self.seed);
        }
        let drops = |world: &World| world.forwarder.drops().nonzero().collect::<Vec<_>>();
        assert_eq!(drops(&self), drops(&twin));
        assert!(self.forwarder.cache_activity().get(CacheActivity::Hit) > steps / 10);
        assert_eq!(twin.forwarder.cache_size().entries, 0);
    }
}
