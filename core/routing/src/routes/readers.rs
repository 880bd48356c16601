//! Who reads the changes of a table, and how far each has come.
//!
//! Reference: Handley et al. (XORP), §5.1.1 (each peer reads the fanout queue at its own pace).
//!
//! A reader that is new must hear of everything: it goes through all destinations by their numbers, and hears of
//! changes only to those that it has passed. The more urgent comes first, but what is less so has its share.

use super::log::{Places, Scope, Urgency};
use super::nets::NONE;
use super::{Destination, Index, RouteTable};

/// A reader of a table's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(u32);

/// Of what a reader hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// Of destinations whose best route is another one.
    Best,
    /// Of destinations with any route that is different; now and then of others, too.
    All,
}

/// So many entries of the log more than needed do not matter.
const FEW: usize = 1024;
/// Whenever so many changes were noted ...
const NOTED: u64 = 8;
/// ... up to so many of each lane are forgotten which all have read: together, for they wait for memory. Not all at once:
/// those of a million routes took 50 ms, for which everything else waited.
const FORGOTTEN: usize = 16;

/// How far a reader has come.
#[derive(Clone, Copy, Debug)]
struct Reader {
    hears: Hears,
    /// The next places in the log.
    next: Places,
    /// The next destination to be told for the first time; [`NONE`] behind the last.
    first_time: u32,
    /// It is not the first time: what goes before it comes there it must hear, too.
    is_again: bool,
    /// How many it was told, of which some are in turn what is less urgent.
    turn: u8,
}

/// Of so many destinations one at least is what was taken back, and one what is told in the background, if there is
/// such.
const SHARE: u8 = 8;

/// All readers.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// By their numbers; none where the number is free.
    all: Vec<Option<Reader>>,
    /// How many changes they were given to hear of.
    noted: u64,
    /// Places before which all had read a while ago: what stands there nobody waits for, though it is in the log still.
    read: Places,
}

impl Readers {
    fn get(&self, reader: ReaderId) -> Option<&Reader> {
        self.all.get(reader.0 as usize)?.as_ref()
    }

    fn add(&mut self, reader: Reader) -> ReaderId {
        let free = self.all.iter().position(Option::is_none);
        let number = free.unwrap_or(self.all.len());
        self.all.resize(self.all.len().max(number + 1), None);
        self.all[number] = Some(reader);
        ReaderId(u32::try_from(number).expect("there are fewer readers than descriptors"))
    }

    /// Whether somebody hears of all routes.
    fn hear_all(&self) -> bool {
        self.all.iter().flatten().any(|reader| reader.hears == Hears::All)
    }

    fn none(&self) -> bool {
        self.all.iter().all(Option::is_none)
    }

    /// The places before which all have read.
    fn slowest(&self) -> Option<Places> {
        let places = self.all.iter().flatten().map(|reader| reader.next);
        places.reduce(|one, other| std::array::from_fn(|lane| one[lane].min(other[lane])))
    }
}

impl<D: Destination, R: Copy + PartialEq> RouteTable<D, R> {
    /// A new reader, who will hear of all destinations that have a best route.
    pub fn open_reader(&mut self, hears: Hears) -> ReaderId {
        let first_time = if self.nets.len() == 0 { NONE } else { 0 };
        let (next, is_again) = (self.log.ends(), false);
        self.readers.add(Reader { hears, next, first_time, is_again, turn: 0 })
    }

    /// A reader hears of all destinations that have a best route once more, and of these changes from now on. Of
    /// destinations that are not there any more it hears as ever.
    pub fn tell_again(&mut self, reader: ReaderId, hears: Hears) {
        let first_time = if self.nets.len() == 0 { NONE } else { 0 };
        if let Some(Some(reader)) = self.readers.all.get_mut(reader.0 as usize) {
            *reader = Reader { hears, first_time, is_again: true, ..*reader };
        }
    }

    /// Another reader who has come as far as this one.
    ///
    /// # Panics
    /// There is no such reader.
    pub fn fork_reader(&mut self, reader: ReaderId) -> ReaderId {
        let like = *self.readers.get(reader).expect("a reader is forked while it is there");
        self.readers.add(like)
    }

    /// Nobody reads here any more.
    pub fn close_reader(&mut self, reader: ReaderId) {
        if let Some(place) = self.readers.all.get_mut(reader.0 as usize) {
            *place = None;
        }
        if self.readers.none() {
            self.forget(usize::MAX);
        }
    }

    /// Whether both readers will hear the same from now on.
    #[must_use]
    pub fn have_read_the_same(&self, one: ReaderId, other: ReaderId) -> bool {
        let places = |reader| {
            let one = self.readers.get(reader)?;
            Some((one.hears, one.next, one.first_time, one.is_again))
        };
        places(one) == places(other)
    }

    /// The next destination of which this reader must hear: whatever it heard before, what holds is what
    /// [`RouteTable::best`] says now.
    pub fn next(&mut self, reader: ReaderId) -> Option<u32> {
        let mut place = *self.readers.get(reader)?;
        let turn = place.turn % SHARE;
        let found = if turn == SHARE - 1 {
            self.next_in_background(&mut place).or_else(|| self.next_urgent(&mut place))
        } else if turn == SHARE / 2 {
            let gone = self.next_in(Urgency::Gone, &mut place);
            gone.or_else(|| self.next_urgent(&mut place))
        } else {
            self.next_urgent(&mut place)
        };
        let found = found.or_else(|| self.next_in_background(&mut place));
        place.turn = place.turn.wrapping_add(1);
        self.readers.all[reader.0 as usize] = Some(place);
        found
    }

    /// How many entries of the log this reader has not read that are about routes told just now.
    #[must_use]
    pub fn new_waiting(&self, reader: ReaderId) -> usize {
        let place = self.readers.get(reader);
        place.map_or(0, |place| self.log.behind_in(Urgency::New, &place.next))
    }

    /// As [`RouteTable::next`], of those alone whose route was told just now.
    pub fn next_new(&mut self, reader: ReaderId) -> Option<u32> {
        let mut place = *self.readers.get(reader)?;
        let found = self.next_in(Urgency::New, &mut place);
        self.readers.all[reader.0 as usize] = Some(place);
        found
    }

    fn next_urgent(&self, reader: &mut Reader) -> Option<u32> {
        self.next_in(Urgency::New, reader).or_else(|| self.next_in(Urgency::Gone, reader))
    }

    fn next_in_background(&self, reader: &mut Reader) -> Option<u32> {
        self.next_in(Urgency::Background, reader).or_else(|| self.next_first_time(reader))
    }

    /// The next change in a lane.
    fn next_in(&self, urgency: Urgency, reader: &mut Reader) -> Option<u32> {
        let next = &mut reader.next[urgency as usize];
        while let Some(entry) = self.log.at(urgency, *next) {
            *next += 1;
            let concerns = entry.scope == Scope::Best || reader.hears == Hears::All;
            let counts = self.nets.get(entry.number).mark == entry.mark;
            // What it has not come to yet it will hear anyway.
            if concerns && counts && (reader.is_again || entry.number < reader.first_time) {
                return Some(entry.number);
            }
        }
        None
    }

    /// The next destination that is told for the first time.
    fn next_first_time(&self, reader: &mut Reader) -> Option<u32> {
        while reader.first_time != NONE {
            let number = reader.first_time;
            let is_last = number as usize + 1 >= self.nets.len();
            reader.first_time = if is_last { NONE } else { number + 1 };
            reader.is_again &= !is_last;
            if self.nets.get(number).best().is_some() {
                return Some(number);
            }
        }
        None
    }

    /// Whether this reader has not heard of something. (It may be that there is nothing to hear.)
    #[must_use]
    pub fn is_behind(&self, reader: ReaderId) -> bool {
        let reader = self.readers.get(reader);
        reader.is_some_and(|one| self.log.behind(&one.next) > 0 || one.first_time != NONE)
    }

    /// How many changes readers were given to hear of, since there is this table; those of a destination of which they
    /// had not heard yet count again.
    #[must_use]
    pub fn noted(&self) -> u64 {
        self.readers.noted
    }

    /// How many changes wait for the slowest reader.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.readers.slowest().map_or(0, |slowest| self.log.behind(&slowest))
    }

    /// Has readers hear of a change.
    pub(super) fn tell(&mut self, number: u32, urgency: Urgency, scope: Scope) {
        if self.readers.none() {
            if self.nets.get(number).is_empty() {
                self.free(number);
            }
            return;
        }
        // What was urgent and is not read yet stays so, and who has not heard of the best must.
        // Each reader is asked once for as many changes as there are readers.
        if self.readers.noted.is_multiple_of(self.readers.all.len() as u64) {
            self.readers.read = self.readers.slowest().unwrap_or_default();
        }
        let (urgency, scope) = match self.awaited(number) {
            Some((earlier, Scope::Best)) => (earlier.min(urgency), Scope::Best),
            Some((earlier, Scope::Others)) => (earlier.min(urgency), scope),
            None => (urgency, scope),
        };
        self.nets.get_mut(number).mark = self.log.push(urgency, number, scope);
        self.readers.noted += 1;
        if self.readers.noted.is_multiple_of(NOTED) {
            self.forget(1);
        }
        if self.log.len() > 2 * self.nets.len() + FEW {
            Urgency::ALL.into_iter().for_each(|urgency| self.compact(urgency));
            // Entries stand elsewhere now.
            self.readers.read = self.readers.slowest().unwrap_or(self.log.ends());
        }
    }

    /// Has those readers hear of a change who hear of all routes; false if there are none.
    pub(super) fn tell_others(&mut self, number: u32, urgency: Urgency) -> bool {
        let hear_all = self.readers.hear_all();
        if hear_all {
            self.tell(number, urgency, Scope::Others);
        }
        hear_all
    }

    /// Whether somebody must still hear of the last change of a destination.
    pub(super) fn is_awaited(&self, number: u32) -> bool {
        self.awaited(number).is_some()
    }

    /// What somebody must still hear of the last change of a destination, if anybody must.
    fn awaited(&self, number: u32) -> Option<(Urgency, Scope)> {
        self.log.find(self.nets.get(number).mark, number, &self.readers.read)
    }

    /// Whether much is remembered that all have read.
    #[must_use]
    pub fn is_untidy(&self) -> bool {
        let waiting = || self.readers.slowest().map_or(0, |slowest| self.log.behind(&slowest));
        self.log.len() >= FEW && self.log.len() - waiting() >= FEW
    }

    /// Forgets some of it, of a few hundred changes.
    pub fn tidy(&mut self) {
        self.readers.read = self.readers.slowest().unwrap_or(self.log.ends());
        self.forget(FEW / FORGOTTEN);
    }

    /// Forgets some of what all have read, [`FORGOTTEN`] of a lane in each of so many turns, and destinations of which nobody
    /// needs to hear any more.
    fn forget(&mut self, turns: usize) {
        if self.readers.none() {
            self.readers.read = self.log.ends();
        }
        for urgency in Urgency::ALL {
            let read = self.readers.read[urgency as usize];
            let mut turns = 0..turns;
            while turns.next().is_some() && self.forget_together(urgency, read) {}
        }
        self.log.shrink();
    }

    /// Forgets up to [`FORGOTTEN`] entries of a lane before this place; whether there may be more.
    fn forget_together(&mut self, urgency: Urgency, before: u64) -> bool {
        let mut popped = [None; FORGOTTEN];
        for place in &mut popped {
            *place = self.log.pop_before(urgency, before);
        }
        for (number, _) in popped.iter().flatten() {
            self.nets.prefetch(*number);
        }
        let (mut free, mut count) = ([0; FORGOTTEN], 0);
        for (number, mark) in popped.into_iter().flatten() {
            let net = self.nets.get(number);
            if net.mark == mark && !net.is_free() && net.is_empty() {
                free[count] = number;
                count += 1;
            }
        }
        let free = &free[..count];
        let Some(first) = free.first() else { return popped[FORGOTTEN - 1].is_some() };
        let mut destinations = [self.destination(*first); FORGOTTEN];
        for (destination, number) in destinations.iter_mut().zip(free) {
            *destination = self.destination(*number);
        }
        self.index.approach(&destinations[..count]);
        free.iter().for_each(|number| self.free(*number));
        popped[FORGOTTEN - 1].is_some()
    }

    /// Forgets all that all have read, and makes the log as short as it can be.
    #[cfg(test)]
    pub(super) fn tidy_all(&mut self) {
        self.readers.read = self.readers.slowest().unwrap_or(self.log.ends());
        self.forget(usize::MAX);
        Urgency::ALL.into_iter().for_each(|urgency| self.compact(urgency));
        self.readers.read = self.readers.slowest().unwrap_or(self.log.ends());
    }

    /// Leaves only the last change of each destination in a lane of the log.
    fn compact(&mut self, urgency: Urgency) {
        let all = self.readers.all.iter_mut().flatten();
        let mut places: Vec<_> = all.map(|reader| &mut reader.next[urgency as usize]).collect();
        places.sort();
        let mut moved = places.into_iter().peekable();
        let nets = &mut self.nets;
        self.log.retain(urgency, |old, number, mark, (new, new_mark)| {
            while let Some(place) = moved.next_if(|place| **place <= old) {
                *place = new;
            }
            let net = nets.get_mut(number);
            let counts = net.mark == mark;
            if counts {
                net.mark = new_mark;
            }
            counts
        });
        let end = self.log.ends()[urgency as usize];
        moved.for_each(|place| *place = end);
    }

    /// Forgets a destination without routes.
    pub(super) fn free(&mut self, number: u32) {
        let destination = self.destination(number);
        self.index.remove(&destination);
        self.nets.remove(number);
    }
}
