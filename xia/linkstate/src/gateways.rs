//! The XIDs by which neighbours are gateways: of either version of HID, and of both while one replaces the other.
//!
//! Reference: Machado et al., "Linux XIA", §4.1 (a principal is replaced by its next version while packets flow).

use std::collections::BTreeSet;

use weft_linkstate::{self as engine, NeighbourState, NodeId, Route};
use weft_xip::principal::Output;
use weft_xip::{Xid, XidType};

use crate::hosts::{Hosts, VERSIONS, destination, host, names_host, xid};
use crate::protocol::LinkState;

/// What others were told of neighbours.
pub(crate) struct Gateways {
    /// The versions of HID that this node has, of which there is one at least.
    versions: Vec<XidType>,
    /// The neighbours that everybody was told are usable.
    adjacent: BTreeSet<Xid>,
}

impl Default for Gateways {
    fn default() -> Self {
        Self { versions: vec![XidType::HID], adjacent: BTreeSet::new() }
    }
}

impl Gateways {
    /// Where to look up `xid` instead: the neighbours that are the first on the ways to it, in order, by each version of
    /// HID. Of these the forwarder takes one that it knows where to find.
    pub(crate) fn of(&self, xid: Xid, route: Option<&Route>) -> Vec<Xid> {
        let hops = || route.iter().flat_map(|route| route.next_hops.iter());
        let of = |kind: &XidType| hops().map(|hop| Xid::new(*kind, hop.node.0)).collect::<Vec<_>>();
        let mut via: Vec<_> = self.versions.iter().flat_map(of).collect();
        // Several links can lead to one neighbour.
        via.dedup();
        // A neighbour needs no redirect to itself: the principal knows where it is. No other way is shorter.
        let is_neighbour = names_host(&xid) && via.iter().any(|host| host.id == xid.id);
        if is_neighbour { Vec::new() } else { via }
    }

    /// The one XID by which a neighbour is the gateway of a link of multicast, which would be taken twice with two: of the first
    /// version that both have, as far as it is known what the neighbour has.
    fn of_link(&self, engine: &engine::LinkState<Hosts>, neighbour: NodeId) -> Xid {
        let all = || self.versions.iter().map(|kind| Xid::new(*kind, neighbour.0));
        let is_advertised = |xid: &Xid| engine.route(&destination(*xid)).is_some();
        all().find(is_advertised).or(all().next()).unwrap_or(host(neighbour))
    }
}

/// Whether a neighbour has come or gone, or a host has one version of HID more or less.
pub(crate) fn is_about_gateways(output: &engine::Output) -> bool {
    use engine::Output::{NeighbourDown, NeighbourUp, Route, Send};
    match output {
        NeighbourUp { .. } | NeighbourDown { .. } => true,
        Route { destination, .. } => xid(destination).is_some_and(|xid| names_host(&xid)),
        Send { .. } => false,
    }
}

impl LinkState {
    /// Tells which neighbours are usable now and were not before, or the other way round. Several links can lead to one.
    pub(crate) fn tell_adjacencies(&mut self, out: &mut Vec<Output>) {
        let Some(engine) = &self.engine else { return };
        let own = host(engine.node());
        let usable = engine.neighbours().filter(|one| one.state == NeighbourState::Usable);
        let gateway = |neighbour| self.gateways.of_link(engine, neighbour);
        let adjacent: BTreeSet<Xid> = usable.filter_map(|one| one.node).map(gateway).collect();
        let before = std::mem::replace(&mut self.gateways.adjacent, adjacent);
        let adjacent = &self.gateways.adjacent;
        let mut tell = |neighbour: &Xid, up| {
            out.push(Output::Adjacency { own, neighbour: *neighbour, up });
        };
        before.difference(adjacent).for_each(|neighbour| tell(neighbour, false));
        adjacent.difference(&before).for_each(|neighbour| tell(neighbour, true));
    }

    /// Has neighbours be gateways by the versions of HID that this node has now: both while one replaces the other,
    /// so that it does not matter which of them a neighbour has.
    pub(crate) fn choose_versions(&mut self, out: &mut Vec<Output>) {
        let Some(engine) = &self.engine else { return };
        let own = engine.node();
        let is_local = |kind: &XidType| self.locals.contains(&Xid::new(*kind, own.0));
        let versions: Vec<_> = VERSIONS.into_iter().filter(is_local).collect();
        if versions.is_empty() || versions == self.gateways.versions {
            return;
        }
        self.gateways.versions = versions;
        let again = engine.routes().filter_map(|(destination, route)| {
            let xid = xid(destination)?;
            Some((xid, self.gateways.of(xid, Some(route))))
        });
        out.push(Output::Redirect(again.collect()));
        self.tell_adjacencies(out);
    }
}
