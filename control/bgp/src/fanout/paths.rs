//! A cohort is told all paths to each destination that can be used.
//!
//! Reference: RFC 7911 §2 (several paths), §3 (their identifiers: each is this speaker's own choice, the same as long as
//! the path is told), §5 (each is announced and withdrawn by itself).

use std::collections::BTreeMap;

use weft_routing::{Check, OriginId, Prefix};

use super::anew::Before;
use super::cohort::{Cohort, Prefixes, Runs, Told};
use super::{AT_ONCE, Sending};
use crate::routes::Routes;
use crate::routes::attribute_sets::AttributesId;

/// A path that was told.
#[derive(Clone, Copy, Debug)]
struct ToldPath {
    /// The identifier that it was told with.
    id: u32,
    /// Whose it is, and how that one calls it.
    origin: OriginId,
    path: u32,
    /// With which attributes, of which it is a user.
    accepted: AttributesId,
    /// As what that one was known then.
    edition: u32,
}

impl ToldPath {
    fn is(&self, other: &Self) -> bool {
        (self.origin, self.path) == (other.origin, other.path)
    }

    fn says_as(&self, other: &Self) -> bool {
        self.is(other) && (self.accepted, self.edition) == (other.accepted, other.edition)
    }
}

/// What a cohort was told, by the numbers of destinations.
#[derive(Debug, Default)]
pub(super) struct Paths {
    all: BTreeMap<u32, Vec<ToldPath>>,
    /// The same: to which destination, whose, and what that one calls it.
    check: Check<(Prefix, OriginId, u32), AttributesId>,
}

impl Paths {
    /// The same for another cohort.
    pub(super) fn fork(&self, routes: &mut Routes) -> Self {
        for one in self.all.values().flatten() {
            routes.path_ids.take(one.origin, one.path);
            routes.sets.take(one.accepted);
        }
        Self { all: self.all.clone(), check: self.check.clone() }
    }

    /// How many there are, those of one source left out.
    pub(super) fn count_without(&self, source: OriginId) -> usize {
        self.all.values().flatten().filter(|one| one.origin != source).count()
    }

    /// Nobody is told anything any more.
    pub(super) fn close(&mut self, routes: &mut Routes) {
        for one in std::mem::take(&mut self.all).into_values().flatten() {
            forget(&one, routes);
        }
    }
}

fn forget(one: &ToldPath, routes: &mut Routes) {
    routes.path_ids.give(one.origin, one.path);
    routes.give(one.accepted);
}

impl Cohort {
    /// Whether it was told all paths, now and then, when it has heard everything.
    pub(super) fn agrees_on_paths(&mut self, routes: &Routes) {
        let (version, size) = (self.kind.version, routes.table.len(self.kind.version));
        let Told::Paths(paths) = &self.told else { return };
        // Which paths can be used is known before it is told, while all is decided again.
        if routes.table.has_work() || !paths.check.is_due(size) {
            return;
        }
        let (mut runs, mut told) = (Runs::default(), Vec::new());
        for number in 0..routes.table.end_of_numbers(version) {
            let prefix = routes.table.news(version, number).prefix;
            for one in routes.usable(version, number) {
                let accepted = one.route.accepted;
                let run = self.run((accepted, one.origin), number, &mut runs, routes);
                if run.encoder.is_some() {
                    told.push(((prefix, one.origin, one.path), accepted));
                }
            }
        }
        if let Told::Paths(paths) = &mut self.told {
            paths.check.compare(told);
        }
    }

    /// Tells it some of what it has not heard. Returns of how many destinations that was found.
    pub(super) fn tell_paths(&mut self, routes: &mut Routes, sendings: &mut Vec<Sending>) -> usize {
        let mut found = 0;
        let mut runs = Runs::default();
        // By the source of the path that is withdrawn, which was not told of it.
        let mut gone: BTreeMap<OriginId, Prefixes> = BTreeMap::new();
        while found < AT_ONCE {
            let Some((news, policy)) = self.next_paths(routes) else { break };
            found += 1;
            let Told::Paths(paths) = &mut self.told else { break };
            let before = paths.all.remove(&news.number).unwrap_or_default();
            let usable: Vec<_> = routes.usable(self.kind.version, news.number).collect();
            let mut now = Vec::with_capacity(usable.len());
            for candidate in usable {
                let (accepted, origin) = (candidate.route.accepted, candidate.origin);
                // Told by another policy it may have said something else.
                let is_same = match &policy {
                    Before::Now => true,
                    Before::Earlier(kind) => {
                        self.agrees(&kind.audience, (accepted, origin), news.number, routes)
                    }
                    Before::Several => false,
                };
                let run = self.run((accepted, origin), news.number, &mut runs, routes);
                if run.encoder.is_none() {
                    continue;
                }
                let path = candidate.path;
                let id = routes.path_ids.take(origin, path);
                routes.sets.take(accepted);
                let edition = routes.edition(origin);
                let told = ToldPath { id, origin, path, accepted, edition };
                if !is_same || !before.iter().any(|old| old.says_as(&told)) {
                    run.prefixes.push((id, news.prefix));
                }
                now.push(told);
            }
            let Told::Paths(paths) = &mut self.told else { break };
            for old in &before {
                if !now.iter().any(|one| one.is(old)) {
                    gone.entry(old.origin).or_default().push((old.id, news.prefix));
                    paths.check.change((news.prefix, old.origin, old.path), true, None);
                }
            }
            for one in &now {
                let was_told = before.iter().any(|old| old.is(one));
                let key = (news.prefix, one.origin, one.path);
                paths.check.change(key, was_told, Some(one.accepted));
            }
            before.iter().for_each(|old| forget(old, routes));
            if !now.is_empty() {
                paths.all.insert(news.number, now);
            }
        }
        // An identifier may be withdrawn for one path and announced for another one.
        self.withdraw(gone, &mut routes.profile, sendings);
        self.announce(runs, &mut routes.profile, sendings);
        found
    }
}
