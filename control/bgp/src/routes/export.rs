//! What peers are told of a route.
//!
//! Reference: RFC 4271 §5.1 (what becomes of each attribute), §9.1.3 and §9.2 (routes to internal peers); RFC 1997
//! (NO_EXPORT, NO_ADVERTISE); RFC 9494 §4.3 and §4.6 (routes of speakers that are long away); RFC 4456 §6 to §8 (route reflection); RFC 7947 §2.2 (route servers); RFC 7311 §3.4 (what does not leave the system).

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::conventions;
use super::decision::{DEFAULT_LOCAL_PREF, Source};
use super::next_hops;
use crate::numbers::community::{
    GRACEFUL_SHUTDOWN, LLGR_STALE, NO_ADVERTISE, NO_EXPORT, NO_EXPORT_SUBCONFED,
};
use crate::policy::{Filter, Party, RouteView};
use crate::wire::{Attributes, NextHop, Role};

/// Whom a route is told, as far as that changes what is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Audience {
    /// Whether they are in another autonomous system.
    pub(crate) is_external: bool,
    /// Whether they are clients: of this route reflector (RFC 4456), or in other systems of this route server (RFC 7947).
    pub(crate) is_client: bool,
    /// The number of this one.
    pub(crate) local_as: u32,
    /// The identifier of the cluster of clients.
    pub(crate) cluster_id: Ipv4Addr,
    /// Whether packets for other systems are sent here by routers of this one, who may not know the way there.
    pub(crate) next_hop_self: bool,
    /// This router's address of the session: where others send packets.
    pub(crate) local_address: IpAddr,
    /// What this router is to them (RFC 9234).
    pub(crate) role: Option<Role>,
    /// Whether they are told to use other ways (RFC 8326).
    pub(crate) is_closing: bool,
    /// Whether they know what it means that routes live long (RFC 9494).
    pub(crate) knows_long_lived: bool,
    /// Whether routers of this system are told of such routes that do not know it, and all that they are used last.
    pub(crate) is_partial: bool,
    /// Which routes they are told (RFC 8212), and what becomes of them on the way.
    pub(crate) export: Filter,
    /// Who it is, if policy asks for that: then it is one alone.
    pub(crate) peer: Option<Party>,
}

impl Audience {
    /// What is told of a route with these attributes, from this source; none if nothing is. The prefix matters only
    /// if policy asks for it.
    pub(crate) fn tell(
        &self,
        attributes: &Attributes,
        source: &Source,
        prefix: Option<IpNet>,
    ) -> Option<Attributes> {
        if !self.may_hear(attributes, source) {
            return None;
        }
        let changes = self.export.run(&self.view(attributes, source, prefix))?;
        let mut told = if changes.is_empty() {
            self.say(attributes, source)?
        } else {
            let changed = changes.apply(attributes);
            let mut told = self.say(&changed, source)?;
            if changes.sets_next_hop() {
                told.next_hop = changed.next_hop;
            }
            if changes.sets_med() {
                told.med = changed.med;
            }
            told
        };
        if source.is_stale(&attributes.communities) {
            self.mark_stale(&mut told);
        }
        // It is for this router alone.
        if told.rare().tag > 0 {
            told.change_rare(|rare| rare.tag = 0);
        }
        Some(told)
    }

    /// A route lives only because there may be no other, whatever policy says (RFC 9494 §4.3, §4.6).
    fn mark_stale(&self, told: &mut Attributes) {
        conventions::add_community(told, LLGR_STALE);
        if self.is_external || !self.is_partial {
            return;
        }
        // All routers of the system must choose alike.
        told.local_pref = Some(0);
        if !self.knows_long_lived {
            conventions::add_community(told, NO_EXPORT);
        }
    }

    /// A route as policies see it.
    pub(crate) fn view<'a>(
        &self,
        attributes: &'a Attributes,
        source: &'a Source,
        prefix: Option<IpNet>,
    ) -> RouteView<'a> {
        // Whoever asks for more than the kind of the peer is told who it is.
        let (nowhere, is_outside) = (Ipv4Addr::UNSPECIFIED.into(), self.is_external);
        let anybody = Party { address: nowhere, system: 0, is_external: is_outside };
        RouteView {
            attributes,
            prefix,
            protocol: source.protocol().0,
            metric: None,
            from: source.party(),
            to: Some(self.peer.unwrap_or(anybody)),
            own: (self.local_address, self.local_as),
        }
    }

    /// Whether they may be told of it, whatever policy says.
    pub(crate) fn may_hear(&self, attributes: &Attributes, source: &Source) -> bool {
        let has = |community| attributes.has_community(community);
        let leaves = !has(NO_EXPORT) && !has(NO_EXPORT_SUBCONFED);
        // RFC 4456 §6: what an internal peer says is passed on by route reflectors alone.
        let is_reflected = source.is_client || self.is_client;
        let stays = source.is_external || source.own.is_some() || is_reflected;
        let may_be_stale = self.knows_long_lived || (self.is_partial && !self.is_external);
        !has(NO_ADVERTISE)
            && if self.is_external { leaves } else { stays }
            && (may_be_stale || !source.is_stale(&attributes.communities))
    }

    /// What they are told of a route that they may hear of.
    fn say(&self, attributes: &Attributes, source: &Source) -> Option<Attributes> {
        match self.is_external {
            true => self.outward(attributes, source),
            false if source.is_external || source.own.is_some() => Some(self.inward(attributes)),
            false => Some(self.reflect(attributes, source)),
        }
    }

    /// To a router of this system, about a route from another one, or to a network of this router's own (RFC 4271 §5.1.3,
    /// §5.1.5).
    fn inward(&self, attributes: &Attributes) -> Attributes {
        let is_here = |hop: &NextHop| next_hops::address(hop).is_unspecified();
        let next_hop = match attributes.next_hop.filter(|hop| !is_here(hop)) {
            Some(next_hop) if !self.next_hop_self => Some(next_hop),
            _ => Some(self.here()),
        };
        Attributes { next_hop, ..with_preference(attributes) }
    }

    /// To a router of this system, about a route from another one of it (RFC 4456 §8; §10: everything else stays as it
    /// is).
    fn reflect(&self, attributes: &Attributes, source: &Source) -> Attributes {
        let mut told = with_preference(attributes);
        told.change_rare(|rare| {
            rare.originator_id = rare.originator_id.or(Some(source.router_id));
            let clusters = [self.cluster_id].into_iter().chain(rare.cluster_list.iter().copied());
            rare.cluster_list = clusters.collect();
        });
        told
    }

    /// This router, as the next hop.
    fn here(&self) -> NextHop {
        match self.local_address {
            IpAddr::V4(address) => NextHop::V4(address),
            IpAddr::V6(global) => NextHop::V6 { global, link_local: None },
        }
    }

    /// To another autonomous system: through this one, by this router (§5.1.2, §5.1.3), without what is for this system
    /// only (§5.1.4, §5.1.5). A route server is not on the way of packets, and nothing shows that it is there.
    fn outward(&self, attributes: &Attributes, source: &Source) -> Option<Attributes> {
        let mut told = Attributes { local_pref: None, ..attributes.clone() };
        let is_server = source.is_external && self.is_client;
        if !is_server {
            told.as_path = attributes.as_path.prepend(self.local_as, 1);
            told.next_hop = Some(self.here());
            // What this system says itself is for its neighbours.
            told.med = attributes.med.filter(|_| source.own.is_some());
        }
        told.change_rare(|rare| {
            rare.originator_id = None;
            rare.cluster_list = Box::default();
            rare.aigp = None;
        });
        if self.is_closing {
            conventions::add_community(&mut told, GRACEFUL_SHUTDOWN);
        }
        conventions::tell(self.role, self.local_as, &mut told).then_some(told)
    }
}

/// Routers of this system are told how much a route is preferred (RFC 4271 §5.1.5).
fn with_preference(attributes: &Attributes) -> Attributes {
    let local_pref = Some(attributes.local_pref.unwrap_or(DEFAULT_LOCAL_PREF));
    Attributes { local_pref, ..attributes.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::AsPath;

    fn audience(is_external: bool) -> Audience {
        Audience {
            is_external,
            is_client: false,
            local_as: 65000,
            cluster_id: Ipv4Addr::new(10, 0, 0, 1),
            next_hop_self: false,
            local_address: "192.0.2.1".parse().unwrap(),
            role: None,
            is_closing: false,
            knows_long_lived: false,
            is_partial: false,
            export: Filter::All,
            peer: None,
        }
    }

    fn source(is_external: bool, is_client: bool) -> Source {
        let router_id = Ipv4Addr::new(10, 0, 0, 2);
        let (own, address) = (None, router_id.into());
        let is_long_lived = true;
        Source { own, is_external, system: 65001, is_client, is_long_lived, router_id, address }
    }

    /// Another system's router.
    fn outsider() -> Source {
        source(true, false)
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
        let told = audience(true).tell(&attributes(&[77]), &outsider(), None).unwrap();
        assert_eq!(told.as_path, AsPath::from_sequence(&[65000, 65001, 65002]));
        assert_eq!(told.next_hop, Some(NextHop::V4("192.0.2.1".parse().unwrap())));
        assert_eq!((told.med, told.local_pref, &*told.communities), (None, None, &[77][..]));
    }

    #[test]
    fn this_system_sees_the_route_as_it_came() {
        let told = audience(false).tell(&attributes(&[]), &outsider(), None).unwrap();
        assert_eq!(told, attributes(&[]));
        assert_eq!(
            audience(false).tell(&attributes(&[]), &source(false, false), None),
            None,
            "from inside it stays"
        );
    }

    /// RFC 7947 §2.2.1 to §2.2.3: next hop, path and MED are those of who has announced the route.
    #[test]
    fn a_route_server_is_not_seen() {
        let server = Audience { is_client: true, ..audience(true) };
        let told = server.tell(&attributes(&[77]), &outsider(), None).unwrap();
        assert_eq!(told, Attributes { local_pref: None, ..attributes(&[77]) });
        // What this system says itself is said as to everybody.
        let inside = source(false, false);
        assert_eq!(
            server.tell(&attributes(&[]), &inside, None),
            audience(true).tell(&attributes(&[]), &inside, None)
        );
    }

    #[test]
    fn a_router_that_others_do_not_know_the_way_behind_names_itself() {
        let told = Audience { next_hop_self: true, ..audience(false) }
            .tell(&attributes(&[]), &outsider(), None)
            .unwrap();
        assert_eq!(told.next_hop, Some(NextHop::V4("192.0.2.1".parse().unwrap())));
    }

    /// RFC 4456 §6: from a client to everybody, from others to clients; §8: who, and through which clusters.
    #[test]
    fn a_reflector_passes_on_what_its_clients_say_and_what_they_do_not_hear() {
        let clients = Audience { is_client: true, ..audience(false) };
        let (client, other) = (source(false, true), source(false, false));
        for (audience, source) in
            [(clients.clone(), &client), (clients, &other), (audience(false), &client)]
        {
            let told = audience.tell(&attributes(&[]), source, None).unwrap();
            assert_eq!(told.rare().originator_id, Some(source.router_id));
            assert_eq!(*told.rare().cluster_list, [Ipv4Addr::new(10, 0, 0, 1)]);
            assert_eq!(told.next_hop, attributes(&[]).next_hop);
            // And once more, by the next cluster's reflector.
            let next = Audience { cluster_id: Ipv4Addr::new(10, 0, 0, 9), ..audience };
            let again = next.tell(&told, &source_at(9), None).unwrap();
            assert_eq!(again.rare().originator_id, Some(source.router_id));
            let clusters = [9, 1].map(|last| Ipv4Addr::new(10, 0, 0, last));
            assert_eq!(*again.rare().cluster_list, clusters);
        }
        assert_eq!(audience(false).tell(&attributes(&[]), &other, None), None);
        let outside = audience(true).tell(&attributes(&[]), &client, None).unwrap();
        assert!(outside.rare().cluster_list.is_empty());
    }

    #[test]
    fn networks_of_this_router_are_told_to_all_with_their_metric() {
        let own = Attributes {
            next_hop: Some(NextHop::V4(Ipv4Addr::UNSPECIFIED)),
            med: Some(7),
            ..Attributes::default()
        };
        let here = Some(NextHop::V4("192.0.2.1".parse().unwrap()));
        let source = Source::own("static", 1);
        let inside = audience(false).tell(&own, &source, None).unwrap();
        assert_eq!((inside.next_hop, inside.med, inside.local_pref), (here, Some(7), Some(100)));
        assert!(inside.as_path.is_empty() && inside.rare().originator_id.is_none());
        let outside = audience(true).tell(&own, &source, None).unwrap();
        assert_eq!((outside.next_hop, outside.med, outside.local_pref), (here, Some(7), None));
        assert_eq!(outside.as_path, AsPath::from_sequence(&[65000]));
        // Unless a policy has said where packets go.
        let elsewhere = Some(NextHop::V4("192.0.2.9".parse().unwrap()));
        let set = Attributes { next_hop: elsewhere, ..own };
        assert_eq!(audience(false).tell(&set, &source, None).unwrap().next_hop, elsewhere);
    }

    /// RFC 9494 §4.3 and §4.6.
    #[test]
    fn routes_that_live_long_are_told_to_those_who_know_what_that_means() {
        let stale = attributes(&[77, LLGR_STALE]);
        let (inside, outside) = (audience(false), audience(true));
        assert_eq!(outside.tell(&stale, &outsider(), None), None);
        assert_eq!(inside.tell(&stale, &outsider(), None), None);
        let knows = |audience: &Audience| Audience { knows_long_lived: true, ..audience.clone() };
        let told = |audience: &Audience| audience.tell(&stale, &outsider(), None).unwrap();
        assert_eq!(*told(&knows(&outside)).communities, [77, LLGR_STALE]);
        assert_eq!(told(&knows(&inside)), stale);
        // Where this was not agreed on with who announced it, it is a route like others.
        let other = Source { is_long_lived: false, ..outsider() };
        assert!(outside.tell(&stale, &other, None).is_some());
        let partial = |audience: &Audience| Audience { is_partial: true, ..audience.clone() };
        assert_eq!(partial(&outside).tell(&stale, &outsider(), None), None);
        let least = Attributes { local_pref: Some(0), ..stale.clone() };
        assert_eq!(told(&knows(&partial(&inside))), least);
        let here = [77, LLGR_STALE, NO_EXPORT];
        assert_eq!(
            told(&partial(&inside)),
            Attributes { communities: here.into(), ..least.clone() }
        );
    }

    fn source_at(last: u8) -> Source {
        Source { router_id: Ipv4Addr::new(10, 0, 0, last), ..source(false, true) }
    }

    #[test]
    fn communities_and_missing_policies_keep_routes_here() {
        let (inside, outside) = (audience(false), audience(true));
        assert_eq!(outside.tell(&attributes(&[NO_EXPORT]), &outsider(), None), None);
        assert!(inside.tell(&attributes(&[NO_EXPORT]), &outsider(), None).is_some());
        assert_eq!(inside.tell(&attributes(&[NO_ADVERTISE]), &outsider(), None), None);
        assert_eq!(
            Audience { export: Filter::None, ..outside.clone() }.tell(
                &attributes(&[]),
                &outsider(),
                None
            ),
            None
        );
    }
}
