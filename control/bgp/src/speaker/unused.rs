//! Why a path is not used, for people.
//!
//! Reference: RFC 4271 §9.1.1 and §9.1.2 (what may be used), §5.1.3 and §6.3 (next hops); RFC 8212 (without a policy nothing);
//! RFC 2439 (damping).

use ipnet::IpNet;
use weft_routing::Candidate;
use weft_routing::ip::Version;

use super::Bgp;
use super::peer::Peer;
use crate::policy::Filter;
use crate::routes::Path;

impl Bgp {
    /// Why a path cannot be used; none if it can.
    pub(super) fn unused(
        &self,
        (version, net): (Version, IpNet),
        one: &Candidate<Path>,
    ) -> Option<String> {
        let routes = &self.routes;
        if !one.route.is_accepted() {
            let key = (version, net, one.path);
            let why = if routes.is_damped(one.origin, &key) {
                "it is damped"
            } else {
                self.refused(version, one)
            };
            return Some(why.to_owned());
        }
        if routes.is_usable(one) {
            return None;
        }
        let id = routes.sets.next_hop(one.route.accepted);
        let next_hop = routes.next_hops.address(id);
        let Some(reached) = routes.next_hops.reached(id) else {
            return Some(format!("the RIB has not said how {next_hop} is reached"));
        };
        if routes.next_hops.is_own(&next_hop) {
            return Some(format!("{next_hop} is this router itself"));
        }
        if reached.metric.is_none() {
            return Some(format!("{next_hop} is not reached"));
        }
        Some(format!("{next_hop} is not on a link of this router, as its peer is"))
    }

    /// Why a path was not accepted.
    fn refused(&self, version: Version, one: &Candidate<Path>) -> &'static str {
        let peer = self.peers.get(&self.routes.source(one.origin).address);
        let Some(announcer) = peer.and_then(Peer::known_announcer) else {
            return "no policy has accepted it";
        };
        if announcer.import == Filter::None {
            return "`import` of the peer takes nothing";
        }
        let attributes = self.routes.sets.get(one.route.received).unpack();
        match announcer.accepts(&attributes, version) {
            true => "`import` of the peer does not take it",
            false => "its path, or who sent it, forbids that",
        }
    }
}
