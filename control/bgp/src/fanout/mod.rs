//! Peers are told what is best, or all that can be used.
//!
//! Reference: Handley et al. (XORP), §5.1.1 (the fanout queue: each peer reads one queue of changes at its own pace), §5.1
//! (Peer Out); RFC 4271 §9.2 (what is sent); RFC 7911 (several paths); RFC 4724 §2 (the end of the first telling).
//!
//! Peers that are told the same and have come equally far are a *cohort*: what they are told is found and encoded once,
//! and sent to all. A peer that cannot take more leaves its cohort with a copy of how far it has come, reads on when it
//! can, and returns when it has caught up; the others do not wait for it. A new peer is a cohort of its own until it has
//! heard everything.

mod anew;
mod best;
mod cohort;
mod paths;
mod telling;
mod told;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use weft_base::{Instant, Random};
use weft_routing::OriginId;
use weft_routing::ip::Version;

use crate::fsm::jittered;
use crate::routes::Routes;
use crate::routes::export::Audience;
use crate::wire::Context;
use cohort::{Alike, Cohort, Kind};
pub(crate) use told::Shown;

/// Destinations of which a cohort hears at once: some kilobytes of messages.
const AT_ONCE: usize = 512;
/// Destinations that are told at once, of all cohorts together: some milliseconds, so that other events need not wait until
/// hundreds of cohorts have been served.
pub(crate) const TOGETHER: usize = 8 * AT_ONCE;

/// From so many cohorts on it is looked for what they have been told alike, which takes a little time; in tests there are six
/// at most.
const MANY: usize = if cfg!(test) { 3 } else { 8 };

/// Bytes for peers.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) to: Vec<OriginId>,
    pub(crate) bytes: Vec<u8>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Fanout {
    random: Random,
    cohorts: Vec<Cohort>,
    /// Which one is served first the next time: those behind it are its equals.
    first: usize,
    /// Peers that cannot take more.
    congested: BTreeSet<OriginId>,
    /// Peers that are other audiences from now on.
    changed: BTreeMap<OriginId, Audience>,
    /// What cohorts have been told alike.
    alike: Alike,
}

impl Fanout {
    /// Without anybody; times between messages are drawn from `random`.
    pub(crate) fn new(random: Random) -> Self {
        let (congested, changed) = (BTreeSet::new(), BTreeMap::new());
        let alike = Alike::default();
        Self { random, cohorts: Vec::new(), first: 0, congested, changed, alike }
    }

    /// A peer is there, and hears everything of a family, and in the end that this is all.
    pub(crate) fn join(
        &mut self,
        peer: OriginId,
        version: Version,
        audience: Audience,
        context: Context,
        routes: &mut Routes,
    ) {
        let kind = Kind { version, audience: audience.of(version, &context), context };
        self.cohorts.push(Cohort::new(kind, peer, routes));
        self.share_kinds(self.cohorts.len() - 1);
    }

    /// A peer is gone.
    pub(crate) fn leave(&mut self, peer: OriginId, routes: &mut Routes) {
        self.congested.remove(&peer);
        self.changed.remove(&peer);
        self.cohorts.retain_mut(|cohort| {
            if cohort.peers.remove(&peer) {
                let is_empty = cohort.peers.is_empty();
                if is_empty {
                    cohort.close(routes);
                }
                return !is_empty;
            }
            true
        });
        self.forget_alike(routes);
    }

    /// What cohorts have been told alike is of use for many only, and what nobody was told is not to be kept for them.
    fn forget_alike(&mut self, routes: &mut Routes) {
        if self.cohorts.len() < MANY {
            self.alike.clear(routes);
        }
    }

    /// A peer cannot take more.
    pub(crate) fn congested(&mut self, peer: OriginId, routes: &mut Routes) {
        self.congested.insert(peer);
        let mut alone = Vec::new();
        for cohort in self.cohorts.iter_mut().filter(|cohort| cohort.peers.len() > 1) {
            if cohort.peers.remove(&peer) {
                alone.push(cohort.fork(BTreeSet::from([peer]), routes));
            }
        }
        self.cohorts.append(&mut alone);
    }

    /// A peer can take more again.
    pub(crate) fn drained(&mut self, peer: OriginId, routes: &mut Routes) {
        self.congested.remove(&peer);
        // It may have missed nothing.
        self.join_equals(routes);
    }

    /// Whether somebody can be told something.
    pub(crate) fn has_work(&self, routes: &Routes) -> bool {
        let has_changed = !self.changed.is_empty();
        let has_work = |cohort: &Cohort| !cohort.is_resting(routes.now) && cohort.has_work(routes);
        has_changed || self.cohorts.iter().any(|cohort| self.can_take(cohort) && has_work(cohort))
    }

    /// When somebody can be told something who may be told nothing yet.
    pub(crate) fn deadline(&self, routes: &Routes) -> Option<Instant> {
        let waiting = self.cohorts.iter().filter(|cohort| self.can_take(cohort));
        let rests = |cohort: &&Cohort| cohort.is_resting(routes.now) && cohort.has_work(routes);
        waiting.filter(rests).filter_map(|cohort| cohort.rests).min()
    }

    fn can_take(&self, cohort: &Cohort) -> bool {
        cohort.peers.is_disjoint(&self.congested)
    }

    /// Tells cohorts that can take it some of what they have not heard, [`TOGETHER`] destinations and those of one cohort more
    /// at most.
    pub(crate) fn tell(&mut self, routes: &mut Routes) -> Vec<Sending> {
        self.take_changes(routes);
        self.forget_alike(routes);
        let is_many = self.cohorts.len() >= MANY;
        let (mut sendings, mut found) = (Vec::new(), 0);
        for turn in 0..self.cohorts.len() {
            let place = (self.first + turn) % self.cohorts.len();
            if found >= TOGETHER {
                self.first = place;
                break;
            }
            if self.can_take(&self.cohorts[place]) && !self.cohorts[place].is_resting(routes.now) {
                let (cohort, sent) = (&mut self.cohorts[place], sendings.len());
                found += cohort.tell(routes, &mut sendings);
                cohort.was_told |= sendings.len() > sent;
                if is_many {
                    cohort.told.share(&mut self.alike, routes);
                }
                let interval = cohort.kind.audience.interval;
                if !cohort.has_work(routes)
                    && std::mem::take(&mut cohort.was_told)
                    && !interval.is_zero()
                {
                    cohort.rests = Some(routes.now + jittered(interval, &mut self.random));
                }
            }
        }
        self.join_equals(routes);
        sendings
    }

    /// Makes cohorts one that have come equally far. Somebody who cannot take more stays alone, as others would wait for it.
    fn join_equals(&mut self, routes: &mut Routes) {
        if routes.have_moved() {
            // Of two that have come equally far one may know what a source was before.
            return;
        }
        let mut first_of_kind: BTreeMap<*const Kind, usize> = BTreeMap::new();
        let mut place = 0;
        while place < self.cohorts.len() {
            let cohort = &self.cohorts[place];
            if cohort.has_work(routes) || !self.can_take(cohort) {
                place += 1;
                continue;
            }
            match first_of_kind.entry(Rc::as_ptr(&cohort.kind)) {
                Entry::Vacant(entry) => drop(entry.insert(place)),
                Entry::Occupied(entry) if self.cohorts[*entry.get()].is_as_far(cohort, routes) => {
                    let mut cohort = self.cohorts.remove(place);
                    let other = &mut self.cohorts[*entry.get()];
                    other.rests = other.rests.max(cohort.rests);
                    other.peers.append(&mut cohort.peers);
                    cohort.close(routes);
                    continue;
                }
                Entry::Occupied(_) => {}
            }
            place += 1;
        }
    }

    /// Has cohorts from a place on know by one and the same [`Kind`] what others are told, too.
    fn share_kinds(&mut self, from: usize) {
        for place in from..self.cohorts.len() {
            let (earlier, rest) = self.cohorts.split_at_mut(place);
            let kind = &mut rest[0].kind;
            if let Some(same) = earlier.iter().find(|one| one.kind == *kind) {
                *kind = Rc::clone(&same.kind);
            }
        }
    }

    /// How many cohorts there are, and of these with peers that cannot take more.
    pub(crate) fn count(&self) -> (usize, usize) {
        let slow = self.cohorts.iter().filter(|cohort| !self.can_take(cohort));
        (self.cohorts.len(), slow.count())
    }
}
