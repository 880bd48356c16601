//! Which symbols and announces are believed.
//!
//! Before the announce, the first symbol of a block settles where it lies; what contradicts it is
//! dropped. The announce settles everything: for a file it cannot lie, because the id is its digest.

use weft_runtime::Level;

use super::{Outcome, Reception, Stage};
use crate::object::{Extent, ObjectKind};
use crate::receiver::blocks::{Partial, Phase, Standing};
use crate::receiver::config::Limits;
use crate::receiver::events::DropReason;
use crate::receiver::world::World;
use crate::wire::{Announce, Symbol};

impl Reception {
    /// Whether a symbol is wanted; makes room for its block in the lists.
    pub(super) fn admit(
        &mut self,
        world: &mut World<'_>,
        symbol: &Symbol<'_>,
    ) -> Result<(), DropReason> {
        let size = symbol.payload.len() as u16;
        if symbol.kind != self.kind || self.symbol_size.is_some_and(|known| known != size) {
            return Err(DropReason::Conflict);
        }
        let block = symbol.block;
        match self.blocks.standing(block) {
            Standing::Complete => return Err(DropReason::Surplus),
            Standing::Conflict => return Err(DropReason::Conflict),
            Standing::Unknown => self.check_block(world, block, size)?,
            Standing::Partial => {}
        }
        if let Some(partial) = self.blocks.get(block.offset) {
            if partial.phase != Phase::Collecting {
                return Err(DropReason::Surplus);
            }
            if partial.has(symbol.esi) {
                return Err(DropReason::Duplicate);
            }
        }
        let sender_disk = world.shared.disk.get(&self.sender).copied().unwrap_or(0);
        if sender_disk + u64::from(size) > world.shared.config.limits.disk_bytes_per_sender {
            return Err(DropReason::SenderDisk);
        }
        if let Some(reason) = world.shared.write_hindrance(world.now) {
            return Err(reason);
        }
        if self.blocks.get(block.offset).is_none() {
            self.add_block(world, block, size)?;
        }
        self.symbol_size = Some(size);
        Ok(())
    }

    /// Whether a block of which nothing is known may exist.
    fn check_block(
        &self,
        world: &World<'_>,
        block: Extent,
        symbol_size: u16,
    ) -> Result<(), DropReason> {
        let limits = &world.shared.config.limits;
        if block.len > limits.block_bytes
            || block.symbols(symbol_size) > limits.block_symbols
            || block.end() > limits.object_bytes
        {
            return Err(DropReason::TooLarge);
        }
        if self.fits(block) { Ok(()) } else { Err(DropReason::Conflict) }
    }

    /// Whether a block is one of those the announce describes, as far as it is known.
    fn fits(&self, block: Extent) -> bool {
        let Some(description) = &self.description else { return true };
        let length = self.total.map(|total| total.length);
        match (self.kind, length) {
            (ObjectKind::File, Some(length)) => {
                description.file_block(length, block.offset) == Some(block)
            }
            (_, length) => {
                block.len <= description.block_size
                    && length.is_none_or(|length| block.end() <= length)
            }
        }
    }

    fn add_block(
        &mut self,
        world: &mut World<'_>,
        block: Extent,
        symbol_size: u16,
    ) -> Result<(), DropReason> {
        let partial = Partial::new(block.len, block.symbols(symbol_size));
        if world.shared.index + partial.memory() > world.shared.config.limits.index_bytes {
            return Err(DropReason::Index);
        }
        self.blocks.insert(block.offset, partial);
        Ok(())
    }

    /// An announce of this object, whose id was checked if it is a file.
    pub(super) fn on_announce(&mut self, world: &mut World<'_>, announce: Announce) {
        self.heard = world.now;
        if !matches!(self.stage, Stage::Receiving) {
            return;
        }
        let known = self.description.as_ref();
        let contradicts = announce.kind != self.kind
            || known.is_some_and(|known| *known != announce.description)
            || (self.total.is_some() && announce.total.is_some() && self.total != announce.total);
        if contradicts {
            return world.drop(DropReason::Conflict);
        }
        let is_news = known.is_none() || (self.total.is_none() && announce.total.is_some());
        if is_news {
            self.learn(world, announce);
        }
    }

    fn learn(&mut self, world: &mut World<'_>, announce: Announce) {
        if let Some(text) = refusal(&world.shared.config.limits, &announce) {
            self.discard(world);
            // It has the name by which people know it.
            self.description = Some(announce.description);
            return self.end(world, Outcome::Failed(text));
        }
        let size = announce.description.symbol_size;
        let is_first = self.description.is_none();
        self.description = Some(announce.description);
        self.total = announce.total.or(self.total);
        let wrong_size = self.symbol_size.is_some_and(|known| known != size);
        if wrong_size || !self.blocks_fit() {
            let line = format!(
                "{}: symbols that came before the announce contradict it and are discarded",
                self.name()
            );
            world.report(Level::Warning, line);
            self.restart(world);
        }
        self.symbol_size = Some(size);
        if is_first {
            let length = self.total.map_or("a live stream".to_owned(), |total| {
                format!("{} bytes, sha256 {}", total.length, total.sha256)
            });
            let line = format!("receiving {}: {length}, from {}", self.name(), self.sender);
            world.report(Level::Info, line);
        }
        self.verify(world);
    }

    /// Whether everything that is there agrees with the announce.
    pub(super) fn blocks_fit(&self) -> bool {
        let partial_fit = self
            .blocks
            .iter()
            .all(|(offset, partial)| self.fits(Extent { offset, len: partial.len }));
        let (Some(description), ObjectKind::File) = (&self.description, self.kind) else {
            return partial_fit;
        };
        let size = u64::from(description.block_size);
        let length = self.total.map_or(u64::MAX, |total| total.length);
        partial_fit
            && self.blocks.complete.iter().all(|(start, end)| {
                start.is_multiple_of(size)
                    && end <= length
                    && (end.is_multiple_of(size) || end == length)
            })
    }
}

/// Why an announced object is not received, if so.
fn refusal(limits: &Limits, announce: &Announce) -> Option<String> {
    let description = &announce.description;
    let length = announce.total.map_or(0, |total| total.length);
    if length > limits.object_bytes {
        let most = limits.object_bytes;
        return Some(format!("{length} bytes are more than the {most} accepted here"));
    }
    let symbols = description.block_size / u32::from(description.symbol_size.max(1));
    if description.block_size > limits.block_bytes || symbols > limits.block_symbols {
        return Some(format!(
            "blocks of {} bytes in {symbols} symbols are larger than accepted here ({} and {}); push \
             it with smaller blocks",
            description.block_size, limits.block_bytes, limits.block_symbols
        ));
    }
    None
}
