//! Where the links that a filter holds lead to: from their places to branches, each branch once.
//!
//! Reference: Jokela et al., "LIPSIN: Line Speed Publish/Subscribe Inter-networking", SIGCOMM 2009, §3 (a packet goes
//! over every link that its filter holds, false positives included).
//!
//! A filter that is half full holds three links in a hundred by mistake, at places that nobody can foresee. A branch
//! of the program for each would be foreseen wrongly as often as not, and cost more than the search. So there is none:
//! each target that is found is marked, as often as it is found, and then all that are marked are listed. Only if no two
//! links have a target in common, none can be found twice, and branches are made at once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use weft_processor::{ones, room_for_ones};
use weft_xip::principal::Branch;

use crate::index::{BLOCK, Finder, Found, WORD, first_places};
use crate::links::Target;

/// The targets of all links, by numbers. This node has the first, so that its branch comes before all others.
#[derive(Debug)]
pub(crate) struct Targets {
    known: BTreeMap<Target, Known>,
    /// The branch of each number.
    branches: Vec<Branch>,
    /// Numbers that no target has now.
    free: Vec<u32>,
    /// How many targets have several links.
    shared: usize,
    /// The number of the target at each place of a link.
    numbers: Vec<u32>,
    /// The branch at each place. To look for it by its number would read one line more for each.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    number: u32,
    links: usize,
}

/// A branch, which lies in one line of the processor's caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Slot(Branch);

impl Default for Targets {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            branches: vec![Branch::Through],
            free: Vec::new(),
            shared: 0,
            numbers: Vec::new(),
            slots: Vec::new(),
        }
    }
}

impl Targets {
    /// Says that one more link leads to the target.
    pub(crate) fn add(&mut self, target: Target) {
        let Self { known, branches, free, .. } = self;
        let known = known.entry(target).or_insert_with(|| {
            let Some(gateway) = target else { return Known { number: 0, links: 0 } };
            let branch = Branch::To(gateway);
            let number = free.pop().unwrap_or_else(|| {
                branches.push(branch);
                branches.len() as u32 - 1
            });
            branches[number as usize] = branch;
            Known { number, links: 0 }
        });
        known.links += 1;
        self.shared += usize::from(known.links == 2);
    }

    /// Says that one link less leads to the target, which was added.
    pub(crate) fn remove(&mut self, target: Target) {
        let Some(known) = self.known.get_mut(&target) else { return };
        known.links -= 1;
        self.shared -= usize::from(known.links == 1);
        if known.links == 0 {
            if known.number > 0 {
                self.free.push(known.number);
            }
            self.known.remove(&target);
        }
    }

    /// Forgets which link has which place.
    pub(crate) fn clear_places(&mut self) {
        self.numbers.clear();
        self.slots.clear();
    }

    /// Adds a word of places.
    pub(crate) fn push(&mut self) {
        self.numbers.resize(self.numbers.len() + WORD, 0);
        self.slots.resize(self.slots.len() + WORD, Slot(Branch::Through));
    }

    /// Says where the links of a word lead to, in their order. All were added.
    pub(crate) fn write(&mut self, word: usize, targets: impl Iterator<Item = Target>) {
        let numbers = &mut self.numbers[word * WORD..][..WORD];
        let slots = &mut self.slots[word * WORD..][..WORD];
        for ((number, slot), target) in numbers.iter_mut().zip(slots).zip(targets) {
            *number = self.known.get(&target).map_or(0, |known| known.number);
            *slot = Slot(self.branches[*number as usize]);
        }
    }

    /// Calls `search` with what makes branches of the links that it finds, and is finished at its end.
    #[inline(always)]
    pub(crate) fn collect(
        &self,
        branches: &mut Vec<Branch>,
        search: impl FnOnce(&mut Collector<'_>),
    ) {
        SCRATCH.with_borrow_mut(|scratch| {
            let words = self.branches.len().div_ceil(WORD);
            if scratch.marks.len() < words {
                scratch.marks.resize(words, [0; WORD]);
            }
            let marks = &mut scratch.marks[..words];
            search(&mut Collector { targets: self, places: &mut scratch.places, marks, branches });
        });
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::NEW) };
}

/// What a thread writes down during a search.
struct Scratch {
    places: [u16; room_for_ones(BLOCK)],
    /// For each number of a target whether it was found, 1 or 0. All are 0 between searches.
    marks: Vec<[u8; WORD]>,
}

impl Scratch {
    const NEW: Self = Self { places: [0; room_for_ones(BLOCK)], marks: Vec::new() };
}

/// Makes branches of what is found.
pub(crate) struct Collector<'a> {
    targets: &'a Targets,
    /// Room for places of one bits.
    places: &'a mut [u16; room_for_ones(BLOCK)],
    marks: &'a mut [[u8; WORD]],
    branches: &'a mut Vec<Branch>,
}

impl Finder for Collector<'_> {
    #[inline(always)]
    fn take(&mut self, found: &Found<'_>) {
        if found.held.iter().fold(0, |any, word| any | word) == 0 {
            // With filters that are not full it is so with most blocks.
            return;
        }
        let count = ones(found.held, found.firsts, self.places);
        let places = self.places[..count].iter().copied().map(usize::from);
        if self.targets.shared == 0 {
            let slots = &self.targets.slots[found.from..];
            self.branches.extend(places.map(|place| slots[place].0));
        } else {
            let numbers = &self.targets.numbers[found.from..];
            let marks = self.marks.as_flattened_mut();
            places.for_each(|place| marks[numbers[place] as usize] = 1);
        }
    }
}

impl Collector<'_> {
    /// Pushes the branches that were not pushed at once.
    #[inline(always)]
    pub(crate) fn finish(&mut self) {
        const FIRSTS: [u16; BLOCK] = first_places();
        if self.targets.shared == 0 {
            return;
        }
        let branches = self.targets.branches.chunks(BLOCK * WORD);
        for (marks, branches) in self.marks.chunks_mut(BLOCK).zip(branches) {
            let mut words = [0; BLOCK];
            words.iter_mut().zip(&*marks).for_each(|(word, marks)| *word = bits(marks));
            marks.fill([0; WORD]);
            let count = ones(&words[..marks.len()], &FIRSTS, self.places);
            let numbers = self.places[..count].iter().copied().map(usize::from);
            self.branches.extend(numbers.map(|number| branches[number]));
        }
    }
}

/// Bit n is byte n, which is 0 or 1.
#[inline(always)]
fn bits(bytes: &[u8; WORD]) -> u64 {
    // The product has each byte's bit in its highest byte, and no two sums of lower ones carry over.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = bytes.as_chunks::<8>();
    let eights = eights.iter().map(|eight| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56);
    eights.enumerate().fold(0, |all, (at, eight)| all | eight << (8 * at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_bits_in_their_order() {
        let mut number = 1_u64;
        for _ in 0..200 {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let word = number ^ number >> 31;
            let bytes = std::array::from_fn(|bit| (word >> bit & 1) as u8);
            assert_eq!(bits(&bytes), word);
        }
        assert_eq!(bits(&[1; WORD]), u64::MAX);
    }
}
