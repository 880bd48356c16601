//! What peers are told of a route.
//!
//! Reference: RFC 4271 §5.1 (what becomes of each attribute), §9.1.3 and §9.2 (routes to internal peers); RFC 1997
//! (NO_EXPORT, NO_ADVERTISE); RFC 4456 §8 and RFC 7311 §3.4 (what does not leave the system).

use std::net::IpAddr;

use super::decision::DEFAULT_LOCAL_PREF;
use crate::numbers::community::{NO_ADVERTISE, NO_EXPORT, NO_EXPORT_SUBCONFED};
use crate::wire::{Attributes, Neighbour, NextHop};

/// Whom a route is told, as far as that changes what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Audience {
    /// Whether they are in another autonomous system.
    pub(crate) is_external: bool,
    /// The number of this one.
    pub(crate) local_as: u32,
    /// This router's address of the session: where others send packets.
    pub(crate) local_address: IpAddr,
    /// Whether they are told anything (RFC 8212).
    pub(crate) exports: bool,
}

impl Audience {
    /// Of a peer, what it is told.
    pub(crate) fn new(
        neighbour: Neighbour,
        local_as: u32,
        local_address: IpAddr,
        exports: bool,
    ) -> Self {
        let is_external = neighbour == Neighbour::External;
        Self { is_external, local_as, local_address, exports }
    }

    /// What is told of a route with these attributes, which an external peer has announced or an internal one; none if
    /// nothing is.
    pub(crate) fn tell(
        &self,
        attributes: &Attributes,
        is_from_external: bool,
    ) -> Option<Attributes> {
        let has = |community| attributes.has_community(community);
        if !self.exports || has(NO_ADVERTISE) {
            return None;
        }
        if self.is_external {
            return (!has(NO_EXPORT) && !has(NO_EXPORT_SUBCONFED))
                .then(|| self.outward(attributes));
        }
        is_from_external.then(|| Attributes {
            local_pref: Some(attributes.local_pref.unwrap_or(DEFAULT_LOCAL_PREF)),
            ..attributes.clone()
        })
    }

    /// To another autonomous system: through this one, by this router (§5.1.2, §5.1.3), without what is for this system
    /// only (§5.1.4, §5.1.5).
    fn outward(&self, attributes: &Attributes) -> Attributes {
        let next_hop = match self.local_address {
            IpAddr::V4(address) => NextHop::V4(address),
            IpAddr::V6(global) => NextHop::V6 { global, link_local: None },
        };
        let mut told = Attributes {
            as_path: attributes.as_path.prepend(self.local_as, 1),
            next_hop: Some(next_hop),
            med: None,
            local_pref: None,
            ..attributes.clone()
        };
        told.change_rare(|rare| {
            rare.originator_id = None;
            rare.cluster_list = Box::default();
            rare.aigp = None;
        });
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::AsPath;

    fn audience(is_external: bool) -> Audience {
        let local_address = "192.0.2.1".parse().unwrap();
        Audience { is_external, local_as: 65000, local_address, exports: true }
    }

    fn attributes(communities: &[u32]) -> Attributes {
        Attributes {
            as_path: AsPath::from_sequence(&[65001, 65002]),
            next_hop: Some(NextHop::V4("198.51.100.2".parse().unwrap())),
            med: Some(5),
            local_pref: Some(200),
            communities: communities.into(),
            ..Attributes::default()
        }
    }

    #[test]
    fn another_system_sees_this_one_and_its_router() {
        let told = audience(true).tell(&attributes(&[77]), true).unwrap();
        assert_eq!(told.as_path, AsPath::from_sequence(&[65000, 65001, 65002]));
        assert_eq!(told.next_hop, Some(NextHop::V4("192.0.2.1".parse().unwrap())));
        assert_eq!((told.med, told.local_pref, &*told.communities), (None, None, &[77][..]));
    }

    #[test]
    fn this_system_sees_the_route_as_it_came() {
        let told = audience(false).tell(&attributes(&[]), true).unwrap();
        assert_eq!(told, attributes(&[]));
        assert_eq!(audience(false).tell(&attributes(&[]), false), None, "from inside it stays");
    }

    #[test]
    fn communities_and_missing_policies_keep_routes_here() {
        let (inside, outside) = (audience(false), audience(true));
        assert_eq!(outside.tell(&attributes(&[NO_EXPORT]), true), None);
        assert!(inside.tell(&attributes(&[NO_EXPORT]), true).is_some());
        assert_eq!(inside.tell(&attributes(&[NO_ADVERTISE]), true), None);
        assert_eq!(Audience { exports: false, ..outside }.tell(&attributes(&[]), true), None);
    }
}
