//! Neighbours that the configuration does not name: each is a peer from its first connection on, until nothing of it is
//! left.
//!
//! Reference: RFC 4271 §8.2.1 (connections of unconfigured peers).

use std::collections::BTreeMap;
use std::net::IpAddr;

use weft_base::Instant;
use weft_routing::OriginId;
use weft_routing::ip::Version;
use weft_xrl::Output;

use super::Bgp;
use super::limit::Held;
use super::peer::Peer;
use crate::config::{Config, PeerConfig};
use crate::routes::Routes;
use crate::routes::decision::Source;

/// Origins of routes at most: they have two bytes, and peers that are named need some.
const MOST_ORIGINS: usize = 60_000;

impl Peer {
    /// Whether there is nothing of it: no connection, no routes that serve on, no time that it has to wait.
    fn has_gone(&self, routes: &Routes) -> bool {
        self.range.is_some()
            && self.is_alone()
            && self.stale.is_empty(routes)
            && self.limit.held == Held::No
    }
}

impl Bgp {
    /// All peers that there are to be: those that are named, and those that there are and a range still allows.
    pub(super) fn wanted(&self, config: Option<&Config>) -> BTreeMap<IpAddr, PeerConfig> {
        let Some(config) = config else { return BTreeMap::new() };
        let strangers =
            self.peers.values().filter(|peer| peer.range.is_some()).filter_map(|peer| {
                let range =
                    config.range(peer.address).filter(|range| peer.range == Some(range.net))?;
                Some((peer.address, range.peer.clone()))
            });
        let named = config.peers.iter().map(|(address, peer)| (*address, peer.clone()));
        strangers.chain(named).collect()
    }

    /// Makes whoever has connected from this address a peer, if he may be one.
    pub(super) fn welcome(&mut self, now: Instant, address: IpAddr, out: &mut Vec<Output>) {
        let Some(config) = self.config.as_ref().filter(|_| self.restart.may_begin()) else {
            return;
        };
        let Some(range) = config.range(address).cloned() else { return };
        // The last routes of some may have gone in the background.
        for known in self.peers.keys().copied().collect::<Vec<_>>() {
            self.forget_gone(known);
        }
        let like = self.peers.values().filter(|peer| peer.range == Some(range.net)).count();
        let has_origin = !self.free_origins.is_empty() || self.routes.sources() < MOST_ORIGINS;
        if like < range.most && has_origin {
            self.configure_peer(now, address, &range.peer, false, out);
            if let Some(peer) = self.peers.get_mut(&address) {
                peer.range = Some(range.net);
            }
        }
    }

    /// The origin of a new peer's routes: one whose former peer has left no routes, or a new one.
    pub(super) fn origin(&mut self, source: Source) -> OriginId {
        let routes = &self.routes.table;
        let is_empty = |origin: &OriginId| {
            Version::ALL.into_iter().all(|version| routes.routes_of(version, *origin) == 0)
        };
        let free = self.free_origins.iter().position(is_empty);
        match free {
            Some(place) => self.free_origins.swap_remove(place),
            None => self.routes.add_source(source),
        }
    }

    /// Forgets a peer that no name is known of, if nothing of it is left.
    pub(super) fn forget_gone(&mut self, address: IpAddr) {
        if self.peers.get(&address).is_some_and(|peer| peer.has_gone(&self.routes)) {
            self.peers.remove(&address);
            if let Some(origin) = self.origins.remove(&address) {
                self.by_origin.remove(&origin);
                self.routes.set_damping(origin, None);
                self.routes.stop_rounds(origin);
                self.free_origins.push(origin);
            }
        }
    }
}
