//! What peers are told of a route.
//!
//! Reference: RFC 4271 §5.1 (what becomes of each attribute), §9.1.3 and §9.2 (routes to internal peers); RFC 1997
//! (NO_EXPORT, NO_ADVERTISE); RFC 2545 §3 (the two addresses of a next hop of IPv6); RFC 4360 §6 (communities that stay in
//! the system); RFC 9494 §4.3 and §4.6 (routes of speakers that are long away); RFC 4456 §6 to §8 (route reflection); RFC
//! 7947 §2.2 (route servers); RFC 7311 §3 (AIGP, which does not leave the system, and is left out where the next hop changes);
//! RFC 9234 §5 (roles are for packets to one receiver); RFC 5065 §4.1 and §5.2 (other members of a confederation).

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::IpNet;
use weft_routing::ip::Version;

use super::conventions;
use super::decision::{DEFAULT_LOCAL_PREF, Source};
use crate::home::Home;
use crate::incoming::family;
use crate::numbers::community::{
    GRACEFUL_SHUTDOWN, LLGR_STALE, NO_ADVERTISE, NO_EXPORT, NO_EXPORT_SUBCONFED,
};
use crate::policy::{Filter, Party, RouteView};
use crate::wire::{Attributes, Context, Neighbour, NextHop, Role};

/// Whom a route is told, as far as that changes what is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Audience {
    /// Where they are.
    pub(crate) neighbour: Neighbour,
    /// Whether they are clients: of this route reflector (RFC 4456), or in other systems of this route server (RFC 7947).
    pub(crate) is_client: bool,
    /// This router's system.
    pub(crate) home: Home,
    /// The identifier of the cluster of clients.
    pub(crate) cluster_id: Ipv4Addr,
    /// Whether packets for other systems are sent here by routers of this one, who may not know the way there.
    pub(crate) next_hop_self: bool,
    /// This router's address of the session: where others send packets.
    pub(crate) local_address: IpAddr,
    /// Its address of the other version of IP on the same link, where others send packets of that; none if it has none.
    pub(crate) address_beside: Option<IpAddr>,
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
    /// How long they are told nothing new after they were told something (RFC 4271 §9.2.1.1).
    pub(crate) interval: Duration,
    /// Who it is, if policy asks for that: then it is one alone.
    pub(crate) peer: Option<Party>,
}

/// Whether a route from there is one that another router of this system has said.
fn is_of_this(source: &Source) -> bool {
    source.own.is_none() && source.neighbour == Neighbour::Internal
}

impl Audience {
    /// Whether they are in another autonomous system, and in no member of the same confederation.
    fn is_external(&self) -> bool {
        self.neighbour == Neighbour::External
    }

    /// The same for routes of one family, in a session of which this was agreed on.
    pub(crate) fn of(&self, version: Version, context: &Context) -> Self {
        let is_right = |address: &IpAddr| address.is_ipv6() == version.is_ipv6();
        // RFC 8950: next hops of IPv6 may be where those of IPv4 are.
        let may_stay =
            is_right(&self.local_address) || context.extended_next_hop.contains(family(version));
        let beside = self.address_beside.filter(|one| is_right(one) && !may_stay);
        Self {
            role: self.role.filter(|_| !version.is_multicast()),
            local_address: beside.unwrap_or(self.local_address),
            ..self.clone()
        }
    }

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
                told.next_hop = changed.next_hop.map(|hop| self.seen(hop));
                // How far that is from there is not known.
                told.change_rare(|rare| rare.aigp = None);
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
        if self.is_external() || !self.is_partial {
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
        let (nowhere, is_outside) = (Ipv4Addr::UNSPECIFIED.into(), self.is_external());
        let anybody = Party { address: nowhere, system: 0, is_external: is_outside };
        RouteView {
            attributes,
            prefix,
            protocol: source.protocol().0,
            metric: None,
            from: source.party(),
            to: Some(self.peer.unwrap_or(anybody)),
            own: (self.local_address, self.home.outside()),
            validity: None,
        }
    }

    /// Whether they may be told of it, whatever policy says.
    pub(crate) fn may_hear(&self, attributes: &Attributes, source: &Source) -> bool {
        let has = |community| attributes.has_community(community);
        let goes_there = match self.neighbour {
            Neighbour::External => !has(NO_EXPORT) && !has(NO_EXPORT_SUBCONFED),
            Neighbour::Confederation => !has(NO_EXPORT_SUBCONFED),
            // RFC 4456 §6: what an internal peer says is passed on by route reflectors alone.
            Neighbour::Internal => !is_of_this(source) || source.is_client || self.is_client,
        };
        let may_be_stale = self.knows_long_lived || (self.is_partial && !self.is_external());
        !has(NO_ADVERTISE)
            && goes_there
            && (may_be_stale || !source.is_stale(&attributes.communities))
    }

    /// What they are told of a route that they may hear of.
    fn say(&self, attributes: &Attributes, source: &Source) -> Option<Attributes> {
        match self.neighbour {
            Neighbour::External => self.outward(attributes, source),
            Neighbour::Confederation => Some(self.across(attributes)),
            Neighbour::Internal if is_of_this(source) => Some(self.reflect(attributes, source)),
            Neighbour::Internal => Some(self.inward(attributes)),
        }
    }

    /// To another member of the confederation: the path goes through this one, and all else is as inside of it (RFC 5065 §4.1,
    /// §5.2), but for where it was reflected here, which is said to nobody else.
    fn across(&self, attributes: &Attributes) -> Attributes {
        let mut told = self.inward(attributes);
        told.as_path = self.home.path_for(self.neighbour, &attributes.as_path);
        conventions::forget_reflection(&mut told);
        told
    }

    /// To a router of this system, about a route from another one, or from another member of the confederation, or to a network of this router's own (RFC 4271 §5.1.3,
    /// §5.1.5).
    fn inward(&self, attributes: &Attributes) -> Attributes {
        let mut told = with_preference(attributes);
        match attributes.next_hop.filter(|_| !self.next_hop_self) {
            Some(next_hop) => told.next_hop = Some(self.seen(next_hop)),
            None => {
                told.next_hop = Some(self.here());
                // How far the next hop was from here is not known here, and would have to be added.
                if told.rare().aigp.is_some() {
                    told.change_rare(|rare| rare.aigp = None);
                }
            }
        }
        told
    }

    /// To a router of this system, about a route from another one of it (RFC 4456 §8; §10: everything else stays as it
    /// is).
    fn reflect(&self, attributes: &Attributes, source: &Source) -> Attributes {
        let mut told = with_preference(attributes);
        told.next_hop = told.next_hop.map(|hop| self.seen(hop));
        told.change_rare(|rare| {
            rare.originator_id = rare.originator_id.or(Some(source.router_id));
            let clusters = [self.cluster_id].into_iter().chain(rare.cluster_list.iter().copied());
            rare.cluster_list = clusters.collect();
        });
        told
    }

    /// A next hop as they are told it. An address of a link means nothing to routers of this system, which may be elsewhere:
    /// one that has no other, as this router's own networks have none, is reached by this router.
    fn seen(&self, next_hop: NextHop) -> NextHop {
        match next_hop {
            NextHop::V4(address) if address.is_unspecified() => self.here(),
            NextHop::V6 { global, .. } if !self.is_external() && global.is_unspecified() => {
                self.here()
            }
            NextHop::V6 { global, .. } if !self.is_external() => {
                NextHop::V6 { global, link_local: None }
            }
            other => other,
        }
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
        let mut told = attributes.clone();
        conventions::leave(&mut told);
        let is_server = source.is_external() && self.is_client;
        if !is_server {
            told.as_path = self.home.path_for(self.neighbour, &attributes.as_path);
            told.next_hop = Some(self.here());
            // What this system says itself is for its neighbours.
            told.med = attributes.med.filter(|_| source.own.is_some());
        }
        if self.is_closing {
            conventions::add_community(&mut told, GRACEFUL_SHUTDOWN);
        }
        conventions::tell(self.role, self.home.outside(), &mut told).then_some(told)
    }
}

/// Routers of this system are told how much a route is preferred (RFC 4271 §5.1.5).
fn with_preference(attributes: &Attributes) -> Attributes {
    let local_pref = Some(attributes.local_pref.unwrap_or(DEFAULT_LOCAL_PREF));
    Attributes { local_pref, ..attributes.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::next_hops;
    use super::*;
    use crate::wire::{AsPath, Families, Family};

    fn audience(is_external: bool) -> Audience {
        Audience {
            neighbour: if is_external { Neighbour::External } else { Neighbour::Internal },
            is_client: false,
            home: Home::alone(65000),
            cluster_id: Ipv4Addr::new(10, 0, 0, 1),
            next_hop_self: false,
            local_address: "192.0.2.1".parse().unwrap(),
            address_beside: None,
            role: None,
            is_closing: false,
            knows_long_lived: false,
            is_partial: false,
            export: Filter::All,
            interval: Duration::ZERO,
            peer: None,
        }
    }

    fn source(is_external: bool, is_client: bool) -> Source {
        let router_id = Ipv4Addr::new(10, 0, 0, 2);
        let (own, address) = (None, router_id.into());
        Source {
            own,
            neighbour: if is_external { Neighbour::External } else { Neighbour::Internal },
            system: 65001,
            is_client,
            is_direct: false,
            is_long_lived: true,
            has_blackholes: false,
            router_id,
            address,
        }
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

    /// RFC 5065 §4.1 and §5.2: all but the path, and where it was reflected, is as inside of this member.
    #[test]
    fn another_member_hears_what_this_one_says_to_itself() {
        let home = Home { number: 65000, confederation: Some(100) };
        let members = Audience { neighbour: Neighbour::Confederation, home, ..audience(false) };
        let (inside, member) = (
            source(false, false),
            Source { neighbour: Neighbour::Confederation, ..source(false, false) },
        );
        let as_path = AsPath::from_sequence(&[65001, 65002]).prepend_confederation(65000);
        let mut reflected = attributes(&[77]);
        reflected.change_rare(|rare| {
            rare.originator_id = Some(Ipv4Addr::new(10, 0, 0, 7));
            rare.cluster_list = [Ipv4Addr::new(10, 0, 0, 8)].into();
            rare.aigp = Some(5);
        });
        let mut expected = Attributes { as_path, ..attributes(&[77]) };
        expected.change_rare(|rare| rare.aigp = Some(5));
        // Whoever has said it: no reflector is needed between members.
        for source in [&outsider(), &inside, &member] {
            assert_eq!(members.tell(&reflected, source, None), Some(expected.clone()));
        }
        let inward = Audience { home, ..audience(false) };
        assert_eq!(inward.tell(&attributes(&[]), &member, None), Some(attributes(&[])));
        assert_eq!(inward.tell(&attributes(&[]), &inside, None), None);
        // Where packets are to be sent here, what is said of the way from there says nothing.
        let here = Audience { next_hop_self: true, ..members.clone() };
        assert_eq!(here.tell(&reflected, &inside, None).unwrap().rare().aigp, None);
        let outside = Audience { home, ..audience(true) }.tell(&expected, &member, None).unwrap();
        assert_eq!(outside.as_path, AsPath::from_sequence(&[100, 65001, 65002]));
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

    /// RFC 2545 §3: an address of a link is for whoever is on the link.
    #[test]
    fn this_system_is_told_addresses_that_lead_there_from_everywhere() {
        let hop = |global: &str, link_local: Option<&str>| {
            let link_local = link_local.map(|text| text.parse().unwrap());
            Some(NextHop::V6 { global: global.parse().unwrap(), link_local })
        };
        let inside = Audience { local_address: "2001:db8::1".parse().unwrap(), ..audience(false) };
        let both = Attributes { next_hop: hop("2001:db8::9", Some("fe80::9")), ..attributes(&[]) };
        let local = Attributes { next_hop: hop("::", Some("fe80::9")), ..attributes(&[]) };
        for source in [outsider(), source(false, true)] {
            let told = |attributes| inside.tell(attributes, &source, None).unwrap().next_hop;
            assert_eq!(told(&both), hop("2001:db8::9", None));
            assert_eq!(told(&local), hop("2001:db8::1", None), "by this router");
        }
        // Clients of a route server are on one link with whoever has told it.
        let server = Audience { is_client: true, ..audience(true) };
        assert_eq!(server.tell(&both, &outsider(), None).unwrap().next_hop, both.next_hop);
    }

    /// RFC 7311 §3.1 and §3.4, RFC 4360 §6.
    #[test]
    fn what_is_for_this_system_does_not_leave_it() {
        let mut said = attributes(&[]);
        said.extended_communities = [0x4004_fde8_0000_0000, 0x0002_fde8_0000_0004].into();
        said.change_rare(|rare| rare.aigp = Some(5));
        let client = source(false, true);
        let inside = audience(false).tell(&said, &client, None).unwrap();
        assert_eq!((inside.rare().aigp, inside.extended_communities.len()), (Some(5), 2));
        let outside = audience(true).tell(&said, &client, None).unwrap();
        assert_eq!(outside.rare().aigp, None);
        assert_eq!(*outside.extended_communities, [0x0002_fde8_0000_0004]);
    }

    /// RFC 9234 §5: no other families.
    #[test]
    fn roles_are_for_packets_to_one_receiver() {
        let provider = Audience { role: Some(Role::Provider), ..audience(true) };
        for (version, marked) in [
            (Version::V4, Some(65000)),
            (Version::V6, Some(65000)),
            (Version::V4Multicast, None),
            (Version::V6Multicast, None),
        ] {
            let context = Context::new(Neighbour::External);
            let told =
                provider.of(version, &context).tell(&attributes(&[]), &outsider(), None).unwrap();
            assert_eq!(told.rare().only_to_customer, marked, "{version:?}");
        }
    }

    #[test]
    fn packets_of_a_family_go_to_an_address_of_its_version() {
        let [four, six]: [IpAddr; 2] =
            ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        let mut context = Context::new(Neighbour::External);
        let sees = |session, beside, version, context: &Context| {
            let audience =
                Audience { local_address: session, address_beside: beside, ..audience(true) };
            let told = audience.of(version, context).tell(&attributes(&[]), &outsider(), None);
            next_hops::address(&told.unwrap().next_hop.unwrap())
        };
        assert_eq!(sees(four, Some(six), Version::V4, &context), four);
        assert_eq!(sees(four, Some(six), Version::V6, &context), six);
        assert_eq!(sees(four, Some(six), Version::V6Multicast, &context), six);
        assert_eq!(sees(six, Some(four), Version::V4, &context), four);
        assert_eq!(sees(six, None, Version::V4, &context), six, "then nobody can be told");
        context.extended_next_hop = Families::from_iter([Family::IPV4_UNICAST]);
        assert_eq!(sees(six, Some(four), Version::V4, &context), six);
        assert_eq!(sees(six, Some(four), Version::V4Multicast, &context), four);
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
