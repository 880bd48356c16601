//! Everything once more: what a peer is asked to announce again, what it asks for, and where both begin and end.
//!
//! Reference: RFC 2918 (route refresh), RFC 7313 (enhanced route refresh).

use std::collections::BTreeSet;

use weft_base::Buffer;

use super::context::World;
use super::peer::Peer;
use crate::incoming::{family, version};
use crate::wire::{RefreshKind, RouteRefresh};

impl Peer {
    /// Whether it knows how to announce everything again.
    pub(super) fn can_ask_again(&self) -> bool {
        self.session.negotiated().is_some_and(|negotiated| negotiated.route_refresh)
    }

    /// It is asked to announce everything again.
    pub(super) fn ask_again(&mut self, world: &mut World<'_>) {
        for version in self.families() {
            let (family, kind) = (family(version), RefreshKind::Request);
            let asked = RouteRefresh { family, kind }.emit();
            self.tell(Buffer::from_slice(&asked), world);
        }
    }

    /// The peer wants to hear everything again, or says where its own hearing begins and ends.
    pub(super) fn refresh(&mut self, refresh: RouteRefresh, world: &mut World<'_>) {
        let family = refresh.family;
        let (Some(up), Some(version)) = (&mut self.up, version(family)) else { return };
        let context = up.announcer.context;
        if !context.families.contains(family) {
            return;
        }
        match refresh.kind {
            RefreshKind::Request => {
                // RFC 7313 §4: what is not sent between two marks is gone.
                let (asks, is_marked) = (BTreeSet::from([self.origin]), up.is_enhanced);
                world.fanout.tell_again(&asks, version, is_marked, world.routes);
            }
            RefreshKind::Begin if up.may_refresh(version) => {
                up.refreshing.insert(version);
                up.renewed.insert(version);
                world.routes.table.renew(version, self.origin);
            }
            RefreshKind::End if up.refreshing.remove(&version) => {
                world.routes.sweep(version, self.origin);
            }
            RefreshKind::Begin | RefreshKind::End => {}
        }
    }
}
