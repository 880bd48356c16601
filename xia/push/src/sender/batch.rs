//! The symbols of one block that are on their way out.

use std::vec;

use crate::object::{Extent, ObjectId, ObjectKind};
use crate::wire::Symbol;
use weft_base::Packet;

/// Symbols ready to be sent, in order.
pub(super) struct Batch {
    /// The round they belong to.
    pub(super) round: u32,
    block: Extent,
    /// The block's bytes, if its source symbols are sent.
    source: Vec<u8>,
    sent_source: usize,
    repair: vec::IntoIter<(u32, Vec<u8>)>,
}

impl Batch {
    /// Source symbols out of `source` (empty for none), then `repair` symbols.
    pub(super) fn new(
        round: u32,
        block: Extent,
        source: Vec<u8>,
        repair: Vec<(u32, Vec<u8>)>,
    ) -> Self {
        Self { round, block, source, sent_source: 0, repair: repair.into_iter() }
    }

    /// The next datagram, and whether it is a source symbol.
    pub(super) fn next(
        &mut self,
        object: ObjectId,
        kind: ObjectKind,
        symbol_size: u16,
    ) -> Option<(Packet, bool)> {
        let size = usize::from(symbol_size);
        let start = self.sent_source * size;
        let symbol = |esi, payload| Symbol { object, kind, block: self.block, esi, payload };
        if start < self.source.len() {
            let end = self.source.len().min(start + size);
            let packet =
                symbol(self.sent_source as u32, &self.source[start..end]).emit(symbol_size);
            self.sent_source += 1;
            return Some((packet, true));
        }
        let (esi, payload) = self.repair.next()?;
        Some((symbol(esi, &payload).emit(symbol_size), false))
    }

    /// Bytes held in memory.
    pub(super) fn memory(&self) -> usize {
        self.source.capacity()
            + self.repair.as_slice().iter().map(|(_, symbol)| symbol.len()).sum::<usize>()
    }

    /// How far into the object the batch is, in bytes.
    pub(super) fn position(&self) -> u64 {
        self.block.offset
    }
}
