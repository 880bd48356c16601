//! Routes of many origins to many destinations, the best of each first, and who still has to hear of what.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §5: routes are stored where they
//! enter and nowhere else (§5.1), a decision finds the best of the alternatives (§5.1.1), one queue of changes has
//! many readers (§5.1.1, the Fanout Queue), routes of a peering that went down go in the background while it may
//! come back (§5.1.2, the deletion stage), and whoever walks through a table keeps his place (§5.3).
//!
//! What differs from the paper, and why:
//!
//! * There the table of each peer or protocol stands alone, and a decision asks all of them for alternatives. Here
//!   they share one index: a destination is looked up once, however many origins there are, and its name is stored
//!   once. What an origin has told is its own all the same: nobody else can change it.
//! * There a deletion stage holds the routes of a peering that went down. Here every route has the *generation* of
//!   its origin in which it was told, and a peering that comes back begins a new one. Routes of older generations
//!   serve until they are told again, in which case nothing happened, or until the background walk finds them. The
//!   same walk ends a graceful restart (RFC 4724 §4.2), an enhanced route refresh (RFC 7313 §4) and the return of a
//!   process that was restarted.
//! * There the queue holds the routes. Here it holds numbers of destinations, and a reader gets what holds when he
//!   reads: a destination that changed ten times while he was slow is read once, so that the queue is never longer
//!   than twice the table, however long a reader sleeps. And there it is one queue; here it has lanes, so that a
//!   route that is told now does not wait until a peering's have gone.

mod candidates;
mod free;
mod generation;
mod log;
mod nets;
mod readers;
#[cfg(test)]
mod tests;
mod walk;

pub use candidates::{Candidate, Candidates, Decide, OriginId};
pub use readers::{Hears, ReaderId};
pub use walk::sweep_order;

use crate::Check;
use crate::destination::{Destination, Index};
use generation::Generation;
use log::{Log, Scope, Urgency};
use nets::Nets;
use readers::Readers;
use walk::{Place, Walk};

/// Routes of several origins; see the module's text.
///
/// `R` is what a route says besides its destination; it should be small, such as the number of a set of attributes.
#[derive(Debug)]
pub struct RouteTable<D: Destination, R> {
    index: D::Index,
    nets: Nets<D, R>,
    log: Log,
    readers: Readers,
    origins: Vec<Origin>,
    walk: Walk,
    /// What origins have told, on which paths.
    check: Check<(D, OriginId, u32), R>,
}

/// On what occasion a decision is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// An origin has told something.
    Told,
    /// The background walk has come by.
    Walk,
}

/// What is known of an origin.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// In which its routes are told now.
    generation: Generation,
    /// Routes of generations before this one go when the walk comes to them.
    kept_from: Generation,
    /// How many routes it has, stale ones included.
    routes: usize,
    /// How many of them it has told in this generation.
    fresh: usize,
    /// Until which step of the walk its stale routes are taken, if they are.
    swept_until: Option<Place>,
    /// Routes of generations before this one go in the next round, if this is later.
    then_from: Generation,
}

impl<D: Destination, R: Copy + PartialEq> RouteTable<D, R> {
    /// A table without routes, of which readers hear what is best.
    #[must_use]
    pub fn new() -> Self {
        Self {
            index: D::Index::default(),
            nets: Nets::new(),
            log: Log::default(),
            readers: Readers::default(),
            origins: Vec::new(),
            walk: Walk::default(),
            check: Check::default(),
        }
    }

    /// A new origin. Their numbers follow one another from 0 on.
    ///
    /// # Panics
    /// There are 65,536 already.
    pub fn add_origin(&mut self) -> OriginId {
        self.origins.push(Origin::default());
        let number = u16::try_from(self.origins.len() - 1);
        OriginId(number.expect("there are fewer origins than descriptors"))
    }

    /// How many routes an origin has; with those that it has not told again in this generation.
    #[must_use]
    pub fn routes_of(&self, origin: OriginId) -> usize {
        self.origins[origin.place()].routes
    }

    /// How many of them it has told since it began anew.
    #[must_use]
    pub fn fresh_routes_of(&self, origin: OriginId) -> usize {
        self.origins[origin.place()].fresh
    }

    /// Whether a route was told before its origin began anew, and not since.
    #[must_use]
    pub fn is_stale(&self, candidate: &Candidate<R>) -> bool {
        candidate.generation < self.origins[candidate.origin.place()].generation
    }

    /// How many destinations have a route.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nets.reachable()
    }

    /// Whether no destination has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What finds a destination's number.
    #[must_use]
    pub fn index(&self) -> &D::Index {
        &self.index
    }

    /// The destination with this number.
    #[must_use]
    pub fn destination(&self, number: u32) -> D {
        self.nets.get(number).destination
    }

    /// The best route to the destination with this number.
    #[must_use]
    pub fn best(&self, number: u32) -> Option<&Candidate<R>> {
        self.nets.get(number).best()
    }

    /// All routes to the destination with this number, the best first if there is one.
    #[must_use]
    pub fn candidates(&self, number: u32) -> Candidates<'_, R> {
        self.nets.candidates(number)
    }

    /// The next destination behind this one, or the first, and its number; whether it has a route or not.
    #[must_use]
    pub fn after(&self, destination: Option<&D>) -> Option<(D, u32)> {
        self.index.after(destination)
    }

    /// Something will be told of these destinations soon, a few at a time: what is known of them comes closer to the
    /// processor, for all of them at once.
    pub fn approach(&self, destinations: &[D]) {
        self.index.approach(destinations);
        for destination in destinations {
            if let Some(number) = self.index.get(destination) {
                self.nets.prefetch(number);
            }
        }
    }

    /// An origin tells a route, in place of the one that it has told on this path, which is returned.
    pub fn set(
        &mut self,
        destination: D,
        origin: OriginId,
        path: u32,
        route: R,
        decide: &impl Decide<R>,
    ) -> Option<R> {
        let state = &mut self.origins[origin.place()];
        let candidate = Candidate { origin, generation: state.generation, path, route };
        let number = match self.index.get(&destination) {
            Some(number) => number,
            None => {
                let number = self.nets.add(destination);
                self.index.insert(destination, number);
                number
            }
        };
        let old = self.nets.get(number).best().copied();
        let known = self.nets.find(number, |one| one.origin == origin && one.path == path);
        self.check.change((destination, origin, path), known.is_some(), Some(route));
        let before = match known {
            Some(place) => {
                let before = std::mem::replace(self.nets.at_mut(number, place), candidate);
                if before.generation < candidate.generation {
                    state.fresh += 1;
                }
                if before.route == route {
                    // Nothing is different but the generation.
                    return Some(before.route);
                }
                Some(before.route)
            }
            None => {
                state.routes += 1;
                state.fresh += 1;
                self.nets.push(number, candidate);
                None
            }
        };
        self.settle(number, old, decide, Occasion::Told);
        self.agrees();
        before
    }

    /// Another route stands in place of one that an origin has told on this path, which is returned: what is made of what
    /// it told is something else now. It is as old as that one. None if it has told none.
    pub fn change(
        &mut self,
        number: u32,
        origin: OriginId,
        path: u32,
        route: R,
        decide: &impl Decide<R>,
    ) -> Option<R> {
        let place = self.nets.find(number, |one| one.origin == origin && one.path == path)?;
        let old = self.nets.get(number).best().copied();
        let before = std::mem::replace(&mut self.nets.at_mut(number, place).route, route);
        self.check.change((self.destination(number), origin, path), true, Some(route));
        if before != route {
            self.settle(number, old, decide, Occasion::Walk);
        }
        Some(before)
    }

    /// What the decision on the destination with this number depends on has changed, if there is still such a destination:
    /// it is decided at once. If many are concerned, [`RouteTable::decide_again`] takes less time.
    pub fn decide(&mut self, number: u32, decide: &impl Decide<R>) {
        if number < self.end_of_numbers() && !self.nets.get(number).is_free() {
            let old = self.nets.get(number).best().copied();
            self.settle(number, old, decide, Occasion::Told);
        }
    }

    /// Below which all numbers of destinations are.
    #[must_use]
    pub fn end_of_numbers(&self) -> u32 {
        // They are made of numbers of 32 bits.
        self.nets.len() as u32
    }

    /// An origin takes a route back, which is returned; none if it has told none on this path.
    pub fn withdraw(
        &mut self,
        destination: &D,
        origin: OriginId,
        path: u32,
        decide: &impl Decide<R>,
    ) -> Option<R> {
        let is_it = |one: &Candidate<R>| one.origin == origin && one.path == path;
        let number = self.index.get(destination);
        let place = number.and_then(|number| Some((number, self.nets.find(number, is_it)?)));
        let Some((number, place)) = place else {
            self.check.change((*destination, origin, path), false, None);
            return None;
        };
        let old = self.nets.get(number).best().copied();
        let gone = self.take(number, place);
        self.settle(number, old, decide, Occasion::Told);
        self.agrees();
        Some(gone.route)
    }

    /// Takes a candidate away, of which there is one at this place.
    fn take(&mut self, number: u32, place: u32) -> Candidate<R> {
        let gone = self.nets.take(number, place);
        self.check.change((self.destination(number), gone.origin, gone.path), true, None);
        let state = &mut self.origins[gone.origin.place()];
        state.routes -= 1;
        if gone.generation == state.generation {
            state.fresh -= 1;
        }
        gone
    }

    /// Whether what is looked up is what was told, now and then: each destination is found by its name, and has the routes
    /// that origins have told.
    fn agrees(&mut self) {
        if !self.check.is_due(self.nets.len()) {
            return;
        }
        let mut counts = vec![(0, 0); self.origins.len()];
        let mut all = Vec::new();
        for number in (0..self.end_of_numbers()).filter(|number| !self.nets.get(*number).is_free())
        {
            let destination = self.destination(number);
            debug_assert_eq!(self.index.get(&destination), Some(number), "{destination:?}");
            for one in self.candidates(number) {
                let count = &mut counts[one.origin.place()];
                count.0 += 1;
                count.1 += usize::from(!self.is_stale(one));
                all.push(((destination, one.origin, one.path), one.route));
            }
        }
        self.check.compare(all);
        let known = self.origins.iter().map(|origin| (origin.routes, origin.fresh));
        debug_assert!(known.eq(counts), "how many");
    }

    /// Decides which route to a destination is best, where `old` was, and has readers hear of it.
    fn settle(
        &mut self,
        number: u32,
        old: Option<Candidate<R>>,
        decide: &impl Decide<R>,
        occasion: Occasion,
    ) {
        self.nets.choose(number, decide);
        let new = self.nets.get(number).best();
        let is_same = match (&old, new) {
            (Some(old), Some(new)) => {
                old.says_as(new) && !(self.walk.decides() && decide.has_moved(new))
            }
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            let urgency = match new {
                _ if occasion != Occasion::Told => Urgency::Background,
                Some(_) => Urgency::New,
                None => Urgency::Gone,
            };
            return self.tell(number, urgency, Scope::Best);
        }
        // Whether another one than the best can be used now, or not any more, nobody knows.
        let urgency = match occasion {
            Occasion::Told => Urgency::New,
            Occasion::Walk => Urgency::Background,
        };
        if !self.tell_others(number, urgency)
            && self.nets.get(number).is_empty()
            && !self.is_awaited(number)
        {
            self.free(number);
        }
    }
}

impl<D: Destination, R: Copy + PartialEq> Default for RouteTable<D, R> {
    fn default() -> Self {
        Self::new()
    }
}
