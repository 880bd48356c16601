//! The RIB is told routes.
//!
//! Reference: Handley et al. (XORP), §5.2 (origins).
//!
//! What was set is kept, so that a RIB that comes back is told everything. A route that was set and changed several
//! times before it was told is told once, as it is at last. One that goes from one origin to another is told as the one
//! before it is taken back from the other, so that it is never missing.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use weft_base::Instant;
use weft_xrl::{Input, Lane, Output};

use crate::{Batch, Origin, OriginNumber, Origins, Route};

/// The way to the RIB.
#[derive(Debug)]
pub struct ToRib {
    origins: Origins,
    routes: BTreeMap<IpNet, (OriginNumber, Route)>,
    /// What the RIB believes: of which origin.
    told: BTreeMap<IpNet, OriginNumber>,
    /// Of what it was not told how it is now.
    changed: BTreeSet<IpNet>,
    /// Until when routes of an earlier life stay.
    patience: Option<Instant>,
}

impl ToRib {
    /// The way to the RIB, with the number of its [`Dialogue`](crate::Dialogue).
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self {
            origins: Origins::new(number),
            routes: BTreeMap::new(),
            told: BTreeMap::new(),
            changed: BTreeSet::new(),
            patience: None,
        }
    }

    /// Routes of an earlier life stay until then at least, since the protocol may still find them.
    pub fn wait(&mut self, until: Instant) {
        self.patience = Some(until);
    }

    /// One more origin. It stays, with or without routes; the same protocol again is the same one, perhaps with
    /// another distance.
    pub fn open(&mut self, origin: Origin, out: &mut Vec<Output>) -> OriginNumber {
        let (place, is_again) = self.origins.open(origin, out);
        if is_again {
            let own = self.routes.iter().filter(|(_, (of, _))| *of == place);
            self.changed.extend(own.map(|(net, _)| *net));
        }
        place
    }

    /// There is this route now, in place of the one before.
    pub fn set(&mut self, net: IpNet, origin: OriginNumber, route: Route) {
        let now = (origin, route);
        if self.routes.get(&net) != Some(&now) {
            self.routes.insert(net, now);
            self.changed.insert(net);
        }
    }

    /// There is no route any more.
    pub fn withdraw(&mut self, net: &IpNet) {
        if self.routes.remove(net).is_some() {
            self.changed.insert(*net);
        }
    }

    /// How many routes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Whether the RIB is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.origins.is_there()
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.origins.deadline().into_iter().chain(self.patience).min()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        self.patience = self.patience.filter(|until| now < *until);
        let input = self.origins.hear(now, input, out);
        if self.origins.take_forgets() {
            self.told.clear();
            self.changed = self.routes.keys().copied().collect();
        }
        input
    }

    /// Tells the RIB what it has not heard. `may_end` says whether the protocol has found all that it had before it was
    /// started: then routes of an earlier life that were not told again go, unless they are to [wait](Self::wait).
    pub fn tell(&mut self, may_end: bool, out: &mut Vec<Output>) {
        while self.origins.may_tell() && !self.changed.is_empty() {
            let batch = self.batch();
            self.origins.tell(Lane::All, batch, out);
        }
        if self.changed.is_empty() {
            let routes = self.routes.iter().map(|(net, (place, _))| (*place, *net));
            self.origins.agrees(self.routes.len(), routes);
        }
        if may_end && self.patience.is_none() && self.changed.is_empty() {
            self.origins.end(out);
        }
    }

    /// The next changes.
    fn batch(&mut self) -> Batch {
        let mut batch = self.origins.batch(false);
        for _ in 0..Batch::MOST {
            let Some(net) = self.changed.pop_first() else { break };
            let now = self.routes.get(&net).map(|(origin, route)| (*origin, route));
            let before = match now {
                Some((origin, _)) => self.told.insert(net, origin),
                None => self.told.remove(&net),
            };
            batch.note(net, now, before);
        }
        batch
    }
}
