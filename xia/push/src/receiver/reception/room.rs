//! Room for the state on a full disk: the state of nearly everything is worth more than all of it
//! without one, with which no later run can go on.

use weft_runtime::DiskRequest;

use super::Reception;
use crate::object::ObjectKind;
use crate::receiver::store::slot_size;
use crate::receiver::world::World;

/// Bytes given up besides twice those of the state, for what the file system itself needs.
const SPARE: u64 = 64 << 10;

impl Reception {
    /// Gives up what lies at the ends of its files: repair symbols, and if they are not enough what
    /// is furthest from the start of the object.
    pub(super) fn make_room(&mut self, world: &mut World<'_>) {
        let (Some(store), Some(size)) = (&self.store, self.symbol_size) else { return };
        let (part, repair, slots) = (store.part, store.repair, store.slots());
        let room = SPARE + 2 * self.state_len as u64;
        let slot = slot_size(size) as u64;
        let left = u64::from(slots).saturating_sub(room.div_ceil(slot));
        self.blocks.cut_repairs(left as u32);
        world.tell(DiskRequest::SetLen { file: repair, len: left * slot });
        let missing = room.saturating_sub((u64::from(slots) - left) * slot);
        if missing > 0 {
            let end = self.blocks.stored_end(size).saturating_sub(missing);
            self.cut_source(end, size);
        }
        self.blocks.forget_empty();
        let len = self.blocks.stored_end(size);
        world.tell(DiskRequest::SetLen { file: part, len });
    }

    /// Forgets source symbols that reach beyond `end`.
    fn cut_source(&mut self, end: u64, symbol_size: u16) {
        let behind: Vec<u64> = self
            .blocks
            .iter()
            .filter(|(offset, partial)| partial.held_end(*offset, symbol_size) > end)
            .map(|(offset, _)| offset)
            .collect();
        for offset in behind {
            if let Some(partial) = self.blocks.get_mut(offset) {
                let keep = end.saturating_sub(offset) / u64::from(symbol_size);
                let count = partial.held.len();
                let keep = u32::try_from(keep).unwrap_or(count).min(count);
                partial.held.set_range(keep, count - keep, false);
            }
        }
        // Where blocks end is known of files that were announced.
        if let (Some(description), ObjectKind::File) = (&self.description, self.kind) {
            self.blocks.complete.cut(end - end % u64::from(description.block_size));
        }
    }
}
