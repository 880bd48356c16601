//! Building a world and changing it while it runs: nodes, interfaces, addresses, routes, links.

use std::net::Ipv4Addr;

use weft_base::Counters;
use weft_wire::MacAddr;

use super::error::WorldError;
use super::ids::{InterfaceId, LinkId, NodeId};
use super::network::Network;
use super::node::{Interface, InterfaceState, Node, NodeCount};
use super::routes::Route;
use super::world::World;
use crate::link::{LinkConfig, LinkCount};

/// What a new interface is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its name, unique on the node.
    pub name: String,
    /// Its Ethernet address; `None` for one that the world makes from the interface's number.
    pub mac: Option<MacAddr>,
    /// The largest payload of a frame, in bytes.
    pub mtu: usize,
}

impl InterfaceConfig {
    /// An interface with the usual MTU of 1,500 bytes and an address that the world chooses.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), mac: None, mtu: 1500 }
    }
}

impl Network {
    /// The interface of a node by name, unless it was deleted.
    pub(super) fn find_interface(&self, node: NodeId, name: &str) -> Option<InterfaceId> {
        let mut interfaces = self.nodes[node.index()].interfaces.iter().copied();
        interfaces.find(|id| self.interfaces[id.index()].name == name)
    }

    /// The names of a node's interfaces, for messages.
    pub(super) fn interface_names(&self, node: NodeId) -> String {
        let interfaces = &self.nodes[node.index()].interfaces;
        let names = interfaces.iter().map(|id| self.interfaces[id.index()].name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        if names.is_empty() { "none".to_owned() } else { names }
    }

    /// An interface on the way to `gateway`.
    pub(super) fn interface_towards(&self, node: NodeId, gateway: Ipv4Addr) -> Option<InterfaceId> {
        let route = self.nodes[node.index()].routes.lookup(gateway, |_| true)?;
        route.gateway.is_none().then_some(route.interface)
    }

    fn connectable(&self, id: InterfaceId) -> Result<(), WorldError> {
        let interface = &self.interfaces[id.index()];
        let reason = match (interface.state, &interface.attachment) {
            (InterfaceState::Deleted, _) => "was deleted",
            (_, Some(_)) => "hangs on a link already",
            _ => return Ok(()),
        };
        let node = self.nodes[interface.node.index()].name.clone();
        Err(WorldError::NotConnectable { node, interface: interface.name.clone(), reason })
    }
}

/// # Building
///
/// Ids come from this world; one of another world may panic or mean something else.
impl World {
    /// Adds a node: a machine with IPv4 like a kernel's, without interfaces and not forwarding.
    ///
    /// # Errors
    /// [`WorldError::NodeExists`].
    pub fn add_node(&mut self, name: &str) -> Result<NodeId, WorldError> {
        if self.find_node(name).is_some() {
            return Err(WorldError::NodeExists(name.to_owned()));
        }
        let id = NodeId::at(self.network.nodes.len());
        self.network.nodes.push(Node::new(name.to_owned()));
        self.node_names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The node called `name`.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.node_names.get(name).copied()
    }

    /// The name of a node.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.network.nodes[node.index()].name
    }

    /// Says whether a node forwards IPv4 packets for others; a new one does not.
    pub fn set_forwarding(&mut self, node: NodeId, on: bool) {
        self.network.nodes[node.index()].forwarding = on;
    }

    /// Adds an interface, which is up and hangs on nothing.
    ///
    /// # Errors
    /// [`WorldError::InterfaceExists`].
    pub fn add_interface(
        &mut self,
        node: NodeId,
        config: InterfaceConfig,
    ) -> Result<InterfaceId, WorldError> {
        if self.find_interface(node, &config.name).is_some() {
            let node = self.node_name(node).to_owned();
            return Err(WorldError::InterfaceExists { node, interface: config.name });
        }
        let id = InterfaceId::at(self.network.interfaces.len());
        self.network.interfaces.push(Interface {
            node,
            name: config.name,
            mac: config.mac.unwrap_or_else(|| made_mac(id)),
            mtu: config.mtu,
            state: InterfaceState::Up,
            addresses: Vec::new(),
            taps: Vec::new(),
            attachment: None,
        });
        self.network.nodes[node.index()].interfaces.push(id);
        self.tell_watchers(id);
        Ok(id)
    }

    /// The interface of a node by name, unless it was deleted.
    #[must_use]
    pub fn find_interface(&self, node: NodeId, name: &str) -> Option<InterfaceId> {
        self.network.find_interface(node, name)
    }

    /// The node and the name of an interface.
    #[must_use]
    pub fn interface_name(&self, interface: InterfaceId) -> (NodeId, &str) {
        let interface = &self.network.interfaces[interface.index()];
        (interface.node, &interface.name)
    }

    /// The interfaces of a node, in order of creation, without deleted ones.
    #[must_use]
    pub fn interfaces(&self, node: NodeId) -> &[InterfaceId] {
        &self.network.nodes[node.index()].interfaces
    }

    /// The Ethernet address of an interface.
    #[must_use]
    pub fn mac(&self, interface: InterfaceId) -> MacAddr {
        self.network.interfaces[interface.index()].mac
    }

    /// Gives an interface an IPv4 address, and its node a route to the network around it.
    ///
    /// # Errors
    /// [`WorldError::PrefixLength`].
    pub fn add_address(
        &mut self,
        interface: InterfaceId,
        address: Ipv4Addr,
        prefix_length: u8,
    ) -> Result<(), WorldError> {
        if prefix_length > 32 {
            return Err(WorldError::PrefixLength(prefix_length));
        }
        let this = &mut self.network.interfaces[interface.index()];
        this.addresses.push((address, prefix_length));
        if let Some(link) = this.link() {
            self.network.links[link.index()].neighbours.insert(address, interface);
        }
        let node = self.network.node_of(interface);
        node.addresses.insert(address, interface);
        node.routes.add(address, prefix_length, Route { interface, gateway: None });
        self.tell_watchers(interface);
        Ok(())
    }

    /// Adds a route to `network` through `gateway`, which must be in the network of one of the
    /// node's interfaces.
    ///
    /// # Errors
    /// [`WorldError::PrefixLength`], [`WorldError::GatewayUnreachable`].
    pub fn add_route(
        &mut self,
        node: NodeId,
        network: Ipv4Addr,
        prefix_length: u8,
        gateway: Ipv4Addr,
    ) -> Result<(), WorldError> {
        if prefix_length > 32 {
            return Err(WorldError::PrefixLength(prefix_length));
        }
        let Some(interface) = self.network.interface_towards(node, gateway) else {
            let node = self.node_name(node).to_owned();
            return Err(WorldError::GatewayUnreachable { node, gateway });
        };
        let route = Route { interface, gateway: Some(gateway) };
        self.network.nodes[node.index()].routes.add(network, prefix_length, route);
        self.tell_ip_watchers();
        Ok(())
    }

    /// Connects two interfaces by a cable; each comes with the properties of the way out of it.
    ///
    /// # Errors
    /// [`WorldError::NotConnectable`].
    pub fn connect(
        &mut self,
        a: (InterfaceId, LinkConfig),
        b: (InterfaceId, LinkConfig),
    ) -> Result<LinkId, WorldError> {
        self.connect_all(&[a, b])
    }

    /// Connects interfaces by a hub: what one sends, all the others receive. Rate, loss and the
    /// other properties hold for the way from an interface to the hub, so that all receivers see
    /// the same losses.
    ///
    /// # Errors
    /// [`WorldError::NotConnectable`].
    pub fn connect_all(
        &mut self,
        members: &[(InterfaceId, LinkConfig)],
    ) -> Result<LinkId, WorldError> {
        for (place, (interface, _)) in members.iter().enumerate() {
            self.network.connectable(*interface)?;
            if members[..place].iter().any(|(other, _)| other == interface) {
                let (node, name) = self.interface_name(*interface);
                return Err(WorldError::NotConnectable {
                    node: self.node_name(node).to_owned(),
                    interface: name.to_owned(),
                    reason: "is named twice",
                });
            }
        }
        let link = self.network.attach(members, &self.random.fork("link"));
        for (interface, _) in members {
            self.tell_watchers(*interface);
        }
        Ok(link)
    }
}

/// # Changing a running world
impl World {
    /// Cuts a link: what is on it is lost, and so is what is sent to it. The interfaces stay up.
    pub fn cut(&mut self, link: LinkId) {
        self.network.set_cut(link, true);
    }

    /// Mends a cut link.
    pub fn mend(&mut self, link: LinkId) {
        self.network.set_cut(link, false);
    }

    /// The link that an interface hangs on.
    #[must_use]
    pub fn link_of(&self, interface: InterfaceId) -> Option<LinkId> {
        self.network.interfaces[interface.index()].link()
    }

    /// Changes the properties of the way out of an interface; nothing happens if it is not
    /// connected.
    pub fn set_link(&mut self, interface: InterfaceId, config: LinkConfig) {
        if let Some((_, transmitter)) = &mut self.network.interfaces[interface.index()].attachment {
            transmitter.model.set_config(config);
        }
    }

    /// Sets an interface up or down. Going down closes its Ethernet ports, which are told so.
    pub fn set_up(&mut self, interface: InterfaceId, up: bool) {
        let state = if up { InterfaceState::Up } else { InterfaceState::Down };
        let taps = self.network.set_state(interface, state);
        let (_, name) = self.interface_name(interface);
        let error = format!("interface {name} was set down; open it again when it is up");
        self.lose_ports(taps, &error);
        self.tell_watchers(interface);
    }

    /// Deletes an interface for good, with its addresses, its routes and its end of the link.
    pub fn delete_interface(&mut self, interface: InterfaceId) {
        let taps = self.network.set_state(interface, InterfaceState::Deleted);
        let (_, name) = self.interface_name(interface);
        let error = format!("interface {name} was deleted; open it again when it is back");
        self.lose_ports(taps, &error);
        self.tell_watchers(interface);
    }
}

/// # Counters
impl World {
    /// What a node has counted.
    #[must_use]
    pub fn node_counters(&self, node: NodeId) -> &Counters<NodeCount> {
        &self.network.nodes[node.index()].counters
    }

    /// What the way out of an interface has counted; `None` if it was never connected.
    #[must_use]
    pub fn link_counters(&self, interface: InterfaceId) -> Option<&Counters<LinkCount>> {
        self.network.link_counters(interface)
    }

    /// How many packets the way out of an interface has accepted that have not arrived yet.
    #[must_use]
    pub fn in_flight(&self, interface: InterfaceId) -> usize {
        let attachment = &self.network.interfaces[interface.index()].attachment;
        attachment.as_ref().map_or(0, |(_, transmitter)| transmitter.in_flight())
    }
}

/// A locally administered address that differs for each interface of the world.
fn made_mac(interface: InterfaceId) -> MacAddr {
    let number = interface.index() as u64 + 1;
    let [_, _, _, a, b, c, d, e] = number.to_be_bytes();
    MacAddr([0x02, a, b, c, d, e])
}
