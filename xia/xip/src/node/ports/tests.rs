//! Interfaces whose MAC address and MTU change while they carry packets.

use std::num::NonZeroU16;

use serde_json::{Value, json};
use weft_base::{Instant, LinkAddress, Packet, PortId, Random, Token};
use weft_config::Document;
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{
    Action, Component, EngineReply, EngineRequest, Event, Interface, InterfaceChange, MapShape,
    MapWrite, Slot, XdpMode,
};

use crate::forward::DropReason;
use crate::node::{Node, PacketIo, Plan, Registry, Scope, Settings};
use crate::offload::{Edges, Engine, Offload, OffloadRoom, Tally};
use crate::principal::{Answer, Branch, Input, NextHop, Output, Principal};
use crate::words::WordError;
use crate::{Address, Xid, XidType, XipRepr};

const NOW: Instant = Instant::ZERO;
pub(in crate::node) const PORT: PortId = PortId(10);
const NEIGHBOUR: [u8; 6] = [2, 0, 0, 0, 0, 7];
const OLD: [u8; 6] = [2, 0, 0, 0, 0, 1];
const NEW: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A principal with one neighbour, which shows what it was told of interfaces.
#[derive(Default)]
struct Hosts {
    told: Vec<Value>,
}

impl Principal for Hosts {
    fn kind(&self) -> XidType {
        XidType::HID
    }

    fn lookup(&self, _: &Xid, _: &mut Vec<Branch>) -> Answer {
        Answer::Forward(NextHop { port: PORT, link: LinkAddress::Mac(NEIGHBOUR) })
    }

    fn handle(&mut self, _: Instant, input: Input, _: &mut Vec<Output>) {
        match input {
            Input::InterfaceUp { name, port, info } => {
                self.told.push(json!([name, port.0, info.mac[5], info.mtu]));
            }
            Input::InterfaceDown { port } => self.told.push(json!(port.0)),
            _ => {}
        }
    }

    fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Ok(())
    }

    fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Ok(())
    }

    fn show(&self) -> Value {
        json!(self.told)
    }
}

/// An engine whose one table says for each neighbour whether the engine reaches it.
struct Reachable;

impl Engine for Reachable {
    fn name(&self) -> &'static str {
        "reachable"
    }

    fn set_memory(&mut self, _: usize) {}

    fn most(&self) -> Vec<u32> {
        Vec::new()
    }

    fn tables(&self) -> Vec<MapShape> {
        Vec::new()
    }

    fn room(&self) -> OffloadRoom {
        OffloadRoom { decisions: [8; 4], hops: 8 }
    }

    fn write(
        &mut self,
        change: &Offload,
        slot: &dyn Fn(PortId) -> Option<Slot>,
        out: &mut Vec<(usize, MapWrite)>,
    ) {
        match change {
            Offload::Hop { id, hop } => {
                let word = u64::from(hop.is_some_and(|hop| slot(hop.port).is_some()));
                out.push((0, MapWrite::Store { index: *id, word }));
            }
            // Decisions are counted, and not written.
            Offload::Set { .. } => out.push((1, MapWrite::Clear)),
            _ => {}
        }
    }

    /// Of one host, whose number the key is.
    fn edges(&self, table: usize, key: &[u64]) -> Option<Edges> {
        let host = |number: &u64| Xid::new(XidType::HID, [*number as u8; 20]);
        (table == 1).then(|| key.iter().map(host).collect())
    }

    fn counters(&self) -> (usize, &'static [(&'static str, &'static str)]) {
        (0, &[])
    }

    fn tally(&self, _: &[u64]) -> Tally {
        Tally::default()
    }
}

/// A node with the interface eth0.
pub(in crate::node) struct World {
    pub(in crate::node) node: Node,
}

fn info(mac: [u8; 6], mtu: usize) -> PortInfo {
    PortInfo { mac, mtu, local: None }
}

/// The only request for a port.
fn asked(actions: &[Action]) -> (Token, PortSpec) {
    let mut asked = actions.iter().filter_map(|action| match action {
        Action::OpenPort { token, spec } => Some((*token, spec.clone())),
        _ => None,
    });
    let found = asked.next().expect("a port is asked for");
    assert_eq!(asked.next(), None);
    found
}

/// The requests for the engine.
pub(in crate::node) fn engine_requests(actions: Vec<Action>) -> Vec<(Token, EngineRequest)> {
    let requests = actions.into_iter().filter_map(|action| match action {
        Action::Engine { token, request } => Some((token, request)),
        _ => None,
    });
    requests.collect()
}

/// What is written into the engine's tables.
fn written(actions: &[Action]) -> Vec<u64> {
    let writes = actions.iter().filter_map(|action| match action {
        Action::WriteTables { writes, .. } => Some(writes),
        _ => None,
    });
    let word = |write: &(usize, MapWrite)| match write {
        (0, MapWrite::Store { word, .. }) => Some(*word),
        (1, MapWrite::Clear) => None,
        other => panic!("unexpected {other:?}"),
    };
    writes.flatten().filter_map(word).collect()
}

/// The engine's tables are there.
pub(in crate::node) fn opened() -> EngineReply {
    EngineReply::Opened { tables: Vec::new(), keep: Vec::new(), release: Vec::new() }
}

impl World {
    /// Its port has not been opened yet; also what the node does when it starts.
    fn starting(packet_io: PacketIo) -> (Self, Vec<Action>) {
        let settings = Settings {
            name: "n".to_owned(),
            socket: "n".into(),
            limits: Default::default(),
            echo: false,
            packet_io,
            scope: Scope::default(),
            operator: 0,
            key: None,
        };
        let registry = Registry::new()
            .with("hid", |_| Box::new(Hosts::default()))
            .with_engine(|| Box::new(Reachable));
        let mut node = Node::new(settings, registry, Random::from_seed(1));
        node.add_principal(NOW, "hid", &mut Vec::new()).unwrap();
        node.add_interface("eth0").unwrap();
        let mut world = Self { node };
        let actions = world.event(Event::Start);
        (world, actions)
    }

    pub(in crate::node) fn new(packet_io: PacketIo) -> Self {
        let (mut world, actions) = Self::starting(packet_io);
        assert!(actions.iter().any(|action| matches!(action, Action::WatchInterfaces)));
        let (token, _) = asked(&actions);
        world.event(Event::PortOpened { token, port: PORT, info: info(OLD, 1500) });
        world
    }

    pub(in crate::node) fn event(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.node.handle(NOW, event, &mut out);
        out
    }

    /// An interface is said to have this address and MTU.
    fn tell(&mut self, name: &str, mac: [u8; 6], mtu: u32) -> Vec<Action> {
        let change = InterfaceChange::Changed(Interface {
            index: 3,
            name: name.to_owned(),
            kind: "ethernet".to_owned(),
            mac: Some(mac),
            mtu,
            up: true,
            running: true,
            master: None,
            addresses: Default::default(),
        });
        self.event(Event::Interface { change })
    }

    /// A packet of this length comes in; what leaves for it.
    pub(in crate::node) fn forward(&mut self, len: usize) -> Vec<Packet> {
        self.forward_to(9, len)
    }

    /// The same to another host.
    pub(in crate::node) fn forward_to(&mut self, host: u8, len: usize) -> Vec<Packet> {
        let address = Address::scoping(&[Xid::new(XidType::HID, [host; 20])]).unwrap();
        let payload_len = len - XipRepr::new(address, None, 0).buffer_len();
        let repr = XipRepr::new(address, None, payload_len as u16);
        let mut packet = Packet::from_slice(&vec![0; payload_len]);
        repr.emit(packet.push_front(repr.buffer_len())).unwrap();
        packet.push_front(14).copy_from_slice(&[2; 14]);
        packet.meta.port = PORT;
        let actions = self.event(Event::Packets { port: PORT, packets: vec![packet] });
        let sent = actions.into_iter().filter_map(|action| match action {
            Action::Transmit { packet, .. } => Some(packet),
            _ => None,
        });
        sent.collect()
    }

    fn too_big(&self) -> u64 {
        self.node.forwarder.drops().get(DropReason::TooBig)
    }

    /// What the principal was told of interfaces.
    fn told(&self) -> Value {
        self.node.forwarder.principal(XidType::HID).unwrap().show()
    }

    /// Uses the kernel's engine, which is attached to the interface.
    pub(in crate::node) fn attached(&mut self) {
        let mut out = Vec::new();
        self.node.set_engine(super::super::engine::mode("auto").unwrap(), &mut out);
        let [(token, EngineRequest::Open { .. })] = engine_requests(out)[..] else { panic!() };
        let opened = opened();
        let actions = self.event(Event::EngineAnswered { token, result: Ok(opened) });
        let [Action::AdoptTables { token, .. }] = actions[..] else { panic!("{actions:?}") };
        let actions = self.event(Event::TablesAdopted { token, result: Ok(()) });
        let [(token, EngineRequest::Attach { mac: OLD, mtu: 1500, .. })] =
            engine_requests(actions)[..]
        else {
            panic!()
        };
        self.answer_attach(token);
    }

    pub(in crate::node) fn answer_attach(&mut self, token: Token) -> Vec<Action> {
        let (slot, mode) = (Slot(NonZeroU16::MIN), XdpMode::Generic);
        let (fallback, keep, release) = (None, Vec::new(), Vec::new());
        let attached = EngineReply::Attached { slot, mode, fallback, keep, release };
        self.event(Event::EngineAnswered { token, result: Ok(attached) })
    }
}

#[test]
fn another_mtu_holds_for_the_next_packet() {
    let mut world = World::new(PacketIo::Packet);
    assert_eq!((world.forward(1500).len(), world.forward(1501).len()), (1, 0));
    assert_eq!(world.too_big(), 1);
    world.tell("eth0", OLD, 1400);
    assert_eq!((world.forward(1400).len(), world.forward(1401).len()), (1, 0));
    assert_eq!(world.too_big(), 2);
    world.tell("eth0", OLD, 9000);
    assert_eq!((world.forward(9000).len(), world.forward(9001).len()), (1, 0));
    assert_eq!(world.too_big(), 3);
}

#[test]
fn packets_leave_from_the_address_that_the_interface_has() {
    let mut world = World::new(PacketIo::Packet);
    let from = |world: &mut World| world.forward(100)[0].bytes()[6..12].to_vec();
    assert_eq!(from(&mut world), OLD);
    world.tell("eth0", NEW, 1500);
    assert_eq!(from(&mut world), NEW);
}

#[test]
fn principals_are_told_what_is_different_and_of_nothing_else() {
    let mut world = World::new(PacketIo::Packet);
    assert!(world.tell("eth0", OLD, 1500).is_empty());
    assert!(world.tell("eth1", NEW, 1400).is_empty());
    world.tell("eth0", OLD, 1400);
    world.tell("eth0", NEW, 1400);
    let up = |mac: u8, mtu: u32| json!(["eth0", PORT.0, mac, mtu]);
    assert_eq!(world.told(), json!([up(1, 1500), up(1, 1400), up(2, 1400)]));
    // Who comes later is told the same.
    world.node.remove_principal(NOW, "hid", &mut Vec::new()).unwrap();
    world.node.add_principal(NOW, "hid", &mut Vec::new()).unwrap();
    assert_eq!(world.told(), json!([up(2, 1400)]));
}

#[test]
fn what_was_told_while_a_port_was_opened_holds() {
    let (mut world, actions) = World::starting(PacketIo::Packet);
    let (token, _) = asked(&actions);
    world.tell("eth0", NEW, 1400);
    world.event(Event::PortOpened { token, port: PORT, info: info(OLD, 1500) });
    assert_eq!(world.told()[1], json!(["eth0", PORT.0, 2, 1400]));
    // What was told before it was asked for is older than what the port says.
    world.event(Event::PortLost { port: PORT, error: "down".to_owned() });
    world.tell("eth0", OLD, 1300);
    let mut out = Vec::new();
    world.node.handle(world.node.deadline().unwrap(), Event::Tick, &mut out);
    let (token, _) = asked(&out);
    world.event(Event::PortOpened { token, port: PORT, info: info(OLD, 1500) });
    assert_eq!(world.forward(1500).len(), 1);
}

#[test]
fn the_engine_takes_note_where_it_is_and_forwards_on() {
    let mut world = World::new(PacketIo::Packet);
    world.attached();
    (0..3).for_each(|_| drop(world.forward(100)));
    let requests = engine_requests(world.tell("eth0", NEW, 1400));
    let [(token, EngineRequest::Attach { mac: NEW, mtu: 1400, .. })] = requests[..] else {
        panic!("{requests:?}")
    };
    // Neither before nor afterwards a neighbour is one that it does not reach.
    world.node.forwarder.offload_hops();
    let before = written(&world.event(Event::Slice));
    let afterwards = written(&world.answer_attach(token));
    assert_eq!((before, afterwards), (vec![1], vec![1]));
    assert_eq!(world.node.show_forwarding(&[])["interfaces"][0]["engine"], "generic");
}

#[test]
fn an_engine_that_takes_no_note_is_detached() {
    let mut world = World::new(PacketIo::Packet);
    world.attached();
    (0..3).for_each(|_| drop(world.forward(100)));
    let requests = engine_requests(world.tell("eth0", OLD, 1400));
    let [(token, EngineRequest::Attach { .. })] = requests[..] else { panic!("{requests:?}") };
    let actions =
        world.event(Event::EngineAnswered { token, result: Err("no such device".to_owned()) });
    assert_eq!(written(&actions), [0]);
    let requests = engine_requests(actions);
    assert!(matches!(requests[..], [(_, EngineRequest::Detach { .. })]), "{requests:?}");
    let shown = world.node.show_forwarding(&[]);
    assert_eq!(shown["interfaces"][0]["trouble"], "no such device");
    // It may be possible with the next MTU.
    let requests = engine_requests(world.tell("eth0", OLD, 1300));
    let [(token, EngineRequest::Attach { mtu: 1300, .. })] = requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(written(&world.answer_attach(token)), [1]);
}

#[test]
fn an_engine_that_is_being_attached_is_told_the_latest() {
    let mut world = World::new(PacketIo::Packet);
    let mut out = Vec::new();
    world.node.set_engine(super::super::engine::mode("auto").unwrap(), &mut out);
    let [(token, EngineRequest::Open { .. })] = engine_requests(out)[..] else { panic!() };
    assert!(engine_requests(world.tell("eth0", OLD, 1400)).is_empty());
    let opened = opened();
    let actions = world.event(Event::EngineAnswered { token, result: Ok(opened) });
    let [Action::AdoptTables { token, .. }] = actions[..] else { panic!("{actions:?}") };
    let requests = engine_requests(world.event(Event::TablesAdopted { token, result: Ok(()) }));
    let [(first, EngineRequest::Attach { mtu: 1400, .. })] = requests[..] else {
        panic!("{requests:?}")
    };
    let requests = engine_requests(world.tell("eth0", OLD, 1300));
    let [(second, EngineRequest::Attach { mtu: 1300, .. })] = requests[..] else {
        panic!("{requests:?}")
    };
    assert!(world.answer_attach(first).is_empty());
    assert!(!world.answer_attach(second).is_empty());
}

/// Has a port of AF_XDP replaced, and returns the token of the other one.
fn replaced(world: &mut World) -> Token {
    let actions = world.tell("eth0", OLD, 9000);
    let is_closed = |action: &Action| matches!(action, Action::ClosePort { port: PORT });
    assert!(actions.iter().any(is_closed), "{actions:?}");
    let (token, spec) = asked(&actions);
    assert!(matches!(spec, PortSpec::Xdp { .. }), "{spec}");
    token
}

#[test]
fn a_port_of_af_xdp_is_replaced_at_once_and_the_interface_stays_up() {
    let up = |port: u32, mtu: u32| json!(["eth0", port, 1, mtu]);
    for io in [PacketIo::Xdp, PacketIo::Auto] {
        let mut world = World::new(io);
        let token = replaced(&mut world);
        world.event(Event::PortOpened { token, port: PortId(11), info: info(OLD, 9000) });
        assert_eq!(world.told(), json!([up(10, 1500), up(11, 9000)]));
        world.event(Event::PortLost { port: PortId(11), error: "gone".to_owned() });
        assert_eq!(world.told()[2], 11);
    }
    // Packet sockets take its place.
    let mut world = World::new(PacketIo::Auto);
    let token = replaced(&mut world);
    let (token, _) = asked(&world.event(Event::PortFailed { token, error: "long".to_owned() }));
    world.event(Event::PortOpened { token, port: PortId(11), info: info(OLD, 9000) });
    assert_eq!(world.told(), json!([up(10, 1500), up(11, 9000)]));
}

#[test]
fn an_interface_whose_port_is_closed_and_not_replaced_is_down() {
    let mut world = World::new(PacketIo::Xdp);
    let token = replaced(&mut world);
    world.event(Event::PortFailed { token, error: "long".to_owned() });
    assert_eq!(world.told()[1], 10);
    let mut world = World::new(PacketIo::Xdp);
    replaced(&mut world);
    world.node.remove_interface(NOW, "eth0", &mut Vec::new()).unwrap();
    assert_eq!(world.told()[1], 10);
}

/// What a commit does that changes `old` to `new`.
fn commit(world: &mut World, old: &str, new: &str) -> Vec<Action> {
    let plan = |text| Plan::of(Document::parse("t", text).unwrap().statements());
    let mut out = Vec::new();
    world.node.change_plan(NOW, &plan(old), &plan(new), &mut out).unwrap();
    out
}

fn is_closing(actions: &[Action], closed: PortId) -> bool {
    let closes = |action: &Action| matches!(action, Action::ClosePort { port } if *port == closed);
    actions.iter().any(closes)
}

#[test]
fn a_commit_has_packets_come_and_go_another_way() {
    let up = |port: u32| json!(["eth0", port, 1, 1500]);
    let mut world = World::new(PacketIo::Packet);
    let actions = commit(&mut world, "", "packet-io auto;");
    assert!(is_closing(&actions, PORT), "{actions:?}");
    let (token, spec) = asked(&actions);
    assert!(matches!(spec, PortSpec::Xdp { .. }), "{spec}");
    world.event(Event::PortOpened { token, port: PortId(11), info: info(OLD, 1500) });
    assert_eq!(world.told(), json!([up(10), up(11)]), "it was never down");
    let actions = commit(&mut world, "packet-io auto;", "packet-io xdp;");
    assert!(!is_closing(&actions, PortId(11)), "it is AF_XDP already: {actions:?}");
    let actions = commit(&mut world, "packet-io xdp;", "");
    assert!(is_closing(&actions, PortId(11)), "{actions:?}");
    let (token, spec) = asked(&actions);
    assert!(matches!(spec, PortSpec::Ethernet { .. }), "{spec}");
    world.event(Event::PortOpened { token, port: PortId(12), info: info(OLD, 1500) });
    assert_eq!(world.told()[2], up(12));
}

#[test]
fn a_port_that_is_being_opened_the_way_before_is_closed_when_it_comes() {
    let (mut world, actions) = World::starting(PacketIo::Packet);
    let (before, _) = asked(&actions);
    let (token, _) = asked(&commit(&mut world, "", "packet-io xdp;"));
    world.event(Event::PortOpened { token, port: PortId(11), info: info(OLD, 1500) });
    let late = Event::PortOpened { token: before, port: PORT, info: info(OLD, 1500) };
    assert!(is_closing(&world.event(late), PORT));
    assert_eq!(world.told(), json!([["eth0", 11, 1, 1500]]));
}
