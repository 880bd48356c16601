//! The walk through all destinations that takes stale routes and decides again.
//!
//! Reference: Handley et al. (XORP), §5.1.2: what is too much for one event is done in slices, in the background.
//!
//! There is one walk, in circles, however many origins are to be swept: each is done when the walk has come round.
//!
//! A round begins with all destinations in the order of their numbers, which is the one in which they came: those that
//! were told together, with the same attributes, are told together again. It decides, and takes stale routes where there
//! are others: packets that can take another way do so first. What is stale and alone goes afterwards.
//!
//! When most of a large table goes, that takes several passes. For whoever forwards has neighbours side by side, and when
//! these go one after the other, what is built for many is left with few in one place after the other, and built anew in
//! large steps: of 1,000,000 routes of IPv4, in the order of their addresses, all take Linux four times as long, and one up
//! to a second. In small tables steps are short, and Linux is faster with neighbours together. Which destination goes in
//! which pass is said by its [kind](Destination::pass). The last pass goes through the table in several turns, so that what
//! was told in the order of addresses does not go in that order: which of the last destinations goes matters most.

use std::collections::VecDeque;

use super::generation::Generation;
use super::{Candidate, Decide, Destination, Occasion, Origin, OriginId, RouteTable};

/// From so many destinations on a table is large; in tests, which are about either kind, earlier.
const LARGE: usize = if cfg!(test) { 512 } else { 1 << 18 };
/// Turns of the last pass in a large table, a power of two.
const TURNS: u32 = 16;
/// How many visits of such a turn ahead a destination is read from memory.
const AHEAD: u32 = 4;
/// What a visit counts at which there is something to do, in parts ...
const DONE: usize = 64;
/// ... at which nothing is found that goes ...
const LOOKED: usize = 8;
/// ... and of a destination that is not concerned by the pass.
const PASSED: usize = 1;

/// Where a walk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    round: u64,
    /// 0 for the first, in order; then the turns in which what is alone goes.
    turn: u32,
    /// The next destination. The table may grow meanwhile, so steps could not be counted.
    number: u32,
}

impl Place {
    /// Where the next round begins.
    fn next_round(self) -> Self {
        Self { round: self.round + 1, ..Self::default() }
    }

    fn is_in_first_pass(self) -> bool {
        self.turn == 0
    }

    /// Which of these passes it is, behind the first.
    fn pass(self, passes: Passes) -> u32 {
        self.turn.saturating_sub(1).min(passes.whole)
    }

    /// How far the next destination is.
    fn step(self, passes: Passes) -> u32 {
        if self.turn > passes.whole { passes.turns } else { 1 }
    }

    /// The next in a table of `len` destinations; these passes come behind the first.
    fn advance(&mut self, len: usize, passes: Passes) {
        // There are fewer than 2^31.
        self.number += self.step(passes);
        while self.number as usize >= len {
            if self.turn >= passes.whole + passes.turns {
                *self = self.next_round();
                return;
            }
            self.turn += 1;
            let turn = self.turn.saturating_sub(passes.whole + 1);
            // Those that follow one another are far from one another.
            let far = u64::from(turn.reverse_bits()) << passes.turns.trailing_zeros();
            self.number = (far >> u32::BITS) as u32;
        }
    }
}

/// Passes behind the first.
#[derive(Clone, Copy, Debug)]
struct Passes {
    /// Those but the last.
    whole: u32,
    /// Turns of the last one, each of which visits one destination of so many that follow one another.
    turns: u32,
}

impl Passes {
    const NONE: Self = Self { whole: 0, turns: 0 };

    /// Those in a table of `len` destinations of a kind, to which so many routes go.
    fn of<D: Destination>(len: usize, going: usize) -> Self {
        match len >= LARGE && going > len / 2 {
            true => Self { whole: D::PASSES - 1, turns: TURNS },
            false => Self { whole: 0, turns: 1 },
        }
    }
}

/// The order in which destinations go that a sweep finds alone, as places among all of a table.
pub fn sweep_order<D: Destination>(all: &[D]) -> impl Iterator<Item = usize> {
    let (len, passes) = (all.len(), Passes::of::<D>(all.len(), all.len()));
    let begin = Place { turn: 1, ..Place::default() };
    let places = std::iter::successors((len > 0).then_some(begin), move |place| {
        let mut next = *place;
        next.advance(len, passes);
        (next.round == begin.round).then_some(next)
    });
    let concerns = move |place: &Place| {
        passes.whole == 0 || all[place.number as usize].pass(len) == place.pass(passes)
    };
    places.filter(concerns).map(|place| place.number as usize)
}

/// How far the walk has come.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    place: Place,
    /// What comes behind the first pass.
    passes: Passes,
    /// Of how many destinations, by which it is known what concerns which pass.
    len: usize,
    /// How far it must go for whom, in order.
    sweeps: VecDeque<(Place, OriginId)>,
    /// Until where destinations are decided again.
    decides_until: Place,
}

impl Default for Walk {
    fn default() -> Self {
        let (place, decides_until) = (Place::default(), Place::default());
        Self { place, passes: Passes::NONE, len: 0, sweeps: VecDeque::new(), decides_until }
    }
}

impl Walk {
    fn is_under_way(&self) -> bool {
        !self.sweeps.is_empty() || self.decides()
    }

    pub(super) fn decides(&self) -> bool {
        self.place < self.decides_until
    }

    /// One step in a table of `len` destinations of a kind, with routes of these origins.
    fn advance<D: Destination>(&mut self, len: usize, origins: &[Origin]) {
        if self.place.is_in_first_pass() && self.place.number as usize + 1 >= len {
            let going = self.sweeps.iter().map(|(_, origin)| {
                let Origin { routes, fresh, .. } = &origins[origin.place()];
                routes - fresh
            });
            self.len = len;
            self.passes = match self.sweeps.is_empty() {
                true => Passes::NONE,
                false => Passes::of::<D>(len, going.sum()),
            };
        }
        self.place.advance(len, self.passes);
    }

    /// Whether the pass in which the walk is concerns a destination.
    fn concerns<D: Destination>(&self, destination: &D) -> bool {
        self.place.is_in_first_pass()
            || self.passes.whole == 0
            || destination.pass(self.len) == self.place.pass(self.passes)
    }

    /// Somebody needs the walk: it begins anew if nobody else does.
    fn begin(&mut self) {
        if !self.is_under_way() {
            self.place = self.place.next_round();
        }
    }

    /// Where it has visited all destinations in order.
    fn decided(&self) -> Place {
        let next = self.place.next_round();
        match self.place.is_in_first_pass() {
            true => Place { number: self.place.number, ..next },
            false => Place { turn: 1, ..next },
        }
    }

    /// Where it has come round with all passes in which what is alone goes.
    fn swept(&self) -> Place {
        match self.place.is_in_first_pass() {
            true => self.place.next_round(),
            false => self.place.next_round().next_round(),
        }
    }

    /// An origin for which the walk has come round.
    fn finished(&mut self) -> Option<OriginId> {
        self.sweeps.pop_front_if(|(until, _)| *until <= self.place).map(|(_, origin)| origin)
    }
}

impl<D: Destination, R: Copy + PartialEq> RouteTable<D, R> {
    /// The origin tells its routes anew: those that it has told are stale, and serve until it tells them again
    /// or [`RouteTable::sweep`] is called. A sweep that goes on takes what was stale when it began, and no more.
    pub fn renew(&mut self, origin: OriginId) {
        let next = self.origins[origin.place()].generation.next();
        let next = next.or_else(|| {
            self.number_anew(origin);
            self.origins[origin.place()].generation.next()
        });
        let state = &mut self.origins[origin.place()];
        state.generation = next.expect("those that are numbered anew have low numbers");
        state.fresh = 0;
    }

    /// Gives the generations of an origin low numbers. Whoever begins anew so often pays for that himself: a step at each
    /// destination is less than what he has sent.
    fn number_anew(&mut self, origin: OriginId) {
        let state = &mut self.origins[origin.place()];
        let mut known = [state.kept_from, state.then_from, state.generation];
        known.sort_unstable();
        for one in [&mut state.kept_from, &mut state.then_from, &mut state.generation] {
            *one = one.among(&known);
        }
        for candidate in self.nets.all_mut().filter(|candidate| candidate.origin == origin) {
            candidate.generation = candidate.generation.among(&known);
        }
    }

    /// The origin has told its routes anew, or will not: the stale ones go, in the background. Those that have become stale
    /// while others go wait until the walk has come round.
    pub fn sweep(&mut self, origin: OriginId) {
        let state = &mut self.origins[origin.place()];
        if state.swept_until.is_some() {
            state.then_from = state.generation;
        } else if state.routes > 0 && state.kept_from < state.generation {
            let from = state.generation;
            self.begin_sweep(origin, from);
        }
    }

    fn begin_sweep(&mut self, origin: OriginId, from: Generation) {
        self.walk.begin();
        let until = self.walk.swept();
        let state = &mut self.origins[origin.place()];
        (state.swept_until, state.kept_from, state.then_from) = (Some(until), from, from);
        self.walk.sweeps.push_back((until, origin));
    }

    /// Has all destinations decided again, in the background: what decisions depend on has changed.
    pub fn decide_again(&mut self) {
        if self.nets.len() > 0 {
            self.walk.begin();
            self.walk.decides_until = self.walk.decided();
        }
    }

    /// Whether there is background work.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.walk.is_under_way()
    }

    /// Does background work at up to this many destinations, or at more at which there is nothing to do;
    /// `gone` is told of each route that goes.
    pub fn work(
        &mut self,
        most: usize,
        decide: &impl Decide<R>,
        mut gone: impl FnMut(&D, &Candidate<R>),
    ) {
        let mut parts = most * DONE;
        while parts > 0 && self.walk.is_under_way() {
            parts = parts.saturating_sub(self.visit(decide, &mut gone));
            self.walk.advance::<D>(self.nets.len(), &self.origins);
            while let Some(origin) = self.walk.finished() {
                let state = &mut self.origins[origin.place()];
                state.swept_until = None;
                if state.then_from > state.kept_from {
                    let from = state.then_from;
                    self.begin_sweep(origin, from);
                }
            }
        }
        self.agrees();
    }

    /// One destination that the walk has come to; how much was done, in parts.
    fn visit(
        &mut self,
        decide: &impl Decide<R>,
        gone: &mut impl FnMut(&D, &Candidate<R>),
    ) -> usize {
        let number = self.walk.place.number;
        let is_first = self.walk.place.is_in_first_pass();
        if !is_first {
            let step = self.walk.place.step(self.walk.passes);
            self.nets.prefetch(number.saturating_add(AHEAD * step));
        }
        let net = self.nets.get(number);
        if net.is_free() || !self.walk.concerns(&net.destination) {
            return PASSED;
        }
        let old = net.best().copied();
        let mut took = false;
        if !is_first || net.has_others() {
            while let Some(place) = self.nets.find(number, |one| self.is_going(one)) {
                let taken = self.take(number, place);
                gone(&self.destination(number), &taken);
                took = true;
            }
        }
        let decides = is_first && self.walk.decides();
        if took || decides {
            self.settle(number, old, decide, Occasion::Walk);
        }
        if took || decides { DONE } else { LOOKED }
    }

    /// Whether a route is stale, and stale ones of its origin go.
    fn is_going(&self, candidate: &Candidate<R>) -> bool {
        let origin = &self.origins[candidate.origin.place()];
        candidate.generation < origin.kept_from && origin.swept_until.is_some()
    }
}
