//! A router twice: as the portable engine, and as the kernel's.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use weft_base::{Counters, Instant, PortId, Random, Reason};
use weft_ebpf::{Egress as Leaving, EngineProgram, EngineTables, PortSocket, Slot, XdpVerdict};
use weft_port::PortInfo;
use weft_xia_kernel::{COUNTERS, Mirror, TableSizes, engine};
use weft_xip::forward::{
    DropReason, Egress, Forwarder, Framing, Limits, SlowPathLimit, Verdict, Verdicts,
};
use weft_xip::offload::{Engine, Offload, Tally};
use weft_xip::principal::{Input, Output, SocketId};
use weft_xip::{Xid, XidType};

use super::received;

pub(super) const SIDES: [PortId; 2] = [PortId(1), PortId(2)];
const TUNNEL: PortId = PortId(3);
const MTU: u32 = 1500;
/// The interface that is in every network namespace; nothing is really sent to it.
const LOOPBACK: u32 = 1;

/// The link header of frames that come in on the first side.
pub(super) const HEADER: [u8; 14] = [0x52, 0x54, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 1, 0xc0, 0xde];

/// XIDs about which the router has something to say.
pub(super) const KNOWN: [&str; 10] = [
    "hid-973e0e9f67ff49823eddd7e9af3004651e7f2f4b",
    "hid-1111111111111111111111111111111111111111",
    "hid-2222222222222222222222222222222222222222",
    "hid-2222222222222222222222222222222222222222",
    "ad-000102030405060708090a0b0c0d0e0f00000001",
    "ad-0a80000000000000000000000000000000000000",
    "ad-5555555555555555555555555555555555555555",
    "xdp-7777777777777777777777777777777777777777",
    "xdp-8888888888888888888888888888888888888888",
    "zf-0000000000000000000000000000000000000003",
];

/// The neighbours: one on each side.
pub(super) const NEIGHBOURS: [Xid; 2] =
    [Xid::new(XidType::HID, [0x11; 20]), Xid::new(XidType::HID, [0x22; 20])];

/// The router of the capture; two domains are redirected to each other.
const STATEMENTS: [(&str, &str); 11] = [
    ("hid", "local hid-973e0e9f67ff49823eddd7e9af3004651e7f2f4b"),
    (
        "hid",
        "neighbour hid-1111111111111111111111111111111111111111 link 02:00:00:00:00:01 interface side1",
    ),
    (
        "hid",
        "neighbour hid-2222222222222222222222222222222222222222 link 02:00:00:00:00:02 interface side2",
    ),
    ("ad", "local ad-000102030405060708090a0b0c0d0e0f00000001"),
    (
        "ad",
        "route ad-0a80000000000000000000000000000000000000 via hid-2222222222222222222222222222222222222222",
    ),
    (
        "ad",
        "route ad-5555555555555555555555555555555555555555 via ad-6666666666666666666666666666666666666666",
    ),
    (
        "ad",
        "route ad-6666666666666666666666666666666666666666 via ad-5555555555555555555555555555555555555555",
    ),
    ("u4id", "tunnel 10.99.0.3:13781"),
    (
        "zf",
        "route zf-0000000000000000000000000000000000000001 via hid-2222222222222222222222222222222222222222",
    ),
    (
        "zf",
        "route zf-0000000000000000000000000000000000000002 via hid-1111111111111111111111111111111111111111",
    ),
    ("zf", "local zf-0000000000000000000000000000000000000010"),
];

pub(super) fn xid(text: &str) -> Xid {
    text.parse().unwrap()
}

fn mac(side: usize) -> [u8; 6] {
    [0x52, 0x54, 0, 0, 0, 0x11 + side as u8]
}

/// Both engines, and the tables between them.
pub(super) struct Router {
    forwarder: Forwarder,
    tables: EngineTables,
    program: EngineProgram,
    mirror: Mirror,
    /// What the portable engine has counted of frames that the kernel did not pass on.
    expected: Tally,
}

impl Router {
    pub(super) fn new() -> Self {
        Self::with(TableSizes::default())
    }

    pub(super) fn with(sizes: TableSizes) -> Self {
        Self::of(forwarder(Limits::default()), sizes)
    }

    /// One that tells sources of packets that it drops.
    pub(super) fn with_errors() -> Self {
        let errors = Some(SlowPathLimit { per_second: 1000, burst: 1000 });
        Self::of(forwarder(Limits { errors, ..Limits::default() }), TableSizes::default())
    }

    fn of(mut forwarder: Forwarder, sizes: TableSizes) -> Self {
        let (engine, mirror) = (engine(&sizes), Mirror::new(sizes));
        let tables = EngineTables::create(&engine).unwrap();
        let program =
            EngineProgram::load(&engine, &tables, mac(0), PortSocket::none().unwrap()).unwrap();
        for side in 0..SIDES.len() {
            let leaving = Leaving { interface: LOOPBACK, mac: mac(side), mtu: MTU };
            tables.set_egress(slot(side), Some(leaving)).unwrap();
        }
        forwarder.set_offloading(Some(mirror.room()));
        Self { forwarder, tables, program, mirror, expected: Tally::default() }
    }

    /// Tells the kernel what has changed in the portable engine's cache. Returns how much that was.
    pub(super) fn follow(&mut self) -> usize {
        let (mut changes, mut writes) = (Vec::new(), Vec::new());
        self.forwarder.drain_offloads(usize::MAX, &mut changes);
        changes.iter().for_each(|change| self.write(change, &mut writes));
        changes.len()
    }

    fn write(&mut self, change: &Offload, writes: &mut Vec<(usize, weft_ebpf::MapWrite)>) {
        let slot = |port| SIDES.iter().position(|side| *side == port).map(slot);
        self.mirror.write(change, &slot, writes);
        for (table, write) in writes.drain(..) {
            assert!(self.tables.own()[table].write(&write).unwrap(), "there is room");
        }
    }

    /// Gives the principal of type `kind` a statement, or takes one from it.
    pub(super) fn change(&mut self, kind: XidType, line: &str, delete: bool) {
        let words: Vec<_> = line.split(' ').collect();
        let mut principal = self.forwarder.principal_mut(kind).unwrap();
        let mut out = Vec::new();
        // What is there already, or not any more, is no matter here.
        let _ = match delete {
            true => principal.delete(Instant::ZERO, &words, &mut out),
            false => principal.set(Instant::ZERO, &words, &mut out),
        };
    }

    /// Decisions that the kernel has.
    pub(super) fn offloaded(&self) -> usize {
        self.forwarder.cache_size().offloaded
    }

    /// What the kernel does with a frame.
    pub(super) fn kernel(&self, frame: &[u8]) -> (XdpVerdict, Vec<u8>) {
        self.program.run(frame).unwrap()
    }

    /// What the portable engine sends for a frame that comes in on the first side, as a node does it.
    pub(super) fn portable(&mut self, frame: &[u8]) -> Vec<Verdict> {
        let mut verdicts = Verdicts::new();
        if frame.starts_with(&mac(0)) {
            let packet = received(&frame[HEADER.len()..]);
            self.forwarder.route(Instant::ZERO, packet, &mut verdicts);
        }
        verdicts.drain().collect()
    }

    /// Compares what both do with a frame.
    pub(super) fn check(&mut self, frame: &[u8]) -> XdpVerdict {
        let (verdict, after) = self.kernel(frame);
        let before = self.forwarder.drops().clone();
        let sent = self.portable(frame);
        if verdict != XdpVerdict::Pass {
            self.expect(&before, &sent);
        }
        match verdict {
            XdpVerdict::Pass => assert_eq!(after, frame),
            XdpVerdict::Drop => assert_eq!(sent, [], "{frame:02x?}"),
            XdpVerdict::Redirect => match &sent[..] {
                [Verdict::Transmit { packet, .. }] => assert_eq!(packet.bytes(), after),
                other => panic!("the kernel sends what is {other:?}: {frame:02x?}"),
            },
            other => panic!("{other:?}: {frame:02x?}"),
        }
        verdict
    }

    /// Counts what the portable engine has done with a frame that the kernel has not passed on.
    fn expect(&mut self, before: &Counters<DropReason>, sent: &[Verdict]) {
        self.expected.forwarded += sent.len() as u64;
        for reason in DropReason::ALL {
            let new = self.forwarder.drops().get(*reason) - before.get(*reason);
            match self.expected.drops.iter_mut().find(|(known, _)| known == reason) {
                Some((_, count)) => *count += new,
                None if new > 0 => self.expected.drops.push((*reason, new)),
                None => {}
            }
        }
        self.expected.drops.sort();
    }

    /// What the kernel has done in the counters of the portable engine is what that has counted itself.
    pub(super) fn check_tally(&self) -> &Tally {
        let counters = self.tables.own()[self.mirror.counters().0].sums().unwrap();
        assert_eq!(self.mirror.tally(&counters), self.expected);
        &self.expected
    }

    /// What the kernel has counted.
    pub(super) fn counted(&self) -> BTreeMap<&'static str, u64> {
        let counters = self.tables.own()[self.mirror.counters().0].sums().unwrap();
        COUNTERS.iter().map(|(name, _)| *name).zip(counters).collect()
    }

    /// Lets the kernel pass on this many frames and then no more.
    pub(super) fn limit_passing(&mut self, burst: Option<u32>) {
        // As slow as a limit can be: one in a second.
        let limit = burst.map(|burst| SlowPathLimit { per_second: 1, burst });
        let mut writes = Vec::new();
        self.write(&Offload::Limit(limit), &mut writes);
    }
}

fn slot(side: usize) -> Slot {
    Slot(NonZeroU16::MIN.saturating_add(side as u16))
}

fn forwarder(limits: Limits) -> Forwarder {
    let random = Random::from_seed(1);
    let mut forwarder = Forwarder::new(limits, random.fork("forwarder"));
    for (side, port) in SIDES.into_iter().enumerate() {
        let framing = Framing::Ethernet { mac: mac(side) };
        forwarder.add_port(port, Egress { framing, mtu: MTU as usize });
    }
    forwarder.add_port(TUNNEL, Egress { framing: Framing::Bare, mtu: 1472 });
    let registry = weft::principals();
    for name in registry.names() {
        let mut principal = registry.make(name, &random).unwrap();
        for (side, port) in SIDES.into_iter().enumerate() {
            let info = PortInfo { mac: mac(side), mtu: MTU as usize, local: None };
            let input = Input::InterfaceUp { name: format!("side{}", side + 1), port, info };
            principal.handle(Instant::ZERO, input, &mut Vec::new());
        }
        let mut outputs = Vec::new();
        for (_, line) in STATEMENTS.iter().filter(|(of, _)| *of == name) {
            let words: Vec<_> = line.split(' ').collect();
            principal.set(Instant::ZERO, &words, &mut outputs).unwrap();
        }
        for output in outputs {
            if let Output::OpenPort { token, .. } = output {
                let info = PortInfo { mac: [0; 6], mtu: 1472, local: None };
                let input = Input::PortOpened { token, port: TUNNEL, info };
                principal.handle(Instant::ZERO, input, &mut Vec::new());
            }
        }
        forwarder.add_principal(principal);
    }
    let mut sockets = forwarder.principal_mut(XidType::XDP).unwrap();
    sockets.bind(xid(KNOWN[7]), SocketId(1)).unwrap();
    drop(sockets);
    forwarder
}
