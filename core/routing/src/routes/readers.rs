//! Who reads the changes of a table, and how far each has come.
//!
//! Reference: Handley et al. (XORP), §5.1.1 (each peer reads the fanout queue at its own pace).
//!
//! A reader that is new must hear of everything: it goes through all destinations by their numbers, and hears of
//! changes only to those that it has passed.

use super::nets::NONE;
use super::{Destination, Index, RouteTable};

/// A reader of a table's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(u32);

/// Entries of the log below which nothing is tidied up.
const FEW: usize = 1024;

/// How far a reader has come.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// The next place in the log.
    next: u64,
    /// The next destination to be told for the first time; [`NONE`] behind the last.
    first_time: u32,
}

/// All readers.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// By their numbers; none where the number is free.
    all: Vec<Option<Reader>>,
    /// With so many entries the log is tidied up.
    tidy_at: usize,
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

    fn none(&self) -> bool {
        self.all.iter().all(Option::is_none)
    }

    /// The place before which all have read.
    fn slowest(&self) -> Option<u64> {
        self.all.iter().flatten().map(|reader| reader.next).min()
    }
}

impl<D: Destination, R: Copy + PartialEq> RouteTable<D, R> {
    /// A new reader, who will hear of all routes.
    pub fn open_reader(&mut self) -> ReaderId {
        let first_time = if self.nets.len() == 0 { NONE } else { 0 };
        self.readers.add(Reader { next: self.log.end(), first_time })
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
        self.tidy();
    }

    /// Whether both readers will hear the same from now on.
    #[must_use]
    pub fn have_read_the_same(&self, one: ReaderId, other: ReaderId) -> bool {
        let places = |reader| self.readers.get(reader).map(|one| (one.next, one.first_time));
        places(one) == places(other)
    }

    /// The next destination of which this reader must hear: whatever it heard before, what holds is what
    /// [`RouteTable::best`] says now.
    pub fn next(&mut self, reader: ReaderId) -> Option<u32> {
        let place = self.readers.all.get_mut(reader.0 as usize)?.as_mut()?;
        while place.next < self.log.end() {
            let number = self.log.at(place.next);
            let counts = self.nets.get(number).version == place.next as u32;
            place.next += 1;
            // What it has not come to yet it will hear anyway.
            if counts && number < place.first_time {
                return Some(number);
            }
        }
        while place.first_time != NONE {
            let number = place.first_time;
            let is_last = number as usize + 1 >= self.nets.len();
            place.first_time = if is_last { NONE } else { number + 1 };
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
        reader.is_some_and(|one| one.next < self.log.end() || one.first_time != NONE)
    }

    /// How many changes wait for the slowest reader.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let slowest = self.readers.slowest().unwrap_or(self.log.end());
        // There are no more than entries in the log.
        (self.log.end() - slowest) as usize
    }

    /// Has readers hear of a change.
    pub(super) fn tell(&mut self, number: u32) {
        if self.readers.none() {
            if self.nets.get(number).is_empty() {
                self.free(number);
            }
            return;
        }
        // The place's low bits: the log is never so long that they are ambiguous.
        self.nets.get_mut(number).version = self.log.push(number) as u32;
        if self.log.len() >= self.readers.tidy_at.max(FEW) {
            self.tidy();
            self.readers.tidy_at = 2 * self.log.len();
        }
    }

    /// Whether somebody must still hear of the last change of a destination.
    pub(super) fn is_awaited(&self, number: u32) -> bool {
        let version = self.nets.get(number).version;
        let behind = version.wrapping_sub(self.log.begin() as u32);
        (behind as usize) < self.log.len()
            && self.log.at(self.log.begin() + u64::from(behind)) == number
    }

    /// Forgets what all have read, and destinations of which nobody needs to hear any more.
    pub(super) fn tidy(&mut self) {
        let read = self.readers.slowest().unwrap_or(self.log.end());
        while self.log.begin() < read
            && let Some((place, number)) = self.log.pop()
        {
            let net = self.nets.get(number);
            if net.version == place as u32 && !net.is_free() && net.is_empty() {
                self.free(number);
            }
        }
        if self.log.len() > 2 * self.nets.len() + FEW {
            self.compact();
        }
        self.log.shrink();
    }

    /// Leaves only the last change of each destination in the log.
    fn compact(&mut self) {
        let mut readers: Vec<_> = self.readers.all.iter_mut().flatten().collect();
        readers.sort_by_key(|reader| reader.next);
        let mut moved = readers.into_iter().peekable();
        let (nets, end) = (&mut self.nets, self.log.end());
        self.log.retain(|old, number, new| {
            while let Some(reader) = moved.next_if(|reader| reader.next <= old) {
                reader.next = new;
            }
            let net = nets.get_mut(number);
            let counts = net.version == old as u32;
            if counts {
                net.version = new as u32;
            }
            counts
        });
        let new_end = self.log.end();
        debug_assert!(new_end <= end);
        moved.for_each(|reader| reader.next = new_end);
    }

    /// Forgets a destination without routes.
    pub(super) fn free(&mut self, number: u32) {
        let destination = self.destination(number);
        self.index.remove(&destination);
        self.nets.remove(number);
    }
}
