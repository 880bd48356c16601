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
mod paths;
mod telling;
mod told;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use weft_base::{Instant, Random};
use weft_routing::ip::Version;
use weft_routing::{Hears, OriginId, Prefix, ReaderId, Said};
use weft_xrl::profile::Profile;

use crate::fsm::jittered;
use crate::incoming::family;
use crate::routes::attribute_sets::AttributesId;
use crate::routes::export::Audience;
use crate::routes::{Point, Routes};
use crate::wire::{Attributes, Context, UpdateEncoder, withdraw};
use anew::Anew;
use paths::Paths;
use telling::Telling;
pub(crate) use told::Shown;

/// Destinations of which a cohort hears at once: some kilobytes of messages.
const AT_ONCE: usize = 512;
/// Destinations that are told at once, of all cohorts together: some milliseconds, so that other events need not wait until
/// hundreds of cohorts have been served.
pub(crate) const TOGETHER: usize = 8 * AT_ONCE;

/// Bytes for peers.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) to: Vec<OriginId>,
    pub(crate) bytes: Vec<u8>,
}

/// What a cohort was told.
#[derive(Debug)]
enum Told {
    /// Of each destination the best route, from this source.
    Best(Said),
    /// Of each destination these paths.
    Paths(Paths),
}

/// Peers that have come equally far.
#[derive(Debug)]
struct Cohort {
    version: Version,
    audience: Audience,
    context: Context,
    peers: BTreeSet<OriginId>,
    reader: ReaderId,
    told: Told,
    /// It is told anew what another policy says otherwise.
    anew: Option<Anew>,
    /// It is told everything that there is; none if it has heard that.
    telling: Option<Telling>,
    /// Until when it is told nothing new (RFC 4271 §9.2.1.1).
    rests: Option<Instant>,
    /// It has been told something since.
    was_told: bool,
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
}

impl Fanout {
    /// Without anybody; times between messages are drawn from `random`.
    pub(crate) fn new(random: Random) -> Self {
        let (congested, changed) = (BTreeSet::new(), BTreeMap::new());
        Self { random, cohorts: Vec::new(), first: 0, congested, changed }
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
        let (hears, told) = match context.add_path_send.contains(family(version)) {
            true => (Hears::All, Told::Paths(Paths::default())),
            false => (Hears::Best, Told::Best(Said::default())),
        };
        let (reader, telling) = (routes.table.open_reader(version, hears), Some(Telling::FIRST));
        let peers = BTreeSet::from([peer]);
        let anew = None;
        self.cohorts.push(Cohort {
            version,
            audience: audience.of(version, &context),
            context,
            peers,
            reader,
            told,
            anew,
            telling,
            rests: None,
            was_told: false,
        });
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
        // One that has several peers has none that cannot.
        !cohort.peers.iter().any(|peer| self.congested.contains(peer))
    }

    /// Tells cohorts that can take it some of what they have not heard, [`TOGETHER`] destinations and those of one cohort more
    /// at most.
    pub(crate) fn tell(&mut self, routes: &mut Routes) -> Vec<Sending> {
        self.take_changes(routes);
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
                let interval = cohort.audience.interval;
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

    /// Makes cohorts one that have come equally far.
    fn join_equals(&mut self, routes: &mut Routes) {
        if routes.have_moved() {
            // Of two that have come equally far one may know what a source was before.
            return;
        }
        let mut place = 1;
        while place < self.cohorts.len() {
            let (earlier, rest) = self.cohorts.split_at_mut(place);
            let cohort = &mut rest[0];
            let is_equal = |other: &&mut Cohort| other.is_equal(cohort, routes);
            let may_join = cohort.telling.is_none()
                && cohort.anew.is_none()
                && !routes.table.is_behind(cohort.version, cohort.reader)
                && !cohort.peers.iter().any(|peer| self.congested.contains(peer));
            let equal = earlier.iter_mut().find(|other| may_join && is_equal(other));
            match equal {
                Some(other) => {
                    other.rests = other.rests.max(cohort.rests);
                    other.peers.append(&mut cohort.peers);
                    cohort.close(routes);
                    self.cohorts.remove(place);
                }
                None => place += 1,
            }
        }
    }

    /// How many cohorts there are, and of these with peers that cannot take more.
    pub(crate) fn count(&self) -> (usize, usize) {
        let slow = self.cohorts.iter().filter(|cohort| !self.can_take(cohort));
        (self.cohorts.len(), slow.count())
    }
}

/// Prefixes with their path identifiers.
type Prefixes = Vec<(u32, Prefix)>;

/// What a cohort is told of routes with the same attributes, from the same source.
struct Run {
    /// None if it is told nothing.
    encoder: Option<UpdateEncoder>,
    prefixes: Prefixes,
}

/// What is announced, in runs: by the attributes, the source, and the variant of what is told.
#[derive(Default)]
struct Runs {
    all: BTreeMap<(AttributesId, OriginId, u32), Run>,
    /// The numbers of variants, where they depend on the prefix; 0 is where they do not.
    variants: HashMap<Option<Attributes>, u32>,
}

impl Cohort {
    fn is_equal(&self, other: &Self, routes: &Routes) -> bool {
        self.version == other.version
            && self.telling == other.telling
            && self.anew.is_none()
            && other.anew.is_none()
            && self.context == other.context
            && routes.table.have_read_the_same(self.version, self.reader, other.reader)
            && self.audience == other.audience
    }

    /// Whether there is something to tell it.
    fn has_work(&self, routes: &Routes) -> bool {
        self.telling.is_some()
            || self.anew.is_some()
            || routes.table.is_behind(self.version, self.reader)
    }

    fn is_resting(&self, now: Instant) -> bool {
        self.rests.is_some_and(|until| now < until)
    }

    /// One for peers that go on by themselves.
    fn fork(&self, peers: BTreeSet<OriginId>, routes: &mut Routes) -> Self {
        Self {
            peers,
            reader: routes.table.fork_reader(self.version, self.reader),
            told: match &self.told {
                Told::Best(said) => Told::Best(said.clone()),
                Told::Paths(paths) => Told::Paths(paths.fork(routes)),
            },
            anew: self.anew.clone(),
            telling: self.telling,
            version: self.version,
            audience: self.audience.clone(),
            context: self.context,
            rests: self.rests,
            was_told: self.was_told,
        }
    }

    /// Nobody is told anything any more.
    fn close(&mut self, routes: &mut Routes) {
        routes.table.close_reader(self.version, self.reader);
        if let Told::Paths(paths) = &mut self.told {
            paths.close(routes);
        }
    }

    /// Tells it some of what it has not heard. Returns of how many destinations that was found.
    fn tell(&mut self, routes: &mut Routes, sendings: &mut Vec<Sending>) -> usize {
        let family = family(self.version);
        if let Some(begin) = self.telling.as_mut().and_then(|telling| telling.take_begin(family)) {
            self.send(None, sendings, |bytes| bytes.extend(begin));
        }
        let found = match self.told {
            Told::Best(_) => self.tell_best(routes, sendings),
            Told::Paths(_) => self.tell_paths(routes, sendings),
        };
        if self.anew.is_some() || routes.table.is_behind(self.version, self.reader) {
            return found;
        }
        if let Some(telling) = self.telling.take() {
            let (end, next) = telling.end(family);
            self.send(None, sendings, |bytes| bytes.extend(end));
            if let Some(next) = next {
                self.begin_anew(next);
            }
        }
        if !routes.have_moved() {
            self.agrees_on_best(routes);
            self.agrees_on_paths(routes);
        }
        found
    }

    /// What it is told of routes to this destination from this source with these attributes.
    fn run<'a>(
        &self,
        (accepted, source): (AttributesId, OriginId),
        number: u32,
        runs: &'a mut Runs,
        routes: &Routes,
    ) -> &'a mut Run {
        let encoder = |told: Option<Attributes>| {
            // What does not fit into a message, or has no next hop that they take, they are not told (RFC 4271 §9.2).
            let told = told?;
            UpdateEncoder::new(&told, family(self.version), &self.context).ok()
        };
        let says = || self.says(&self.audience, (accepted, source), number, routes);
        let run = |told| Run { encoder: encoder(told), prefixes: Vec::new() };
        if !self.audience.export.asks_for_prefix() {
            return runs.all.entry((accepted, source, 0)).or_insert_with(|| run(says()));
        }
        let told = says();
        // There are no more than destinations that are told at once.
        let next = runs.variants.len() as u32 + 1;
        let variant = *runs.variants.entry(told.clone()).or_insert(next);
        runs.all.entry((accepted, source, variant)).or_insert_with(|| run(told))
    }

    /// What an audience is told of a route to this destination.
    fn says(
        &self,
        audience: &Audience,
        (accepted, source): (AttributesId, OriginId),
        number: u32,
        routes: &Routes,
    ) -> Option<Attributes> {
        let net = routes.table.net(self.version, number);
        let prefix = audience.export.asks_for_prefix().then_some(net);
        audience.tell(&routes.sets.get(accepted).unpack(), routes.source(source), prefix)
    }

    /// Sends what is announced, to all but each route's source.
    fn announce(&self, runs: Runs, profile: &mut Profile<Point>, sendings: &mut Vec<Sending>) {
        for ((_, source, _), run) in runs.all {
            let Some(encoder) = run.encoder.filter(|_| !run.prefixes.is_empty()) else { continue };
            self.send(Some(source), sendings, |bytes| {
                self.is_told(&run.prefixes, false, profile);
                encoder.all(run.prefixes, bytes);
            });
        }
    }

    /// Sends what is withdrawn, to all but the source that it had.
    fn withdraw(
        &self,
        gone: BTreeMap<OriginId, Prefixes>,
        profile: &mut Profile<Point>,
        sendings: &mut Vec<Sending>,
    ) {
        for (source, prefixes) in gone {
            self.send(Some(source), sendings, |bytes| {
                self.is_told(&prefixes, true, profile);
                withdraw(family(self.version), &self.context, prefixes, bytes);
            });
        }
    }

    /// For profiles: peers are told of these now.
    fn is_told(&self, prefixes: &Prefixes, gone: bool, profile: &mut Profile<Point>) {
        if profile.is_on(Point::Told) {
            for (_, prefix) in prefixes {
                profile.mark(Point::Told, gone, || self.version.net(prefix));
            }
        }
    }

    /// Sends to all but this source.
    fn send(
        &self,
        but: Option<OriginId>,
        sendings: &mut Vec<Sending>,
        emit: impl FnOnce(&mut Vec<u8>),
    ) {
        let to: Vec<_> = self.peers.iter().copied().filter(|peer| Some(*peer) != but).collect();
        if !to.is_empty() {
            let mut bytes = Vec::new();
            emit(&mut bytes);
            sendings.push(Sending { to, bytes });
        }
    }
}
