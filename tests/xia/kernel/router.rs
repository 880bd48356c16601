//! A router twice: as the portable engine, and as the kernel's.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::time::Duration;

use weft_base::{Instant, LinkAddress, PortId, Random};
use weft_ebpf::XdpVerdict;
use weft_port::PortInfo;
use weft_xia_kernel::{
    COUNTERS, Decision, HopId, Mirror, Neighbour, PassLimit, PortProgram, Slot, TableSizes, Tables,
};
use weft_xip::forward::{Decision as Cached, Egress, Forwarder, Framing, Limits, Verdict};
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
    program: PortProgram,
    mirror: Mirror,
}

impl Router {
    pub(super) fn new() -> Self {
        let tables = Tables::create(&TableSizes::default()).unwrap();
        let program = PortProgram::load(&tables, mac(0)).unwrap();
        let mut mirror = Mirror::new(tables).unwrap();
        for side in 0..SIDES.len() {
            mirror.set_port(slot(side), mac(side), MTU).unwrap();
            mirror.set_egress(slot(side), LOOPBACK).unwrap();
            let neighbour = Neighbour { slot: slot(side), mac: [2, 0, 0, 0, 0, 1 + side as u8] };
            mirror.set_hop(hop(side), Some(neighbour)).unwrap();
        }
        Self { forwarder: forwarder(), program, mirror }
    }

    /// Gives the kernel what the portable engine has decided, and takes from it what that has forgotten.
    pub(super) fn take_over(&mut self) {
        self.mirror.clear().unwrap();
        for entry in self.forwarder.cached().filter(|entry| entry.received) {
            let edge = entry.slot;
            let decision = match entry.decision {
                Cached::Through => Decision::Through { edge },
                Cached::Drop(_) => Decision::Drop,
                Cached::Forward(to) => match SIDES.iter().position(|side| *side == to.port) {
                    Some(side) => {
                        let link = LinkAddress::Mac([2, 0, 0, 0, 0, 1 + side as u8]);
                        assert_eq!(to.link, link);
                        Decision::Forward { edge, hop: hop(side) }
                    }
                    None => continue,
                },
                Cached::Deliver(_) => continue,
            };
            self.mirror.set(entry.edges.len(), [(&entry.edges[..], decision)]).unwrap();
        }
        assert_eq!(self.mirror.statistics().refused, 0);
    }

    /// What the kernel does with a frame.
    pub(super) fn kernel(&self, frame: &[u8]) -> (XdpVerdict, Vec<u8>) {
        self.program.run(frame).unwrap()
    }

    /// What the portable engine sends for a frame that comes in on the first side, as a node does it.
    pub(super) fn portable(&mut self, frame: &[u8]) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        if frame.starts_with(&mac(0)) {
            let packet = received(&frame[HEADER.len()..]);
            self.forwarder.route(Instant::ZERO, packet, &mut verdicts);
        }
        verdicts
    }

    /// Compares what both do with a frame.
    pub(super) fn check(&mut self, frame: &[u8]) -> XdpVerdict {
        let (verdict, after) = self.kernel(frame);
        let sent = self.portable(frame);
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

    /// What the kernel has counted.
    pub(super) fn counted(&self) -> BTreeMap<&'static str, u64> {
        let counters = self.mirror.tables().counters().unwrap();
        COUNTERS.iter().map(|counter| counter.name).zip(counters).collect()
    }

    /// The packets that the kernel has treated by the decision for these edges.
    pub(super) fn packets(&self, edges: &[Xid]) -> Option<u64> {
        self.mirror.packets(edges).unwrap()
    }

    pub(super) fn move_neighbour(&mut self, side: usize, mac: [u8; 6]) -> [u8; 6] {
        let neighbour = Neighbour { slot: slot(side), mac };
        self.mirror.set_hop(hop(side), Some(neighbour)).unwrap();
        mac
    }

    pub(super) fn lose_neighbour(&mut self, side: usize) {
        self.mirror.set_hop(hop(side), None).unwrap();
    }

    /// Lets the kernel pass on this many frames and then no more.
    pub(super) fn limit_passing(&self, burst: Option<u32>) {
        let interval = Duration::from_secs(24 * 60 * 60);
        self.program.limit(burst.map(|burst| PassLimit { interval, burst }));
    }
}

fn slot(side: usize) -> Slot {
    Slot(NonZeroU16::MIN.saturating_add(side as u16))
}

fn hop(side: usize) -> HopId {
    HopId(side as u32)
}

fn forwarder() -> Forwarder {
    let random = Random::from_seed(1);
    let mut forwarder = Forwarder::new(Limits::default(), random.fork("forwarder"));
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
