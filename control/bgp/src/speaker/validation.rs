//! Whether the systems where routes begin may announce them: what changes when the RPKI says something else.
//!
//! Reference: RFC 6811 §4.

use std::collections::BTreeMap;

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::Output;

use super::Bgp;
use super::peer::Peer;
use crate::incoming::Announcer;
use crate::validation::{Changed, Validity};
use crate::wire::Attributes;

impl Peer {
    /// Who has announced its routes, if policy asks whether their origins are valid.
    fn asking_announcer(&self) -> Option<&Announcer> {
        self.known_announcer().filter(|announcer| announcer.import.asks_for_validity())
    }
}

impl Bgp {
    /// Has it found anew what is accepted, where the RPKI says something else than before.
    pub(super) fn heed_rpki(&mut self, now: Instant, out: &mut Vec<Output>) {
        match self.from_rpki.take_changed() {
            // What comes later is looked at when it comes.
            Some(Changed::Within(nets)) if self.is_asked_for_validity() => {
                self.routes.revalidate(nets);
            }
            None | Some(Changed::Within(_)) => {}
            Some(Changed::All) => {
                for address in self.peers.keys().copied().collect::<Vec<_>>() {
                    self.with_peer(now, address, out, |peer, world| {
                        if let Some(announcer) = peer.asking_announcer() {
                            world.routes.refilter(announcer.clone());
                        }
                    });
                }
            }
        }
    }

    fn is_asked_for_validity(&self) -> bool {
        self.peers.values().any(|peer| peer.asking_announcer().is_some())
    }

    /// Does some of that.
    pub(super) fn go_on_revalidating(&mut self) {
        if !self.routes.revalidates() {
            return;
        }
        let asking = self.peers.values().filter_map(Peer::asking_announcer);
        let asking: BTreeMap<_, _> =
            asking.map(|announcer| (announcer.origin, announcer)).collect();
        self.routes.go_on_revalidating(&asking);
    }

    /// Whether the system where a route begins may announce it.
    pub(super) fn validity(&self, net: &IpNet, attributes: &Attributes) -> Validity {
        let home = self.config.as_ref().map(|config| config.home).unwrap_or_default();
        self.routes.validation.validity(net, home.origin(&attributes.as_path))
    }
}
