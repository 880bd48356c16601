//! Routes of a peer that is away: they serve on until it has announced them again, or has had its time.
//!
//! Reference: RFC 4724 §4.2 (Receiving Speaker); RFC 8538 §4.
//!
//! A route that is stale is told onward as ever (§4.2: "MUST NOT differentiate"). That it is stale is only known by the
//! generation in which it was announced, which is counted up when the peer goes (`weft_routing::RouteTable::renew`).

use std::collections::BTreeSet;
use std::time::Duration;

use weft_base::Instant;
use weft_routing::OriginId;
use weft_routing::ip::Version;

use crate::incoming::family;
use crate::routes::Routes;
use crate::wire::{Families, GracefulRestart};

/// Whose routes are stale.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    origin: OriginId,
    /// In which families it has some.
    pub(super) versions: BTreeSet<Version>,
    /// When they go.
    pub(super) until: Option<Instant>,
}

impl Stale {
    /// Nothing is.
    pub(super) fn new(origin: OriginId) -> Self {
        Self { origin, versions: BTreeSet::new(), until: None }
    }

    /// The peer, which exchanged routes of these families, is away: those of families that it said it would go on
    /// forwarding for serve on; all others go, and none is kept if there is nothing that it said.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        exchanged: &[Version],
        graceful: Option<&GracefulRestart>,
        routes: &mut Routes,
    ) {
        let time = graceful.map_or(0, |graceful| graceful.time);
        for version in exchanged.iter().copied() {
            let keeps = time > 0 && graceful.is_some_and(|one| has(one, version, false));
            if self.versions.contains(&version) || !keeps {
                // What was stale before has had its time.
                self.sweep(version, routes);
            }
            routes.table.renew(version, self.origin);
            if keeps {
                self.versions.insert(version);
            } else {
                self.sweep(version, routes);
            }
        }
        self.until = Some(now + Duration::from_secs(time.into()));
        self.settle();
    }

    /// The peer is back, with these families: where it has not gone on forwarding, stale routes go at once.
    pub(super) fn resumed(
        &mut self,
        until: Instant,
        exchanged: Families,
        graceful: Option<&GracefulRestart>,
        routes: &mut Routes,
    ) {
        for version in self.versions.clone() {
            let keeps = exchanged.contains(family(version))
                && graceful.is_some_and(|one| has(one, version, true));
            if !keeps {
                self.sweep(version, routes);
            }
        }
        self.until = Some(until);
        self.settle();
    }

    /// The peer has announced all that it has of a family, or there is nothing to wait for.
    pub(super) fn end(&mut self, version: Version, routes: &mut Routes) {
        if self.versions.contains(&version) {
            self.sweep(version, routes);
            self.settle();
        }
    }

    /// Nothing is waited for any more.
    pub(super) fn end_all(&mut self, routes: &mut Routes) {
        for version in std::mem::take(&mut self.versions) {
            self.sweep(version, routes);
        }
        self.until = None;
    }

    fn sweep(&mut self, version: Version, routes: &mut Routes) {
        self.versions.remove(&version);
        routes.table.sweep(version, self.origin);
    }

    fn settle(&mut self) {
        self.until = self.until.filter(|_| !self.versions.is_empty());
    }
}

/// Whether a peer has listed a family, and, if it `must_forward`, has gone on forwarding for it.
fn has(graceful: &GracefulRestart, version: Version, must_forward: bool) -> bool {
    let family = family(version);
    graceful.families.iter().any(|(one, forwards)| *one == family && (*forwards || !must_forward))
}
