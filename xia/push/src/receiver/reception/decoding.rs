//! Decoding a block: its symbols are read back, the missing ones computed and written.

use weft_runtime::{DiskError, DiskReply, DiskRequest};

use super::{Reception, Stage};
use crate::code;
use crate::object::Extent;
use crate::receiver::bitmap::Bitmap;
use crate::receiver::blocks::{Phase, Repair};
use crate::receiver::store::{SourceWrite, Write, slot_runs, slot_size, symbol_in_slot};
use crate::receiver::world::{Job, World};

/// Symbols beyond the needed ones that are used at once if they are there: the failure rate falls by
/// two orders of magnitude with each (RFC 6330 §5.8 and annex of RFC 5053).
const SPARE_SYMBOLS: u32 = 1;

/// A block whose symbols are being read or are ready to be decoded.
pub(super) struct Decode {
    block: Extent,
    /// Source symbols that were there when reading began.
    held: Bitmap,
    source: Vec<u8>,
    repairs: Vec<(u32, Vec<u8>)>,
    /// Reads under way.
    reads: u32,
    /// Something that was counted on could not be read or written.
    spoiled: bool,
}

impl Decode {
    pub(super) fn memory(&self) -> usize {
        let repairs: usize = self.repairs.iter().map(|(_, symbol)| symbol.len()).sum();
        self.source.capacity() + repairs + self.held.memory()
    }
}

impl Reception {
    /// Whether a block waits to be decoded.
    pub(in crate::receiver) fn wants_to_decode(&self) -> bool {
        !self.ready.is_empty() && self.decode.is_none() && matches!(self.stage, Stage::Receiving)
    }

    /// Begins to read the next block that can be decoded.
    pub(in crate::receiver) fn begin_decode(&mut self, world: &mut World<'_>) {
        self.flush(world);
        let (Some(offset), Some(size)) = (self.ready.pop_front(), self.symbol_size) else { return };
        let Some(partial) = self.blocks.get_mut(offset) else { return };
        if partial.phase != Phase::Queued {
            return;
        }
        partial.phase = Phase::Decoding;
        let block = Extent { offset, len: partial.len };
        let held = partial.held.clone();
        let wanted = held.len() - held.ones() + partial.extra + SPARE_SYMBOLS;
        let repairs: Vec<Repair> = partial.repairs.iter().copied().take(wanted as usize).collect();
        let mut decode = Decode {
            block,
            held,
            source: Vec::new(),
            repairs: Vec::new(),
            reads: 0,
            spoiled: false,
        };
        let Some(store) = &self.store else { return };
        let (part, repair) = (store.part, store.repair);
        if let Some(end) = decode.held.runs(true).last().map(|(first, count)| first + count) {
            let (offset, len) = block.bytes_of(0, end, size);
            self.ask(world, Job::ReadBlock, DiskRequest::Read { file: part, offset, len });
            decode.reads += 1;
        }
        for run in slot_runs(&repairs) {
            let Some(first) = run.first() else { continue };
            let offset = u64::from(first.slot) * slot_size(size) as u64;
            let len = run.len() * slot_size(size);
            let request = DiskRequest::Read { file: repair, offset, len };
            self.ask(world, Job::ReadSlots(run), request);
            decode.reads += 1;
        }
        world.shared.decoding = Some(self.serial);
        self.decode = Some(decode);
    }

    pub(super) fn on_decode_read(
        &mut self,
        world: &mut World<'_>,
        job: Job,
        result: Result<DiskReply, DiskError>,
    ) {
        let Some(decode) = &mut self.decode else { return };
        decode.reads -= 1;
        let bytes = match result {
            Ok(DiskReply::Data { bytes, .. }) => bytes,
            Ok(_) => Vec::new(),
            Err(error) => {
                return self.fail(world, format!("cannot be read back: {}", error.text));
            }
        };
        match job {
            Job::ReadSlots(run) => self.take_slots(&run, &bytes),
            _ => decode.source = bytes,
        }
    }

    /// Takes the symbols out of slots that were read.
    fn take_slots(&mut self, run: &[Repair], bytes: &[u8]) {
        let (Some(decode), Some(size)) = (&mut self.decode, self.symbol_size) else { return };
        let offset = decode.block.offset;
        let mut slots = bytes.chunks(slot_size(size));
        let mut wrong = Vec::new();
        for repair in run {
            let slot = slots.next().unwrap_or_default();
            match symbol_in_slot(slot, offset, repair.esi, size) {
                Some(symbol) => decode.repairs.push((repair.esi, symbol.to_vec())),
                None => wrong.push(*repair),
            }
        }
        decode.spoiled |= !wrong.is_empty();
        for repair in wrong {
            self.lose_repair(offset, repair);
        }
    }

    /// What is being decoded lost symbols.
    pub(super) fn spoil_decode(&mut self, block: u64) {
        if let Some(decode) = &mut self.decode {
            decode.spoiled |= decode.block.offset == block;
        }
        self.requeue(block);
    }

    /// Whether a block is ready to be decoded.
    pub(super) fn can_decode_now(&self) -> bool {
        self.decode.as_ref().is_some_and(|decode| decode.reads == 0)
    }

    /// One slice: decodes the block that was read.
    pub(super) fn decode_block(&mut self, world: &mut World<'_>) {
        let Some(decode) = self.decode.take() else { return };
        world.shared.decoding = None;
        let (block, held) = (decode.block, decode.held.clone());
        let used = held.ones() + decode.repairs.len() as u32;
        let decoded = if decode.spoiled { Err(false) } else { self.solve(decode).ok_or(true) };
        match decoded {
            Ok(source) => self.write_missing(world, block, &held, &source, used),
            Err(tried) => self.collect_more(world, block.offset, used, tried),
        }
    }

    fn solve(&self, decode: Decode) -> Option<Vec<u8>> {
        let size = usize::from(self.symbol_size?);
        let symbol = |esi: u32| {
            let start = (esi as usize * size).min(decode.source.len());
            let end = (start + size).min(decode.source.len());
            let mut symbol = Vec::with_capacity(size);
            symbol.extend_from_slice(&decode.source[start..end]);
            symbol.resize(size, 0);
            (esi, symbol)
        };
        let source = (0..decode.held.len()).filter(|esi| decode.held.get(*esi)).map(symbol);
        code::decode(decode.held.len(), size as u16, source.chain(decode.repairs))
    }

    /// Decoding failed: the block needs another symbol, or if it was not tried, those it lost.
    fn collect_more(&mut self, world: &mut World<'_>, offset: u64, used: u32, tried: bool) {
        if let Some(partial) = self.blocks.get_mut(offset) {
            partial.phase = Phase::Collecting;
            if tried {
                self.stats.failures += 1;
                partial.extra = (used + 1).saturating_sub(partial.held.len());
            }
        }
        self.settle_block(world, offset);
    }

    fn write_missing(
        &mut self,
        world: &mut World<'_>,
        block: Extent,
        held: &Bitmap,
        source: &[u8],
        used: u32,
    ) {
        let (Some(size), Some(part)) = (self.symbol_size, self.store.as_ref().map(|s| s.part))
        else {
            return;
        };
        self.stats.decoded += 1;
        for (first, count) in held.runs(false) {
            let (offset, len) = block.bytes_of(first, count, size);
            let start = (offset - block.offset) as usize;
            let bytes = source[start..start + len].to_vec();
            let what = SourceWrite { block: block.offset, first, count };
            let request = DiskRequest::Write { file: part, offset, bytes };
            self.write(world, Some(Write::Source(what, request)));
        }
        if let Some(partial) = self.blocks.get_mut(block.offset) {
            partial.held.set_range(0, held.len(), true);
            partial.phase = Phase::Filled;
            partial.used = used;
        }
        self.settle_block(world, block.offset);
    }
}
