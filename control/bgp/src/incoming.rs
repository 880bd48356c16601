//! What a peer announces.
//!
//! Reference: RFC 4271 §9.1.1 and §9.1.2 (what may be used), §9 (UPDATE handling); RFC 7606 (what is wrong, and what is
//! done about it); RFC 4456 §8 (loops of reflected routes); RFC 8212 (policy).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use weft_routing::ip::Version;
use weft_routing::{OriginId, Prefix, TOGETHER};

use crate::numbers::community::LLGR_STALE;
use crate::policy::{Filter, Party, RouteView};
use crate::routes::attribute_sets::AttributesId;
use crate::routes::conventions;
use crate::routes::decision::Source;
use crate::routes::{Path, Point, Routes};
use crate::wire::{
    Attributes, Context, Disposition, Family, Fault, MessageError, Neighbour, Nlri, Reach, Role,
    Update,
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
    /// The number of this one.
    pub(crate) local_as: u32,
    /// This router's identifier.
    pub(crate) router_id: Ipv4Addr,
    /// That of its cluster (RFC 4456 §7).
    pub(crate) cluster_id: Ipv4Addr,
    /// What this router is to it (RFC 9234).
    pub(crate) role: Option<Role>,
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
    /// Of this family no routes are taken any more.
    pub(crate) disabled: Option<Family>,
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
        if self.context.neighbour == Neighbour::External {
            conventions::take(self.role, self.remote_as, &mut attributes);
        }
        let received = routes.intern(&attributes);
        let mut known = Accepted::default();
        each(version, reach.nlri, routes, |path, prefix, routes| {
            let net = version.net(&prefix);
            routes.profile.mark_event(Point::Entered, false, || net);
            let is_damped = routes.happens((version, &prefix), self.origin, path, Some(received));
            let accepted = match is_damped {
                true => AttributesId::NONE,
                false => self.accept(received, net, &mut known, routes),
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
        net: IpNet,
        known: &mut Accepted,
        routes: &mut Routes,
    ) -> AttributesId {
        let asked = self.import.asks_for_prefix().then_some(net);
        if let Some(accepted) = known.0.get(&(received, asked)) {
            return *accepted;
        }
        let accepted = self.filter(received, asked, routes);
        known.0.insert((received, asked), accepted);
        accepted
    }

    /// The same, found anew; the set has one use more.
    fn filter(
        &self,
        received: AttributesId,
        prefix: Option<IpNet>,
        routes: &mut Routes,
    ) -> AttributesId {
        let attributes = &routes.sets.get(received).unpack();
        if !self.accepts(attributes) {
            return AttributesId::NONE;
        }
        let view = self.view(attributes, prefix, routes.source(self.origin));
        match self.import.run(&view) {
            None => AttributesId::NONE,
            Some(changes) if changes.is_empty() => {
                routes.sets.take(received);
                received
            }
            Some(changes) => {
                let mut changed = changes.apply(attributes);
                if routes.source(self.origin).is_stale(&attributes.communities) {
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
            own: (self.local_address, self.local_as),
        }
    }

    /// Whether a route may be used here, whatever policy says.
    pub(crate) fn accepts(&self, attributes: &Attributes) -> bool {
        let path = &attributes.as_path;
        // RFC 4271 §9.1.2: it has been here before.
        if path.contains(self.local_as) {
            return false;
        }
        match self.context.neighbour {
            // RFC 4271 §6.3: the first system must be the peer's.
            Neighbour::External => {
                path.first() == Some(self.remote_as)
                    && !conventions::is_leak(self.role, self.remote_as, attributes)
            }
            // RFC 4456 §8.
            Neighbour::Internal => {
                let rare = attributes.rare();
                rare.originator_id != Some(self.router_id)
                    && !rare.cluster_list.contains(&self.cluster_id)
            }
            Neighbour::Confederation => true,
        }
    }
}

/// What is accepted of routes with the same attributes (to the same prefix, where a policy asks for that), so that it is
/// found once.
#[derive(Debug, Default)]
pub(crate) struct Accepted(BTreeMap<(AttributesId, Option<IpNet>), AttributesId>);

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
