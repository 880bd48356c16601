//! IPv4 and UDP of a node, as far as a kernel does them for processes and other hosts.
//!
//! Modelled: local delivery to UDP sockets, source address selection, longest-prefix routes,
//! forwarding with time to live and checksum, loopback. Not modelled: ARP (the next hop's Ethernet
//! address is looked up in the world's tables), ICMP (what would cause an error message is only
//! counted), fragmentation and reassembly, broadcast, multicast beyond a link (`groups`), protocols other than UDP.
//!
//! Reference: RFC 1812 §5.2 (forwarding), RFC 768, RFC 1122 §3.3.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_base::{LinkAddress, Packet, PortId};
use weft_wire::{
    ETHERNET_HEADER_LEN, EtherType, EthernetRepr, IPV4_HEADER_LEN, IpProtocol, Ipv4Packet,
    UDP_HEADER_LEN, UdpIpv4Repr,
};

use super::agenda::Clock;
use super::groups::GroupSocket;
use super::ids::{InterfaceId, NodeId, ProcessId};
use super::network::{Delivery, Network};
use super::node::NodeCount;
use super::routes::Route;

/// The time to live of packets made here, as Linux sets it by default.
const TTL: u8 = 64;

/// What UDP and IPv4 add to a payload.
pub(super) const UDP_OVERHEAD: usize = IPV4_HEADER_LEN + UDP_HEADER_LEN;

impl Network {
    /// Takes in a frame that carries IPv4.
    pub(super) fn ip_receive(&mut self, clock: &mut Clock, interface: InterfaceId, frame: Packet) {
        let node = self.interfaces[interface.index()].node;
        if let Err(reason) = self.try_ip_receive(clock, (node, interface), frame) {
            self.nodes[node.index()].count(reason);
        }
    }

    fn try_ip_receive(
        &mut self,
        clock: &mut Clock,
        (node, interface): (NodeId, InterfaceId),
        mut packet: Packet,
    ) -> Result<(), NodeCount> {
        if !packet.pull_front(ETHERNET_HEADER_LEN) {
            return Err(NodeCount::BadHeader);
        }
        let header = Ipv4Packet::new_checked(packet.bytes()).map_err(|_| NodeCount::BadHeader)?;
        let destination = header.destination();
        if !header.verify_checksum() || destination.is_loopback() {
            return Err(NodeCount::BadHeader);
        }
        let length = header.total_len();
        packet.truncate(length); // Ethernet padding goes no further.
        let is_own = self.nodes[node.index()].addresses.contains_key(&destination);
        if is_own || destination.is_multicast() {
            self.deliver_locally((node, interface), packet)
        } else {
            self.forward(clock, node, destination, packet)
        }
    }

    /// Gives a packet for this node to the socket that it is for.
    fn deliver_locally(
        &mut self,
        (node, interface): (NodeId, InterfaceId),
        mut packet: Packet,
    ) -> Result<(), NodeCount> {
        let header = Ipv4Packet::new_checked(packet.bytes()).map_err(|_| NodeCount::BadHeader)?;
        if header.is_fragment() {
            return Err(NodeCount::Fragment);
        }
        if header.protocol() != IpProtocol::UDP {
            return Err(NodeCount::NotUdp);
        }
        let headers = header.header_len() + UDP_HEADER_LEN;
        let (udp, payload) = UdpIpv4Repr::parse(packet.bytes()).map_err(|_| NodeCount::BadUdp)?;
        let length = payload.len();
        if !packet.pull_front(headers) {
            return Err(NodeCount::BadUdp);
        }
        packet.truncate(length);
        match self.group_socket((node, interface), udp.destination) {
            Some(GroupSocket { process, port, .. }) => {
                self.nodes[node.index()].count(NodeCount::ToSockets);
                packet.meta.link = LinkAddress::Udp(udp.source.into());
                self.deliveries.push(Delivery { process, port, packet });
                Ok(())
            }
            None => self.give_to_socket(node, udp.source, udp.destination, packet),
        }
    }

    fn give_to_socket(
        &mut self,
        node: NodeId,
        source: SocketAddrV4,
        destination: SocketAddrV4,
        mut payload: Packet,
    ) -> Result<(), NodeCount> {
        let node = &mut self.nodes[node.index()];
        let socket = node.sockets.lookup(destination).ok_or(NodeCount::NoSocket)?;
        node.count(NodeCount::ToSockets);
        payload.meta.link = LinkAddress::Udp(source.into());
        let (process, port) = (socket.process, socket.port);
        self.deliveries.push(Delivery { process, port, packet: payload });
        Ok(())
    }

    /// Passes a packet for another host on.
    fn forward(
        &mut self,
        clock: &mut Clock,
        node: NodeId,
        destination: Ipv4Addr,
        mut packet: Packet,
    ) -> Result<(), NodeCount> {
        if !self.nodes[node.index()].forwarding {
            return Err(NodeCount::NotForwarding);
        }
        let mut header =
            Ipv4Packet::new_checked(packet.bytes_mut()).map_err(|_| NodeCount::BadHeader)?;
        header.decrement_ttl().map_err(|_| NodeCount::TtlExpired)?;
        let route = self.route(node, destination)?;
        self.send_to_next_hop(clock, route, destination, packet, NodeCount::Forwarded)
    }

    /// Sends a payload from a UDP port that is bound to `local`.
    pub(super) fn udp_send(
        &mut self,
        clock: &mut Clock,
        node: NodeId,
        local: SocketAddrV4,
        payload: Packet,
    ) {
        self.nodes[node.index()].count(NodeCount::UdpSent);
        if let Err(reason) = self.try_udp_send(clock, node, local, payload) {
            self.nodes[node.index()].count(reason);
        }
    }

    fn try_udp_send(
        &mut self,
        clock: &mut Clock,
        node: NodeId,
        local: SocketAddrV4,
        mut payload: Packet,
    ) -> Result<(), NodeCount> {
        let LinkAddress::Udp(std::net::SocketAddr::V4(to)) = payload.meta.link else {
            return Err(NodeCount::NoDestination);
        };
        if payload.len() > UdpIpv4Repr::MAX_PAYLOAD_LEN {
            return Err(NodeCount::PacketTooLong);
        }
        if self.is_local(node, *to.ip()) {
            let from = if local.ip().is_unspecified() { *to.ip() } else { *local.ip() };
            payload.meta = weft_base::Meta::default();
            return self.give_to_socket(node, SocketAddrV4::new(from, local.port()), to, payload);
        }
        let route = self.route(node, *to.ip())?;
        let source = SocketAddrV4::new(self.source_address(local, route)?, local.port());
        push_headers(&mut payload, source, to, TTL)?;
        self.send_to_next_hop(clock, route, *to.ip(), payload, NodeCount::UdpOut)
    }

    pub(super) fn is_local(&self, node: NodeId, address: Ipv4Addr) -> bool {
        address.is_loopback() || self.nodes[node.index()].addresses.contains_key(&address)
    }

    /// The address that what is sent to `destination` gets when nobody has chosen one; `None` if no route leads
    /// there.
    pub(super) fn address_towards(&self, node: NodeId, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        if self.is_local(node, destination) {
            return Some(destination);
        }
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        self.source_address(any, self.route(node, destination).ok()?).ok()
    }

    /// The address that a packet from a socket bound to `local` gets when it leaves by `route`.
    fn source_address(&self, local: SocketAddrV4, route: Route) -> Result<Ipv4Addr, NodeCount> {
        if local.ip().is_loopback() {
            return Err(NodeCount::NoRoute);
        }
        if !local.ip().is_unspecified() {
            return Ok(*local.ip());
        }
        let addresses = &self.interfaces[route.interface.index()].addresses;
        addresses.first().map(|(address, _)| *address).ok_or(NodeCount::NoRoute)
    }

    pub(super) fn route(&self, node: NodeId, destination: Ipv4Addr) -> Result<Route, NodeCount> {
        let usable = |interface: InterfaceId| self.interfaces[interface.index()].is_up();
        let route = self.nodes[node.index()].routes.lookup(destination, usable);
        route.ok_or(NodeCount::NoRoute)
    }

    /// Puts an Ethernet header before an IPv4 packet and sends it, counting it as `success`.
    pub(super) fn send_to_next_hop(
        &mut self,
        clock: &mut Clock,
        route: Route,
        destination: Ipv4Addr,
        mut packet: Packet,
        success: NodeCount,
    ) -> Result<(), NodeCount> {
        let interface = &self.interfaces[route.interface.index()];
        if packet.len() > interface.mtu {
            return Err(NodeCount::PacketTooLong);
        }
        let next_hop = route.gateway.unwrap_or(destination);
        let link = interface.link().ok_or(NodeCount::NoNeighbour)?;
        let neighbour = self.links[link.index()].neighbours.get(&next_hop);
        let neighbour = neighbour.ok_or(NodeCount::NoNeighbour)?;
        let header = EthernetRepr {
            destination: self.interfaces[neighbour.index()].mac,
            source: interface.mac,
            ethertype: EtherType::IPV4,
        };
        let room = packet.push_front(ETHERNET_HEADER_LEN);
        header.emit(room).expect("the room is as long as the header");
        self.node_of(route.interface).count(success);
        self.transmit(clock, route.interface, packet);
        Ok(())
    }

    /// The largest payload that leaves a socket bound to `local` unfragmented: with a wildcard, by
    /// the interface with the smallest MTU. Zero if the node has no interface.
    pub(super) fn udp_mtu(&self, node: NodeId, local: Ipv4Addr) -> usize {
        if local.is_loopback() {
            return UdpIpv4Repr::MAX_PAYLOAD_LEN;
        }
        let node = &self.nodes[node.index()];
        let fits = |id: &InterfaceId| {
            let mtu = self.interfaces[id.index()].mtu.saturating_sub(UDP_OVERHEAD);
            mtu.min(UdpIpv4Repr::MAX_PAYLOAD_LEN)
        };
        match node.addresses.get(&local) {
            Some(interface) => fits(interface),
            None => node.interfaces.iter().map(fits).min().unwrap_or(0),
        }
    }

    /// Closes the socket of a process.
    pub(super) fn unbind(&mut self, node: NodeId, local: SocketAddrV4, owner: (ProcessId, PortId)) {
        self.nodes[node.index()].sockets.unbind(local.port(), owner.0, owner.1);
    }
}

pub(super) fn push_headers(
    payload: &mut Packet,
    source: SocketAddrV4,
    destination: SocketAddrV4,
    ttl: u8,
) -> Result<(), NodeCount> {
    let payload_len = payload.len();
    payload.push_front(UDP_OVERHEAD);
    let headers = UdpIpv4Repr {
        source,
        destination,
        ttl,
        traffic_class: 0,
        dont_fragment: true,
        payload_len,
    };
    headers.emit(payload.bytes_mut()).map_err(|_| NodeCount::PacketTooLong)
}
