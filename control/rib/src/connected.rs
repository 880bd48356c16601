//! The networks on this router's own links: the origin `connected`.
//!
//! Reference: Handley et al. (XORP), §5.2 and Figure 7 (connected routes are an origin of their own). Their
//! administrative distance is 0.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use weft_routing::OriginId;
use weft_routing::ip::split_for;
use weft_runtime::{InterfaceAddress, InterfaceChange};

use crate::arbiter::Route;
use crate::hops::Hop;
use crate::tables::Tables;

/// The name of the origin.
pub(crate) const PROTOCOL: &str = "connected";
/// Its number: it is the first.
pub(crate) const ORIGIN: OriginId = OriginId(0);

/// What is known of the interfaces.
#[derive(Debug, Default)]
pub(crate) struct Connected {
    /// By the number of an interface that can carry packets: the networks on its link.
    nets: BTreeMap<u32, BTreeSet<IpNet>>,
    /// The names of all interfaces, by their numbers.
    names: BTreeMap<u32, String>,
}

impl Connected {
    /// Something about an interface is different.
    pub(crate) fn changed(
        &mut self,
        change: InterfaceChange,
        origin: OriginId,
        tables: &mut Tables,
    ) {
        let (index, new) = match change {
            InterfaceChange::Added(interface) | InterfaceChange::Changed(interface) => {
                let addresses = interface.addresses.iter().filter(|_| interface.running);
                let nets: BTreeSet<_> = addresses.filter_map(network).collect();
                self.names.insert(interface.index, interface.name);
                (interface.index, nets)
            }
            InterfaceChange::Removed { index, .. } => {
                self.names.remove(&index);
                (index, BTreeSet::new())
            }
            InterfaceChange::Complete => return,
        };
        let old = match new.is_empty() {
            true => self.nets.remove(&index),
            false => self.nets.insert(index, new.clone()),
        };
        for net in old.unwrap_or_default().symmetric_difference(&new) {
            self.tell(*net, origin, tables);
        }
    }

    /// The name of an interface.
    pub(crate) fn name(&self, interface: u32) -> Option<&str> {
        self.names.get(&interface).map(String::as_str)
    }

    /// A network is on the links of these interfaces now; the one with the lowest number is used.
    fn tell(&self, net: IpNet, origin: OriginId, tables: &mut Tables) {
        let mut interfaces = self.nets.iter().filter(|(_, nets)| nets.contains(&net));
        match interfaces.next() {
            Some((index, _)) => {
                let hop = Hop { gateway: None, interface: Some(*index), weight: 1 };
                let set = tables.set_of(vec![hop]);
                for multicast in [false, true] {
                    let route = Route { set, metric: 0, tag: 0 };
                    tables.set(split_for(net, multicast), origin, route);
                }
                tables.give(set);
            }
            // It may have come and gone at once.
            None => {
                for multicast in [false, true] {
                    tables.withdraw(split_for(net, multicast), origin);
                }
            }
        }
    }
}

/// The network of an address, if it is more than the address, and can lead to a gateway.
fn network(address: &InterfaceAddress) -> Option<IpNet> {
    let is_link_local = match address.ip {
        std::net::IpAddr::V4(_) => false,
        // The same on every link: they say nothing without an interface.
        std::net::IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let usable = !address.ip.is_loopback() && !is_link_local;
    usable
        .then(|| IpNet::new(address.ip, address.prefix_length).ok())
        .flatten()
        .map(|net| net.trunc())
}
