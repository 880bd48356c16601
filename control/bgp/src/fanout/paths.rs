//! A cohort is told all paths to each destination that can be used.
//!
//! Reference: RFC 7911 §2 (several paths), §3 (their identifiers: each is this speaker's own choice, the same as long as
//! the path is told), §5 (each is announced and withdrawn by itself).

use std::collections::BTreeMap;
use std::ops::Range;

use weft_routing::{Blocks, Check, OriginId, Prefix, Shared};

use super::anew::Before;
use super::cohort::{Cohort, Prefixes, Runs, Told};
use super::{AT_ONCE, Sending};
use crate::routes::Routes;
use crate::routes::attribute_sets::AttributesId;

/// Destinations of a block: few, as all paths in it are counted once more when one that is shared changes.
const BLOCK: u32 = 32;

/// A path that was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ToldPath {
    /// Which destination of its block it leads to.
    place: u8,
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

/// What was told of some destinations, in their order. Its paths have an identifier and a set of attributes each in use, however
/// many cohorts have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Block(Vec<ToldPath>);

impl Block {
    /// There is one more of it.
    fn take(&self, routes: &mut Routes) {
        for one in &self.0 {
            routes.path_ids.take(one.origin, one.path);
            routes.sets.take(one.accepted);
        }
    }

    /// There is one less of it.
    pub(super) fn give(self, routes: &mut Routes) {
        forget(&self.0, routes);
    }

    /// Where those to one destination are.
    fn places(&self, place: u8) -> Range<usize> {
        let before = |place| self.0.partition_point(|one| one.place < place);
        before(place)..before(place + 1)
    }
}

/// These are told no more.
fn forget(paths: &[ToldPath], routes: &mut Routes) {
    for one in paths {
        routes.path_ids.give(one.origin, one.path);
        routes.give(one.accepted);
    }
}

/// What a cohort was told, by the numbers of destinations.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    blocks: Blocks<Block>,
    /// The same: to which destination, whose, and what that one calls it.
    check: Check<(Prefix, OriginId, u32), AttributesId>,
}

impl Paths {
    /// The paths to a destination.
    fn get(&self, number: u32) -> &[ToldPath] {
        let block = self.blocks.get((number / BLOCK) as usize);
        block.map_or(&[], |block| &block.0[block.places(place(number))])
    }

    /// These are told to a destination now, each of which has its identifier and its attributes in use already; those before
    /// have them no more.
    fn set(&mut self, number: u32, now: Vec<ToldPath>, routes: &mut Routes) {
        if self.get(number) == now {
            return forget(&now, routes);
        }
        let block = (number / BLOCK) as usize;
        let block = self.blocks.change(block, |copied| copied.take(routes));
        let places = block.places(place(number));
        let before: Vec<_> = block.0.splice(places, now).collect();
        forget(&before, routes);
    }

    /// Shares with others what they were told, too, of what has changed since the last time.
    pub(super) fn share(&mut self, shared: &mut Shared<Block>, routes: &mut Routes) {
        self.blocks.share(shared, |block| block.give(routes));
    }

    /// How many there are, those of one source left out.
    pub(super) fn count_without(&self, source: OriginId) -> usize {
        let all = self.blocks.iter().flat_map(|block| &block.0);
        all.filter(|one| one.origin != source).count()
    }

    /// Nobody is told anything any more.
    pub(super) fn close(&mut self, routes: &mut Routes) {
        let blocks = std::mem::take(&mut self.blocks);
        blocks.into_own().for_each(|block| block.give(routes));
    }
}

/// Which destination of its block this is.
fn place(number: u32) -> u8 {
    // As many fit into it.
    (number % BLOCK) as u8
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
            let before = paths.get(news.number).to_vec();
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
                let place = place(news.number);
                let told = ToldPath { place, id, origin, path, accepted, edition };
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
            paths.set(news.number, now, routes);
        }
        // An identifier may be withdrawn for one path and announced for another one.
        self.withdraw(gone, &mut routes.profile, sendings);
        self.announce(runs, &mut routes.profile, sendings);
        found
    }
}
