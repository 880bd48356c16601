//! Which symbols of which blocks are there.
//!
//! Complete blocks are byte ranges, so a nearly complete object of any size takes almost no memory.
//! A block of which something is missing has a bitmap of its source symbols and a list of its repair
//! symbols, made when its first symbol comes: nothing is allocated because somebody names a large
//! number.

use std::collections::{BTreeMap, BTreeSet};

use super::bitmap::Bitmap;
use super::ranges::Ranges;
use crate::object::Extent;

/// Bytes of memory for a partial block besides its bitmap and list: map entries, allocations.
const PARTIAL_OVERHEAD: usize = 160;

/// A repair symbol on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    /// Encoding symbol id.
    pub(super) esi: u32,
    /// Where it lies in the file of repair symbols.
    pub(super) slot: u32,
}

/// What is being done with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It needs more symbols.
    Collecting,
    /// It waits to be decoded.
    Queued,
    /// Its symbols are being read or decoded.
    Decoding,
    /// It has all source symbols; the last ones are on their way to the disk.
    Filled,
}

/// A block of which something is missing.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) len: u32,
    /// Source symbols that are on disk or on their way there.
    pub(super) held: Bitmap,
    /// Repair symbols, in order of their ids.
    pub(super) repairs: Vec<Repair>,
    /// Writes of source symbols under way.
    pub(super) writes: u32,
    pub(super) phase: Phase,
    /// Symbols needed beyond K because decoding failed before.
    pub(super) extra: u32,
    /// Symbols the block was decoded from; zero if it was not.
    pub(super) used: u32,
}

impl Partial {
    pub(super) fn new(len: u32, symbols: u32) -> Self {
        Self {
            len,
            held: Bitmap::new(symbols),
            repairs: Vec::new(),
            writes: 0,
            phase: Phase::Collecting,
            extra: 0,
            used: 0,
        }
    }

    /// Different symbols that are there.
    pub(super) fn symbols(&self) -> u32 {
        self.held.ones() + self.repairs.len() as u32
    }

    pub(super) fn is_filled(&self) -> bool {
        self.held.ones() == self.held.len()
    }

    /// Whether decoding is worth trying.
    pub(super) fn is_decodable(&self) -> bool {
        self.symbols() >= self.held.len() + self.extra
    }

    pub(super) fn has(&self, esi: u32) -> bool {
        if esi < self.held.len() {
            self.held.get(esi)
        } else {
            self.repairs.binary_search_by_key(&esi, |repair| repair.esi).is_ok()
        }
    }

    pub(super) fn add_repair(&mut self, repair: Repair) {
        if let Err(place) = self.repairs.binary_search_by_key(&repair.esi, |other| other.esi) {
            self.repairs.insert(place, repair);
        }
    }

    /// The end of its last source symbol in the object, for a block at `offset`; zero if it has none.
    pub(super) fn held_end(&self, offset: u64, symbol_size: u16) -> u64 {
        let Some((first, count)) = self.held.runs(true).pop() else { return 0 };
        let (start, len) = Extent { offset, len: self.len }.bytes_of(first, count, symbol_size);
        start + len as u64
    }

    pub(super) fn memory(&self) -> usize {
        PARTIAL_OVERHEAD + self.held.memory() + self.repairs.len() * size_of::<Repair>()
    }
}

/// What can be said of a block somebody names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing of it is there.
    Unknown,
    /// Something of it is there.
    Partial,
    /// All of it is there.
    Complete,
    /// It contradicts blocks that are there.
    Conflict,
}

/// The blocks of one object.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) complete: Ranges,
    partial: BTreeMap<u64, Partial>,
    /// Blocks that have repair symbols.
    repaired: BTreeSet<u64>,
    /// Bytes of memory that the partial blocks take.
    memory: usize,
}

impl Blocks {
    pub(super) fn standing(&self, block: Extent) -> Standing {
        if let Some(partial) = self.partial.get(&block.offset) {
            return if partial.len == block.len { Standing::Partial } else { Standing::Conflict };
        }
        let (start, end) = (block.offset, block.end());
        if self.complete.contains(start, end) {
            return Standing::Complete;
        }
        let before = self.partial.range(..end).next_back();
        let overlaps = before.is_some_and(|(offset, other)| offset + u64::from(other.len) > start);
        if overlaps || self.complete.overlaps(start, end) {
            return Standing::Conflict;
        }
        Standing::Unknown
    }

    pub(super) fn get(&self, offset: u64) -> Option<&Partial> {
        self.partial.get(&offset)
    }

    pub(super) fn get_mut(&mut self, offset: u64) -> Option<&mut Partial> {
        self.partial.get_mut(&offset)
    }

    /// Adds a block of which nothing was known.
    pub(super) fn insert(&mut self, offset: u64, partial: Partial) {
        self.memory += partial.memory();
        if !partial.repairs.is_empty() {
            self.repaired.insert(offset);
        }
        self.partial.insert(offset, partial);
    }

    pub(super) fn add_repair(&mut self, offset: u64, repair: Repair) {
        if let Some(partial) = self.partial.get_mut(&offset) {
            let before = partial.memory();
            partial.add_repair(repair);
            self.memory += partial.memory() - before;
            self.repaired.insert(offset);
        }
    }

    /// Forgets a repair symbol that turned out not to be on disk.
    pub(super) fn remove_repair(&mut self, offset: u64, lost: Repair) {
        if let Some(partial) = self.partial.get_mut(&offset) {
            let before = partial.memory();
            partial.repairs.retain(|repair| *repair != lost);
            self.memory -= before - partial.memory();
        }
    }

    /// Takes all repair symbols of a block.
    pub(super) fn take_repairs(&mut self, offset: u64) -> Vec<Repair> {
        self.repaired.remove(&offset);
        let Some(partial) = self.partial.get_mut(&offset) else { return Vec::new() };
        let repairs = std::mem::take(&mut partial.repairs);
        self.memory -= repairs.len() * size_of::<Repair>();
        repairs
    }

    /// Forgets the repair symbols in slots from `slots` on.
    pub(super) fn cut_repairs(&mut self, slots: u32) {
        for offset in &self.repaired {
            if let Some(partial) = self.partial.get_mut(offset) {
                let before = partial.memory();
                partial.repairs.retain(|repair| repair.slot < slots);
                self.memory -= before - partial.memory();
            }
        }
    }

    /// Forgets blocks of which nothing is left.
    pub(super) fn forget_empty(&mut self) {
        let (repaired, memory) = (&mut self.repaired, &mut self.memory);
        self.partial.retain(|offset, partial| {
            let stays = partial.symbols() > 0;
            if !stays {
                repaired.remove(offset);
                *memory -= partial.memory();
            }
            stays
        });
    }

    /// The end of the last byte in the part file.
    pub(super) fn stored_end(&self, symbol_size: u16) -> u64 {
        let partial = self.iter().map(|(offset, partial)| partial.held_end(offset, symbol_size));
        partial.max().unwrap_or(0).max(self.complete.end())
    }

    /// The block furthest from the start whose repair symbols may be given up.
    pub(super) fn last_repaired(&self) -> Option<u64> {
        self.repaired.iter().rev().copied().find(|offset| {
            self.partial.get(offset).is_some_and(|partial| partial.phase == Phase::Collecting)
        })
    }

    /// Moves a filled block to the complete ones.
    pub(super) fn complete(&mut self, offset: u64) -> Option<Partial> {
        self.repaired.remove(&offset);
        let partial = self.partial.remove(&offset)?;
        self.memory -= partial.memory();
        self.complete.insert(offset, offset + u64::from(partial.len));
        Some(partial)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &Partial)> {
        self.partial.iter().map(|(offset, partial)| (*offset, partial))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.partial.is_empty() && self.complete.is_empty()
    }

    /// Bytes of memory for lists.
    pub(super) fn memory(&self) -> usize {
        self.memory + self.complete.iter().len() * 48
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: u64, len: u32) -> Extent {
        Extent { offset, len }
    }

    #[test]
    fn blocks_that_overlap_others_are_conflicts() {
        let mut blocks = Blocks::default();
        blocks.insert(100, Partial::new(100, 10));
        blocks.insert(300, Partial::new(50, 5));
        blocks.complete(300);
        assert_eq!(blocks.standing(block(100, 100)), Standing::Partial);
        assert_eq!(blocks.standing(block(100, 99)), Standing::Conflict);
        assert_eq!(blocks.standing(block(50, 51)), Standing::Conflict);
        assert_eq!(blocks.standing(block(199, 1)), Standing::Conflict);
        assert_eq!(blocks.standing(block(0, 1000)), Standing::Conflict);
        assert_eq!(blocks.standing(block(300, 50)), Standing::Complete);
        assert_eq!(blocks.standing(block(310, 10)), Standing::Complete);
        assert_eq!(blocks.standing(block(320, 50)), Standing::Conflict);
        assert_eq!(blocks.standing(block(50, 50)), Standing::Unknown);
        assert_eq!(blocks.standing(block(200, 100)), Standing::Unknown);
    }

    #[test]
    fn a_symbol_counts_once() {
        let mut partial = Partial::new(100, 10);
        partial.held.set(3, true);
        partial.add_repair(Repair { esi: 20, slot: 0 });
        partial.add_repair(Repair { esi: 15, slot: 1 });
        partial.add_repair(Repair { esi: 20, slot: 2 });
        assert_eq!(partial.symbols(), 3);
        assert!(partial.has(3) && partial.has(15) && partial.has(20));
        assert!(!partial.has(4) && !partial.has(16));
    }
}
