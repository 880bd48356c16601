//! Routes of a peer that is away: they serve on until it has announced them again, or has had its time.
//!
//! Reference: RFC 4724 §4.2 (Receiving Speaker); RFC 8538 §4.
//!
//! A route that is stale is told onward as ever (§4.2: "MUST NOT differentiate"). That it is stale is only known by the
//! generation in which it was announced, which is counted up when the peer goes (`weft_routing::RouteTable::renew`).
//!
//! A connection that fails is often back at once, with the same routes. So those of a peer that has not asked for anything
//! serve on for a moment, too; without that they would begin to go, to come again.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::Instant;
use weft_routing::OriginId;
use weft_routing::ip::Version;

use crate::incoming::family;
use crate::routes::Routes;
use crate::wire::{Families, GracefulRestart};

/// How long routes serve on of a peer that has not asked for it: it may be back at once, and announce the same.
const BRIEF: Duration = Duration::from_millis(20);
/// How long such a peer may take to announce them again when it was back in time.
const RENEWAL: Duration = Duration::from_secs(1);

/// Whose routes are stale.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    origin: OriginId,
    kept: BTreeMap<Version, Kept>,
}

/// Routes of a family that serve on.
#[derive(Clone, Copy, Debug)]
struct Kept {
    until: Instant,
    /// The peer has not asked for it.
    is_brief: bool,
}

impl Stale {
    /// Nothing is.
    pub(super) fn new(origin: OriginId) -> Self {
        Self { origin, kept: BTreeMap::new() }
    }

    /// Nothing is.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// In which families it has some that the peer has asked to be kept.
    pub(super) fn versions(&self) -> impl Iterator<Item = Version> + '_ {
        self.kept.iter().filter(|(_, kept)| !kept.is_brief).map(|(version, _)| *version)
    }

    /// When something goes.
    pub(super) fn until(&self) -> Option<Instant> {
        self.kept.values().map(|kept| kept.until).min()
    }

    /// The peer, which exchanged routes of these families, is away: those of families that it said it would go on
    /// forwarding for serve on; and others for a moment if the connection `is_lost` and nobody has ended it.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        exchanged: &[Version],
        graceful: Option<&GracefulRestart>,
        is_lost: bool,
        routes: &mut Routes,
    ) {
        for version in exchanged.iter().copied() {
            if self.kept.contains_key(&version) {
                // What was stale before has had its time.
                self.sweep(version, routes);
            }
            routes.table.renew(version, self.origin);
            let asked = graceful.filter(|one| one.time > 0 && has(one, version, false));
            let (time, is_brief) = match asked {
                Some(graceful) => (Duration::from_secs(graceful.time.into()), false),
                None if is_lost => (BRIEF, true),
                None => {
                    self.sweep(version, routes);
                    continue;
                }
            };
            self.kept.insert(version, Kept { until: now + time, is_brief });
        }
    }

    /// The peer is back, with these families, and may take the `time` that is for peers that have asked for it: where it
    /// has not gone on forwarding though it said so, stale routes go at once.
    pub(super) fn resumed(
        &mut self,
        now: Instant,
        time: Duration,
        exchanged: Families,
        graceful: Option<&GracefulRestart>,
        routes: &mut Routes,
    ) {
        for (version, kept) in self.kept.clone() {
            let goes_on = kept.is_brief || graceful.is_some_and(|one| has(one, version, true));
            if exchanged.contains(family(version)) && goes_on {
                let until = now + if kept.is_brief { RENEWAL } else { time };
                self.kept.insert(version, Kept { until, ..kept });
            } else {
                self.sweep(version, routes);
            }
        }
    }

    /// The peer has announced all that it has of a family, or there is nothing to wait for.
    pub(super) fn end(&mut self, version: Version, routes: &mut Routes) {
        if self.kept.contains_key(&version) {
            self.sweep(version, routes);
        }
    }

    /// Nothing is waited for any more.
    pub(super) fn end_all(&mut self, routes: &mut Routes) {
        for version in std::mem::take(&mut self.kept).into_keys() {
            self.sweep(version, routes);
        }
    }

    /// Lets what has had its time go; says whether that is something that the peer has asked to be kept.
    pub(super) fn expire(&mut self, now: Instant, routes: &mut Routes) -> bool {
        let is_over = |(_, kept): &(&Version, &Kept)| kept.until <= now;
        let over: Vec<_> = self.kept.iter().filter(is_over).map(|(v, kept)| (*v, *kept)).collect();
        over.iter().for_each(|(version, _)| self.sweep(*version, routes));
        over.iter().any(|(_, kept)| !kept.is_brief)
    }

    fn sweep(&mut self, version: Version, routes: &mut Routes) {
        self.kept.remove(&version);
        routes.table.sweep(version, self.origin);
    }
}

/// Whether a peer has listed a family, and, if it `must_forward`, has gone on forwarding for it.
fn has(graceful: &GracefulRestart, version: Version, must_forward: bool) -> bool {
    let family = family(version);
    graceful.families.iter().any(|(one, forwards)| *one == family && (*forwards || !must_forward))
}
