//! Nodes on one Ethernet, without a driver: frames arrive at the instant in which they are sent.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use weft_base::{Instant, LinkAddress, Packet, PortId, Random, Token};
use weft_keys::PrivateKey;
use weft_port::{PortInfo, PortSpec};
use weft_wire::{EthernetFrame, MacAddr};
use weft_xip::principal::{Answer, Input, NextHop, Output, Principal};
use weft_xip::{Xid, XidType};

use crate::Hid;
use crate::nwp::{NwpMessage, NwpRepr};

pub(super) const XIP_PORT: PortId = PortId(10);
pub(super) const NWP_PORT: PortId = PortId(11);

pub(super) fn hid(id: u8) -> Xid {
    Xid::new(XidType::HID, [id; 20])
}

pub(super) fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

pub(super) fn info(mac: MacAddr) -> PortInfo {
    PortInfo { mac: mac.0, mtu: 1500, local: None }
}

pub(super) fn reached_at(mac: MacAddr) -> Answer {
    Answer::Forward(NextHop { port: XIP_PORT, link: LinkAddress::Mac(mac.0) })
}

/// One line per frame: time in milliseconds, sender, receiver, content.
pub(super) type Line = (u64, u8, MacAddr, NwpRepr);

/// A node with one interface `eth0`; its HID and its hardware address end in `id`.
pub(super) struct Node {
    pub(super) id: u8,
    /// Its identity.
    pub(super) own: Xid,
    pub(super) hid: Hid,
    pub(super) out: Vec<Output>,
}

impl Node {
    pub(super) fn new(id: u8) -> Self {
        let random = Random::from_seed(u64::from(id));
        Self { id, own: hid(id), hid: Hid::new(random), out: Vec::new() }
    }

    /// A node with a key, of which its HID is the hash.
    pub(super) fn keyed(id: u8) -> Self {
        let key = PrivateKey::from_seed([id; 32]);
        let mut node = Self::new(id);
        node.own = Xid::new(XidType::HID, key.public_key().hash().to_bytes());
        node.hid.take_key(&key);
        node
    }

    pub(super) fn set(&mut self, now: Instant, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        self.hid.set(now, &words, &mut self.out).unwrap();
    }

    pub(super) fn delete(&mut self, now: Instant, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        self.hid.delete(now, &words, &mut self.out).unwrap();
    }

    pub(super) fn handle(&mut self, now: Instant, input: Input) {
        self.hid.handle(now, input, &mut self.out);
    }

    pub(super) fn up(&mut self, now: Instant) {
        let info = info(mac(self.id));
        self.handle(now, Input::InterfaceUp { name: "eth0".into(), port: XIP_PORT, info });
    }

    pub(super) fn ask(&self, xid: Xid) -> Answer {
        self.hid.lookup(&xid, &mut Vec::new())
    }

    /// Grants the port that was asked for, which must be the only output.
    pub(super) fn grant(&mut self, now: Instant) {
        let token = self.asked();
        let info = info(mac(self.id));
        self.handle(now, Input::PortOpened { token, port: NWP_PORT, info });
    }

    pub(super) fn asked(&mut self) -> Token {
        match self.out.drain(..).as_slice() {
            [Output::OpenPort { token, spec: PortSpec::Ethernet { interface, ethertype } }] => {
                assert_eq!((interface.as_str(), *ethertype), ("eth0", 0xc0df));
                *token
            }
            other => panic!("expected one request for a port, got {other:?}"),
        }
    }

    pub(super) fn receive(&mut self, now: Instant, frame: &[u8]) {
        let packets = vec![Packet::from_slice(frame)];
        self.handle(now, Input::Packets { port: NWP_PORT, packets });
    }

    pub(super) fn count(&self, name: &str) -> u64 {
        self.hid.show()["counters"][name].as_u64().unwrap()
    }
}

/// Several nodes on one link.
pub(super) struct Link {
    pub(super) nodes: Vec<Node>,
    pub(super) now: Instant,
    pub(super) log: Vec<Line>,
    /// Nodes that neither hear nor say anything.
    pub(super) dead: BTreeSet<usize>,
    /// Nodes that drop what Linux XIA would drop.
    pub(super) plain: BTreeSet<usize>,
}

impl Link {
    pub(super) fn new(ids: &[u8]) -> Self {
        Self::of(ids.iter().map(|id| Node::new(*id)).collect())
    }

    pub(super) fn of(nodes: Vec<Node>) -> Self {
        let (dead, plain) = (BTreeSet::new(), BTreeSet::new());
        Self { nodes, now: Instant::ZERO, log: Vec::new(), dead, plain }
    }

    /// Node `index` gets its identity and its interface.
    pub(super) fn start(&mut self, index: usize) {
        let now = self.now;
        let node = &mut self.nodes[index];
        node.set(now, &format!("local {}", node.own));
        node.up(now);
        node.grant(now);
        self.carry();
    }

    /// Node `index` dies and begins anew, with nothing of what it knew.
    pub(super) fn restart(&mut self, index: usize) {
        self.nodes[index] = Node::new(self.nodes[index].id);
        self.start(index);
    }

    /// Carries frames until nobody says anything more.
    pub(super) fn carry(&mut self) {
        let mut frames: VecDeque<(usize, Packet)> = VecDeque::new();
        loop {
            for (sender, node) in self.nodes.iter_mut().enumerate() {
                for output in node.out.drain(..) {
                    match output {
                        Output::Transmit { port: NWP_PORT, packet } => {
                            frames.push_back((sender, packet));
                        }
                        Output::Report { .. } => {}
                        other => panic!("unexpected {other:?}"),
                    }
                }
            }
            let Some((sender, packet)) = frames.pop_front() else { return };
            self.deliver(sender, &packet);
        }
    }

    fn deliver(&mut self, sender: usize, packet: &Packet) {
        let frame = EthernetFrame::new_checked(packet.bytes()).unwrap();
        assert_eq!(frame.source(), mac(self.nodes[sender].id));
        let message = NwpRepr::parse(&NwpMessage::new_checked(frame.payload()).unwrap());
        let millis = self.now.as_nanos() / 1_000_000;
        self.log.push((millis, self.nodes[sender].id, frame.destination(), message));
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let is_for = frame.destination().is_broadcast() || frame.destination() == mac(node.id);
            let is_deaf =
                self.dead.contains(&index) || self.plain.contains(&index) && frame.payload()[1] > 2;
            if index != sender && is_for && !is_deaf && node.hid.deadline().is_some() {
                node.receive(self.now, packet.bytes());
            }
        }
    }

    /// Lets time pass, with a tick for each deadline exactly when it comes.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        let deadline = |(index, node): (usize, &Node), dead: &BTreeSet<usize>| {
            node.hid.deadline().filter(|_| !dead.contains(&index))
        };
        while let Some(next) =
            self.nodes.iter().enumerate().filter_map(|node| deadline(node, &self.dead)).min()
        {
            if next > end {
                break;
            }
            self.now = next;
            for (index, node) in self.nodes.iter_mut().enumerate() {
                if deadline((index, node), &self.dead).is_some_and(|deadline| deadline <= next) {
                    node.handle(next, Input::Tick);
                }
            }
            self.carry();
        }
        self.now = end;
    }
}

pub(super) fn announcement(id: u8) -> NwpRepr {
    NwpRepr::Announcement { hardware_address: mac(id), hids: vec![hid(id)] }
}
