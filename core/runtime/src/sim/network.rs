//! The network of a world: frames from interface to interface, and from there to listeners.
//!
//! The way of a frame: [`Network::transmit`] gives it to the interface's transmitter; when the agenda
//! calls, [`Network::arrive`] takes it off the wire, [`Network::receive`] hashes it, filters it as a
//! network card does and gives it to the Ethernet ports and to the node's IPv4 (`ip.rs`). What
//! reaches a port is left in [`Network::deliveries`] for the world to hand over.

use weft_base::{Counters, Instant, Meta, Packet, PortId, Random};
use weft_wire::{ETHERNET_HEADER_LEN, EtherType, EthernetFrame, MacAddr};

use super::agenda::{Clock, Due};
use super::hash::TraceHash;
use super::ids::{InterfaceId, LinkId, NodeId, ProcessId};
use super::node::{Interface, InterfaceState, Link, Node, NodeCount, Tap};
use super::transmitter::{Flying, Transmitter};
use crate::link::{LinkConfig, LinkCount, LinkModel};

/// Which way a frame passed an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It came from the link.
    Received,
    /// It was given to the link, which may still lose it.
    Sent,
}

/// A frame seen at an interface, as a capture program on the node would see it (in promiscuous
/// mode).
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// When.
    pub time: Instant,
    /// On which node.
    pub node: NodeId,
    /// At which of its interfaces.
    pub interface: InterfaceId,
    /// Which way it went.
    pub direction: Direction,
    /// The whole frame, Ethernet header included.
    pub bytes: &'a [u8],
}

/// Somebody who watches frames pass.
pub(super) type Observer = Box<dyn FnMut(&Sighting<'_>)>;

/// A packet for a port.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) process: ProcessId,
    pub(super) port: PortId,
    pub(super) packet: Packet,
}

/// Nodes, interfaces, links, and the frames between them.
pub(super) struct Network {
    pub(super) nodes: Vec<Node>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) links: Vec<Link>,
    pub(super) trace: TraceHash,
    pub(super) observer: Option<Observer>,
    /// What the last calls have for ports; the world takes it.
    pub(super) deliveries: Vec<Delivery>,
}

impl Network {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            interfaces: Vec::new(),
            links: Vec::new(),
            trace: TraceHash::default(),
            observer: None,
            deliveries: Vec::new(),
        }
    }

    /// The node that `interface` belongs to.
    pub(super) fn node_of(&mut self, interface: InterfaceId) -> &mut Node {
        &mut self.nodes[self.interfaces[interface.index()].node.index()]
    }

    /// Connects `members`, which hang on no link, each with its way out.
    pub(super) fn attach(
        &mut self,
        members: &[(InterfaceId, LinkConfig)],
        random: &Random,
    ) -> LinkId {
        let id = LinkId::at(self.links.len());
        let mut link = Link {
            members: members.iter().map(|(interface, _)| *interface).collect(),
            cut: false,
            neighbours: Default::default(),
        };
        for (member, config) in members {
            let interface = &mut self.interfaces[member.index()];
            let label = format!("{}/{}", self.nodes[interface.node.index()].name, interface.name);
            let model = LinkModel::new(config.clone(), &random.fork(&label));
            interface.attachment = Some((id, Transmitter::new(model)));
            link.neighbours.extend(interface.addresses.iter().map(|(ip, _)| (*ip, *member)));
        }
        self.links.push(link);
        id
    }

    /// Sends `frame` out of `interface`.
    pub(super) fn transmit(&mut self, clock: &mut Clock, interface: InterfaceId, frame: Packet) {
        if let Err(reason) = self.try_transmit(clock, interface, frame) {
            self.node_of(interface).count(reason);
        }
    }

    fn try_transmit(
        &mut self,
        clock: &mut Clock,
        id: InterfaceId,
        mut frame: Packet,
    ) -> Result<(), NodeCount> {
        let interface = &mut self.interfaces[id.index()];
        if !interface.is_up() {
            return Err(NodeCount::InterfaceDown);
        }
        if frame.len() > ETHERNET_HEADER_LEN + interface.mtu {
            return Err(NodeCount::TooLong);
        }
        let node = interface.node;
        let (link, transmitter) = interface.attachment.as_mut().ok_or(NodeCount::NoLink)?;
        if self.links[link.index()].cut {
            return Err(NodeCount::LinkCut);
        }
        self.nodes[node.index()].count(NodeCount::Sent);
        if let Some(observer) = &mut self.observer {
            let (direction, time, bytes) = (Direction::Sent, clock.now(), frame.bytes());
            observer(&Sighting { time, node, interface: id, direction, bytes });
        }
        frame.meta = Meta::default(); // Marks and times stay on the node that made them.
        transmitter.offer(clock.now(), frame);
        schedule(clock, id, transmitter);
        Ok(())
    }

    /// Takes what arrives from the transmitter of `sender` off the wire; the agenda called for `at`.
    pub(super) fn arrive(&mut self, clock: &mut Clock, sender: InterfaceId, at: Instant) {
        let Some((link, transmitter)) = &mut self.interfaces[sender.index()].attachment else {
            return;
        };
        if !transmitter.called(at) {
            return;
        }
        // The bound keeps a loop without delay from going on in here forever.
        let (link, most) = (*link, transmitter.in_flight());
        for _ in 0..most {
            let transmitter = self.transmitter(sender);
            let Some(flying) = transmitter.and_then(|t| t.take(clock.now())) else { break };
            self.spread(clock, link, sender, flying);
        }
        if let Some(transmitter) = self.transmitter(sender) {
            schedule(clock, sender, transmitter);
        }
    }

    fn transmitter(&mut self, interface: InterfaceId) -> Option<&mut Transmitter> {
        self.interfaces[interface.index()].attachment.as_mut().map(|(_, transmitter)| transmitter)
    }

    /// Gives a frame to all members of a link but its sender.
    fn spread(&mut self, clock: &mut Clock, link: LinkId, sender: InterfaceId, flying: Flying) {
        self.node_of(sender).count(NodeCount::Arrived);
        let mut frame = Some(flying.packet);
        let mut place = self.next_member(link, sender, 0);
        if place.is_none() {
            self.node_of(sender).count(NodeCount::NobodyThere);
        }
        while let Some((at, member)) = place {
            place = self.next_member(link, sender, at + 1);
            let copy = if place.is_none() {
                frame.take()
            } else {
                self.node_of(sender).count(NodeCount::Repeated);
                frame.as_ref().map(Packet::duplicate)
            };
            if let Some(copy) = copy {
                self.receive(clock, member, copy, flying.digest);
            }
        }
    }

    /// The first member of a link at or after `place` that is not `sender`, and its place.
    fn next_member(
        &self,
        link: LinkId,
        sender: InterfaceId,
        place: usize,
    ) -> Option<(usize, InterfaceId)> {
        let members = self.links[link.index()].members.iter().copied().enumerate();
        members.skip(place).find(|(_, member)| *member != sender)
    }

    /// Takes a frame in at an interface.
    fn receive(&mut self, clock: &mut Clock, id: InterfaceId, frame: Packet, digest: u64) {
        let interface = &self.interfaces[id.index()];
        let node_id = interface.node;
        let node = &mut self.nodes[node_id.index()];
        if !interface.is_up() {
            node.count(NodeCount::ArrivedDown);
            return;
        }
        node.count(NodeCount::Received);
        self.trace.feed(clock.now(), node_id.index() as u32, digest);
        if let Some(observer) = &mut self.observer {
            let (direction, time, bytes) = (Direction::Received, clock.now(), frame.bytes());
            observer(&Sighting { time, node: node_id, interface: id, direction, bytes });
        }
        match accepted_type(&frame, interface.mac) {
            Ok(ethertype) => self.demultiplex(clock, id, ethertype, frame),
            Err(reason) => node.count(reason),
        }
    }

    /// Gives a frame to everybody on the node who wants its EtherType.
    fn demultiplex(
        &mut self,
        clock: &mut Clock,
        id: InterfaceId,
        ethertype: EtherType,
        frame: Packet,
    ) {
        let interface = &self.interfaces[id.index()];
        let node = &mut self.nodes[interface.node.index()];
        let is_ip = ethertype == EtherType::IPV4;
        let wanted = |tap: &&Tap| tap.ethertype == ethertype;
        let mut listeners = interface.taps.iter().filter(wanted).count();
        if listeners == 0 && !is_ip {
            node.count(NodeCount::NoListener);
            return;
        }
        node.counters.add(NodeCount::ToPorts, listeners as u64);
        let copies = listeners - usize::from(!is_ip);
        node.counters.add(NodeCount::Copied, copies as u64);
        let mut frame = Some(frame);
        for tap in interface.taps.iter().filter(wanted) {
            listeners -= 1;
            let last = listeners == 0 && !is_ip;
            let packet = if last { frame.take() } else { frame.as_ref().map(Packet::duplicate) };
            let (process, port) = (tap.process, tap.port);
            self.deliveries.extend(packet.map(|packet| Delivery { process, port, packet }));
        }
        if let Some(frame) = frame {
            node.count(NodeCount::ToIp);
            self.ip_receive(clock, id, frame);
        }
    }

    /// Cuts a link, which loses what is on it, or mends it.
    pub(super) fn set_cut(&mut self, link: LinkId, cut: bool) {
        self.links[link.index()].cut = cut;
        if cut {
            for place in 0..self.links[link.index()].members.len() {
                self.lose_flight(self.links[link.index()].members[place]);
            }
        }
    }

    /// Loses what `interface` has on the wire.
    fn lose_flight(&mut self, interface: InterfaceId) {
        let lost = self.transmitter(interface).map_or(0, Transmitter::clear);
        self.node_of(interface).counters.add(NodeCount::LostInFlight, lost as u64);
    }

    /// Puts `interface` up, down or away and returns the taps that have lost it. Deleting is for
    /// good: it takes its addresses, its routes and its end of the link along.
    pub(super) fn set_state(&mut self, id: InterfaceId, state: InterfaceState) -> Vec<Tap> {
        let interface = &mut self.interfaces[id.index()];
        if interface.state == InterfaceState::Deleted {
            return Vec::new();
        }
        interface.state = state;
        if state == InterfaceState::Up {
            return Vec::new();
        }
        let taps = std::mem::take(&mut interface.taps);
        let node = interface.node;
        self.nodes[node.index()].routes.interface_down(id);
        if state == InterfaceState::Deleted {
            self.dismantle(id);
        }
        taps
    }

    fn dismantle(&mut self, id: InterfaceId) {
        self.lose_flight(id);
        let interface = &mut self.interfaces[id.index()];
        interface.addresses.clear();
        let node = &mut self.nodes[interface.node.index()];
        node.addresses.retain(|_, on| *on != id);
        node.routes.remove_interface(id);
        node.interfaces.retain(|other| *other != id);
        if let Some(link) = interface.link() {
            let link = &mut self.links[link.index()];
            link.members.retain(|other| *other != id);
            link.neighbours.retain(|_, on| *on != id);
        }
    }

    /// What the way out of `interface` has counted; `None` if it was never connected.
    pub(super) fn link_counters(&self, interface: InterfaceId) -> Option<&Counters<LinkCount>> {
        let (_, transmitter) = self.interfaces[interface.index()].attachment.as_ref()?;
        Some(transmitter.model.counters())
    }
}

/// Enters the transmitter's next arrival in the agenda, if it is not there.
fn schedule(clock: &mut Clock, interface: InterfaceId, transmitter: &mut Transmitter) {
    if let Some(at) = transmitter.unscheduled() {
        clock.schedule(at, Due::Arrival(interface));
    }
}

/// The type of a frame that a network card with the address `mac` lets through.
fn accepted_type(frame: &Packet, mac: MacAddr) -> Result<EtherType, NodeCount> {
    let frame = EthernetFrame::new_checked(frame.bytes()).map_err(|_| NodeCount::Malformed)?;
    let destination = frame.destination();
    if destination == mac || destination.is_multicast() {
        Ok(frame.ethertype())
    } else {
        Err(NodeCount::OtherHost)
    }
}
