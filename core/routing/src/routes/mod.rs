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
//!   than twice the table, however long a reader sleeps.

mod candidates;
mod log;
mod nets;
mod readers;
#[cfg(test)]
mod tests;
mod walk;

pub use candidates::{Candidate, Candidates, Decide, OriginId};
pub use readers::ReaderId;

use crate::destination::{Destination, Index};
use log::Log;
use nets::Nets;
use readers::Readers;
use walk::Walk;

/// What a change of a route did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: it was told already.
    Same,
    /// The table is different; what is best for the destination is as it was.
    Stored,
    /// Something else is best for the destination now, or nothing is.
    Best,
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told<R> {
    /// What it did.
    pub outcome: Outcome,
    /// What the origin had told before on this path.
    pub before: Option<R>,
}

/// Why a change of a route is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// A route is to go that its origin never told, or has taken back.
    #[error("there is no such route of this origin")]
    NoSuchRoute,
}

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
    /// Whether readers hear of each change of the alternatives, not only of the best.
    tells_alternatives: bool,
}

/// What is known of an origin.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// In which its routes are told now.
    generation: u16,
    /// How many routes it has, stale ones included.
    routes: usize,
    /// Until which step of the walk its stale routes are taken, if they are.
    swept_until: Option<u64>,
    /// Whether anybody speaks for it.
    standing: Standing,
}

/// Whether anybody speaks for an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// Its number may be given.
    #[default]
    Free,
    /// Somebody does.
    There,
    /// Nobody will any more, but it has routes.
    Leaving,
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
            tells_alternatives: false,
        }
    }

    /// From now on readers hear of each change of the alternatives to a destination, too.
    pub fn tell_alternatives(&mut self) {
        self.tells_alternatives = true;
    }

    /// A new origin.
    ///
    /// # Panics
    /// There are 65,536 already.
    pub fn add_origin(&mut self) -> OriginId {
        let free = self.origins.iter().position(|origin| origin.standing == Standing::Free);
        let place = free.unwrap_or_else(|| {
            self.origins.push(Origin::default());
            self.origins.len() - 1
        });
        self.origins[place].standing = Standing::There;
        OriginId(u16::try_from(place).expect("there are fewer origins than descriptors"))
    }

    /// Forgets an origin: its routes go in the background. Its number is given again when they are gone.
    pub fn remove_origin(&mut self, origin: OriginId) {
        self.renew(origin);
        self.sweep(origin);
        self.origins[origin.place()].standing = Standing::Leaving;
        self.release(origin);
    }

    /// How many routes an origin has; with those that it has not told again in this generation.
    #[must_use]
    pub fn routes_of(&self, origin: OriginId) -> usize {
        self.origins[origin.place()].routes
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

    /// The best route to exactly this destination.
    #[must_use]
    pub fn best_to(&self, destination: &D) -> Option<&Candidate<R>> {
        self.best(self.index.get(destination)?)
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

    /// What an origin tells on a path (0 if it has one only) to a destination.
    pub fn get(&self, destination: &D, origin: OriginId, path: u32) -> Option<&Candidate<R>> {
        let number = self.index.get(destination)?;
        self.candidates(number).find(|one| one.origin == origin && one.path == path)
    }

    /// An origin tells a route, in place of the one that it has told on this path.
    pub fn set(
        &mut self,
        destination: D,
        origin: OriginId,
        path: u32,
        route: R,
        decide: &impl Decide<R>,
    ) -> Told<R> {
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
        let before = match self.nets.find(number, |one| one.origin == origin && one.path == path) {
            Some(place) => {
                let before = std::mem::replace(self.nets.at_mut(number, place), candidate).route;
                if before == route {
                    return Told { outcome: Outcome::Same, before: Some(before) };
                }
                Some(before)
            }
            None => {
                state.routes += 1;
                self.nets.push(number, candidate);
                None
            }
        };
        Told { outcome: self.settle(number, old, true, decide), before }
    }

    /// An origin takes a route back.
    ///
    /// # Errors
    /// It has told none.
    pub fn withdraw(
        &mut self,
        destination: &D,
        origin: OriginId,
        path: u32,
        decide: &impl Decide<R>,
    ) -> Result<Told<R>, RouteError> {
        let number = self.index.get(destination).ok_or(RouteError::NoSuchRoute)?;
        let place = self.nets.find(number, |one| one.origin == origin && one.path == path);
        let place = place.ok_or(RouteError::NoSuchRoute)?;
        let old = self.nets.get(number).best().copied();
        let before = Some(self.take(number, place).route);
        Ok(Told { outcome: self.settle(number, old, true, decide), before })
    }

    /// Takes a candidate away, of which there is one at this place.
    fn take(&mut self, number: u32, place: u32) -> Candidate<R> {
        let gone = self.nets.take(number, place);
        self.origins[gone.origin.place()].routes -= 1;
        gone
    }

    /// The origin's number is free if nobody needs it any more.
    fn release(&mut self, origin: OriginId) {
        let state = &mut self.origins[origin.place()];
        if state.routes == 0 && state.standing == Standing::Leaving {
            state.standing = Standing::Free;
        }
    }

    /// Decides which route to a destination is best, where `old` was, and has readers hear of it; `altered` says
    /// whether the candidates are different.
    fn settle(
        &mut self,
        number: u32,
        old: Option<Candidate<R>>,
        altered: bool,
        decide: &impl Decide<R>,
    ) -> Outcome {
        self.nets.choose(number, decide);
        let new = self.nets.get(number).best();
        let is_same = match (&old, new) {
            (Some(old), Some(new)) => {
                old.says_as(new) && !(self.walk.decides() && decide.has_moved(&new.route))
            }
            (None, None) => true,
            _ => false,
        };
        if !is_same || altered && self.tells_alternatives {
            self.tell(number);
        } else if self.nets.get(number).is_empty() && !self.is_awaited(number) {
            self.free(number);
        }
        if is_same { Outcome::Stored } else { Outcome::Best }
    }
}

impl<D: Destination, R: Copy + PartialEq> Default for RouteTable<D, R> {
    fn default() -> Self {
        Self::new()
    }
}
