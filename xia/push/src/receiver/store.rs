//! Where symbols lie on disk, and how they get there in few large writes.
//!
//! Source symbols go straight to their place in the part file, which is sparse until it is complete.
//! Repair symbols go to slots of a second file; a slot begins with a header that says what is in it,
//! so that a slot used again after a list of slots was saved is never mistaken for what it held then.
//!
//! Symbols that follow one another on disk are gathered into one write of up to [`RUN`] bytes.

use std::collections::BTreeSet;
use std::time::Duration;

use weft_base::{FileId, Instant};
use weft_runtime::DiskRequest;

use super::blocks::Repair;
use crate::object::Extent;

/// Most bytes gathered into one write.
const RUN: usize = 64 * 1024;
/// Longest time that symbols are gathered.
const GATHER: Duration = Duration::from_millis(20);
/// Octets of a slot before its symbol: offset of the block, encoding symbol id, four zeros.
const SLOT_HEADER: usize = 16;

/// A write of source symbols `first..first + count` of the block at `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceWrite {
    pub(super) block: u64,
    pub(super) first: u32,
    pub(super) count: u32,
}

/// A write to make, and what it holds.
#[derive(Debug)]
pub(super) enum Write {
    Source(SourceWrite, DiskRequest),
    Repairs(Vec<(u64, Repair)>, DiskRequest),
}

#[derive(Debug, Default)]
struct SourceRun {
    block: u64,
    first: u32,
    count: u32,
    offset: u64,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct RepairRun {
    symbols: Vec<(u64, Repair)>,
    bytes: Vec<u8>,
}

/// The two files of an object that is being received.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) part: FileId,
    pub(super) repair: FileId,
    source_run: SourceRun,
    repair_run: RepairRun,
    /// Since when something is being gathered.
    since: Option<Instant>,
    /// Slots below `slots` that are free.
    free: BTreeSet<u32>,
    slots: u32,
}

impl Store {
    pub(super) fn new(part: FileId, repair: FileId) -> Self {
        Self {
            part,
            repair,
            source_run: SourceRun::default(),
            repair_run: RepairRun::default(),
            since: None,
            free: BTreeSet::new(),
            slots: 0,
        }
    }

    /// Forgets everything but the files.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.part, self.repair);
    }

    /// Marks the slots that are in use; all others below the last are free.
    pub(super) fn use_slots(&mut self, used: &BTreeSet<u32>) {
        self.slots = used.last().map_or(0, |last| last + 1);
        self.free = (0..self.slots).filter(|slot| !used.contains(slot)).collect();
    }

    /// Puts a source symbol in its place. `payload` may be longer than what is left of the block.
    pub(super) fn put_source(
        &mut self,
        now: Instant,
        block: Extent,
        esi: u32,
        payload: &[u8],
    ) -> Option<Write> {
        let (offset, len) = block.bytes_of(esi, 1, payload.len() as u16);
        let run = &self.source_run;
        let follows = run.block == block.offset
            && run.first + run.count == esi
            && run.bytes.len() + len <= RUN
            && run.offset + run.bytes.len() as u64 == offset;
        let full = if follows && !run.bytes.is_empty() { None } else { self.flush_source() };
        let run = &mut self.source_run;
        if run.bytes.is_empty() {
            let bytes = Vec::with_capacity(RUN);
            *run = SourceRun { block: block.offset, first: esi, count: 0, offset, bytes };
        }
        run.count += 1;
        run.bytes.extend_from_slice(&payload[..len]);
        self.since.get_or_insert(now);
        full
    }

    /// A free slot below `limit`.
    pub(super) fn take_slot(&mut self, limit: u32) -> Option<u32> {
        self.free.pop_first().or_else(|| {
            (self.slots < limit).then(|| {
                self.slots += 1;
                self.slots - 1
            })
        })
    }

    /// How many slots there are, free ones included.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Gives slots back.
    pub(super) fn free_slots(&mut self, repairs: &[Repair]) {
        self.free.extend(repairs.iter().map(|repair| repair.slot));
        if self.free.len() == self.slots as usize {
            self.free.clear();
            self.slots = 0;
        }
    }

    /// Puts a repair symbol into its slot.
    pub(super) fn put_repair(
        &mut self,
        now: Instant,
        block: u64,
        repair: Repair,
        payload: &[u8],
    ) -> Option<Write> {
        let run = &self.repair_run;
        let follows = run.symbols.last().is_some_and(|(_, last)| last.slot + 1 == repair.slot)
            && run.bytes.len() + SLOT_HEADER + payload.len() <= RUN;
        let full = if follows { None } else { self.flush_repairs() };
        let run = &mut self.repair_run;
        run.symbols.push((block, repair));
        run.bytes.extend_from_slice(&slot_header(block, repair.esi));
        run.bytes.extend_from_slice(payload);
        self.since.get_or_insert(now);
        full
    }

    /// Writes everything that is being gathered.
    pub(super) fn flush(&mut self) -> impl Iterator<Item = Write> + use<> {
        self.since = None;
        [self.flush_source(), self.flush_repairs()].into_iter().flatten()
    }

    fn flush_source(&mut self) -> Option<Write> {
        let run = std::mem::take(&mut self.source_run);
        (!run.bytes.is_empty()).then(|| {
            let what = SourceWrite { block: run.block, first: run.first, count: run.count };
            let (file, offset, bytes) = (self.part, run.offset, run.bytes);
            Write::Source(what, DiskRequest::Write { file, offset, bytes })
        })
    }

    fn flush_repairs(&mut self) -> Option<Write> {
        let run = std::mem::take(&mut self.repair_run);
        let (_, first) = *run.symbols.first()?;
        let size = run.bytes.len() / run.symbols.len();
        let offset = u64::from(first.slot) * size as u64;
        let request = DiskRequest::Write { file: self.repair, offset, bytes: run.bytes };
        Some(Write::Repairs(run.symbols, request))
    }

    /// When what is being gathered must be written at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since + GATHER)
    }

    /// Whether symbols of this block are still being gathered.
    pub(super) fn gathers(&self, block: u64) -> bool {
        !self.source_run.bytes.is_empty() && self.source_run.block == block
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.source_run.bytes.capacity() + self.repair_run.bytes.capacity() + self.free.len() * 8
    }
}

/// Bytes of a slot.
pub(super) fn slot_size(symbol_size: u16) -> usize {
    SLOT_HEADER + usize::from(symbol_size)
}

fn slot_header(block: u64, esi: u32) -> [u8; SLOT_HEADER] {
    let mut header = [0; SLOT_HEADER];
    header[..8].copy_from_slice(&block.to_be_bytes());
    header[8..12].copy_from_slice(&esi.to_be_bytes());
    header
}

/// The symbol in a slot, if it is the right one.
pub(super) fn symbol_in_slot(slot: &[u8], block: u64, esi: u32, symbol_size: u16) -> Option<&[u8]> {
    let (header, symbol) = slot.split_at_checked(SLOT_HEADER)?;
    let right = header == slot_header(block, esi) && symbol.len() == usize::from(symbol_size);
    right.then_some(symbol)
}

/// Neighbouring slots as runs: first slot and the repair symbols in them.
pub(super) fn slot_runs(repairs: &[Repair]) -> Vec<Vec<Repair>> {
    let mut sorted = repairs.to_vec();
    sorted.sort_by_key(|repair| repair.slot);
    let mut runs: Vec<Vec<Repair>> = Vec::new();
    for repair in sorted {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| last.slot + 1 == repair.slot) => {
                run.push(repair);
            }
            _ => runs.push(vec![repair]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Store {
        Store::new(FileId(1), FileId(2))
    }

    const BLOCK: Extent = Extent { offset: 1000, len: 95 };

    fn written(write: Option<Write>) -> (FileId, u64, usize) {
        let (Write::Source(_, request) | Write::Repairs(_, request)) = write.unwrap();
        let DiskRequest::Write { file, offset, bytes } = request else { panic!("{request:?}") };
        (file, offset, bytes.len())
    }

    #[test]
    fn neighbours_are_written_together() {
        let mut store = store();
        for esi in [2, 3, 4] {
            assert!(store.put_source(Instant::ZERO, BLOCK, esi, &[1; 10]).is_none());
        }
        assert!(store.gathers(1000));
        let write = store.put_source(Instant::ZERO, BLOCK, 9, &[1; 10]);
        assert_eq!(written(write), (FileId(1), 1020, 30));
        let rest: Vec<_> = store.flush().collect();
        assert_eq!(rest.len(), 1);
        assert_eq!(written(rest.into_iter().next()), (FileId(1), 1090, 5));
        assert_eq!(store.deadline(), None);
    }

    #[test]
    fn a_run_has_a_largest_size_and_a_longest_time() {
        let mut store = store();
        let block = Extent { offset: 0, len: 1 << 20 };
        let now = Instant::ZERO;
        let writes = (0..200).filter_map(|esi| store.put_source(now, block, esi, &[0; 1024]));
        assert_eq!(writes.map(|write| written(Some(write)).2).collect::<Vec<_>>(), [RUN; 3]);
        assert_eq!(store.deadline(), Some(now + GATHER));
    }

    #[test]
    fn slots_are_used_again() {
        let mut store = store();
        assert_eq!(
            [store.take_slot(2), store.take_slot(2), store.take_slot(2)],
            [Some(0), Some(1), None]
        );
        store.free_slots(&[Repair { esi: 7, slot: 0 }]);
        assert_eq!(store.take_slot(2), Some(0));
        store.use_slots(&BTreeSet::from([1, 3]));
        assert_eq!(
            [store.take_slot(9), store.take_slot(9), store.take_slot(9)],
            [Some(0), Some(2), Some(4)]
        );
    }

    #[test]
    fn a_slot_says_what_is_in_it() {
        let mut store = store();
        for (slot, esi) in [(4, 100), (5, 107)] {
            let repair = Repair { esi, slot };
            assert!(store.put_repair(Instant::ZERO, 1000, repair, &[slot as u8; 3]).is_none());
        }
        let Some(Write::Repairs(_, DiskRequest::Write { offset, bytes, .. })) =
            store.flush().next()
        else {
            panic!()
        };
        assert_eq!(offset, 4 * slot_size(3) as u64);
        let second = &bytes[slot_size(3)..];
        assert_eq!(symbol_in_slot(second, 1000, 107, 3), Some(&[5; 3][..]));
        assert_eq!(symbol_in_slot(second, 1001, 107, 3), None);
        assert_eq!(symbol_in_slot(second, 1000, 108, 3), None);
        assert_eq!(symbol_in_slot(second, 1000, 107, 2), None);
        assert_eq!(symbol_in_slot(&second[..9], 1000, 107, 3), None);
    }

    #[test]
    fn runs_of_slots_are_read_at_once() {
        let repairs = [(9, 5), (10, 3), (11, 4), (12, 9)].map(|(esi, slot)| Repair { esi, slot });
        let runs = slot_runs(&repairs);
        let slots: Vec<Vec<u32>> =
            runs.iter().map(|run| run.iter().map(|repair| repair.slot).collect()).collect();
        assert_eq!(slots, [vec![3, 4, 5], vec![9]]);
    }
}
