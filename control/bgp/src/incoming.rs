//! What a peer announces.
//!
//! Reference: RFC 4271 §9.1.1 and §9.1.2 (what may be used), §9 (UPDATE handling); RFC 7606 (what is wrong, and what is
//! done about it); RFC 4456 §8 (loops of reflected routes); RFC 8212 (policy); RFC 7947 §2.2.2.1 (route servers are not in
//! paths); RFC 9234 §5 (roles are for packets to one receiver).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use weft_routing::ip::{Version, is_destination};
use weft_routing::{OriginId, Prefix, TOGETHER};

use crate::home::Home;
use crate::numbers::community::LLGR_STALE;
use crate::policy::{Filter, Party, RouteView};
use crate::routes::attribute_sets::AttributesId;
use crate::routes::conventions;
use crate::routes::decision::Source;
use crate::routes::{Path, Point, Routes};
use crate::wire::{
    Attributes, Context, Disposition, Family, Fault, MessageError, Neighbour, NextHop, Nlri, Reach,
    Role, Update,
};

/// Who announces, and what is done with it.
#[derive(Clone, Debug)]
pub(crate) struct Announcer {
    /// Its routes.
    pub(crate) origin: OriginId,
    /// What was agreed on.
    pub(crate) context: Context,
    /// The number of its autonomous system.
    pub(crate) remote_as: u32,
    /// This one.
    pub(crate) home: Home,
    /// This router's identifier.
    pub(crate) router_id: Ipv4Addr,
    /// That of its cluster (RFC 4456 §7).
    pub(crate) cluster_id: Ipv4Addr,
    /// What this router is to it (RFC 9234).
    pub(crate) role: Option<Role>,
    /// Whether paths have to begin with its system.
    pub(crate) enforce_first_as: bool,
    /// This router's address of the session.
    pub(crate) local_address: IpAddr,
    /// Which of its routes are taken (RFC 8212), and what becomes of them.
    pub(crate) import: Filter,
}

/// What came of an UPDATE.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Paths announced.
    pub(crate) announced: u64,
    /// Paths withdrawn; those of which nothing was known are among them.
    pub(crate) withdrawn: u64,
    /// The peer has announced all that it had of this family.
    pub(crate) end_of_rib: Option<Family>,
    /// What was wrong with attributes.
    pub(crate) faults: Vec<Fault>,
    /// The first network of an UPDATE with such faults, if one can be read.
    pub(crate) first: Option<IpNet>,
    /// Networks to which no packets from elsewhere may go: they are not taken (RFC 4271 §6.3).
    pub(crate) misplaced: Vec<IpNet>,
    /// Of this family no routes are taken any more.
    pub(crate) disabled: Option<Family>,
}

impl Taken {
    /// How many faults there were.
    pub(crate) fn fault_count(&self) -> u64 {
        (self.faults.len() + self.misplaced.len()) as u64
    }
}

/// The first network of an UPDATE: one that comes, or if none does, one that goes.
fn first(update: &Update<'_>) -> Option<IpNet> {
    let come = update.reach().map(|reach| (reach.family, reach.nlri));
    let mut lists = come.chain(update.withdrawn());
    lists.find_map(|(family, nlri)| {
        let (_, prefix) = nlri.iter().next()?;
        Some(version(family)?.net(&prefix))
    })
}

/// Does something to each prefix of a list, with its path. What is known of the next few comes closer to the processor first.
fn each(
    version: Version,
    nlri: Nlri<'_>,
    routes: &mut Routes,
    mut act: impl FnMut(u32, Prefix, &mut Routes),
) {
    let mut rest = nlri.into_iter();
    let mut acted = TOGETHER;
    while acted == TOGETHER {
        routes.table.approach(version, rest.clone().map(|(_, prefix)| prefix));
        acted = 0;
        for (path, prefix) in rest.by_ref().take(TOGETHER) {
            act(path, prefix, routes);
            acted += 1;
        }
    }
}

impl Announcer {
    /// Takes the body of an UPDATE.
    ///
    /// # Errors
    /// The session has to end.
    pub(crate) fn take(&self, body: &[u8], routes: &mut Routes) -> Result<Taken, MessageError> {
        let update = Update::new_checked(body, &self.context)?;
        if let Some(family) = update.end_of_rib() {
            return Ok(Taken { end_of_rib: Some(family), ..Taken::default() });
        }
        let mut taken = Taken::default();
        for (family, nlri) in update.withdrawn() {
            let Some(version) = version(family) else { continue };
            self.withdraw((version, nlri), routes, &mut taken);
        }
        if update.reach().next().is_none() {
            // Nothing is announced, but what stands there must be right all the same.
            if update.attributes().is_empty() {
                return Ok(taken);
            }
        }
        let judgement = update.judge(&self.context);
        taken.faults = judgement.faults;
        if !taken.faults.is_empty() {
            taken.first = first(&update);
        }
        let uses = match judgement.disposition {
            Disposition::Use | Disposition::DiscardAttributes => true,
            Disposition::TreatAsWithdraw => false,
            Disposition::DisableFamily { family, withdraw, .. } => {
                taken.disabled = Some(family);
                !withdraw
            }
            Disposition::ResetSession(error) => return Err(error),
        };
        for reach in update.reach() {
            if taken.disabled == Some(reach.family) {
                continue;
            }
            match uses {
                true => self.announce(&judgement.attributes, &reach, routes, &mut taken),
                false => {
                    let Some(version) = version(reach.family) else { continue };
                    self.withdraw((version, reach.nlri), routes, &mut taken);
                }
            }
        }
        Ok(taken)
    }

    fn withdraw(
        &self,
        (version, nlri): (Version, Nlri<'_>),
        routes: &mut Routes,
        taken: &mut Taken,
    ) {
        each(version, nlri, routes, |path, prefix, routes| {
            routes.profile.mark_event(Point::Entered, true, || version.net(&prefix));
            routes.happens((version, &prefix), self.origin, path, None);
            routes.withdraw((version, &prefix), self.origin, path);
            taken.withdrawn += 1;
        });
    }

    fn announce(
        &self,
        attributes: &Attributes,
        reach: &Reach<'_>,
        routes: &mut Routes,
        taken: &mut Taken,
    ) {
        let Some(version) = version(reach.family) else { return };
        let next_hop = reach.next_hop.or(attributes.next_hop);
        let mut attributes = Attributes { next_hop, ..attributes.clone() };
        // RFC 7606 §7.3 and §7.11: without a next hop that can be one, nothing is announced.
        if !next_hop.is_some_and(|next_hop| next_hop.is_host()) {
            return self.withdraw((version, reach.nlri), routes, taken);
        }
        match self.context.neighbour {
            Neighbour::External => {
                conventions::take(self.role(version), self.remote_as, &mut attributes);
            }
            // Identifiers of another member's routers are not those of this one's.
            Neighbour::Confederation => conventions::forget_reflection(&mut attributes),
            Neighbour::Internal => {}
        }
        let received = routes.intern(&attributes);
        let mut known = Accepted::default();
        each(version, reach.nlri, routes, |path, prefix, routes| {
            let net = version.net(&prefix);
            if !is_destination(&net) {
                return taken.misplaced.push(net);
            }
            routes.profile.mark_event(Point::Entered, false, || net);
            let is_damped = routes.happens((version, &prefix), self.origin, path, Some(received));
            let accepted = match is_damped {
                true => AttributesId::NONE,
                false => self.accept(received, (version, net), &mut known, routes),
            };
            let route = Path { received, accepted };
            routes.announce((version, &prefix), self.origin, path, route);
            taken.announced += 1;
        });
        known.give(routes);
        routes.give(received);
    }

    /// What is accepted of a route that was received with these attributes: the number of a set that `known` uses.
    pub(crate) fn accept(
        &self,
        received: AttributesId,
        (version, net): (Version, IpNet),
        known: &mut Accepted,
        routes: &mut Routes,
    ) -> AttributesId {
        let asked = self.import.asks_for_prefix().then_some(net);
        let key = (received, version, asked);
        if let Some(accepted) = known.0.get(&key) {
            return *accepted;
        }
        let accepted = self.filter(received, (version, asked), routes);
        known.0.insert(key, accepted);
        accepted
    }

    /// The same, found anew; the set has one use more.
    fn filter(
        &self,
        received: AttributesId,
        (version, prefix): (Version, Option<IpNet>),
        routes: &mut Routes,
    ) -> AttributesId {
        let attributes = &routes.sets.get(received).unpack();
        if !self.accepts(attributes, version) {
            return AttributesId::NONE;
        }
        let asked = prefix.filter(|_| self.import.asks_for_validity());
        let validity = asked
            .map(|net| routes.validation.validity(&net, self.home.origin(&attributes.as_path)));
        let view =
            RouteView { validity, ..self.view(attributes, prefix, routes.source(self.origin)) };
        let source = routes.source(self.origin);
        let is_blackhole = source.is_blackhole(&attributes.communities);
        match self.import.run(&view) {
            None => AttributesId::NONE,
            Some(changes) if changes.is_empty() && !is_blackhole => {
                routes.sets.take(received);
                received
            }
            Some(changes) => {
                let mut changed = changes.apply(attributes);
                if !fits(changed.next_hop, version) {
                    return AttributesId::NONE;
                }
                // As policy has marked it, or not.
                if source.is_blackhole(&changed.communities) {
                    conventions::keep_blackhole(&mut changed);
                }
                if source.is_stale(&attributes.communities) {
                    // RFC 9494 §4.3: it must not be removed.
                    conventions::add_community(&mut changed, LLGR_STALE);
                }
                routes.intern(&changed)
            }
        }
    }

    /// A route of this peer as policies see it.
    fn view<'a>(
        &self,
        attributes: &'a Attributes,
        prefix: Option<IpNet>,
        source: &'a Source,
    ) -> RouteView<'a> {
        let is_external = self.context.neighbour == Neighbour::External;
        let party = Party { address: source.address, system: self.remote_as, is_external };
        RouteView {
            attributes,
            prefix,
            protocol: source.protocol().0,
            metric: None,
            from: Some(party),
            to: None,
            own: (self.local_address, self.home.outside()),
            validity: None,
        }
    }

    /// What this router is to it for routes of a family: roles are for packets to one receiver (RFC 9234 §5).
    fn role(&self, version: Version) -> Option<Role> {
        self.role.filter(|_| !version.is_multicast())
    }

    /// Whether a route may be used here, whatever policy says.
    pub(crate) fn accepts(&self, attributes: &Attributes, version: Version) -> bool {
        let path = &attributes.as_path;
        if self.home.has_seen(path) {
            return false;
        }
        match self.context.neighbour {
            // RFC 4271 §6.3: the first system must be the peer's, unless that is not to be seen (RFC 7947 §2.2.2.1).
            Neighbour::External => {
                let is_right = |first| !self.enforce_first_as || first == self.remote_as;
                path.first().is_some_and(is_right)
                    && !conventions::is_leak(self.role(version), self.remote_as, attributes)
            }
            // RFC 4456 §8.
            Neighbour::Internal => {
                let rare = attributes.rare();
                rare.originator_id != Some(self.router_id)
                    && !rare.cluster_list.contains(&self.cluster_id)
            }
            Neighbour::Confederation => {
                !self.enforce_first_as || path.first_member() == Some(self.remote_as)
            }
        }
    }
}

/// Whether packets to a destination of a version of IP can be sent to a next hop: those of IPv6 go to none of IPv4, those of
/// IPv4 to any (RFC 8950).
fn fits(next_hop: Option<NextHop>, version: Version) -> bool {
    !(version.is_ipv6() && matches!(next_hop, Some(NextHop::V4(_))))
}

/// What is accepted of routes with the same attributes (to the same prefix, where a policy asks for that), so that it is
/// found once.
#[derive(Debug, Default)]
pub(crate) struct Accepted(BTreeMap<(AttributesId, Version, Option<IpNet>), AttributesId>);

impl Accepted {
    /// Nothing of it is needed any more.
    pub(crate) fn give(self, routes: &mut Routes) {
        self.0.into_values().for_each(|accepted| routes.give(accepted));
    }
}

/// The version of IP of a family whose routes are kept.
pub(crate) fn version(family: Family) -> Option<Version> {
    match family {
        Family::IPV4_UNICAST => Some(Version::V4),
        Family::IPV6_UNICAST => Some(Version::V6),
        Family::IPV4_MULTICAST => Some(Version::V4Multicast),
        Family::IPV6_MULTICAST => Some(Version::V6Multicast),
        _ => None,
    }
}

/// The family whose routes are those of a version of IP.
pub(crate) fn family(version: Version) -> Family {
    match version {
        Version::V4 => Family::IPV4_UNICAST,
        Version::V6 => Family::IPV6_UNICAST,
        Version::V4Multicast => Family::IPV4_MULTICAST,
        Version::V6Multicast => Family::IPV6_MULTICAST,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use weft_base::{KeyedHash, Random};
    use weft_policy::{Policies, Program, names};

    use super::*;
    use crate::policy::VARIABLES;
    use crate::wire::{AsPath, UpdateEncoder};

    const REMOTE: u32 = 65001;

    fn announcer(origin: OriginId) -> Announcer {
        Announcer {
            origin,
            context: Context::new(Neighbour::External),
            remote_as: REMOTE,
            home: Home::alone(65000),
            router_id: Ipv4Addr::new(10, 0, 0, 1),
            cluster_id: Ipv4Addr::new(10, 0, 0, 1),
            role: None,
            enforce_first_as: true,
            local_address: [10, 0, 0, 1].into(),
            import: Filter::All,
        }
    }

    fn routes() -> Routes {
        Routes::new(KeyedHash::new(&mut Random::from_seed(1)))
    }

    fn attributes(path: &[u32]) -> Attributes {
        Attributes {
            as_path: AsPath::from_sequence(path),
            next_hop: Some(NextHop::V4(Ipv4Addr::new(10, 0, 0, 2))),
            ..Attributes::default()
        }
    }

    #[test]
    fn paths_begin_with_the_peer_unless_it_is_a_route_server() {
        let mut routes = routes();
        let one = announcer(routes.add_source(Source::own("test", 1)));
        let server = Announcer { enforce_first_as: false, ..one.clone() };
        let accepts = |one: &Announcer, path: &[u32]| one.accepts(&attributes(path), Version::V4);
        assert!(accepts(&one, &[REMOTE, 7]) && accepts(&server, &[REMOTE, 7]));
        assert!(!accepts(&one, &[7, REMOTE]) && accepts(&server, &[7, REMOTE]));
        assert!(!accepts(&server, &[7, 65000]), "it has been here");
        assert!(!accepts(&server, &[]), "somebody has to have announced it");
    }

    #[test]
    fn leaks_are_looked_for_among_routes_for_packets_to_one_receiver() {
        let mut routes = routes();
        let origin = routes.add_source(Source::own("test", 1));
        let provider = Announcer { role: Some(Role::Provider), ..announcer(origin) };
        let mut marked = attributes(&[REMOTE]);
        marked.change_rare(|rare| rare.only_to_customer = Some(7));
        assert!(!provider.accepts(&marked, Version::V6));
        assert!(provider.accepts(&marked, Version::V6Multicast));
    }

    #[test]
    fn networks_to_which_no_packets_go_are_not_taken() {
        let mut routes = routes();
        let one = announcer(routes.add_source(Source::own("test", 1)));
        let nets = [
            "203.0.113.0/24",
            "127.0.0.0/8",
            "224.0.0.0/4",
            "0.0.0.0/0",
            "0.0.0.0/1",
            "128.0.0.0/1",
        ];
        let nets: Vec<IpNet> = nets.map(|text| text.parse().unwrap()).into();
        let prefixes = nets.iter().map(|net| (0, weft_routing::ip::split(*net).1));
        let mut bytes = Vec::new();
        UpdateEncoder::new(&attributes(&[REMOTE]), Family::IPV4_UNICAST, &one.context)
            .unwrap()
            .all(prefixes.collect::<Vec<_>>(), &mut bytes);
        let taken = one.take(&bytes[19..], &mut routes).unwrap();
        assert_eq!(taken.misplaced, [nets[1], nets[2]]);
        assert_eq!(taken.announced, 4);
        let known = |net: &IpNet| {
            let (version, prefix) = weft_routing::ip::split(*net);
            routes.table.number(version, &prefix).is_some()
        };
        let known: Vec<_> = nets.iter().map(known).collect();
        assert_eq!(known, [true, false, false, true, true, true]);
    }

    #[test]
    fn routes_of_ipv6_are_not_accepted_with_a_next_hop_of_ipv4_that_policy_has_set() {
        let accepted = |next_hop: &str, version| {
            let text = format!(
                "policy {{ policy-statement p {{ then {{ next-hop {next_hop}; accept; }} }} }}"
            );
            let policies = Policies::parse("t", &text).unwrap();
            let program = Program::new(&policies, VARIABLES, &names("t", &["p"]).unwrap()).unwrap();
            let mut routes = routes();
            let one = Announcer {
                import: Filter::Policies(Rc::new(program)),
                ..announcer(routes.add_source(Source::own("test", 1)))
            };
            let received = routes.intern(&attributes(&[REMOTE]));
            one.filter(received, (version, None), &mut routes) != AttributesId::NONE
        };
        for version in [Version::V6, Version::V6Multicast] {
            assert!(!accepted("192.0.2.1", version) && accepted("2001:db8::1", version));
        }
        // RFC 8950.
        assert!(accepted("192.0.2.1", Version::V4) && accepted("2001:db8::1", Version::V4));
    }
}
