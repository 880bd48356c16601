//! The interfaces of a node, as its processes see and change them.
//!
//! An interface runs if it is up and hangs on a link; that a link is cut does not show, as it does not
//! between real machines with a switch in between. There is no loopback interface.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use weft_netlink::{Interface, InterfaceAddress, InterfaceChange, InterfaceRequest};

use super::ids::{InterfaceId, NodeId, ProcessId};
use super::node::InterfaceState;
use super::process::Waiting;
use super::routes::Route;
use super::world::World;
use crate::Event;

/// Processes that watch interfaces, and what they were told last.
#[derive(Debug, Default)]
pub(super) struct Watchers(BTreeMap<ProcessId, BTreeMap<InterfaceId, Interface>>);

impl World {
    pub(super) fn watch_interfaces(&mut self, process: ProcessId) {
        if self.watchers.0.contains_key(&process) {
            return;
        }
        self.watchers.0.insert(process, BTreeMap::new());
        let node = self.processes[process.index()].node;
        for interface in self.interfaces(node).to_vec() {
            self.tell_watcher(process, interface);
        }
        let change = InterfaceChange::Complete;
        self.post(process, Waiting::Event(Event::Interface { change }));
    }

    /// A process has ended.
    pub(super) fn forget_watcher(&mut self, process: ProcessId) {
        self.watchers.0.remove(&process);
        self.ip_watchers.forget(process);
    }

    /// Tells whoever watches what is different about an interface.
    pub(super) fn tell_watchers(&mut self, interface: InterfaceId) {
        let (node, _) = self.interface_name(interface);
        let watchers: Vec<_> = self.watchers.0.keys().copied().collect();
        for process in watchers {
            if self.processes[process.index()].node == node {
                self.tell_watcher(process, interface);
            }
        }
        self.tell_ip_watchers();
    }

    fn tell_watcher(&mut self, process: ProcessId, id: InterfaceId) {
        let now = self.describe(id);
        let Some(told) = self.watchers.0.get_mut(&process) else { return };
        let before = match &now {
            Some(now) => told.insert(id, now.clone()),
            None => told.remove(&id),
        };
        let change = match (before, now) {
            (None, Some(now)) => InterfaceChange::Added(now),
            (Some(before), Some(now)) if before != now => InterfaceChange::Changed(now),
            (Some(before), None) => {
                InterfaceChange::Removed { index: before.index, name: before.name }
            }
            _ => return,
        };
        self.post(process, Waiting::Event(Event::Interface { change }));
    }

    /// What a kernel would say of an interface; `None` if it was deleted.
    fn describe(&self, id: InterfaceId) -> Option<Interface> {
        let interface = &self.network.interfaces[id.index()];
        if interface.state == InterfaceState::Deleted {
            return None;
        }
        let address = |(ip, prefix_length): &(Ipv4Addr, u8)| InterfaceAddress {
            ip: (*ip).into(),
            prefix_length: *prefix_length,
        };
        Some(Interface {
            index: number(id),
            name: interface.name.clone(),
            kind: "ethernet".to_owned(),
            mac: Some(interface.mac.0),
            mtu: u32::try_from(interface.mtu).unwrap_or(u32::MAX),
            up: interface.is_up(),
            running: interface.is_up() && interface.link().is_some(),
            master: None,
            addresses: interface.addresses.iter().map(address).collect(),
        })
    }

    pub(super) fn configure_interface(
        &mut self,
        process: ProcessId,
        request: &InterfaceRequest,
    ) -> Result<(), String> {
        let node = self.processes[process.index()].node;
        let failed = |why: String| format!("{request} failed: {why}");
        match request {
            InterfaceRequest::SetUp { interface, up } => {
                let id = self.named(node, interface).map_err(failed)?;
                self.set_up(id, *up);
            }
            InterfaceRequest::SetMtu { interface, mtu } => {
                let id = self.named(node, interface).map_err(failed)?;
                self.network.interfaces[id.index()].mtu = *mtu as usize;
                self.tell_watchers(id);
            }
            InterfaceRequest::AddAddress { interface, address } => {
                let id = self.named(node, interface).map_err(failed)?;
                let (ip, length) = ipv4(address).map_err(failed)?;
                if self.network.interfaces[id.index()].addresses.contains(&(ip, length)) {
                    return Ok(());
                }
                if self.network.nodes[node.index()].addresses.contains_key(&ip) {
                    return Err(failed("the node has this address already".to_owned()));
                }
                self.add_address(id, ip, length).map_err(|error| failed(error.to_string()))?;
            }
            InterfaceRequest::DeleteAddress { interface, address } => {
                let id = self.named(node, interface).map_err(failed)?;
                let (ip, length) = ipv4(address).map_err(failed)?;
                self.remove_address(id, ip, length).map_err(failed)?;
            }
            InterfaceRequest::Delete { interface } => {
                let id = self.named(node, interface).map_err(failed)?;
                self.delete_interface(id);
            }
            InterfaceRequest::Create { .. } | InterfaceRequest::SetMaster { .. } => {
                return Err(failed(
                    "the simulator models no virtual interfaces; run the lab on network namespaces"
                        .to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn named(&self, node: NodeId, name: &str) -> Result<InterfaceId, String> {
        self.find_interface(node, name).ok_or_else(|| {
            let names = self.network.interface_names(node);
            format!("node {} has no interface {name}; it has {names}", self.node_name(node))
        })
    }

    /// Takes an address from an interface, and with it the route to the network around it.
    fn remove_address(
        &mut self,
        id: InterfaceId,
        address: Ipv4Addr,
        prefix_length: u8,
    ) -> Result<(), String> {
        let interface = &mut self.network.interfaces[id.index()];
        let place = interface.addresses.iter().position(|own| *own == (address, prefix_length));
        let place = place.ok_or_else(|| format!("`{}` does not have it", interface.name))?;
        interface.addresses.remove(place);
        if let Some(link) = interface.link() {
            self.network.links[link.index()].neighbours.remove(&address);
        }
        let node = self.network.node_of(id);
        node.addresses.remove(&address);
        node.routes.remove(address, prefix_length, Route { interface: id, gateway: None });
        self.tell_watchers(id);
        Ok(())
    }
}

/// The index of an interface, which differs for each interface of the world.
pub(super) fn number(id: InterfaceId) -> u32 {
    u32::try_from(id.index() + 1).expect("a world has fewer than 2^32 interfaces")
}

fn ipv4(address: &InterfaceAddress) -> Result<(Ipv4Addr, u8), String> {
    match address.ip {
        IpAddr::V4(ip) if address.prefix_length <= 32 => Ok((ip, address.prefix_length)),
        _ => Err("the simulator models IPv4 only; use an IPv4 address".to_owned()),
    }
}
