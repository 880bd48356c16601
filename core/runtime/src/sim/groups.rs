//! UDP sockets of groups on links (RFC 1112, as far as a link goes): routing protocols have them.
//!
//! Modelled: what is sent to the group of a link reaches all of its sockets there but the sender's; what is sent to a
//! node's own address and came over the link reaches the socket, too. Not modelled: IGMP, groups beyond a link.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use weft_base::{LinkAddress, Packet, PortId};
use weft_port::PortInfo;
use weft_wire::{EtherType, EthernetRepr, MacAddr, UdpIpv4Repr};

use super::agenda::Clock;
use super::ids::{InterfaceId, NodeId, ProcessId};
use super::ip::{UDP_OVERHEAD, push_headers};
use super::network::Network;
use super::node::NodeCount;
use super::process::Binding;
use super::routes::Route;
use super::world::World;

/// What is sent to a group goes no further than the link.
const TTL: u8 = 1;

/// A socket of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupSocket {
    pub(super) interface: InterfaceId,
    pub(super) group: SocketAddrV4,
    pub(super) process: ProcessId,
    pub(super) port: PortId,
}

impl World {
    pub(super) fn open_group(
        &mut self,
        process: ProcessId,
        name: &str,
        group: SocketAddr,
    ) -> Result<(PortId, PortInfo), String> {
        let SocketAddr::V4(group) = group else {
            return Err(format!(
                "cannot join {group}: the simulator models IPv4 only; use a group of IPv4"
            ));
        };
        let slot = &mut self.processes[process.index()];
        let node = slot.node;
        let Some(interface) = self.network.find_interface(node, name) else {
            return Err(format!(
                "cannot join {group} on {name}: the node has no such interface; it has {}",
                self.network.interface_names(node)
            ));
        };
        let groups = &mut self.network.nodes[node.index()].groups;
        let is_same =
            |one: &GroupSocket| (one.interface, one.group.port()) == (interface, group.port());
        if groups.iter().any(is_same) {
            return Err(format!("cannot join {group} on {name}: the port is in use there"));
        }
        let port = slot.next_port();
        groups.push(GroupSocket { interface, group, process, port });
        slot.add_port(Binding::Group { interface, port: group.port() });
        let interface = &self.network.interfaces[interface.index()];
        let local = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, group.port());
        let mtu = interface.mtu.saturating_sub(UDP_OVERHEAD);
        Ok((port, PortInfo { mac: interface.mac.0, mtu, local: Some(local.into()) }))
    }
}

impl Network {
    /// Sends a payload from a socket of a group.
    pub(super) fn group_send(
        &mut self,
        clock: &mut Clock,
        node: NodeId,
        (interface, port): (InterfaceId, u16),
        payload: Packet,
    ) {
        self.nodes[node.index()].count(NodeCount::UdpSent);
        if let Err(reason) = self.try_group_send(clock, (interface, port), payload) {
            self.nodes[node.index()].count(reason);
        }
    }

    fn try_group_send(
        &mut self,
        clock: &mut Clock,
        (id, port): (InterfaceId, u16),
        mut payload: Packet,
    ) -> Result<(), NodeCount> {
        let LinkAddress::Udp(SocketAddr::V4(to)) = payload.meta.link else {
            return Err(NodeCount::NoDestination);
        };
        let interface = &self.interfaces[id.index()];
        let own = interface.addresses.first().map(|(address, _)| *address);
        let source = SocketAddrV4::new(own.ok_or(NodeCount::NoRoute)?, port);
        if payload.len() > UdpIpv4Repr::MAX_PAYLOAD_LEN {
            return Err(NodeCount::PacketTooLong);
        }
        push_headers(&mut payload, source, to, TTL)?;
        if !to.ip().is_multicast() {
            let route = Route { interface: id, gateway: None };
            return self.send_to_next_hop(clock, route, *to.ip(), payload, NodeCount::UdpOut);
        }
        if payload.len() > interface.mtu {
            return Err(NodeCount::PacketTooLong);
        }
        // RFC 1112 §6.4: the last 23 bits of the group.
        let [_, b, c, d] = to.ip().octets();
        let header = EthernetRepr {
            destination: MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d]),
            source: interface.mac,
            ethertype: EtherType::IPV4,
        };
        let room = payload.push_front(weft_wire::ETHERNET_HEADER_LEN);
        header.emit(room).expect("the room is as long as the header");
        self.node_of(id).count(NodeCount::UdpOut);
        self.transmit(clock, id, payload);
        Ok(())
    }

    /// The socket of a group that takes what came over a link.
    pub(super) fn group_socket(
        &self,
        (node, interface): (NodeId, InterfaceId),
        destination: SocketAddrV4,
    ) -> Option<GroupSocket> {
        let takes = |one: &&GroupSocket| {
            let is_for_it = !destination.ip().is_multicast() || destination.ip() == one.group.ip();
            (one.interface, one.group.port()) == (interface, destination.port()) && is_for_it
        };
        self.nodes[node.index()].groups.iter().find(takes).copied()
    }
}
