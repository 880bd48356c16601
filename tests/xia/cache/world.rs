//! A forwarder whose tables change at random, and what must hold after every step.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::ops::AddAssign;

use weft_base::{Instant, Packet, PortId, Random, Token};
use weft_port::PortInfo;
use weft_runtime::{InterfaceAddress, IpChange, IpWay};
use weft_xip::forward::{
    CacheActivity, CachedDecision, Decision, Egress, Forwarder, Framing, Limits, Verdicts,
};
use weft_xip::node::Registry;
use weft_xip::offload::Offload;
use weft_xip::principal::{Input, Output, SocketId};
use weft_xip::{Xid, XidType};

use super::copy::Copy;
use super::model::{Derivation, derive};

const REDIRECTS: usize = 3;
/// Small enough that entries are evicted now and then.
const CACHE: usize = 9_000;
const MTU: usize = 1500;
/// Packets of which one may come again.
const RECENT: usize = 12;
const INTERFACES: [(&str, PortId); 2] = [("a", PortId(1)), ("b", PortId(2))];

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
    }
}

pub(super) struct World {
    seed: u64,
    random: Random,
    registry: Registry,
    forwarder: Forwarder,
    /// Ports that principals have asked for and that are not open yet.
    asked: Vec<(XidType, Token)>,
    /// Ports of principals that are open.
    open: Vec<(XidType, PortId)>,
    last_port: u32,
    /// Packets that may come again.
    recent: Vec<Vec<u8>>,
    survived: u64,
    chosen: u64,
    tried: u64,
    copy: Copy,
    /// What the latest change does not concern.
    unrelated: HashSet<Vec<Xid>>,
}

type Kept = HashMap<(Vec<Xid>, bool), (Derivation, CachedDecision)>;

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::from_seed(seed);
        let limits = Limits { redirects: REDIRECTS, cache: CACHE, ..Limits::default() };
        let forwarder = Forwarder::new(limits, random.fork("forwarder"));
        random.number();
        let mut world = Self {
            seed,
            random,
            registry: weft::principals(),
            forwarder,
            asked: Vec::new(),
            open: Vec::new(),
            last_port: 10,
            recent: vec![Vec::new(); RECENT],
            survived: 0,
            chosen: 0,
            tried: 0,
            copy: Copy::default(),
            unrelated: HashSet::new(),
        };
        world.forwarder.set_offloading(Some(Copy::room()));
        for (_, port) in INTERFACES {
            let egress = Egress { framing: Framing::Ethernet { mac: [2; 6] }, mtu: MTU };
            world.forwarder.add_port(port, egress);
        }
        let names: Vec<_> = world.registry.names().collect();
        names.into_iter().for_each(|name| world.load(name));
        world
    }

    pub(super) fn run(mut self, steps: u64) -> Seen {
        let mut kept = Kept::new();
        let mut evicted = 0;
        for step in 0..steps {
            let what = if self.random.chance(2, 3) {
                self.packets(1);
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
        }
    }

    /// Checks what the module's text says; `change` is what was changed, none if a packet came.
    fn check(&mut self, step: u64, change: Option<&str>, before: Kept, has_evicted: bool) -> Kept {
        let place = || format!("seed {}, step {step}, after {change:?}", self.seed);
        let mut now = Kept::with_capacity(before.len() + 1);
        for entry in self.forwarder.cached() {
            let derivation = derive(&self.forwarder, &entry.edges, REDIRECTS);
            assert_eq!(derivation.decision, (entry.decision, entry.slot), "{}: {entry:?}", place());
            self.chosen += u64::from(derivation.has_chosen());
            self.tried += u64::from(derivation.has_tried);
            now.insert((entry.edges.clone(), entry.received), (derivation, entry));
        }
        self.unrelated.clear();
        if change.is_some() {
            for (key, (derivation, entry)) in &before {
                let same = derive(&self.forwarder, &key.0, REDIRECTS) == *derivation;
                let found = now.get(key).map(|(_, entry)| entry);
                match found {
                    // What the other engine had is decided anew.
                    Some(found) if !same => {
                        assert!(found.hits == 0 && self.copy.has(&key.0), "{}: {entry:?}", place());
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

    /// Lets the other engine follow; what it does then is what the tables say.
    fn check_copy(&mut self, step: u64) {
        let place = format!("seed {}, step {step}", self.seed);
        let mut changes = Vec::new();
        self.forwarder.drain_offloads(usize::MAX, &mut changes);
        for change in changes {
            if let Offload::Set { edges, .. } = &change {
                let is_needless = self.unrelated.contains(&edges[..]) && self.copy.has(edges);
                assert!(!is_needless, "{place}: {edges:?} is told again for nothing");
            }
            self.copy.apply(change);
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
        assert_eq!(self.copy.len(), self.forwarder.cache_size().offloaded, "{place}");
    }

    /// Routes some packets and returns what became of them.
    fn packets(&mut self, count: usize) -> Verdicts {
        let mut packets: Vec<_> = (0..count).map(|_| self.packet()).collect();
        let mut verdicts = Verdicts::new();
        self.forwarder.route_batch(Instant::ZERO, &mut packets, &mut verdicts);
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

    /// A packet whose entry node has some edges to XIDs of the universe.
    fn new_packet(&mut self) -> Vec<u8> {
        let edges = 1 + self.random.below(4) as u8;
        let mut bytes = vec![1, 0, 0, 0, 64, edges, 0, 0x7e];
        for row in 0..edges {
            bytes.extend(self.any_xid().to_bytes());
            let last = row + 1 == edges;
            let edge = |slot: u8| if last && slot < edges { slot } else { 0x7f };
            bytes.extend([0, 1, 2, 3].map(edge));
        }
        bytes
    }

    fn any_xid(&mut self) -> Xid {
        // Those that most principals lead to come more often.
        const KINDS: [XidType; 24] = [
            XidType::AD,
            XidType::AD,
            XidType::HID,
            XidType::HID,
            XidType::XDP,
            XidType::XDP,
            XidType::U4ID,
            XidType::U4ID,
            XidType::ZF,
            XidType::ZF,
            XidType::LPM,
            XidType::LPM,
            XidType::X4ID,
            XidType::X4ID,
            XidType::ETHER,
            XidType::ETHER,
            XidType::HID2,
            XidType::UNI4ID,
            XidType::I4ID,
            XidType::U6ID,
            XidType::I6ID,
            XidType::X6ID,
            weft_xia_example::NEAREST,
            XidType(0x9999),
        ];
        let kind = KINDS[self.random.below(KINDS.len() as u64) as usize];
        self.xid(kind)
    }

    /// One of few XIDs of a type.
    fn xid(&mut self, kind: XidType) -> Xid {
        let number = self.random.below(4) as u8;
        let mut id = [0; 20];
        match kind {
            // 127.0.0.1:1 and so on: tunnels may end on this machine.
            XidType::U4ID => id[..6].copy_from_slice(&[127, 0, 0, number, 0, 1]),
            XidType::I4ID => id[..4].copy_from_slice(&[127, 0, 0, number]),
            // ::1 and so on, and a UDP port.
            XidType::U6ID => (id[15], id[17]) = (number, 1),
            XidType::I6ID => id[15] = number,
            XidType::UNI4ID => {
                id[..6].copy_from_slice(&[127, 0, 0, number, 0, 1]);
            }
            XidType::X6ID => id[..2].copy_from_slice(&[0x20, number]),
            XidType::ZF => id[19] = number,
            XidType::LPM => id[..4].copy_from_slice(&[10, number & 1, number >> 1, 1]),
            XidType::X4ID => id[..4].copy_from_slice(&[10, number & 1, number >> 1, 1]),
            // Two stations on each interface.
            XidType::ETHER => (id[3], id[4], id[9]) = (11 + (number & 1), 2, 5 + (number >> 1)),
            _ => id = [number + 1; 20],
        }
        Xid::new(kind, id)
    }

    /// Changes something; says what.
    fn change(&mut self) -> String {
        match self.random.below(26) {
            0 => self.switch_principal(),
            1 => self.switch_interface(),
            2 | 3 => self.answer_port(),
            4 => self.lose_port(),
            5 | 6 => self.switch_socket(),
            7..11 => self.change_ip(),
            11 | 12 => self.learn(),
            _ => self.statement(),
        }
    }

    /// Loads a principal, tells it of the interfaces, and opens nothing that it asks for yet.
    fn load(&mut self, name: &str) {
        let principal = self.registry.make(name, &self.random).unwrap();
        let kind = principal.kind();
        self.forwarder.add_principal(principal);
        for (name, port) in INTERFACES {
            self.tell(kind, up(name, port, [2; 6]));
        }
    }

    fn switch_principal(&mut self) -> String {
        let names: Vec<_> = self.registry.names().collect();
        let name = names[self.random.below(names.len() as u64) as usize];
        let kind = self.registry.make(name, &self.random).unwrap().kind();
        self.asked.retain(|(of, _)| *of != kind);
        self.open.retain(|(of, _)| *of != kind);
        match self.forwarder.remove_principal(kind) {
            Some(_) => format!("remove {name}"),
            None => {
                self.load(name);
                format!("add {name}")
            }
        }
    }

    fn switch_interface(&mut self) -> String {
        let (name, port) = INTERFACES[self.random.below(2) as usize];
        let down = self.random.chance(1, 2);
        // Its address may be that of a station that somebody states.
        let mac = [2, 0, 0, 0, 0, 5 + self.random.below(3) as u8];
        for kind in self.forwarder.kinds().collect::<Vec<_>>() {
            self.tell(kind, if down { Input::InterfaceDown { port } } else { up(name, port, mac) });
        }
        format!("interface {name} {mac:?} down {down}")
    }

    /// Opens a port that a principal has asked for, or fails to.
    fn answer_port(&mut self) -> String {
        let Some((kind, token)) = self.asked.pop() else { return "nothing".to_owned() };
        self.last_port += 1;
        let port = PortId(self.last_port);
        let info = PortInfo { mac: [0; 6], mtu: MTU, local: None };
        self.forwarder.add_port(port, Egress { framing: Framing::Bare, mtu: MTU });
        if self.random.chance(1, 5) {
            self.tell(kind, Input::PortFailed { token, error: "no".to_owned() });
            return format!("port of {kind} failed");
        }
        self.open.push((kind, port));
        self.tell(kind, Input::PortOpened { token, port, info });
        format!("port of {kind}")
    }

    fn lose_port(&mut self) -> String {
        let Some((kind, port)) = self.open.pop() else { return "nothing".to_owned() };
        self.tell(kind, Input::PortLost { port, error: "gone".to_owned() });
        format!("port of {kind} lost")
    }

    fn switch_socket(&mut self) -> String {
        let xid = self.xid(XidType::XDP);
        let socket = SocketId(self.random.below(3) as u32);
        let bind = self.random.chance(1, 2);
        if let Some(mut principal) = self.forwarder.principal_mut(XidType::XDP) {
            match bind {
                // Whether it could be bound does not matter.
                true => drop(principal.bind(xid, socket)),
                false => principal.unbind(&xid),
            }
        }
        format!("bind {bind} {xid}")
    }

    /// The kernel tells of a route, a neighbour or an interface, or of all that there is, which is less than before.
    fn change_ip(&mut self) -> String {
        let [second, third, last] = [2, 2, 3].map(|below| self.random.below(below) as u8);
        let (interface, name) = [(11, "a"), (12, "b")][self.random.below(2) as usize];
        let router = IpAddr::from([10, 0, 0, last]);
        let change = match self.random.below(12) {
            0..6 => {
                let (length, net) = [
                    (0, [0, 0, 0, 0]),
                    (8, [10, 0, 0, 0]),
                    (16, [10, second, 0, 0]),
                    (24, [10, second, third, 0]),
                    (32, [10, second, third, 1]),
                ][self.random.below(5) as usize];
                let destination = InterfaceAddress { ip: net.into(), prefix_length: length };
                let way = match self.random.below(8) {
                    0 => None,
                    1 => Some(IpWay::Local),
                    2 => Some(IpWay::Nowhere),
                    3 => Some(IpWay::Out { interface, gateway: None }),
                    _ => Some(IpWay::Out { interface, gateway: Some(router) }),
                };
                IpChange::Route { destination, way }
            }
            6..10 => {
                let host = [router, IpAddr::from([10, second, third, 1])];
                let ip = host[self.random.below(2) as usize];
                let mac = self.random.chance(2, 3).then_some([2, 0, 0, 0, 0, last]);
                IpChange::Neighbour { interface, ip, mac, idle: self.random.chance(1, 4) }
            }
            10 => {
                let name = self.random.chance(3, 4).then(|| name.to_owned());
                IpChange::Interface { index: interface, name }
            }
            _ => IpChange::Again,
        };
        let mut changes = vec![change];
        if changes == [IpChange::Again] {
            let name = Some(name.to_owned());
            changes.extend([IpChange::Interface { index: interface, name }, IpChange::Complete]);
        }
        let told = format!("{changes:?}");
        self.tell(XidType::X4ID, Input::Ip { changes: changes.clone() });
        self.tell(XidType::ETHER, Input::Ip { changes });
        told
    }

    /// Sets or deletes a statement; many are refused, and then nothing must have changed.
    fn statement(&mut self) -> String {
        let (kind, line) = match self.random.below(21) {
            0..5 => (XidType::AD, self.table_statement(XidType::AD)),
            5..7 => (XidType::XDP, self.table_statement(XidType::XDP)),
            7 => (XidType::HID, self.route_statement(XidType::HID)),
            8..10 => {
                let neighbour = self.xid(XidType::HID);
                let (interface, number) =
                    (INTERFACES[self.random.below(2) as usize].0, self.random.below(2));
                let line = match self.random.below(3) {
                    0 => format!("local {neighbour}"),
                    _ => format!(
                        "neighbour {neighbour} link 02:00:00:00:00:0{number} interface {interface}"
                    ),
                };
                (XidType::HID, line)
            }
            10..12 => {
                let role = ["local", "tunnel"][self.random.below(2) as usize];
                (XidType::U4ID, format!("{role} 127.0.0.{}:1", self.random.below(4)))
            }
            12..14 => (XidType::LPM, self.prefix_statement()),
            14 => {
                let (neighbour, interface) =
                    (self.xid(XidType::HID2), INTERFACES[self.random.below(2) as usize].0);
                let line =
                    format!("neighbour {neighbour} link 02:00:00:00:00:05 interface {interface}");
                (XidType::HID2, line)
            }
            15 => {
                let role = ["local", "tunnel"][self.random.below(2) as usize];
                match self.random.below(3) {
                    0 => (XidType::I4ID, format!("{role} 127.0.0.{}", self.random.below(4))),
                    1 => (XidType::U6ID, format!("{role} [::{}]:1", self.random.below(4))),
                    _ => (XidType::I6ID, format!("{role} ::{}", self.random.below(4))),
                }
            }
            16 | 17 => {
                let interface = INTERFACES[self.random.below(2) as usize].0;
                let line = match self.random.below(3) {
                    0 => format!("interface {interface}"),
                    _ => {
                        let last = 5 + self.random.below(2);
                        format!("neighbour 02:00:00:00:00:0{last} interface {interface}")
                    }
                };
                (XidType::ETHER, line)
            }
            _ => match self.random.below(4) {
                0 => (XidType::ZF, format!("fill-limit {}", self.random.below(3))),
                _ => (XidType::ZF, self.table_statement(XidType::ZF)),
            },
        };
        let delete = self.random.chance(1, 2);
        let words: Vec<_> = line.split(' ').collect();
        let mut out = Vec::new();
        if let Some(mut principal) = self.forwarder.principal_mut(kind) {
            let done = match delete {
                true => principal.delete(Instant::ZERO, &words, &mut out),
                false => principal.set(Instant::ZERO, &words, &mut out),
            };
            drop(done);
        }
        self.note(kind, out);
        format!("delete {delete} {line}")
    }

    fn table_statement(&mut self, kind: XidType) -> String {
        let xid = self.xid(kind);
        match self.random.below(4) {
            0 => format!("local {xid}"),
            // A link of a zFilter has one gateway in each statement.
            _ if kind == XidType::ZF => format!("route {xid} via {}", self.any_xid()),
            _ => self.route_statement(kind),
        }
    }

    /// A route of an XID, to one gateway or several or nowhere, or the default.
    fn route_statement(&mut self, kind: XidType) -> String {
        let xid = self.xid(kind);
        match self.random.below(8) {
            0 => format!("route default via {}", self.gateways()),
            1 => format!("route {xid} unreachable"),
            _ => format!("route {xid} via {}", self.gateways()),
        }
    }

    /// One gateway or several; now and then one is there twice, which is refused.
    fn gateways(&mut self) -> String {
        let count = [1, 1, 2, 2, 3, 5][self.random.below(6) as usize];
        let all: Vec<_> = (0..count).map(|_| self.any_xid().to_string()).collect();
        all.join(" ")
    }

    /// A routing protocol has found ways to an XID, or lost them.
    fn learn(&mut self) -> String {
        let xid = self.any_xid();
        let count = self.random.below(5);
        let via: Vec<_> = (0..count).map(|_| self.any_xid()).collect();
        if let Some(mut principal) = self.forwarder.principal_mut(xid.kind) {
            principal.learn(xid, &via);
        }
        format!("learn {xid} via {via:?}")
    }

    fn prefix_statement(&mut self) -> String {
        let len = [0, 8, 16, 24, 32][self.random.below(5) as usize];
        let (second, third) = (self.random.below(2), self.random.below(2));
        let prefix = match len {
            0 => "0.0.0.0/0".to_owned(),
            8 => "10.0.0.0/8".to_owned(),
            16 => format!("10.{second}.0.0/16"),
            24 => format!("10.{second}.{third}.0/24"),
            _ => format!("10.{second}.{third}.1/32"),
        };
        match self.random.below(4) {
            0 => format!("local {prefix}"),
            1 if self.random.chance(1, 3) => format!("route {prefix} unreachable"),
            _ => format!("route {prefix} via {}", self.gateways()),
        }
    }

    fn tell(&mut self, kind: XidType, input: Input) {
        let mut out = Vec::new();
        if let Some(mut principal) = self.forwarder.principal_mut(kind) {
            principal.handle(Instant::ZERO, input, &mut out);
        }
        self.note(kind, out);
    }

    fn note(&mut self, kind: XidType, outputs: Vec<Output>) {
        self.asked.extend(outputs.into_iter().filter_map(|output| match output {
            Output::OpenPort { token, .. } => Some((kind, token)),
            _ => None,
        }));
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

fn up(name: &str, port: PortId, mac: [u8; 6]) -> Input {
    let info = PortInfo { mac, mtu: MTU, local: None };
    Input::InterfaceUp { name: name.to_owned(), port, info }
}
