//! The way that IPv4 of a node's kernel and of the routers behind it leads to an address at one moment, for what is
//! modelled without packets.

use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::time::Duration;

use super::ids::{InterfaceId, NodeId};
use super::network::Network;

/// A way to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The node that has it.
    pub(super) to: NodeId,
    /// The interface by which it leaves; none within a node.
    pub(super) first: Option<InterfaceId>,
    /// How many routers are between them.
    pub(super) routers: u8,
    /// The delays of the links together.
    pub(super) delay: Duration,
    /// The rate of the slowest link in bits per second, if any has one.
    pub(super) rate: Option<NonZeroU64>,
}

impl Network {
    /// The way from a node to an address; none if it breaks off, or has more routers than a time to live can count.
    pub(super) fn path(&self, from: NodeId, to: Ipv4Addr) -> Option<Path> {
        let delay = Duration::ZERO;
        let mut path = Path { to: from, first: None, routers: 0, delay, rate: None };
        while !self.is_local(path.to, to) {
            if path.first.is_some() {
                if !self.nodes[path.to.index()].forwarding {
                    return None;
                }
                path.routers = path.routers.checked_add(1)?;
            }
            let route = self.route(path.to, to).ok()?;
            let interface = &self.interfaces[route.interface.index()];
            let (link, transmitter) = interface.attachment.as_ref()?;
            let link = &self.links[link.index()];
            let next = *link.neighbours.get(&route.gateway.unwrap_or(to))?;
            let next = &self.interfaces[next.index()];
            if link.cut || !next.is_up() {
                return None;
            }
            let config = transmitter.model.config();
            path.delay += config.delay;
            path.rate = path.rate.into_iter().chain(config.rate).min();
            path.first = path.first.or(Some(route.interface));
            path.to = next.node;
        }
        Some(path)
    }
}
