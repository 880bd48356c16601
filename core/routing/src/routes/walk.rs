//! The walk through all destinations that takes stale routes and decides again.
//!
//! Reference: Handley et al. (XORP), §5.1.2: what is too much for one event is done in slices, in the background.
//!
//! There is one walk, in circles, however many origins are to be swept: each is done when the walk has come round.

use std::collections::VecDeque;

use super::generation::Generation;
use super::{Candidate, Decide, Destination, Occasion, OriginId, RouteTable};

/// How far the walk has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// Where it is: the number of the round, and below it, 32 bits, that of the next destination. The table may grow
    /// meanwhile, so steps could not be counted.
    place: u64,
    /// How far it must go for whom, in order.
    sweeps: VecDeque<(u64, OriginId)>,
    /// Until where destinations are decided again.
    decides_until: u64,
}

impl Walk {
    fn is_under_way(&self) -> bool {
        !self.sweeps.is_empty() || self.decides()
    }

    pub(super) fn decides(&self) -> bool {
        self.place < self.decides_until
    }

    /// The next destination.
    fn next(&self) -> u32 {
        self.place as u32
    }

    /// One step in a table of `len` destinations.
    fn advance(&mut self, len: usize) {
        let is_last = self.next() as usize + 1 >= len;
        self.place = if is_last { ((self.place >> 32) + 1) << 32 } else { self.place + 1 };
    }

    /// Where it is when it has come round.
    fn round(&self) -> u64 {
        self.place + (1 << 32)
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
        let until = self.walk.round();
        let state = &mut self.origins[origin.place()];
        (state.swept_until, state.kept_from, state.then_from) = (Some(until), from, from);
        self.walk.sweeps.push_back((until, origin));
    }

    /// Has all destinations decided again, in the background: what decisions depend on has changed.
    pub fn decide_again(&mut self) {
        if self.nets.len() > 0 {
            self.walk.decides_until = self.walk.round();
        }
    }

    /// Whether there is background work.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.walk.is_under_way()
    }

    /// Does background work at up to this many destinations; `gone` is told of each route that goes.
    pub fn work(
        &mut self,
        most: usize,
        decide: &impl Decide<R>,
        mut gone: impl FnMut(&D, &Candidate<R>),
    ) {
        for _ in 0..most {
            if !self.walk.is_under_way() {
                break;
            }
            self.visit(self.walk.next(), decide, &mut gone);
            self.walk.advance(self.nets.len());
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

    /// One destination that the walk has come to.
    fn visit(
        &mut self,
        number: u32,
        decide: &impl Decide<R>,
        gone: &mut impl FnMut(&D, &Candidate<R>),
    ) {
        if self.nets.get(number).is_free() {
            return;
        }
        let old = self.nets.get(number).best().copied();
        let mut took = false;
        while let Some(place) = self.nets.find(number, |one| self.is_going(one)) {
            let taken = self.take(number, place);
            gone(&self.destination(number), &taken);
            took = true;
        }
        if took || self.walk.decides() {
            self.settle(number, old, decide, Occasion::Walk);
        }
    }

    /// Whether a route is stale, and stale ones of its origin go.
    fn is_going(&self, candidate: &Candidate<R>) -> bool {
        let origin = &self.origins[candidate.origin.place()];
        candidate.generation < origin.kept_from && origin.swept_until.is_some()
    }
}
