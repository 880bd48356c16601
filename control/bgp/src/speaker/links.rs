//! This router's links: a session with a neighbour in another system ends when the link to it is down, and not when its
//! silence is noticed; when the link is back the neighbour is asked at once.
//!
//! Reference: RFC 4271 §8.2.2 (event 18, TcpConnectionFails, is what the session hears), §9.1.2.1 (without the link its
//! routes could not be used anyway).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;
use weft_runtime::InterfaceChange;
use weft_xrl::Output;

use super::Bgp;

/// The networks on links that can carry packets, by the numbers of interfaces.
#[derive(Debug, Default)]
pub(super) struct Links {
    nets: BTreeMap<u32, BTreeSet<IpNet>>,
}

impl Links {
    fn has(&self, address: IpAddr) -> bool {
        self.nets.values().flatten().any(|net| net.contains(&address))
    }

    /// Something about an interface is different.
    fn changed(&mut self, change: InterfaceChange) {
        match change {
            InterfaceChange::Added(interface) | InterfaceChange::Changed(interface) => {
                let addresses = interface.addresses.iter().filter(|_| interface.running);
                let net = |ip, length| IpNet::new(ip, length).ok().map(|net| net.trunc());
                let nets = addresses.filter_map(|one| net(one.ip, one.prefix_length));
                self.nets.insert(interface.index, nets.collect());
            }
            InterfaceChange::Removed { index, .. } => drop(self.nets.remove(&index)),
            InterfaceChange::Complete => {}
        }
    }
}

impl Bgp {
    /// Something about an interface is different: sessions hear of it.
    pub(super) fn interface(
        &mut self,
        now: Instant,
        change: InterfaceChange,
        out: &mut Vec<Output>,
    ) {
        let Some(config) = &self.config else { return self.links.changed(change) };
        let neighbours = self.peers.values().filter(|peer| {
            !peer.config.is_internal(config) && peer.config.session.multihop.is_none()
        });
        let before: Vec<_> =
            neighbours.map(|peer| (peer.address, self.links.has(peer.address))).collect();
        self.links.changed(change);
        for (address, had) in before {
            match (had, self.links.has(address)) {
                (true, false) => {
                    self.with_peer(now, address, out, |peer, world| peer.link_is_down(world));
                }
                (false, true) => {
                    self.with_peer(now, address, out, |peer, world| peer.link_is_up(world));
                }
                _ => {}
            }
        }
    }
}
