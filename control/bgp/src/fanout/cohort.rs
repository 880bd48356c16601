//! Peers that are told the same and have come equally far: what they are told is found and encoded once.
//!
//! Reference: RFC 4271 §9.2 (what is sent); RFC 7911 (several paths); RFC 4724 §2 (the end of the first telling).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use weft_base::Instant;
use weft_routing::ip::Version;
use weft_routing::{Hears, OriginId, Origins, Prefix, ReaderId, Said, Shared};
use weft_xrl::profile::Profile;

use super::Sending;
use super::anew::Anew;
use super::paths::{Block, Paths};
use super::telling::Telling;
use crate::incoming::family;
use crate::routes::attribute_sets::AttributesId;
use crate::routes::export::Audience;
use crate::routes::{Point, Routes};
use crate::wire::{Attributes, Context, UpdateEncoder, withdraw};

/// What a cohort was told.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// Of each destination the best route, from this source.
    Best(Said),
    /// Of each destination these paths.
    Paths(Paths),
}

/// What cohorts have been told alike.
#[derive(Debug, Default)]
pub(super) struct Alike {
    best: Shared<Origins>,
    paths: Shared<Block>,
}

impl Alike {
    /// Forgets all.
    pub(super) fn clear(&mut self, routes: &mut Routes) {
        self.best.clear(drop);
        self.paths.clear(|block| block.give(routes));
    }
}

impl Told {
    /// Shares with other cohorts what they were told, too.
    pub(super) fn share(&mut self, alike: &mut Alike, routes: &mut Routes) {
        match self {
            Self::Best(said) => said.share(&mut alike.best),
            Self::Paths(paths) => paths.share(&mut alike.paths, routes),
        }
    }
}

/// What decides what peers are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) version: Version,
    pub(super) audience: Audience,
    pub(super) context: Context,
}

/// Peers that have come equally far.
#[derive(Debug)]
pub(super) struct Cohort {
    /// One and the same for all cohorts whose peers are told the same.
    pub(super) kind: Rc<Kind>,
    pub(super) peers: BTreeSet<OriginId>,
    pub(super) reader: ReaderId,
    pub(super) told: Told,
    /// It is told anew what another policy says otherwise.
    pub(super) anew: Option<Anew>,
    /// It is told everything that there is; none if it has heard that.
    pub(super) telling: Option<Telling>,
    /// Until when it is told nothing new (RFC 4271 §9.2.1.1).
    pub(super) rests: Option<Instant>,
    /// It has been told something since.
    pub(super) was_told: bool,
}

/// Prefixes with their path identifiers.
pub(super) type Prefixes = Vec<(u32, Prefix)>;

/// What a cohort is told of routes with the same attributes, from the same source.
pub(super) struct Run {
    /// None if it is told nothing.
    pub(super) encoder: Option<UpdateEncoder>,
    pub(super) prefixes: Prefixes,
}

/// What is announced, in runs: by the attributes, the source, and the variant of what is told.
#[derive(Default)]
pub(super) struct Runs {
    all: BTreeMap<(AttributesId, OriginId, u32), Run>,
    /// The numbers of variants, where they depend on the prefix; 0 is where they do not.
    variants: HashMap<Option<Attributes>, u32>,
}

impl Cohort {
    /// A peer that has heard nothing.
    pub(super) fn new(kind: Kind, peer: OriginId, routes: &mut Routes) -> Self {
        let (hears, told) = match kind.context.add_path_send.contains(family(kind.version)) {
            true => (Hears::All, Told::Paths(Paths::default())),
            false => (Hears::Best, Told::Best(Said::default())),
        };
        Self {
            peers: BTreeSet::from([peer]),
            reader: routes.table.open_reader(kind.version, hears),
            told,
            anew: None,
            telling: Some(Telling::FIRST),
            rests: None,
            was_told: false,
            kind: Rc::new(kind),
        }
    }

    /// Whether another one of the same kind, which has nothing to hear either, has come equally far.
    pub(super) fn is_as_far(&self, other: &Self, routes: &Routes) -> bool {
        routes.table.have_read_the_same(self.kind.version, self.reader, other.reader)
    }

    /// Whether there is something to tell it.
    pub(super) fn has_work(&self, routes: &Routes) -> bool {
        self.telling.is_some()
            || self.anew.is_some()
            || routes.table.is_behind(self.kind.version, self.reader)
    }

    pub(super) fn is_resting(&self, now: Instant) -> bool {
        self.rests.is_some_and(|until| now < until)
    }

    /// One for peers that go on by themselves.
    pub(super) fn fork(&self, peers: BTreeSet<OriginId>, routes: &mut Routes) -> Self {
        Self {
            peers,
            reader: routes.table.fork_reader(self.kind.version, self.reader),
            told: self.told.clone(),
            anew: self.anew.clone(),
            telling: self.telling,
            kind: Rc::clone(&self.kind),
            rests: self.rests,
            was_told: self.was_told,
        }
    }

    /// Nobody is told anything any more.
    pub(super) fn close(&mut self, routes: &mut Routes) {
        routes.table.close_reader(self.kind.version, self.reader);
        if let Told::Paths(paths) = &mut self.told {
            paths.close(routes);
        }
    }

    /// Tells it some of what it has not heard. Returns of how many destinations that was found.
    pub(super) fn tell(&mut self, routes: &mut Routes, sendings: &mut Vec<Sending>) -> usize {
        let family = family(self.kind.version);
        if let Some(begin) = self.telling.as_mut().and_then(|telling| telling.take_begin(family)) {
            self.send(None, sendings, |bytes| bytes.extend(begin));
        }
        let found = match self.told {
            Told::Best(_) => self.tell_best(routes, sendings),
            Told::Paths(_) => self.tell_paths(routes, sendings),
        };
        if self.anew.is_some() || routes.table.is_behind(self.kind.version, self.reader) {
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
    pub(super) fn run<'a>(
        &self,
        (accepted, source): (AttributesId, OriginId),
        number: u32,
        runs: &'a mut Runs,
        routes: &Routes,
    ) -> &'a mut Run {
        let encoder = |told: Option<Attributes>| {
            // What does not fit into a message, or has no next hop that they take, they are not told (RFC 4271 §9.2).
            let told = told?;
            UpdateEncoder::new(&told, family(self.kind.version), &self.kind.context).ok()
        };
        let says = || self.says(&self.kind.audience, (accepted, source), number, routes);
        let run = |told| Run { encoder: encoder(told), prefixes: Vec::new() };
        if !self.kind.audience.export.asks_for_prefix() {
            return runs.all.entry((accepted, source, 0)).or_insert_with(|| run(says()));
        }
        let told = says();
        // There are no more than destinations that are told at once.
        let next = runs.variants.len() as u32 + 1;
        let variant = *runs.variants.entry(told.clone()).or_insert(next);
        runs.all.entry((accepted, source, variant)).or_insert_with(|| run(told))
    }

    /// What an audience is told of a route to this destination.
    pub(super) fn says(
        &self,
        audience: &Audience,
        (accepted, source): (AttributesId, OriginId),
        number: u32,
        routes: &Routes,
    ) -> Option<Attributes> {
        let net = routes.table.net(self.kind.version, number);
        let prefix = audience.export.asks_for_prefix().then_some(net);
        audience.tell(&routes.sets.get(accepted).unpack(), routes.source(source), prefix)
    }

    /// Sends what is announced, to all but each route's source.
    pub(super) fn announce(
        &self,
        runs: Runs,
        profile: &mut Profile<Point>,
        sendings: &mut Vec<Sending>,
    ) {
        for ((_, source, _), run) in runs.all {
            let Some(encoder) = run.encoder.filter(|_| !run.prefixes.is_empty()) else { continue };
            self.send(Some(source), sendings, |bytes| {
                self.is_told(&run.prefixes, false, profile);
                encoder.all(run.prefixes, bytes);
            });
        }
    }

    /// Sends what is withdrawn, to all but the source that it had.
    pub(super) fn withdraw(
        &self,
        gone: BTreeMap<OriginId, Prefixes>,
        profile: &mut Profile<Point>,
        sendings: &mut Vec<Sending>,
    ) {
        for (source, prefixes) in gone {
            self.send(Some(source), sendings, |bytes| {
                self.is_told(&prefixes, true, profile);
                withdraw(family(self.kind.version), &self.kind.context, prefixes, bytes);
            });
        }
    }

    /// For profiles: peers are told of these now.
    fn is_told(&self, prefixes: &Prefixes, gone: bool, profile: &mut Profile<Point>) {
        if profile.is_on(Point::Told) {
            for (_, prefix) in prefixes {
                profile.mark(Point::Told, gone, || self.kind.version.net(prefix));
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
