//! What a peer is told of a destination, for people.
//!
//! Reference: RFC 4271 §3.2 (Adj-RIBs-Out), §9.2. It is not stored: what a cohort is told is worked out once more.

use weft_routing::OriginId;
use weft_routing::ip::Version;

use super::Fanout;
use super::cohort::{Cohort, Told};
use crate::incoming::family;
use crate::routes::Routes;
use crate::wire::{Attributes, UpdateEncoder};

/// One path that a peer is told.
pub(crate) struct Shown {
    /// Who has announced it.
    pub(crate) source: OriginId,
    /// What it is called, if the peer is told several (RFC 7911).
    pub(crate) id: Option<u32>,
    /// As the peer sees it.
    pub(crate) attributes: Attributes,
}

impl Fanout {
    /// How many paths of a version of IP a peer was told that are not withdrawn; none if it is told nothing of this family. This
    /// looks at all destinations, so it is for one peer that somebody asks about.
    pub(crate) fn told_to(&self, peer: OriginId, version: Version) -> Option<usize> {
        let is_its =
            |cohort: &&Cohort| cohort.kind.version == version && cohort.peers.contains(&peer);
        let cohort = self.cohorts.iter().find(is_its)?;
        Some(match &cohort.told {
            Told::Best(said) => said.count_without(peer),
            Told::Paths(paths) => paths.count_without(peer),
        })
    }

    /// What a peer is told of the destination with this number, when it has read all that waits for it; nothing if it is
    /// told nothing of this family.
    pub(crate) fn shown(
        &self,
        peer: OriginId,
        (version, number): (Version, u32),
        routes: &Routes,
    ) -> Vec<Shown> {
        let is_its =
            |cohort: &&Cohort| cohort.kind.version == version && cohort.peers.contains(&peer);
        let Some(cohort) = self.cohorts.iter().find(is_its) else { return Vec::new() };
        // By what it will be told, if that is another policy from now on.
        let changed = self.changed.get(&peer).map(|one| one.of(version, &cohort.kind.context));
        let audience = changed.as_ref().unwrap_or(&cohort.kind.audience);
        let has_several = matches!(cohort.told, Told::Paths(_));
        let paths = match has_several {
            true => routes.usable(version, number).collect(),
            false => Vec::from_iter(routes.table.best(version, number).copied()),
        };
        let others = paths.into_iter().filter(|path| path.origin != peer);
        let shown = others.filter_map(|path| {
            let route = (path.route.accepted, path.origin);
            let attributes = cohort.says(audience, route, number, routes)?;
            // What does not fit into a message it is not told.
            UpdateEncoder::new(&attributes, family(version), &cohort.kind.context).ok()?;
            let id = routes.path_ids.get(path.origin, path.path).filter(|_| has_several);
            Some(Shown { source: path.origin, id, attributes })
        });
        shown.collect()
    }
}
