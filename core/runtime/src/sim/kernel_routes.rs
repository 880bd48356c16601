//! Routes of a node's IPv4, as its processes set and read them.
//!
//! Modelled is the main table. What Linux refuses is refused here, too: a bit behind the prefix, an interface that is
//! not there or down, a gateway that no network of the node holds, a route where there is one. Of several ways the first
//! one that is up is taken for every packet.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use weft_netlink::InterfaceAddress;
use weft_netlink::{
    KernelRoute, MAIN_TABLE, RouteChange, RouteOperation, RouteSpace, RouteTarget, RouteWay,
    RoutesTold,
};

use super::ids::{InterfaceId, NodeId, ProcessId};
use super::interfaces::number;
use super::routes::{Route, SetRoute};
use super::world::World;
use crate::{RouteReply, RouteRequest};

impl World {
    pub(super) fn routes_asked(
        &mut self,
        process: ProcessId,
        request: RouteRequest,
    ) -> Result<Option<RouteReply>, String> {
        let node = self.processes[process.index()].node;
        match request {
            RouteRequest::Change { space, changes } => {
                is_modelled(&space)?;
                let mut refused = Vec::new();
                for (place, change) in changes.iter().enumerate() {
                    if let Err(why) = self.change_route(node, &space, change) {
                        refused.push((place, why));
                    }
                }
                self.tell_ip_watchers();
                Ok(Some(RouteReply::Changed { refused }))
            }
            RouteRequest::Dump { space } => {
                is_modelled(&space)?;
                let all = self.network.nodes[node.index()].routes.all_set();
                let own = all.filter(|(.., route)| route.protocol == space.protocol);
                let routes = own.map(|(network, prefix_length, metric, route)| KernelRoute {
                    destination: InterfaceAddress { ip: network.into(), prefix_length },
                    metric,
                    target: Some(Arc::clone(&route.target)),
                });
                Ok(Some(RouteReply::Told { routes: routes.collect(), told: RoutesTold::All }))
            }
            // There are no others.
            RouteRequest::Watch { .. } => Ok(None),
        }
    }

    fn change_route(
        &mut self,
        node: NodeId,
        space: &RouteSpace,
        change: &RouteChange,
    ) -> Result<(), String> {
        let RouteChange { destination, metric, operation } = change;
        let (network, length) = prefix(destination)?;
        let routes = &self.network.nodes[node.index()].routes;
        let there = routes.set_at(network, length, *metric);
        let is_fixed = *metric == 0 && routes.is_fixed(network, length);
        let target = match operation {
            RouteOperation::Delete => {
                if there.is_some_and(|there| there.protocol == space.protocol) {
                    self.network.nodes[node.index()].routes.unset(network, length, *metric);
                }
                return Ok(());
            }
            RouteOperation::Add(_) if is_fixed || there.is_some() => {
                return Err("there is a route to this prefix with this metric".to_owned());
            }
            RouteOperation::Replace(_) if is_fixed => {
                return Err(
                    "the route to this prefix came with the node: it has the metric 0".to_owned()
                );
            }
            RouteOperation::Add(target) | RouteOperation::Replace(target) => target,
        };
        let (ways, target) = match &**target {
            RouteTarget::Ways(told) => {
                let ways = told
                    .iter()
                    .map(|way| self.checked_way(node, way))
                    .collect::<Result<Vec<_>, _>>()?;
                let found = told
                    .iter()
                    .zip(&ways)
                    .map(|(told, way)| RouteWay { interface: number(way.interface), ..*told });
                (ways.clone(), Arc::new(RouteTarget::ways(found.collect())))
            }
            _ => (Vec::new(), Arc::clone(target)),
        };
        let route = SetRoute { protocol: space.protocol, target, ways };
        self.network.nodes[node.index()].routes.set(network, length, *metric, route);
        Ok(())
    }

    fn checked_way(&self, node: NodeId, way: &RouteWay) -> Result<Route, String> {
        let gateway = match way.gateway {
            None => None,
            Some(IpAddr::V4(ip)) => Some(ip),
            Some(IpAddr::V6(ip)) => {
                return Err(format!(
                    "the gateway {ip} is of IPv6, and the simulator models IPv4 only"
                ));
            }
        };
        let of_node = &self.network.nodes[node.index()].interfaces;
        let interface = match (way.interface, gateway) {
            (0, None) => return Err("neither a gateway nor an interface is said".to_owned()),
            (0, Some(gateway)) => self
                .network
                .interface_towards(node, gateway)
                .ok_or_else(|| format!("the gateway {gateway} is in no network of this node"))?,
            (index, _) => of_node
                .iter()
                .copied()
                .find(|id: &InterfaceId| number(*id) == index)
                .ok_or_else(|| format!("there is no interface number {index}"))?,
        };
        let this = &self.network.interfaces[interface.index()];
        match this.is_up() {
            true => Ok(Route { interface, gateway }),
            false => Err(format!("the interface {} is down", this.name)),
        }
    }
}

fn is_modelled(space: &RouteSpace) -> Result<(), String> {
    if space.is_ipv6 {
        return Err("the simulator models IPv4 only; run the lab on network namespaces".to_owned());
    }
    if space.table != MAIN_TABLE {
        return Err(format!(
            "the simulator models the main table ({MAIN_TABLE}) only, not table {}; run the lab on network namespaces",
            space.table
        ));
    }
    Ok(())
}

fn prefix(destination: &InterfaceAddress) -> Result<(Ipv4Addr, u8), String> {
    let InterfaceAddress { ip, prefix_length } = *destination;
    match ip {
        IpAddr::V4(ip) if prefix_length <= 32 => {
            let behind = ip.to_bits().checked_shl(prefix_length.into()).unwrap_or(0);
            match behind {
                0 => Ok((ip, prefix_length)),
                _ => Err("a bit behind the prefix is set".to_owned()),
            }
        }
        _ => Err(format!("{destination} is no prefix of IPv4")),
    }
}
