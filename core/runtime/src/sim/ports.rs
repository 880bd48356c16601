//! The packet ports of processes: opening, sending, receiving, closing.

use std::net::{SocketAddr, SocketAddrV4};

use weft_base::{Packet, PortId, Token};
use weft_port::{PortInfo, PortSpec};
use weft_wire::{ETHERNET_HEADER_LEN, EtherType};

use super::ids::{InterfaceId, ProcessId};
use super::network::Delivery;
use super::node::{NodeCount, Tap};
use super::process::{Binding, Waiting};
use super::sockets::Socket;
use super::world::World;
use crate::Event;

impl World {
    pub(super) fn open_port(&mut self, process: ProcessId, token: Token, spec: &PortSpec) {
        let event = match self.try_open(process, spec) {
            Ok((port, info)) => Event::PortOpened { token, port, info },
            Err(error) => Event::PortFailed { token, error },
        };
        self.post(process, Waiting::Event(event));
    }

    pub(super) fn try_open(
        &mut self,
        process: ProcessId,
        spec: &PortSpec,
    ) -> Result<(PortId, PortInfo), String> {
        match spec {
            // A modelled interface has no driver that something could bypass.
            PortSpec::Ethernet { interface, ethertype }
            | PortSpec::Xdp { interface, ethertype } => {
                self.open_ethernet(process, interface, EtherType(*ethertype))
            }
            PortSpec::Udp { local } => self.open_udp(process, *local),
            PortSpec::Group { interface, group } => self.open_group(process, interface, *group),
            PortSpec::Ip { .. } => Err(format!(
                "cannot open {spec}: the simulator models UDP over IPv4 and no other protocol; tunnel by \
                 UDP, or run the lab on network namespaces"
            )),
            PortSpec::Tap { .. } | PortSpec::Tun { .. } => Err(format!(
                "cannot open {spec}: the simulator models no TUN and TAP interfaces; use an \
                 Ethernet or UDP port, or run the lab on network namespaces"
            )),
        }
    }

    fn open_ethernet(
        &mut self,
        process: ProcessId,
        name: &str,
        ethertype: EtherType,
    ) -> Result<(PortId, PortInfo), String> {
        let slot = &mut self.processes[process.index()];
        let node = &self.network.nodes[slot.node.index()];
        let Some(id) = self.network.find_interface(slot.node, name) else {
            return Err(format!(
                "cannot open {name}: node {} has no such interface; it has {}",
                node.name,
                self.network.interface_names(slot.node)
            ));
        };
        let interface = &mut self.network.interfaces[id.index()];
        if !interface.is_up() {
            return Err(format!(
                "cannot open {name}: the interface is down on node {}; set it up first",
                node.name
            ));
        }
        let port = slot.next_port();
        slot.add_port(Binding::Ethernet(id));
        interface.taps.push(Tap { ethertype, process, port });
        Ok((port, PortInfo { mac: interface.mac.0, mtu: interface.mtu, local: None }))
    }

    fn open_udp(
        &mut self,
        process: ProcessId,
        local: SocketAddr,
    ) -> Result<(PortId, PortInfo), String> {
        let SocketAddr::V4(local) = local else {
            return Err(format!(
                "cannot bind UDP {local}: the simulator models IPv4 only; use an IPv4 address"
            ));
        };
        let slot = &mut self.processes[process.index()];
        let node = &mut self.network.nodes[slot.node.index()];
        let address = *local.ip();
        let own = address.is_unspecified() || address.is_loopback();
        if !own && !node.addresses.contains_key(&address) {
            return Err(format!(
                "cannot bind UDP {local}: node {} does not have this address; give it to an \
                 interface or bind another",
                node.name
            ));
        }
        let port = slot.next_port();
        let Some(number) = node.sockets.bind(local.port(), Socket { address, process, port })
        else {
            return Err(format!(
                "cannot bind UDP {local}: the port is in use on node {}; bind another",
                node.name
            ));
        };
        let local = SocketAddrV4::new(address, number);
        slot.add_port(Binding::Udp(local));
        let mtu = self.network.udp_mtu(slot.node, address);
        Ok((port, PortInfo { mac: [0; 6], mtu, local: Some(local.into()) }))
    }

    pub(super) fn close_port(&mut self, process: ProcessId, port: PortId) {
        let slot = &mut self.processes[process.index()];
        let node = slot.node;
        let Some(open) = slot.port(port) else { return };
        let binding = std::mem::replace(&mut open.binding, Binding::Closed);
        let unread = std::mem::take(&mut open.waiting).len();
        let counters = &mut self.network.nodes[node.index()].counters;
        counters.add(NodeCount::PortClosed, unread as u64);
        match binding {
            Binding::Ethernet(interface) => {
                let taps = &mut self.network.interfaces[interface.index()].taps;
                taps.retain(|tap| (tap.process, tap.port) != (process, port));
            }
            Binding::Udp(local) => self.network.unbind(node, local, (process, port)),
            Binding::Group { .. } => {
                let groups = &mut self.network.nodes[node.index()].groups;
                groups.retain(|one| (one.process, one.port) != (process, port));
            }
            Binding::Closed => {}
        }
    }

    pub(super) fn send_packet(&mut self, process: ProcessId, port: PortId, packet: Packet) {
        let slot = &mut self.processes[process.index()];
        let node = slot.node;
        let open = slot.port(port);
        let binding = open.map_or(Binding::Closed, |port| {
            port.statistics.sent.add(packet.len());
            port.binding
        });
        match binding {
            Binding::Ethernet(interface) => self.send_frame(interface, packet),
            Binding::Udp(local) => self.network.udp_send(&mut self.clock, node, local, packet),
            Binding::Group { interface, port } => {
                self.network.group_send(&mut self.clock, node, (interface, port), packet);
            }
            Binding::Closed => self.network.nodes[node.index()].count(NodeCount::Discarded),
        }
        self.hand_over();
    }

    fn send_frame(&mut self, interface: InterfaceId, frame: Packet) {
        let node = self.network.node_of(interface);
        node.count(NodeCount::PortSent);
        if frame.len() < ETHERNET_HEADER_LEN {
            node.count(NodeCount::PortMalformed);
        } else {
            self.network.transmit(&mut self.clock, interface, frame);
        }
    }

    /// Puts what the network has for ports where their processes find it.
    pub(super) fn hand_over(&mut self) {
        if self.network.deliveries.is_empty() {
            return;
        }
        let mut deliveries = std::mem::take(&mut self.network.deliveries);
        let now = self.clock.now();
        for Delivery { process, port: id, mut packet } in deliveries.drain(..) {
            packet.meta.port = id;
            packet.meta.time = now;
            let port = self.processes[process.index()].port(id);
            let port = port.expect("closing a port takes its tap or socket away");
            port.statistics.received.add(packet.len());
            port.waiting.push(packet);
            if port.waiting.len() == 1 {
                self.post(process, Waiting::Packets(id));
            }
        }
        self.network.deliveries = deliveries;
    }

    /// The packets that wait at a port, if it is open and has any.
    pub(super) fn take_packets(&mut self, process: ProcessId, port: PortId) -> Option<Event> {
        let slot = &mut self.processes[process.index()];
        let packets = std::mem::take(&mut slot.port(port)?.waiting);
        if packets.is_empty() {
            return None;
        }
        let counters = &mut self.network.nodes[slot.node.index()].counters;
        counters.add(NodeCount::HandedOver, packets.len() as u64);
        Some(Event::Packets { port, packets })
    }

    /// Tells the owners of `taps` that their interface is gone.
    pub(super) fn lose_ports(&mut self, taps: Vec<Tap>, error: &str) {
        for Tap { process, port, .. } in taps {
            self.close_port(process, port);
            let error = error.to_owned();
            self.post(process, Waiting::Event(Event::PortLost { port, error }));
        }
    }
}
