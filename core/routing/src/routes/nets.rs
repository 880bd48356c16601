//! Where destinations and the routes to them stand in memory.
//!
//! Most destinations have one route or few: the best stands with the destination, further ones in a list.

use weft_processor::{make_room, prefetch_element};

use super::candidates::{Candidate, Candidates, Decide};
use super::free::FreeNumbers;
use super::log::Mark;

/// Room for so many is made at least.
const FEW: usize = 8;
/// No place.
pub(super) const NONE: u32 = u32::MAX;

/// A destination and what leads to it.
#[derive(Clone, Debug)]
pub(super) struct Net<D, R> {
    pub(super) destination: D,
    standing: Standing,
    /// Where the log tells of its last change.
    pub(super) mark: Mark,
    /// The first of the further candidates.
    next: u32,
    first: Option<Candidate<R>>,
}

/// What a net has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Not even a destination.
    Free,
    /// No route of which anybody may hear.
    Unreachable,
    /// The first candidate is the best.
    Reachable,
}

/// A candidate behind the first.
#[derive(Clone, Debug)]
pub(super) struct Further<R> {
    pub(super) candidate: Candidate<R>,
    pub(super) next: u32,
}

impl<D, R> Net<D, R> {
    pub(super) fn best(&self) -> Option<&Candidate<R>> {
        self.first.as_ref().filter(|_| self.standing == Standing::Reachable)
    }

    pub(super) fn is_free(&self) -> bool {
        self.standing == Standing::Free
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Whether it has further candidates besides the first.
    pub(super) fn has_others(&self) -> bool {
        self.next != NONE
    }
}

/// All of them, by their numbers.
#[derive(Clone, Debug)]
pub(super) struct Nets<D, R> {
    nets: Vec<Net<D, R>>,
    free: FreeNumbers,
    further: Vec<Further<R>>,
    free_further: Vec<u32>,
    reachable: usize,
}

impl<D: Copy, R: Copy> Nets<D, R> {
    pub(super) fn new() -> Self {
        Self {
            nets: Vec::new(),
            free: FreeNumbers::default(),
            further: Vec::new(),
            free_further: Vec::new(),
            reachable: 0,
        }
    }

    /// How many numbers there are, those without destinations included.
    pub(super) fn len(&self) -> usize {
        self.nets.len()
    }

    /// How many have a best route.
    pub(super) fn reachable(&self) -> usize {
        self.reachable
    }

    pub(super) fn get(&self, number: u32) -> &Net<D, R> {
        &self.nets[number as usize]
    }

    /// Will be needed soon.
    pub(super) fn prefetch(&self, number: u32) {
        prefetch_element(&self.nets, number as usize);
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Net<D, R> {
        &mut self.nets[number as usize]
    }

    /// A number for a destination that has none.
    pub(super) fn add(&mut self, destination: D) -> u32 {
        let (standing, first) = (Standing::Unreachable, None);
        let net = Net { destination, standing, mark: Mark::default(), next: NONE, first };
        if let Some(number) = self.free.take() {
            // Older entries in the log do not count for it.
            let mark = self.get(number).mark;
            *self.get_mut(number) = Net { mark, ..net };
            return number;
        }
        let number = grow(&mut self.nets, net);
        // The log needs a bit.
        assert!(number < 1 << 31, "2 billion destinations do not fit into memory");
        number
    }

    /// Takes the number from a destination without routes.
    pub(super) fn remove(&mut self, number: u32) {
        let net = self.get_mut(number);
        debug_assert!(net.is_empty() && !net.is_free());
        net.standing = Standing::Free;
        self.free.add(number);
    }

    /// All candidates, and what stood where candidates were.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Candidate<R>> {
        let first = self.nets.iter_mut().filter_map(|net| net.first.as_mut());
        first.chain(self.further.iter_mut().map(|further| &mut further.candidate))
    }

    pub(super) fn candidates(&self, number: u32) -> Candidates<'_, R> {
        let net = self.get(number);
        Candidates { first: net.first.as_ref(), next: net.next, further: &self.further }
    }

    /// The place of a candidate: 0 for the first, the others in order.
    pub(super) fn find(&self, number: u32, which: impl Fn(&Candidate<R>) -> bool) -> Option<u32> {
        // There are at most as many as fit into memory.
        self.candidates(number).position(which).map(|place| place as u32)
    }

    pub(super) fn at_mut(&mut self, number: u32, place: u32) -> &mut Candidate<R> {
        match place.checked_sub(1) {
            None => {
                let first = self.nets[number as usize].first.as_mut();
                first.expect("a place that was found has a candidate")
            }
            Some(behind) => {
                let at = self.further_at(number, behind);
                &mut self.further[at as usize].candidate
            }
        }
    }

    /// Where the further candidate stands that has `behind` others of them in front.
    fn further_at(&self, number: u32, behind: u32) -> u32 {
        let first = self.get(number).next;
        (0..behind).fold(first, |at, _| self.further[at as usize].next)
    }

    /// One candidate more.
    pub(super) fn push(&mut self, number: u32, candidate: Candidate<R>) {
        let net = &mut self.nets[number as usize];
        if net.first.is_none() {
            net.first = Some(candidate);
            return;
        }
        let further = Further { candidate, next: net.next };
        let at = match self.free_further.pop() {
            Some(at) => {
                self.further[at as usize] = further;
                at
            }
            None => grow(&mut self.further, further),
        };
        self.get_mut(number).next = at;
    }

    /// One candidate less. If it was the best, there is none until one is chosen.
    pub(super) fn take(&mut self, number: u32, place: u32) -> Candidate<R> {
        let gone = *self.at_mut(number, place);
        match place.checked_sub(1) {
            None => {
                let next = self.get(number).next;
                let heir = (next != NONE).then(|| self.further[next as usize].clone());
                self.set_standing(number, Standing::Unreachable);
                let net = self.get_mut(number);
                net.first = heir.as_ref().map(|heir| heir.candidate);
                if let Some(heir) = heir {
                    net.next = heir.next;
                    self.free_further.push(next);
                }
            }
            Some(behind) => {
                let at = self.further_at(number, behind);
                let next = self.further[at as usize].next;
                match behind.checked_sub(1) {
                    None => self.get_mut(number).next = next,
                    Some(before) => {
                        let before = self.further_at(number, before);
                        self.further[before as usize].next = next;
                    }
                }
                self.free_further.push(at);
            }
        }
        gone
    }

    /// Puts the best candidate first.
    pub(super) fn choose(&mut self, number: u32, decide: &impl Decide<R>) {
        let is_empty = self.get(number).is_empty();
        let best = if is_empty { None } else { decide.best(self.candidates(number)) };
        let Some(place) = best else { return self.set_standing(number, Standing::Unreachable) };
        if place > 0 {
            // As many as there are numbers at most.
            let best = *self.at_mut(number, place as u32);
            let other = std::mem::replace(self.at_mut(number, 0), best);
            *self.at_mut(number, place as u32) = other;
        }
        self.set_standing(number, Standing::Reachable);
    }

    fn set_standing(&mut self, number: u32, standing: Standing) {
        let net = &mut self.nets[number as usize];
        self.reachable -= usize::from(net.standing == Standing::Reachable);
        net.standing = standing;
        self.reachable += usize::from(standing == Standing::Reachable);
    }
}

/// Appends.
fn grow<T>(items: &mut Vec<T>, item: T) -> u32 {
    if items.len() == items.capacity() {
        make_room(items, FEW);
    }
    items.push(item);
    u32::try_from(items.len() - 1).expect("4 billion items do not fit into memory")
}

#[cfg(test)]
mod tests {
    use ipnet::Ipv4Net;

    use super::*;

    #[test]
    fn a_destination_with_a_route_takes_half_a_cache_line() {
        assert_eq!(size_of::<Net<Ipv4Net, [u32; 2]>>(), 32);
    }
}
