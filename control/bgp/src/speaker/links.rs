//! This router's links: a session with a neighbour in another system ends when the link to it is down, and not when its
//! silence is noticed; when the link is back the neighbour is asked at once.
//!
//! And where its own addresses are: routes that lead there are not used.
//!
//! Reference: RFC 4271 §5.1.3 (no route leads to its own router), §8.2.2 (event 18, TcpConnectionFails, is what the session hears), §9.1.2.1 (without the link its
//! routes could not be used anyway).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_base::Instant;
use weft_runtime::InterfaceChange;
use weft_xrl::Output;

use super::Bgp;
use crate::routes::next_hops::Due;
use crate::wire::Neighbour;

/// The networks on links that can carry packets, by the numbers of interfaces.
#[derive(Debug, Default)]
pub(super) struct Links {
    nets: BTreeMap<u32, BTreeSet<IpNet>>,
    /// This router's addresses, by the numbers of interfaces, which need not carry packets.
    own: BTreeMap<u32, BTreeSet<IpAddr>>,
}

impl Links {
    fn has(&self, address: IpAddr) -> bool {
        self.nets.values().flatten().any(|net| net.contains(&address))
    }

    /// The addresses of this router.
    fn own(&self) -> BTreeSet<IpAddr> {
        self.own.values().flatten().copied().collect()
    }

    /// This router's address of the other version of IP on the link where it has this one, which other routers can be told.
    pub(super) fn beside(&self, address: IpAddr) -> Option<IpAddr> {
        let of_link = self.own.values().find(|own| own.contains(&address))?;
        let is_for_others = |one: &&IpAddr| match one {
            IpAddr::V4(ip) => !ip.is_loopback(),
            IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
        };
        let others = of_link.iter().filter(|one| one.is_ipv6() != address.is_ipv6());
        others.filter(is_for_others).min().copied()
    }

    /// Something about an interface is different.
    fn changed(&mut self, change: InterfaceChange) {
        match change {
            InterfaceChange::Added(interface) | InterfaceChange::Changed(interface) => {
                let addresses = interface.addresses.iter().filter(|_| interface.running);
                let net = |ip, length| IpNet::new(ip, length).ok().map(|net| net.trunc());
                let nets = addresses.filter_map(|one| net(one.ip, one.prefix_length));
                self.nets.insert(interface.index, nets.collect());
                let own = interface.addresses.iter().map(|one| one.ip);
                self.own.insert(interface.index, own.collect());
            }
            InterfaceChange::Removed { index, .. } => {
                self.nets.remove(&index);
                self.own.remove(&index);
            }
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
        let neighbours = self.peers.values().filter(|peer| {
            peer.config.neighbour != Neighbour::Internal && peer.config.session.multihop.is_none()
        });
        let before: Vec<_> =
            neighbours.map(|peer| (peer.address, self.links.has(peer.address))).collect();
        self.linked(change);
        for address in self.peers.keys().copied().collect::<Vec<_>>() {
            self.with_peer(now, address, out, |peer, world| peer.readdress(world));
        }
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

    fn linked(&mut self, change: InterfaceChange) {
        self.links.changed(change);
        let mut due = Due::default();
        self.routes.next_hops.set_own(self.links.own(), &mut due);
        self.routes.decide(due);
    }
}
