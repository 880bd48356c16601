//! Where a node's IPv4 leads, as its processes watch it.
//!
//! The modelled IPv4 has no ARP: every neighbour on a link is known, and none is idle. IPv6 is not modelled, which
//! whoever watches is told.

use std::collections::BTreeMap;
use std::net::IpAddr;

use weft_netlink::{InterfaceAddress, IpChange, IpWay};

use super::ids::{InterfaceId, NodeId, ProcessId};
use super::interfaces::number;
use super::process::Waiting;
use super::routes::Route;
use super::world::World;
use crate::Event;

/// Processes that watch IP, and what they were told last.
#[derive(Debug, Default)]
pub(super) struct IpWatchers(BTreeMap<ProcessId, Known>);

impl IpWatchers {
    /// A process has ended.
    pub(super) fn forget(&mut self, process: ProcessId) {
        self.0.remove(&process);
    }
}

/// What there is to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    interfaces: BTreeMap<u32, String>,
    routes: BTreeMap<InterfaceAddress, IpWay>,
    neighbours: BTreeMap<(u32, IpAddr), [u8; 6]>,
}

impl World {
    pub(super) fn watch_ip(&mut self, process: ProcessId) {
        let known = self.known_ip(self.processes[process.index()].node);
        let error = "the simulator models IPv4 only; run the lab on network namespaces".to_owned();
        let mut changes = vec![IpChange::Again, IpChange::NoTable { is_ipv6: true, error }];
        known.tell_differences(&Known::default(), &mut changes);
        changes.push(IpChange::Complete);
        self.ip_watchers.0.insert(process, known);
        self.post(process, Waiting::Event(Event::Ip { changes }));
    }

    /// Something has changed: tells whoever watches a node whose IP leads elsewhere now.
    pub(super) fn tell_ip_watchers(&mut self) {
        let watchers: Vec<_> = self.ip_watchers.0.keys().copied().collect();
        for process in watchers {
            let known = self.known_ip(self.processes[process.index()].node);
            let Some(told) = self.ip_watchers.0.insert(process, known.clone()) else { continue };
            let mut changes = Vec::new();
            known.tell_differences(&told, &mut changes);
            if !changes.is_empty() {
                self.post(process, Waiting::Event(Event::Ip { changes }));
            }
        }
    }

    fn known_ip(&self, node: NodeId) -> Known {
        let interface = |id: &InterfaceId| &self.network.interfaces[id.index()];
        let node = &self.network.nodes[node.index()];
        let mut known = Known::default();
        for id in node.interfaces.iter().filter(|id| interface(id).is_up()) {
            known.interfaces.insert(number(*id), interface(id).name.clone());
            let Some(link) = interface(id).link() else { continue };
            let others = self.network.links[link.index()].neighbours.iter();
            known.neighbours.extend(
                others
                    .filter(|(_, other)| *other != id)
                    .map(|(ip, other)| ((number(*id), (*ip).into()), interface(other).mac.0)),
            );
        }
        for (network, prefix_length, route) in node.routes.used(|id| interface(&id).is_up()) {
            let out = |route: Route| IpWay::Out {
                interface: number(route.interface),
                gateway: route.gateway.map(IpAddr::from),
            };
            let way = route.map_or(IpWay::Nowhere, out);
            known.routes.insert(InterfaceAddress { ip: network.into(), prefix_length }, way);
        }
        for address in node.addresses.keys() {
            let whole = InterfaceAddress { ip: (*address).into(), prefix_length: 32 };
            known.routes.insert(whole, IpWay::Local);
        }
        known
    }
}

impl Known {
    fn tell_differences(&self, told: &Self, changes: &mut Vec<IpChange>) {
        for index in different(&told.interfaces, &self.interfaces) {
            let name = self.interfaces.get(index).cloned();
            changes.push(IpChange::Interface { index: *index, name });
        }
        for destination in different(&told.routes, &self.routes) {
            let way = self.routes.get(destination).copied();
            changes.push(IpChange::Route { destination: *destination, way });
        }
        for key in different(&told.neighbours, &self.neighbours) {
            let (interface, ip) = *key;
            let mac = self.neighbours.get(key).copied();
            changes.push(IpChange::Neighbour { interface, ip, mac, idle: false });
        }
    }
}

/// The keys whose values differ.
fn different<'a, K: Ord, V: PartialEq>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = &'a K> {
    let gone = before.keys().filter(|key| !after.contains_key(key));
    gone.chain(after.iter().filter(|(key, now)| before.get(key) != Some(now)).map(|(key, _)| key))
}
